//! Staged batches are the plain ones, to the bit, and what they need not is said or refused.

use crate::support::{contender, count, misused, printed, trainer};
use serde_json::Value;

/// 30 steps of 16 over 300 pictures: a short batch at the end of each epoch, and a second epoch.
const STEPS: [&str; 6] = ["--images", "300", "--batch-size", "16", "--steps", "30"];

fn run(more: &[&str]) -> Value {
    contender(&[&STEPS, more].concat())
}

#[test]
fn staged_batches_are_the_plain_ones_for_any_workers_and_any_window() {
    let plain = run(&["--step-ms", "0", "--workers", "0", "--staging", "off"]);
    assert_eq!(plain["staged"], false);
    for workers in ["0", "1", "2", "4"] {
        for window in [&[][..], &["--prefetch", "1"], &["--prefetch-factor", "2"]] {
            let staged = ["--step-ms", "0", "--staging", "on", "--workers", workers];
            let row = run(&[&staged, window].concat());
            assert_eq!(row["staged"], true);
            assert_eq!(row["checksum"], plain["checksum"], "{workers} {window:?}");
        }
    }
}

#[test]
fn a_folder_of_pictures_is_staged_likewise() {
    let dir = tempfile::tempdir().unwrap();
    crate::support::draw_folder(dir.path(), 32, (40, "png"));
    let of = |staging| {
        let data = crate::support::text(dir.path());
        let few = ["--data", data, "--batch-size", "8", "--steps", "6"];
        let row = contender(&[&few[..], &["--step-ms", "0", "--staging", staging]].concat());
        row["checksum"].clone()
    };
    assert_eq!(of("on"), of("off"));
}

#[test]
fn staged_batches_stay_within_their_bound_and_its_bytes() {
    // A picture and its class, in bytes.
    const ROW: u64 = 3072 + 4;
    let args = ["--step-ms", "20", "--staging", "on", "--workers", "2"];
    let row = run(&[&args[..], &["--prefetch", "3"]].concat());
    assert_eq!(count(&row, "peak_batches_alive"), 3);
    let most = count(&row, "peak_batch_bytes");
    assert!(most <= 3 * 16 * ROW, "{most} bytes");
}

#[test]
fn a_training_on_staged_batches_has_the_accuracy_of_one_on_plain_ones() {
    let lines = |staging| {
        let few = ["train", "--images", "256", "--batch-size", "16"];
        let text = printed(&[&few[..], &["--epochs", "2", "--staging", staging]].concat());
        // What the loaders waited and held is another thing.
        let lines = text
            .lines()
            .map(|line| line.split("; data: ").next().unwrap());
        let words = lines.flat_map(|line| line.split(',')).map(str::to_owned);
        let words = words.filter(|words| !words.ends_with(" images/s"));
        words.collect::<Vec<_>>()
    };
    assert_eq!(lines("on"), lines("off"));
}

#[test]
fn what_does_not_go_together_is_refused() {
    for (args, flag) in [
        (&["--loader", "burn", "--staging", "on"][..], "--staging"),
        (&["--loader", "burn", "--pin-memory", "on"], "--pin-memory"),
        (
            &["--staging", "off", "--device-prefetch", "2"],
            "--device-prefetch",
        ),
        (
            &["--staging", "off", "--pinned-budget", "64"],
            "--pinned-budget",
        ),
    ] {
        let said = misused(&[&["train"], args].concat());
        assert!(said.contains(flag), "{said}");
    }
}

#[test]
fn what_a_cpu_has_no_use_for_is_named() {
    let few = ["train", "--images", "16", "--epochs", "1"];
    let more = [
        "--staging",
        "on",
        "--pin-memory",
        "on",
        "--device-prefetch",
        "2",
    ];
    let output = trainer(&[&few[..], &more].concat());
    assert!(output.status.success());
    let said = String::from_utf8(output.stderr).unwrap();
    for flag in ["--pin-memory on", "--device-prefetch 2"] {
        assert!(
            said.contains(&format!("note: {flag} has no effect: ")),
            "{said}"
        );
    }
    assert_eq!(said.lines().count(), 2, "{said}");
}
