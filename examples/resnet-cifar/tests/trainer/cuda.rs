//! A card as the trainer's device: what is refused, and what moves over the stand-in driver, which
//! runs no kernels.

use std::env;
use std::fs;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

/// A folder in which the stand-in is the CUDA driver; cargo puts it beside the tests of its
/// selection (`scripts/test-cuda-driver.sh`).
fn stand_in() -> TempDir {
    let library = env::current_exe().unwrap();
    let library = library.with_file_name("libcuda_stand_in.so");
    let folder = tempfile::tempdir().unwrap();
    fs::copy(&library, folder.path().join("libcuda.so"))
        .unwrap_or_else(|why| panic!("no stand-in at {}: {why}", library.display()));
    folder
}

/// The trainer over the stand-in.
fn over(stand_in: &TempDir, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_resnet-cifar"))
        .args(args)
        .env("LD_LIBRARY_PATH", stand_in.path())
        .env_remove("CUDA_VISIBLE_DEVICES")
        .output()
        .unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn without_a_driver_nothing_is_written_and_it_is_said_what_would_do() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("run");
    let place = out.to_str().unwrap();
    for args in [
        ["train", "--device", "cuda", "--out", place],
        ["compare", "--device", "cuda:1", "--report", place],
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_resnet-cifar"))
            .args(args)
            // Should there be a driver: it shows no card.
            .env("CUDA_VISIBLE_DEVICES", "")
            .output()
            .unwrap();
        let text = said(&output);
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(text.contains("no CUDA device was found"), "{text}");
        assert!(text.contains("--device flex"), "{text}");
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(!out.exists());
    }
}

#[test]
fn a_card_that_is_not_there_is_refused_with_how_many_are() {
    let output = over(&stand_in(), &["train", "--device", "cuda:5"]);
    let text = said(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(
        text.contains("cuda:5") && text.contains("this machine has 2"),
        "{text}"
    );
    assert!(output.stdout.is_empty());
}

#[test]
fn a_run_on_a_card_says_what_was_uploaded_and_what_stays_unknown() {
    let stand_in = stand_in();
    let few = ["contender", "--images", "256", "--steps", "8", "--device"];
    let more = ["cuda:1", "--step-ms", "0", "--staging", "off"];
    let output = over(&stand_in, &[&few[..], &more].concat());
    let text = said(&output);
    assert!(output.status.success(), "{text}");
    let row: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&row["device"], &row["staged"]),
        (&Value::from("cuda:1"), &Value::from(false))
    );
    let gpu = &row["gpu"];
    assert!(gpu["upload_bytes_per_second"].as_f64().unwrap() > 0.0);
    assert!(gpu["pinned_bytes"].is_null(), "nothing was staged");
    // Where a real card's library is, it answers; it is no part of the stand-in.
    if gpu["peak_memory_bytes"].is_null() {
        assert_eq!(text.matches("note: ").count(), 1, "{text}");
        assert!(text.contains("NVML"), "{text}");
    }
}

#[test]
fn what_is_uploaded_over_the_stand_in_arrives() {
    let output = over(&stand_in(), &["gpu-check", "content"]);
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    assert!(output.status.success(), "{}", said(&output));
    assert!(text.contains("2000 batches, 0 samples wrong"), "{text}");
    assert!(text.trim_end().ends_with("| holds |"), "{text}");
}

#[test]
fn every_way_of_uploading_is_timed_and_what_needs_kernels_is_skipped() {
    let stand_in = stand_in();
    for (point, rows) in [("speed", 3), ("training", 1), ("growth", 2), ("streams", 2)] {
        let output = over(&stand_in, &["gpu-check", point]);
        assert!(output.status.success(), "{point}: {}", said(&output));
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(text.lines().count(), rows, "{text}");
        assert!(text.lines().all(|row| row.matches('|').count() == 5));
        assert_eq!(text.contains("no kernels"), point != "speed", "{text}");
    }
}
