//! The comparison: each run of each contender in a process of its own, one after the other.

mod contender;
mod contenders;
mod frontier;
mod headline;
mod outputs;
mod row;

use std::collections::BTreeSet;
use std::env;
use std::io::{self, Write as _};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use indicatif::HumanDuration;

use crate::allocator;
use crate::cli::{CompareArgs, RunArgs};
use crate::data::{Drawn, Owner, Request, Split};
use crate::gpu;
use crate::interrupt::{self, Interrupted};
use crate::lifeline;
use crate::note;
use crate::report::{self, Comparison};
use crate::run::{Answer, Run};
use contender::Contender;
use contenders::Common;
pub(crate) use headline::headline;
use outputs::Outputs;
pub(crate) use row::Row;

/// Runs the contenders, prints the table and, where asked, writes JSON, chart and report.
pub(crate) fn compare(args: &CompareArgs) -> anyhow::Result<()> {
    args.run.check()?;
    let outputs = Outputs::of(args)?;
    let common = Common {
        workers: args.run.setup.workers,
        memory_budget: args.memory_budget,
    };
    let contenders = match &args.sweep {
        None => contenders::five(common),
        Some(axes) => contenders::sweep(axes, common)?,
    };
    for note in contenders.notes {
        note::note(note);
    }
    gpu::note(args.run.setup.device);
    let started = Instant::now();
    let rows = Stage::set(args)?.rows(&contenders.all)?;
    let known = rows.iter().map(|row| &row.run);
    let known = known.filter_map(|run| run.memory_budget_bytes.zip(run.reserved_bytes));
    let too_small = known.filter(|(budget, batch)| batch > budget);
    for (budget, batch) in too_small.collect::<BTreeSet<_>>() {
        note::of_budget(budget, batch);
    }
    let comparison = Comparison {
        command: report::command_line(env::args()),
        swept: args.sweep.is_some(),
        took: started.elapsed(),
        rows,
    };
    outputs.write(&comparison, print(&comparison))
}

fn print(comparison: &Comparison) -> anyhow::Result<()> {
    let took: Duration = comparison.took;
    let table = report::table(comparison);
    let (headline, took) = (headline(&comparison.rows), HumanDuration(took));
    let headline = headline.map_or_else(String::new, |headline| format!("\n{headline}\n"));
    let mut out = io::stdout().lock();
    writeln!(out, "{table}\n{headline}All of it took {took}.").context("cannot print the table")
}

/// What all runs have in common.
struct Stage<'a> {
    args: &'a CompareArgs,
    run: RunArgs,
    /// The folder that was drawn for these runs; goes with this value.
    drawn: Option<Drawn>,
}

impl<'a> Stage<'a> {
    /// Draws what is to be drawn. Every process reads its own data; data that cannot be used is
    /// refused here, once.
    fn set(args: &'a CompareArgs) -> anyhow::Result<Self> {
        let request = Request {
            setup: &args.run.setup,
            workload: args.run.workload,
            owner: Owner::User,
        };
        interrupt::or_clean_up()?;
        let drawn = Drawn::of(&request)?;
        let run = if let Some(folder) = &drawn {
            args.run.with_data(folder.path().to_owned())
        } else {
            drop(request.load(Split::Train)?);
            args.run.clone()
        };
        Ok(Self { args, run, drawn })
    }

    /// Every contender in turn, then all of them again, each round beginning with another one.
    fn rows(&self, contenders: &[Contender]) -> anyhow::Result<Vec<Row>> {
        let rounds = self.args.runs as usize;
        let mut runs: Vec<Vec<Run>> = contenders.iter().map(|_| Vec::new()).collect();
        let all = rounds * contenders.len();
        for number in 0..all {
            let (round, turn) = (number / contenders.len(), number % contenders.len());
            let which = (round + turn) % contenders.len();
            let contender = &contenders[which];
            let title = format!("{}/{all} {}", number + 1, contender.name);
            runs[which].push(self.spawn(contender, &title)?);
        }
        let rows = runs.into_iter().zip(contenders);
        let rows = rows.map(|(runs, contender)| Row::of(&contender.name, &runs));
        let mut rows = rows.collect::<anyhow::Result<Vec<_>>>()?;
        frontier::mark(&mut rows);
        Ok(rows)
    }

    fn spawn(&self, contender: &Contender, title: &str) -> anyhow::Result<Run> {
        let name = &contender.name;
        let program = env::current_exe().context("cannot find this program's own file")?;
        let mut command = Command::new(program);
        command
            .args(["contender", "--with-parent", "--title", title])
            .args(self.drawn.as_ref().map(|_| "--drawn"))
            .args(self.run.to_args())
            .args(contender.to_args())
            .env(allocator::VARIABLE, self.args.allocator.name())
            .stderr(Stdio::inherit());
        let output = lifeline::output(&mut command)
            .with_context(|| format!("cannot run the process of {name}"))?;
        if interrupt::ended(output.status) {
            return Err(Interrupted::default().into());
        }
        ensure!(
            output.status.success(),
            "the process of {name} ended with {}",
            output.status
        );
        Answer::read(&output.stdout).with_context(|| name.clone())
    }
}

/// A row for the tests of whatever shows rows.
#[cfg(test)]
pub(crate) fn row_of_test(name: &str) -> Row {
    row::tests::row(name, 123.4, 3 << 20)
}
