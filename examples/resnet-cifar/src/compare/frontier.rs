//! The settings that nothing beats: as fast as any with their memory.

use super::Row;

/// Marks the rows that no other row beats in memory without losing in speed, or the other way.
pub(super) fn mark(rows: &mut [Row]) {
    let points: Vec<(f64, usize)> = rows.iter().map(point).collect();
    for row in rows.iter_mut() {
        let (rate, bytes) = point(row);
        let beaten = points
            .iter()
            .any(|&(other, held)| other >= rate && held <= bytes && (other > rate || held < bytes));
        row.on_frontier = !beaten;
    }
}

fn point(row: &Row) -> (f64, usize) {
    (row.run.images_per_second, row.run.peak_batch_bytes)
}

#[cfg(test)]
mod tests {
    use super::super::row::tests::row;
    use super::*;

    #[test]
    fn a_row_that_is_slower_and_larger_than_another_is_not_on_the_frontier() {
        let mut rows = [
            row("small", 80.0, 1),
            row("best", 100.0, 2),
            row("same", 100.0, 2),
            row("large", 100.0, 4),
            row("slow", 90.0, 3),
            row("fast", 101.0, 9),
        ];
        mark(&mut rows);
        let marked: Vec<&str> = rows
            .iter()
            .filter(|row| row.on_frontier)
            .map(|row| row.run.name.as_str())
            .collect();
        assert_eq!(marked, ["small", "best", "same", "fast"]);
    }
}
