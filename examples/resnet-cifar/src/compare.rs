//! The comparison: each contender in its own process, one after the other, and one table.

use std::env;
use std::io::{self, Write as _};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, ensure};
use indicatif::HumanDuration;

use crate::cli::{CompareArgs, LoaderArgs, LoaderKind, RunArgs};
use crate::data::{self, Split};
use crate::lifeline;
use crate::report::Report;
use crate::run::{self, Row};
use crate::table;

/// Runs the contenders, prints the table and, where asked, writes the JSON file.
pub(crate) fn compare(args: &CompareArgs) -> anyhow::Result<()> {
    let file = args.json.as_deref().map(Report::to).transpose()?;
    // Every process reads its own data; data that cannot be used is refused here, once.
    drop(data::load(&args.run.setup, Split::Train)?);
    let started = Instant::now();
    let mut rows = Vec::new();
    for contender in contenders() {
        rows.push(spawn(&args.run, &contender)?);
    }
    let took = HumanDuration(started.elapsed());
    let printed = print(&format!("{}\nAll of it took {took}.", table::render(&rows)));
    // The rows are minutes of work: a reader of the table who has left does not cost the file too.
    if let Some(file) = file {
        let json = serde_json::to_string_pretty(&rows).context("cannot write the rows as JSON")?;
        file.write(&json)?;
    }
    printed
}

fn print(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{text}").context("cannot print the table")
}

/// Burn's loader as it is, then ours under three bounds.
fn contenders() -> [LoaderArgs; 4] {
    let ours = LoaderArgs {
        loader: LoaderKind::Prefetch,
        prefetch_factor: None,
        prefetch: None,
    };
    [
        LoaderArgs {
            loader: LoaderKind::Burn,
            ..ours.clone()
        },
        LoaderArgs {
            prefetch_factor: Some(2),
            ..ours.clone()
        },
        LoaderArgs {
            prefetch_factor: Some(1),
            ..ours.clone()
        },
        LoaderArgs {
            prefetch: Some(2),
            ..ours
        },
    ]
}

fn spawn(args: &RunArgs, contender: &LoaderArgs) -> anyhow::Result<Row> {
    let name = run::name(contender);
    let program = env::current_exe().context("cannot find this program's own file")?;
    let mut command = Command::new(program);
    command
        .args(["contender", "--with-parent"])
        .args(args.to_args())
        .args(contender.to_args())
        .stderr(Stdio::inherit());
    let output = lifeline::output(&mut command)
        .with_context(|| format!("cannot run the process of {name}"))?;
    ensure!(
        output.status.success(),
        "the process of {name} ended with {}",
        output.status
    );
    serde_json::from_slice(&output.stdout)
        .with_context(|| format!("the process of {name} printed no row"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_contenders_are_burns_loader_and_three_bounds() {
        let names = contenders().map(|contender| run::name(&contender));
        assert_eq!(
            names,
            [
                "Burn's loader",
                "prefetch_factor(2)",
                "prefetch_factor(1)",
                "prefetch(2)"
            ]
        );
    }
}
