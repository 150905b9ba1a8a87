//! The reference trainer of burn-prefetch: a residual network on pictures, measured beside Burn's
//! own loader.

mod allocator;
mod augment;
mod batch;
mod batcher;
mod checksum;
mod cli;
mod compare;
mod data;
mod destination;
mod device;
mod extra;
mod gauge;
mod gpu;
#[cfg(feature = "cuda")]
mod gpu_check;
mod interrupt;
mod items;
mod lifeline;
mod loader;
mod memory;
mod meter;
mod model;
mod number;
mod pause;
mod progress;
mod quiet;
mod report;
mod rows;
mod run;
mod signals;
mod staged;
mod step;
mod terminal;
mod timeline;
mod train;

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::Parser as _;

use cli::{Cli, Command};
use interrupt::Interrupted;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let done = match cli.command {
        None => compare::compare(&cli.compare),
        Some(Command::Compare(args)) => compare::compare(&args),
        Some(Command::Train(args)) => train::train(&args),
        Some(Command::Contender(args)) => run::contender(&args),
        #[cfg(feature = "cuda")]
        Some(Command::GpuCheck(args)) => gpu_check::gpu_check(&args),
    };
    if done.is_err() {
        interrupt::wait_if_begun();
    }
    match done {
        Ok(()) => ExitCode::SUCCESS,
        // With stderr gone there is nobody left to tell; the exit code still says it.
        Err(error) if error.is::<Interrupted>() => {
            let _ = writeln!(io::stderr().lock(), "{error}");
            ExitCode::from(interrupt::EXIT_CODE)
        }
        Err(error) => {
            let _ = writeln!(io::stderr().lock(), "error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
