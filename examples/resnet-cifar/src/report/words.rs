//! Figures as words: the same in the table, the page and the charts.

use std::time::Duration;

use indicatif::HumanBytes;

use super::{budget, card};
use crate::compare::Row;

/// What the columns are called; last those of budgets, where one was set, and of a card, where one
/// computed.
pub(super) fn headings(rows: &[Row]) -> Vec<&'static str> {
    let mut all = vec![
        "loader",
        "images/s",
        "waiting for data",
        "next() p50 / p95 / p99",
        "CPU s per 1,000 batches",
        "most batches alive",
        "most batch bytes alive",
        "peak memory above baseline",
        "final loss",
    ];
    if budget::is_set(rows) {
        all.extend(budget::HEADINGS);
    }
    if on_a_card(rows) {
        all.extend(card::HEADINGS);
    }
    all
}

fn on_a_card(rows: &[Row]) -> bool {
    rows.iter().any(|row| row.run.gpu.is_some())
}

/// The rows under these headings.
pub(super) fn lines(rows: &[Row]) -> impl Iterator<Item = (&Row, Vec<String>)> {
    let budgets = budget::is_set(rows);
    rows.iter().map(move |row| {
        let mut all = cells(row);
        if budgets {
            all.extend(budget::cells(row));
        }
        all.extend(row.run.gpu.iter().flat_map(card::cells));
        (row, all)
    })
}

fn cells(row: &Row) -> Vec<String> {
    let run = &row.run;
    let alive = match run.bound {
        Some(bound) => format!("{} of {bound}", run.peak_batches_alive),
        None => run.peak_batches_alive.to_string(),
    };
    let quantiles = [
        row.wait_p50_seconds,
        row.wait_p95_seconds,
        row.wait_p99_seconds,
    ];
    let rss = run.peak_rss_above_baseline_bytes.map(bytes);
    let loss = run.final_loss.map(|loss| format!("{loss:.3}"));
    vec![
        run.name.clone(),
        rate(row),
        format!("{:.1} %", 100.0 * run.wait_share),
        quantiles.map(time).join(" / "),
        format!("{:.1}", run.cpu_seconds_per_1000_batches),
        alive,
        bytes(run.peak_batch_bytes),
        rss.unwrap_or_else(|| "unknown".to_owned()),
        loss.unwrap_or_else(|| "none".to_owned()),
    ]
}

/// The median and, of several runs, the slowest and the fastest.
fn rate(row: &Row) -> String {
    let (least, most) = row.range();
    let median = row.run.images_per_second;
    match row.images_per_second_of_runs.len() {
        1 => format!("{median:.0}"),
        _ => format!("{median:.0} ({least:.0}–{most:.0})"),
    }
}

/// What was run, in one line.
pub(super) fn title(rows: &[Row], swept: bool) -> String {
    let Some(run) = rows.first().map(|row| &row.run) else {
        return String::new();
    };
    let work = match run.step_ms {
        Some(wait) => format!("simulated step of {wait} ms"),
        None => run.model.clone(),
    };
    let workload = run.workload.title().map(|title| format!(" ({title})"));
    let workers = if swept {
        String::new()
    } else {
        format!(", workers {}", run.workers)
    };
    let card = run.gpu.map(|_| format!(" on {}", run.device));
    let card = card.unwrap_or_default();
    format!(
        "{work}{card}; {}{}; batch size {}{workers}, steps {}, allocator {}",
        run.data,
        workload.unwrap_or_default(),
        run.batch_size,
        run.steps,
        run.allocator.name(),
    )
}

