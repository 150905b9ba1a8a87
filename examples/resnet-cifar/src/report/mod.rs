//! What a comparison is shown as: a table, JSON, a chart, and a folder with a page for a browser.

mod budget;
mod card;
mod chart;
mod folder;
mod machine;
mod markdown;
mod page;
mod style;
mod table;
mod words;

use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;

use crate::compare::Row;

pub(crate) use folder::ReportFolder;
pub(crate) use table::table;
#[cfg(feature = "cuda")]
pub(crate) use words::bytes;

/// A finished comparison.
#[derive(Debug)]
pub(crate) struct Comparison {
    /// What was typed.
    pub(crate) command: String,
    /// Whether settings were swept: rows are then told apart by more than their loader.
    pub(crate) swept: bool,
    pub(crate) took: Duration,
    pub(crate) rows: Vec<Row>,
}

/// The rows as a JSON list.
pub(crate) fn json(rows: &[Row]) -> anyhow::Result<String> {
    serde_json::to_string_pretty(rows).context("cannot write the rows as JSON")
}

/// Throughput against memory, as an SVG file of its own.
pub(crate) fn plot(comparison: &Comparison) -> String {
    style::standalone(&chart::tradeoff(comparison))
}

/// A command line as it would be typed, the program without its folder.
pub(crate) fn command_line(mut words: impl Iterator<Item = String>) -> String {
    let program = words.next().unwrap_or_default();
    let program = Path::new(&program)
        .file_stem()
        .map(|name| name.to_string_lossy().into_owned());
    let quote = |word: String| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_=,./:".contains(c);
        if !word.is_empty() && word.chars().all(plain) {
            word
        } else {
            format!("'{}'", word.replace('\'', "'\\''"))
        }
    };
    program
        .into_iter()
        .chain(words.map(quote))
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
fn comparison_of_test() -> Comparison {
    use crate::compare::row_of_test;

    let mut rows = ["Burn's <loader>", "ours, 2"].map(row_of_test);
    rows[0].run.loader = crate::cli::LoaderKind::Burn;
    rows[0].run.peak_batch_bytes = 77 << 20;
    rows[0].on_frontier = false;
    rows[1].on_frontier = true;
    Comparison {
        command: "resnet-cifar compare".to_owned(),
        swept: false,
        took: Duration::from_secs(61),
        rows: rows.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_can_be_typed_again() {
        let words = [
            "/a/b/resnet-cifar",
            "--data",
            "my pictures",
            "--sweep",
            "workers=1,2",
            "it's",
        ];
        let words = words.into_iter().map(str::to_owned);
        assert_eq!(
            command_line(words),
            r"resnet-cifar --data 'my pictures' --sweep workers=1,2 'it'\''s'"
        );
    }
}
