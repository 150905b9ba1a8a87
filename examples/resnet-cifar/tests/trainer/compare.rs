//! `compare` end to end: what it prints, what it writes, and that its figures keep their promises.

use std::io::{self, Write as _};
use std::process::{Command, Stdio};
use std::{env, fs};

use crate::support::{count, trainer};
use serde_json::Value;

/// Runs `compare` on the data with a simulated step and returns the rows of the JSON file and what
/// was printed.
fn compare(data: &str) -> (Vec<Value>, String) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("rows.json");
    let json = file.to_str().unwrap();
    let output = trainer(&[
        "compare",
        "--data",
        data,
        "--images",
        "2048",
        "--batch-size",
        "16",
        "--steps",
        "25",
        "--step-ms",
        "20",
        "--runs",
        "1",
        "--json",
        json,
    ]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let rows: Vec<Value> = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    assert_eq!(
        fs::read_dir(dir.path()).unwrap().count(),
        1,
        "nothing but the file itself is left"
    );
    (rows, text)
}

fn check(rows: &[Value]) {
    let names: Vec<_> = rows
        .iter()
        .map(|row| row["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "Burn's loader",
            "prefetch_factor(2)",
            "prefetch_factor(1)",
            "prefetch(2)",
            "staged, prefetch(2)"
        ]
    );
    let (burn, ours) = rows.split_first().unwrap();
    assert_eq!(burn["loader"], "burn");
    assert!(burn["bound"].is_null());
    for (row, bound) in ours.iter().zip([4, 2, 2, 2]) {
        let name = &row["name"];
        assert_eq!(row["loader"], "burn-prefetch");
        assert_eq!(count(row, "bound"), bound, "{name}");
        // 20 ms a step is ample for two workers to fill the window, so the bound is reached, and
        // is never passed.
        assert_eq!(count(row, "peak_batches_alive"), bound, "{name}");
        assert!(count(burn, "peak_batches_alive") > bound);
        assert!(
            count(row, "peak_batch_bytes") < count(burn, "peak_batch_bytes"),
            "{name}"
        );
        assert_eq!(row["checksum"], ours[0]["checksum"], "{name}");
    }
    check_staged(&ours[3], &ours[2]);
    for row in rows {
        assert!(row["gpu"].is_null() && row["device"] == "flex");
        assert!(row["images_per_second"].as_f64().unwrap() > 0.0);
        assert!((0.0..=1.0).contains(&row["wait_share"].as_f64().unwrap()));
        assert!(row["final_loss"].is_null(), "a simulated step has no loss");
        check_waits(row);
        assert!(row.get("peak_rss_above_baseline_bytes").is_some());
        assert_eq!(
            (
                count(row, "workers"),
                count(row, "step_ms"),
                count(row, "steps")
            ),
            (2, 20, 25)
        );
    }
}

/// Bytes instead of floats: a quarter of what the same bound holds of plain batches.
fn check_staged(staged: &Value, plain: &Value) {
    assert_eq!(
        (&staged["staged"], &plain["staged"]),
        (&Value::from(true), &Value::from(false))
    );
    let [staged, plain] = [staged, plain].map(|row| count(row, "peak_batch_bytes"));
    assert!(staged * 4 <= plain, "{staged} and {plain} bytes");
}

/// The quantiles rise, and the histogram holds every measured step.
fn check_waits(row: &Value) {
    let quantiles = ["p50", "p95", "p99"].map(|name| {
        let seconds = &row[format!("wait_{name}_seconds")];
        seconds.as_f64().unwrap()
    });
    assert!(
        quantiles.is_sorted() && quantiles[2] < 60.0,
        "{quantiles:?}"
    );
    let waits = row["waits"].as_array().unwrap().iter();
    let counted: u64 = waits.map(|wait| count(wait, "count")).sum();
    let steps = count(row, "steps") - count(row, "warm_up_steps");
    let runs = row["images_per_second_of_runs"].as_array().unwrap().len();
    assert_eq!(counted, steps * runs as u64);
    assert!(row["cpu_seconds_per_1000_batches"].as_f64().unwrap() > 0.0);
    let timeline = row["timeline"].as_array().unwrap();
    assert!(timeline.len() > 1, "one look at the start and one later");
}

#[test]
fn on_drawn_shapes_ours_stays_within_its_bound_and_below_burns_memory() {
    let (rows, text) = compare("shapes");
    check(&rows);
    assert!(
        text.starts_with("simulated step of 20 ms; drawn shapes, 2048 training records"),
        "{text}"
    );
    for row in &rows {
        assert!(row["data"].as_str().unwrap().contains("drawn"));
        assert!(text.contains(row["name"].as_str().unwrap()));
    }
}

#[test]
fn the_file_is_written_though_nobody_reads_the_table() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("rows.json");
    let mut child = Command::new(env!("CARGO_BIN_EXE_resnet-cifar"))
        .args(["--images", "64", "--steps", "2", "--step-ms", "0"])
        .args(["--runs", "1", "--json"])
        .arg(&file)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(1));
    let rows: Vec<Value> = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    assert_eq!(rows.len(), 5);
}

#[test]
fn on_the_real_pictures_too() {
    let Ok(dir) = env::var("CIFAR10_DIR") else {
        writeln!(io::stderr(), "skipped: CIFAR10_DIR is not set").unwrap();
        return;
    };
    let (rows, text) = compare(&dir);
    check(&rows);
    assert!(text.contains("; CIFAR-10, "), "{text}");
    assert!(!text.contains("drawn"), "{text}");
}