/// How to read the columns, a line for each.
pub(super) fn legend(rows: &[Row], swept: bool) -> Vec<String> {
    let Some(row) = rows.first() else {
        return Vec::new();
    };
    let steps = row.run.steps - row.run.warm_up_steps;
    let runs = match row.images_per_second_of_runs.len() {
        1 => format!("of {steps} steps after warm-up, by all of their time"),
        runs => format!(
            "of {steps} steps after warm-up, by all of their time; median of {runs} runs \
             (slowest–fastest run)"
        ),
    };
    let mut lines = vec![
        format!("images/s: {runs}. CPU: of the whole process, warm-up left out."),
        "A step's time is the wait for data, the step and dropping the batch, so images/s are the batch \
         size by the mean of that; what is measured is read between steps, or after the last."
            .to_owned(),
        "Waiting for data: in next(), and widening staged bytes on the training thread, which other \
         loaders leave to their workers."
            .to_owned(),
        "next(): how long the training thread waited in it; half, 95 % and 99 % of all waits were \
         shorter."
            .to_owned(),
        "Batches alive: from the first fetch until the next() that returns one takes it, \"of\" the bound \
         that was set; bytes: of their items and tensors."
            .to_owned(),
        "Peak memory: above the most that the same training held without a loader. Final loss: mean \
         of the last 5 steps."
            .to_owned(),
    ];
    if budget::is_set(rows) {
        lines.push(budget::LEGEND.to_owned());
    }
    if on_a_card(rows) {
        lines.extend(card::LEGEND.map(str::to_owned));
    }
    if swept {
        lines.push(
            "◆ on the frontier: no other row is as fast with less batch memory, or faster with as \
             little."
                .to_owned(),
        );
    }
    lines
}

/// Bytes in a unit that fits.
pub(crate) fn bytes(bytes: usize) -> String {
    HumanBytes(u64::try_from(bytes).unwrap_or(u64::MAX)).to_string()
}

/// Seconds with two digits that matter and a unit that fits.
pub(super) fn time(seconds: f64) -> String {
    let (value, unit) = match seconds {
        below if below < 1e-6 => (seconds * 1e9, "ns"),
        below if below < 1e-3 => (seconds * 1e6, "µs"),
        below if below < 1.0 => (seconds * 1e3, "ms"),
        _ => (seconds, "s"),
    };
    let digits = usize::from(value < 9.95 && unit != "ns");
    format!("{value:.digits$} {unit}")
}

/// As it would be said.
pub(super) fn duration(took: Duration) -> String {
    indicatif::HumanDuration(took).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::row_of_test;

    #[test]
    fn times_have_a_unit_that_fits() {
        for (seconds, words) in [
            (0.0, "0 ns"),
            (4.2e-7, "420 ns"),
            (1.26e-6, "1.3 µs"),
            (9.99e-3, "10 ms"),
            (0.25, "250 ms"),
            (1.5, "1.5 s"),
        ] {
            assert_eq!(time(seconds), words);
        }
    }

    #[test]
    fn a_row_shows_every_figure() {
        let cells = cells(&row_of_test("prefetch(2)")).join("|");
        for figure in [
            "prefetch(2)",
            "123",
            "25.6 %",
            "12.5",
            "2 of 2",
            "3.00 MiB",
            "unknown",
            "1.250",
        ] {
            assert!(cells.contains(figure), "{figure} is not in {cells}");
        }
    }

    #[test]
    fn what_a_card_did_is_shown_where_one_computed() {
        let columns = |rows: &[Row]| {
            let counts: Vec<usize> = lines(rows).map(|(_, cells)| cells.len()).collect();
            assert_eq!(counts, vec![headings(rows).len(); rows.len()]);
            counts[0]
        };
        let mut rows = [row_of_test("staged")];
        let without = columns(&rows);
        rows[0].run.gpu = Some(crate::gpu::tests::figures());
        rows[0].run.device = "cuda:1".to_owned();
        assert!(columns(&rows) > without);
        assert!(legend(&rows, false).join(" ").contains("NVML"));
        assert!(title(&rows, false).contains(" on cuda:1;"));
    }

    #[test]
    fn a_simulated_step_is_called_one() {
        let mut row = row_of_test("x");
        assert!(title(std::slice::from_ref(&row), false).starts_with("ResNet-8; drawn shapes"));
        row.run.step_ms = Some(7);
        let title = title(&[row], false);
        assert!(title.starts_with("simulated step of 7 ms"), "{title}");
        assert!(!title.contains("ResNet"));
    }
}
