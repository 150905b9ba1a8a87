//! Workloads differ in what an item costs, never in what arrives.

use std::process::Command;

use crate::support::{contender, draw_folder, refused, text};
use serde_json::Value;

const FEW: [&str; 8] = [
    "--images",
    "128",
    "--batch-size",
    "16",
    "--steps",
    "6",
    "--step-ms",
    "0",
];

fn checksum(workload: &str) -> Value {
    contender(&[&FEW, ["--workload", workload].as_slice()].concat())["checksum"].clone()
}

#[test]
fn waiting_and_uneven_items_are_the_same_pictures_as_those_in_memory() {
    let expected = checksum("memory");
    assert_eq!(checksum("waiting"), expected);
    assert_eq!(checksum("uneven"), expected);
}

/// Compares on drawn files, in a folder for temporary files that must be empty afterwards.
fn drawn(workload: &str) -> Vec<Value> {
    let temporary = tempfile::tempdir().unwrap();
    let out = tempfile::tempdir().unwrap();
    let json = out.path().join("rows.json");
    let output = Command::new(env!("CARGO_BIN_EXE_resnet-cifar"))
        .args(FEW)
        .args([
            "--workload",
            workload,
            "--runs",
            "1",
            "--size",
            "32",
            "--json",
        ])
        .arg(&json)
        .env("TMPDIR", temporary.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert_eq!(temporary.path().read_dir().unwrap().count(), 0);
    serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap()
}

#[test]
fn drawn_files_say_so_and_leave_nothing_behind() {
    for (workload, files) in [("png", "PNG files"), ("jpeg", "JPEG files")] {
        for row in drawn(workload) {
            let wanted = format!("drawn shapes, 128 training records in {files}");
            assert_eq!(row["data"], Value::from(wanted));
            assert_eq!(row["workload"], Value::from(workload));
        }
    }
}

#[test]
fn a_folder_is_read_for_the_files_that_the_workload_is_about() {
    let dir = tempfile::tempdir().unwrap();
    draw_folder(dir.path(), 16, (40, "png"));
    let folder = ["--data", text(dir.path()), "--steps", "2", "--step-ms", "0"];
    let row = contender(&[&folder, ["--workload", "png"].as_slice()].concat());
    assert!(
        row["data"]
            .as_str()
            .unwrap()
            .contains("14 training records in PNG files"),
        "{row}"
    );
    let said = refused(&[&["compare"], &folder[..], &["--workload", "jpeg"]].concat());
    assert!(said.contains("CLASS/*.{jpg, jpeg}"), "{said}");
}
