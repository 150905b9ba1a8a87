//! A memory budget holds by the count of the guards, and its rows say so.

use crate::support::{count, misused, printed, text, trainer};
use serde_json::Value;

/// Of 16 pictures of 3 × 32 × 32: as bytes with a class, as floats with a class, as rows.
const ITEMS: u64 = 16 * (3072 + 1);
const TENSORS: u64 = 16 * (3072 * 4 + 8);
const ROWS: u64 = 16 * (3072 + 4);

const SHORT: [&str; 10] = [
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
];

/// The rows, and what was printed.
fn rows(more: &[&str]) -> (Vec<Value>, String) {
    let dir = tempfile::tempdir().unwrap();
    let json = dir.path().join("rows.json");
    let table = printed(&[&SHORT[..], &["--json", text(&json)], more].concat());
    let rows = std::fs::read(&json).unwrap();
    (serde_json::from_slice(&rows).unwrap(), table)
}

/// What one batch takes while it is made, or made and not asked for.
fn one_batch(row: &Value) -> u64 {
    if row["staged"] == true {
        ROWS
    } else {
        ITEMS + TENSORS
    }
}

/// The guards' count and the loader's own, against what was allowed.
fn check(row: &Value) {
    let [budget, reserved, measured] =
        ["memory_budget_bytes", "reserved_bytes", "peak_batch_bytes"]
            .map(|field| count(row, field));
    let allowed = budget.max(one_batch(row));
    assert!(measured <= allowed, "{measured} of {allowed}: {row}");
    assert!(reserved <= allowed, "{reserved} of {allowed}: {row}");
    assert!(measured <= reserved, "{measured} of {reserved}: {row}");
}

#[test]
fn batch_bytes_stay_within_every_budget_of_a_sweep_or_are_those_of_one_batch() {
    let dir = tempfile::tempdir().unwrap();
    let sweep = ["--sweep", "workers=1,4", "prefetch=8", "staging=off,on"];
    let budgets = "budget=32KiB,512KiB,1MiB";
    let report = ["--report", text(dir.path())];
    let (rows, table) = rows(&[&sweep[..], &[budgets], &report].concat());
    let (burns, ours): (Vec<_>, Vec<_>) = rows.iter().partition(|row| row["loader"] == "burn");
    assert_eq!((burns.len(), ours.len()), (2, 2 * 2 * 3));
    for row in &ours {
        check(row);
        // The bound on batches is not what holds them.
        let alive = count(row, "peak_batches_alive");
        let plain = row["staged"] == false;
        match count(row, "memory_budget_bytes") >> 10 {
            32 => assert_eq!(alive, 1, "{row}"),
            512 if plain => assert!((2..=3).contains(&alive), "{row}"),
            // A batch of the window's eight less, and the budget is full of the others.
            1_024 if plain => assert_eq!(alive, 5, "{row}"),
            _ => assert_eq!(alive, 8, "{row}"),
        }
    }
    for row in burns {
        assert!(row["memory_budget_bytes"].is_null() && row["reserved_bytes"].is_null());
        assert!(row["wait_p99_seconds"].as_f64().unwrap() >= 0.0);
    }
    for file in ["index.html", "report.md"] {
        let shown = std::fs::read_to_string(dir.path().join(file)).unwrap();
        for shown in [&shown, &table] {
            for wanted in [
                "memory budget",
                "most bytes reserved",
                "p99",
                "512.00 KiB",
                "◆",
            ] {
                assert!(shown.contains(wanted), "{wanted} is not in {file}");
            }
        }
    }
}

#[test]
fn a_budget_of_the_command_line_is_every_contenders_but_burns() {
    // A plain number is in MiB, as for --pinned-budget.
    let (rows, table) = rows(&["--memory-budget", "1"]);
    assert_eq!(rows.len(), 5);
    for row in &rows[1..] {
        assert_eq!(count(row, "memory_budget_bytes"), 1 << 20);
        assert!(
            row["name"]
                .as_str()
                .unwrap()
                .ends_with("memory_budget(1MiB)")
        );
        check(row);
    }
    assert!(rows[0]["memory_budget_bytes"].is_null());
    assert!(table.contains("1.00 MiB"), "{table}");
}

#[test]
fn a_budget_of_a_training_holds_for_its_test_too_and_one_below_a_batch_says_so() {
    let output = trainer(&[
        "train",
        "--images",
        "128",
        "--epochs",
        "1",
        "--batch-size",
        "8",
        "--workers",
        "2",
        "--memory-budget",
        "1KiB",
    ]);
    let said = String::from_utf8(output.stdout).unwrap();
    let most = said
        .split(" MiB at most")
        .map(|before| before.rsplit(' ').next());
    let most: Vec<f64> = most.filter_map(|word| word?.parse().ok()).collect();
    // A batch of 8 has 0.117 MiB, of training and of testing.
    assert_eq!(most, [0.12, 0.12], "{said}");
    let noted = String::from_utf8(output.stderr).unwrap();
    let words = "note: a memory budget of 1.00 KiB is less than one batch takes, 120.07 KiB";
    assert!(noted.starts_with(words), "{noted}");
    assert_eq!(noted.lines().count(), 1, "{noted}");
}

#[test]
fn without_a_budget_there_is_no_column_of_it() {
    let (rows, table) = rows(&["--sweep", "workers=1", "prefetch=1"]);
    assert!(rows.iter().all(|row| row["memory_budget_bytes"].is_null()));
    assert!(!table.contains("budget"), "{table}");
    // What is declared is counted all the same: one batch alive, in the making or made.
    assert_eq!(count(&rows[1], "reserved_bytes"), ITEMS + TENSORS);
}

#[test]
fn a_budget_where_none_can_be_kept_is_refused() {
    let burn = misused(&["train", "--loader", "burn", "--memory-budget", "8MiB"]);
    assert!(burn.contains("leave --memory-budget out"), "{burn}");
    let twice = misused(&["--memory-budget", "8MiB", "--sweep", "budget=1MiB"]);
    assert!(twice.contains("leave --memory-budget out"), "{twice}");
}
