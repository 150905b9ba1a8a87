//! Repeated runs, swept settings and allocators: what the rows say of them.

use crate::support::{printed, text};
use serde_json::Value;

/// The rows and the table of a short comparison.
fn rows(more: &[&str]) -> (Vec<Value>, String) {
    let dir = tempfile::tempdir().unwrap();
    let json = dir.path().join("rows.json");
    let few = [
        "--images",
        "256",
        "--batch-size",
        "16",
        "--steps",
        "5",
        "--step-ms",
        "0",
    ];
    let table = printed(&[&few[..], &["--json", text(&json)], more].concat());
    (
        serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap(),
        table,
    )
}

fn names(rows: &[Value]) -> Vec<&str> {
    rows.iter()
        .map(|row| row["name"].as_str().unwrap())
        .collect()
}

#[test]
fn several_runs_become_one_row_with_its_range() {
    let (rows, table) = rows(&["--runs", "3"]);
    assert_eq!(rows.len(), 5);
    for row in &rows {
        let rates = row["images_per_second_of_runs"].as_array().unwrap();
        let mut rates: Vec<f64> = rates.iter().map(|rate| rate.as_f64().unwrap()).collect();
        rates.sort_by(f64::total_cmp);
        assert_eq!(rates.len(), 3);
        let median = row["images_per_second"].as_f64().unwrap();
        assert!((median - rates[1]).abs() < 1e-9, "{median} of {rates:?}");
    }
    assert!(table.contains("median of 3 runs"), "{table}");
    assert!(table.contains("prefetch_factor 2 to 1: "), "{table}");
}

#[test]
fn a_sweep_marks_the_rows_that_nothing_beats() {
    let (rows, table) = rows(&["--runs", "1", "--sweep", "workers=1,2", "prefetch=1,3"]);
    assert_eq!(
        names(&rows),
        [
            "Burn's loader, 1 worker",
            "Burn's loader, 2 workers",
            "prefetch(1), 1 worker",
            "prefetch(3), 1 worker",
            "prefetch(1), 2 workers",
            "prefetch(3), 2 workers",
        ]
    );
    let point = |row: &Value| {
        let rate = row["images_per_second"].as_f64().unwrap();
        (rate, row["peak_batch_bytes"].as_u64().unwrap())
    };
    for row in &rows {
        let (rate, bytes) = point(row);
        let beaten = rows
            .iter()
            .map(point)
            .any(|(other, held)| other >= rate && held <= bytes && (other > rate || held < bytes));
        assert_eq!(row["on_frontier"], Value::from(!beaten), "{}", row["name"]);
    }
    let marked = rows.iter().filter(|row| row["on_frontier"] == true).count();
    assert_eq!(table.matches(" ◆").count(), marked, "{table}");
}

#[test]
fn every_contender_runs_under_the_allocator_that_was_chosen() {
    for allocator in ["system", "mimalloc"] {
        let (rows, table) = rows(&["--runs", "1", "--allocator", allocator]);
        assert!(
            rows.iter().all(|row| row["allocator"] == *allocator),
            "{allocator}"
        );
        assert!(table.contains(&format!("allocator {allocator}")), "{table}");
    }
}
