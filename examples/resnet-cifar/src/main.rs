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
mod misuse;
mod model;
mod note;
mod number;
mod pause;
mod progress;
mod quiet;
mod report;
mod rows;
mod run;
mod sentence;
mod signals;
mod staged;
mod step;
mod terminal;
mod timeline;
mod train;

use std::env;
use std::io::{self, Write as _};
use std::process::ExitCode;

use cli::{Cli, Command};
use interrupt::Interrupted;
use misuse::Misuse;

fn main() -> ExitCode {
    let cli = match Cli::read(env::args_os()) {
        Ok(cli) => cli,
        Err(said) => return answer(&said),
    };
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
            let said = sentence::of(error.as_ref());
            let _ = writeln!(io::stderr().lock(), "error: {said}");
            if error.is::<Misuse>() {
                ExitCode::from(misuse::EXIT_CODE)
            } else {
                ExitCode::FAILURE
            }
        }
    }
}

/// Help, the version, or why the command line means nothing.
fn answer(said: &clap::Error) -> ExitCode {
    if let Err(error) = said.print() {
        let _ = writeln!(io::stderr().lock(), "error: cannot print: {error}");
        return ExitCode::FAILURE;
    }
    u8::try_from(said.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from)
}
