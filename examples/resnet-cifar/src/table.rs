//! The rows as a table for a terminal.

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{CellAlignment, ContentArrangement, Table};
use indicatif::HumanBytes;

use crate::run::Row;

const HEADINGS: [&str; 7] = [
    "loader",
    "images/s",
    "waiting for data",
    "most batches alive",
    "most batch bytes alive",
    "peak memory above baseline",
    "final loss",
];

/// A title, the table and what to know to read it.
pub(crate) fn render(rows: &[Row]) -> String {
    let mut table = Table::new();
    table
        .load_style(UTF8_FULL_CONDENSED)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_header(HEADINGS)
        .add_rows(rows.iter().map(cells));
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    format!(
        "{}\n{table}\n{}",
        rows.first().map(title).unwrap_or_default(),
        legend(rows)
    )
}

fn title(row: &Row) -> String {
    let work = match row.step_ms {
        Some(wait) => format!("simulated step of {wait} ms"),
        None => row.model.clone(),
    };
    let Row {
        data,
        batch_size,
        workers,
        steps,
        ..
    } = row;
    format!("{work}; {data}; batch size {batch_size}, workers {workers}, steps {steps}")
}

fn cells(row: &Row) -> [String; 7] {
    let alive = match row.bound {
        Some(bound) => format!("{} of {bound}", row.peak_batches_alive),
        None => row.peak_batches_alive.to_string(),
    };
    let bytes = |bytes: usize| HumanBytes(u64::try_from(bytes).unwrap_or(u64::MAX)).to_string();
    [
        row.name.clone(),
        format!("{:.0}", row.images_per_second),
        format!("{:.1} %", 100.0 * row.wait_share),
        alive,
        bytes(row.peak_batch_bytes),
        row.peak_rss_above_baseline
            .map_or("unknown".to_owned(), bytes),
        row.final_loss
            .map_or("none".to_owned(), |loss| format!("{loss:.3}")),
    ]
}

fn legend(rows: &[Row]) -> String {
    let Some(row) = rows.first() else {
        return String::new();
    };
    format!(
        "images/s: median of the {} steps after warm-up. Batches alive: begun and not yet asked for, \
         \"of\" the bound that was set.\nPeak memory: above the most that the same training held \
         without a loader. Final loss: mean of the last 5 steps.",
        row.steps - row.warm_up_steps
    )
}

#[cfg(test)]
mod tests {
    use crate::cli::LoaderKind;

    use super::*;

    fn row(step_ms: Option<u64>) -> Row {
        Row {
            name: "prefetch(2)".to_owned(),
            loader: LoaderKind::Prefetch,
            workers: 3,
            batch_size: 64,
            bound: Some(2),
            steps: 40,
            warm_up_steps: 5,
            data: "drawn shapes, 100 training records".to_owned(),
            model: "ResNet-8".to_owned(),
            step_ms,
            images_per_second: 123.4,
            wait_share: 0.256,
            peak_batches_alive: 2,
            peak_batch_bytes: 3 << 20,
            peak_rss_above_baseline: None,
            final_loss: step_ms.is_none().then_some(1.25),
            losses: Vec::new(),
            checksum: String::new(),
        }
    }

    #[test]
    fn a_row_shows_every_figure() {
        let text = render(&[row(None)]);
        for figure in [
            "prefetch(2)",
            "123",
            "25.6 %",
            "2 of 2",
            "3.00 MiB",
            "unknown",
            "1.250",
            "drawn shapes",
        ] {
            assert!(text.contains(figure), "{figure} is not in\n{text}");
        }
        assert!(text.starts_with("ResNet-8"));
    }

    #[test]
    fn a_simulated_step_is_called_one() {
        let text = render(&[row(Some(7))]);
        assert!(text.starts_with("simulated step of 7 ms"), "{text}");
        assert!(!text.contains("ResNet"));
    }
}
