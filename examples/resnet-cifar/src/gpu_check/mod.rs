//! What can be shown on a card alone, as rows of one table.

mod card;
mod content;
mod finding;
mod growth;
mod numbered;
mod speed;
mod streams;
mod training;

use std::io::{self, Write as _};

use anyhow::Context as _;

use crate::cli::{GpuCheckArgs, Point};
use card::Card;
use finding::Verdict;

/// Checks one point and prints what was found.
///
/// # Errors
///
/// Where the card is not there, or what must hold does not.
pub(crate) fn gpu_check(args: &GpuCheckArgs) -> anyhow::Result<()> {
    let card = Card::open(args.device)?;
    let findings = match args.point {
        Point::Content => content::check(&card),
        Point::Speed => speed::check(&card),
        Point::Training => training::check(&card, &args.data),
        Point::Growth => growth::check(&card),
        Point::Streams => streams::check(&card),
    }?;
    let mut out = io::stdout().lock();
    for finding in &findings {
        writeln!(out, "{finding}").context("cannot print what was found")?;
    }
    let broken = findings
        .iter()
        .find(|finding| finding.verdict == Verdict::Broken);
    match broken {
        None => Ok(()),
        Some(finding) => anyhow::bail!("{}: {}", finding.what, finding.found),
    }
}
