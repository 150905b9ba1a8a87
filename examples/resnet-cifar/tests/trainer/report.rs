//! A report is whole or not there, and needs nothing but itself.

use std::fs;
use std::path::Path;

use crate::support::{misused, printed, refused, text, trainer};
use serde_json::Value;

const SHORT: [&str; 10] = [
    "--images",
    "256",
    "--batch-size",
    "16",
    "--steps",
    "5",
    "--step-ms",
    "1",
    "--runs",
    "1",
];

fn read(folder: &Path, name: &str) -> String {
    fs::read_to_string(folder.join(name)).unwrap()
}

#[test]
fn a_report_holds_the_table_the_charts_and_the_machine_in_files_that_ask_nobody() {
    let dir = tempfile::tempdir().unwrap();
    let (folder, plot) = (dir.path().join("out"), dir.path().join("plot.svg"));
    let places = ["--report", text(&folder), "--plot", text(&plot)];
    let table = printed(&[&SHORT[..], &places].concat());
    let rows: Vec<Value> = serde_json::from_str(&read(&folder, "rows.json")).unwrap();
    let (page, markdown) = (read(&folder, "index.html"), read(&folder, "report.md"));
    for row in &rows {
        let name = row["name"].as_str().unwrap();
        for shown in [&table, &page, &markdown] {
            assert!(shown.contains(name), "{name}");
        }
    }
    for wanted in [
        "prefetch_factor 2 to 1",
        "rustc 1.",
        "resnet-cifar --images 256",
    ] {
        assert!(
            page.contains(wanted) && markdown.contains(wanted),
            "{wanted}"
        );
    }
    assert_eq!(page.matches("<svg").count(), 4);
    for other in ["http", "src=", "href=", "url(", "<script"] {
        assert!(!page.contains(other), "{other}");
    }
    // The chart alone is the same as the one in the folder.
    assert_eq!(
        fs::read_to_string(&plot).unwrap(),
        read(&folder, "tradeoff.svg")
    );
}

#[test]
fn a_place_that_cannot_be_written_is_refused_before_anything_runs() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    let good = dir.path().join("rows.json");
    for place in [file.clone(), dir.path().join("no/such/folder")] {
        let places = ["--json", text(&good), "--report", text(&place)];
        let said = refused(&[&SHORT[..], &places].concat());
        assert!(said.contains("cannot write a report to"), "{said}");
        assert!(said.contains(text(&place)), "{said}");
    }
    let plot = refused(&[&SHORT[..], &["--plot", "/no/such/folder/plot.svg"]].concat());
    assert!(plot.contains("/no/such/folder/plot.svg"), "{plot}");
    assert_eq!(
        fs::read_dir(dir.path()).unwrap().count(),
        1,
        "only the file of before"
    );
}

#[test]
fn one_place_for_two_results_is_refused_before_anything_runs() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.json");
    let said = misused(&[&SHORT[..], &["--json", text(&file), "--plot", text(&file)]].concat());
    assert!(said.contains("--json") && said.contains("--plot"), "{said}");
    assert!(said.contains("a place of its own"), "{said}");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[cfg(target_os = "linux")]
#[test]
fn a_result_that_cannot_be_written_costs_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let (json, report) = (dir.path().join("rows.json"), dir.path().join("out"));
    let places = [
        "--json",
        text(&json),
        "--plot",
        "/dev/full",
        "--report",
        text(&report),
    ];
    let output = trainer(&[&SHORT[..], &places].concat());
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.starts_with("error: cannot write /dev/full: "),
        "{said}"
    );
    assert_eq!(said.lines().count(), 1, "{said}");
    assert_eq!(
        fs::read(&json).unwrap(),
        fs::read(report.join("rows.json")).unwrap()
    );
    assert!(report.join("index.html").exists());
    assert!(!output.stdout.is_empty());
}
