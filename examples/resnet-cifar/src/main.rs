//! The reference trainer of burn-prefetch: a small residual network on CIFAR, measured beside
//! Burn's own loader.

mod augment;
mod batch;
mod checksum;
mod cli;
mod compare;
mod data;
mod gauge;
mod lifeline;
mod loader;
mod memory;
mod meter;
mod model;
mod number;
mod progress;
mod report;
mod run;
mod step;
mod table;
mod train;

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::Parser as _;

use cli::{Cli, Command};

fn main() -> ExitCode {
    let cli = Cli::parse();
    let done = match cli.command {
        None => compare::compare(&cli.compare),
        Some(Command::Compare(args)) => compare::compare(&args),
        Some(Command::Train(args)) => train::train(&args),
        Some(Command::Contender(args)) => run::contender(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // With stderr gone there is nobody left to tell; the exit code still says it.
            let _ = writeln!(io::stderr().lock(), "error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
