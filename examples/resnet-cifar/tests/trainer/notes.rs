//! What `compare` says beside its table: each note once.

use std::fs;

use crate::support::{printed, text, trainer};
use serde_json::Value;

const SHORT: [&str; 10] = [
    "--images",
    "64",
    "--batch-size",
    "16",
    "--steps",
    "2",
    "--step-ms",
    "0",
    "--runs",
    "2",
];

/// The notes, and how many contenders there were.
fn notes(more: &[&str]) -> (Vec<String>, usize) {
    let dir = tempfile::tempdir().unwrap();
    let json = dir.path().join("rows.json");
    let output = trainer(&[&SHORT[..], &["--json", text(&json)], more].concat());
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    let rows: Vec<Value> = serde_json::from_slice(&fs::read(&json).unwrap()).unwrap();
    (said.lines().map(str::to_owned).collect(), rows.len())
}

#[test]
fn what_has_no_effect_is_left_out_and_said_once_in_words_that_compare_has() {
    for (more, contenders) in [
        (&["--workers", "0"][..], 3),
        (
            &[
                "--sweep",
                "workers=0",
                "prefetch=1,2",
                "prefetch-factor=1,2",
            ],
            2,
        ),
        (
            &["--sweep", "workers=2", "prefetch=1,9", "prefetch-factor=1"],
            3,
        ),
    ] {
        let (said, rows) = notes(more);
        assert_eq!(rows, contenders, "{more:?}");
        assert_eq!(said.len(), 1, "{more:?}: {said:?}");
        assert!(said[0].starts_with("note: "), "{said:?}");
        assert!(!said[0].contains("--prefetch"), "{said:?}");
    }
    assert_eq!(notes(&["--sweep", "workers=1", "prefetch=1"]).0, [""; 0]);
}

#[test]
fn axes_may_follow_an_equals_sign() {
    let table = printed(&[&SHORT[..], &["--sweep=workers=1", "prefetch=2"]].concat());
    assert!(table.contains("prefetch(2), 1 worker"), "{table}");
}
