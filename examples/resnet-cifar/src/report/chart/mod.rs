//! The charts, drawn for any background: colours are names that a style fills in.

mod frame;
mod over_time;
mod scale;
mod tradeoff;
mod waits;

use maud::Markup;

use super::Comparison;
use crate::cli::LoaderKind;
use crate::compare::Row;

pub(super) use tradeoff::tradeoff;

/// More lines than that tell nothing.
const MOST_SHOWN: usize = 7;

/// A drawing with a name for its file and a sentence for those who cannot see it.
#[derive(Debug)]
pub(super) struct Chart {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    /// What is seen, in words.
    pub(super) says: String,
    pub(super) size: [u32; 2],
    /// What is inside of `<svg>`.
    pub(super) body: Markup,
}

/// All charts of a report, the most telling first.
pub(super) fn all(comparison: &Comparison) -> Vec<Chart> {
    vec![
        tradeoff(comparison),
        over_time::batches(comparison),
        over_time::resident(comparison),
        waits::waits(comparison),
    ]
}

/// The rows that are drawn one by one, with their colours: all of a few, else Burn's loader and the
/// frontier.
fn shown(comparison: &Comparison) -> Vec<(&Row, String)> {
    let rows = comparison.rows.iter();
    let worth = |row: &&Row| row.on_frontier || is_burns(row);
    let rows: Vec<&Row> = if comparison.rows.len() > MOST_SHOWN {
        rows.filter(worth).take(MOST_SHOWN).collect()
    } else {
        rows.collect()
    };
    let numbered = rows.iter().enumerate();
    let colours: Vec<String> = numbered.map(|(at, row)| colour(row, at)).collect();
    rows.into_iter().zip(colours).collect()
}

fn is_burns(row: &Row) -> bool {
    row.run.loader == LoaderKind::Burn
}

/// The class of a colour: Burn's own, or one of six in turn.
fn colour(row: &Row, at: usize) -> String {
    if is_burns(row) {
        "c0".to_owned()
    } else {
        format!("c{}", (at + 5) % 6 + 1)
    }
}
