//! The same batches, bit for bit, for any number of workers, and the same training with them.

use std::io::{self, Write as _};

use crate::support::{contender, count, printed, trainer};
use serde_json::Value;

/// 30 steps of 16 over 300 pictures: a short batch at the end of each epoch, and a second epoch.
const STEPS: [&str; 6] = ["--images", "300", "--batch-size", "16", "--steps", "30"];

fn checksum(more: &[&str]) -> Value {
    contender(&[&STEPS, ["--step-ms", "0"].as_slice(), more].concat())["checksum"].clone()
}

#[test]
fn batches_are_equal_for_0_1_2_and_4_workers_and_any_window() {
    let expected = checksum(&["--workers", "0"]);
    for workers in ["1", "2", "4"] {
        for window in [["--prefetch-factor", "2"], ["--prefetch", "1"]] {
            let args = ["--workers", workers, window[0], window[1]];
            assert_eq!(checksum(&args), expected, "{args:?}");
        }
        assert_eq!(
            checksum(&["--workers", workers]),
            expected,
            "{workers} workers, window learned"
        );
    }
}

#[test]
fn another_seed_gives_other_batches() {
    assert_ne!(checksum(&["--seed", "1"]), checksum(&["--seed", "2"]));
}

/// Twenty training steps and what they lose.
fn losses(workers: &str) -> Vec<u32> {
    let row = contender(&[
        "--images",
        "256",
        "--batch-size",
        "8",
        "--steps",
        "20",
        "--workers",
        workers,
    ]);
    let losses = row["losses"].as_array().unwrap().iter();
    #[expect(
        clippy::cast_possible_truncation,
        reason = "they were written from f32"
    )]
    let bits: Vec<u32> = losses
        .map(|loss| (loss.as_f64().unwrap() as f32).to_bits())
        .collect();
    assert_eq!(bits.len(), 20);
    bits
}

#[test]
fn twenty_losses_are_bit_equal_for_any_workers_where_two_plain_runs_are() {
    let expected = losses("0");
    if losses("0") != expected {
        writeln!(
            io::stderr(),
            "skipped: two runs without workers differ on this machine"
        )
        .unwrap();
        return;
    }
    for workers in ["1", "2", "4"] {
        assert_eq!(losses(workers), expected, "{workers} workers");
    }
}

#[test]
fn drawn_shapes_are_learnt_far_above_chance() {
    let row = contender(&["--images", "1024", "--batch-size", "32", "--steps", "40"]);
    // Chance is ln 10 = 2.303; the first loss is above it.
    let loss = row["final_loss"].as_f64().unwrap();
    assert!(loss < 1.6, "final loss {loss}");
    assert!(
        count(&row, "peak_batches_alive") <= 4,
        "the learned window is at most twice the workers"
    );
}

#[test]
fn train_reports_loss_and_test_accuracy_of_every_epoch() {
    let output = trainer(&[
        "train",
        "--images",
        "480",
        "--batch-size",
        "16",
        "--epochs",
        "2",
    ]);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 4, "{text}");
    assert!(
        lines[0].contains("drawn shapes, 480 training records"),
        "{text}"
    );
    assert!(lines[0].contains("drawn shapes, 60 test records"), "{text}");
    assert!(
        lines[1].starts_with("epoch 1: loss ") && lines[1].contains("test accuracy"),
        "{text}"
    );
    let loss = |line: &str| -> f64 {
        line.split("loss ")
            .nth(1)
            .unwrap()
            .split(',')
            .next()
            .unwrap()
            .parse()
            .unwrap()
    };
    assert!(loss(lines[2]) < loss(lines[1]), "{text}");
    let accuracy = lines[2].split("test accuracy ").nth(1).unwrap();
    let accuracy = accuracy.split(' ').next().unwrap();
    let last = format!("test accuracy after epoch 2: {accuracy}");
    assert!(lines[3].starts_with(&last), "{text}");
}

/// The numbers behind "data:" in the line of the first epoch, six of them, or none.
fn data_of(more: &[&str]) -> Vec<f64> {
    let few = ["train", "--images", "128", "--batch-size", "16"];
    let text = printed(&[&few[..], &["--epochs", "1", "--plain"], more].concat());
    let line = text.lines().nth(1).unwrap();
    let data = line.split("; data: ").nth(1).unwrap_or_default();
    let words = data.split([' ', ',']);
    words.filter_map(|word| word.parse().ok()).collect()
}

#[test]
fn train_tells_what_its_loaders_waited_and_held_and_nothing_of_burns() {
    // Each batch is made when it is asked for: none is ready, and one is alive at a time.
    let inline = data_of(&["--workers", "0"]);
    // Pictures of 3 x 32 x 32 bytes and floats with their classes, 16 in a batch, in MiB.
    let batch = 16.0 * (3072.0 * 5.0 + 1.0 + 8.0) / f64::from(1 << 20);
    for of_split in inline.chunks(3) {
        let [wait, ready, memory] = of_split else {
            panic!("{inline:?}")
        };
        assert!(*wait > 0.0 && *ready == 0.0, "{inline:?}");
        assert!((memory - batch).abs() < 0.006, "{inline:?}: {batch}");
    }
    assert_eq!(inline.len(), 6);
    // Of two batches alive one is in the making at most, or both are.
    let ahead = data_of(&["--workers", "2", "--prefetch", "2"]);
    assert!(
        ahead[2] > batch && ahead[2] < 2.0 * batch + 0.01,
        "{ahead:?}"
    );
    assert_eq!(data_of(&["--loader", "burn"]), [0.0; 0]);
}
