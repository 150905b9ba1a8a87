//! The columns of memory budgets, where one was set.

use super::words::bytes;
use crate::compare::Row;

/// What they are called.
pub(super) const HEADINGS: [&str; 2] = ["memory budget", "most bytes reserved"];

/// How to read them.
pub(super) const LEGEND: &str = "Memory budget: bytes that batches alive may have together, and one batch at \
     least; reserved: the most that the loader had set aside for them, by its own count.";

/// Whether any of these rows has a budget.
pub(super) fn is_set(rows: &[Row]) -> bool {
    rows.iter().any(|row| row.run.memory_budget_bytes.is_some())
}

/// One row under these headings.
pub(super) fn cells(row: &Row) -> [String; 2] {
    let shown = |count: Option<u64>| match count {
        Some(count) => bytes(usize::try_from(count).unwrap_or(usize::MAX)),
        None => "none".to_owned(),
    };
    [row.run.memory_budget_bytes, row.run.reserved_bytes].map(shown)
}

#[cfg(test)]
mod tests {
    use crate::compare::row_of_test;

    use super::*;

    #[test]
    fn a_budget_is_shown_with_what_was_reserved_and_a_loader_without_says_so() {
        let mut rows = ["Burn's loader", "memory_budget(8MiB)"].map(row_of_test);
        assert!(!is_set(&rows));
        rows[1].run.memory_budget_bytes = Some(8 << 20);
        rows[1].run.reserved_bytes = Some(5 << 20);
        assert!(is_set(&rows));
        assert_eq!(cells(&rows[0]), ["none", "none"]);
        assert_eq!(cells(&rows[1]), ["8.00 MiB", "5.00 MiB"]);
    }
}
