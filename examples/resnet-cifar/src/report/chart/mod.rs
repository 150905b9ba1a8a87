//! The charts, drawn for any background: colours are names that a style fills in.

mod frame;
mod labels;
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

/// The files of all charts, in their order.
pub(super) const FILES: [&str; 4] = ["tradeoff.svg", "memory.svg", "resident.svg", "waits.svg"];

/// All charts of a report, the most telling first.
pub(super) fn all(comparison: &Comparison) -> Vec<Chart> {
    vec![
        tradeoff(comparison),
        over_time::batches(comparison),
        over_time::resident(comparison),
        waits::waits(comparison),
    ]
}

/// The rows that are drawn one by one, with their colours: all of a few, else the frontier and
/// Burn's fastest.
fn shown(comparison: &Comparison) -> Vec<(&Row, String)> {
    let rows = &comparison.rows;
    let rate = |row: &&Row| row.run.images_per_second;
    let burns = rows.iter().filter(|row| is_burns(row));
    let burns = burns.max_by(|one, other| rate(one).total_cmp(&rate(other)));
    let few = rows.len() <= MOST_SHOWN;
    let worth = |row: &&Row| {
        let fastest = burns.is_some_and(|burns| burns.run.name == row.run.name);
        few || fastest || (row.on_frontier && !is_burns(row))
    };
    let rows = rows.iter().filter(worth).take(MOST_SHOWN).enumerate();
    rows.map(|(at, row)| (row, colour(row, at))).collect()
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
