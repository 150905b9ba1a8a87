//! The command line: what can be asked for, its defaults and its help.

mod axis;
mod compare;
#[cfg(feature = "cuda")]
mod gpu_check;
mod setup;
mod size;
mod staging;
mod train;
mod words;

use clap::{Parser, Subcommand, ValueEnum};

pub(crate) use axis::{Axis, Setting, Value};
pub(crate) use compare::{Allocator, CompareArgs, ContenderArgs, RunArgs, Workload};
#[cfg(feature = "cuda")]
pub(crate) use gpu_check::{GpuCheckArgs, Point};
pub(crate) use setup::{Architecture, Setup, flag_of};
pub(crate) use size::Size;
pub(crate) use staging::{Staging, StagingArgs, Switch};
pub(crate) use train::{LoaderArgs, LoaderKind, TrainArgs};

pub(crate) use crate::device::Device;

const EXAMPLES: &str = "\
Compare:
  resnet-cifar                                     the loaders, on drawn pictures
  resnet-cifar --step-ms 5 --workers 4             the same, as a fast device would see them
  resnet-cifar --workload jpeg --step-ms 50        on JPEG files, resized to 224 x 224
  resnet-cifar --sweep workers=1,2,4 prefetch=1,2,4,8 --step-ms 5 --report out
                                                   every combination; open out/index.html
  resnet-cifar --sweep budget=1MiB,4MiB staging=off,on --step-ms 5
                                                   budgets in bytes, plain and staged
  resnet-cifar --allocator mimalloc --json rows.json
                                                   with another allocator, and keep the figures
Train:
  resnet-cifar train                               on drawn pictures, with a dashboard
  resnet-cifar train --data cifar-10-batches-bin --model resnet20 --epochs 10 --out run
                                                   on CIFAR-10, with checkpoints in run/
  resnet-cifar train --data cifar-10-batches-bin --model resnet20 --epochs 20 --out run --resume
                                                   ten epochs more
  resnet-cifar train --download cifar10 --plain    fetch CIFAR-10 first; no dashboard
  resnet-cifar train --loader burn                 the same training with Burn's own loader
  resnet-cifar train --staging on                  pictures stay bytes until they are on the device

Tables and the lines of each epoch go to standard output; bars, notes and errors to standard error,
bars only where that is a terminal. NO_COLOR is respected. Exit code: 0 done, 1 something failed
(said in one line), 2 a command line that means nothing, 101 a bug, 130 interrupted.
CIFAR's binary files: https://www.cs.toronto.edu/~kriz/cifar.html";

/// Train a residual network with burn-prefetch, and measure it beside Burn's own data loader.
///
/// Without a command it runs `compare`: the same training with Burn's loader, with burn-prefetch
/// under three bounds and with staged batches, each in a process of its own, three times in turn, and
/// prints one table.
#[derive(Debug, Parser)]
#[command(version, args_conflicts_with_subcommands = true, after_long_help = EXAMPLES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    #[command(flatten)]
    pub(crate) compare: CompareArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Compare Burn's loader with burn-prefetch on the same training (what a bare run does).
    #[command(after_long_help = EXAMPLES)]
    Compare(CompareArgs),
    /// Train for some epochs and report the accuracy on held-out pictures.
    #[command(after_long_help = EXAMPLES)]
    Train(TrainArgs),
    /// One run of `compare`, printed as one JSON object.
    #[command(hide = true)]
    Contender(ContenderArgs),
    /// Check on a card what only a card can show, a point at a time.
    #[cfg(feature = "cuda")]
    #[command(hide = true)]
    GpuCheck(GpuCheckArgs),
}

#[cfg(feature = "cuda")]
impl Cli {
    /// What a bare run compares.
    pub(crate) fn defaults() -> CompareArgs {
        Self::parse_from(["resnet-cifar"]).compare
    }
}

/// What Burn's own source can fetch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Download {
    /// CIFAR-10: 60,000 pictures in 10 classes
    Cifar10,
    /// CIFAR-100: 60,000 pictures in 100 classes
    Cifar100,
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_child_process_gets_every_setting_of_its_parent() {
        let flags = [
            "resnet-cifar",
            "--data",
            "some dir",
            "--images",
            "77",
            "--size",
            "48",
            "--model",
            "resnet20",
            "--batch-size",
            "3",
            "--seed",
            "9",
            "--lr",
            "0.125",
            "--steps",
            "11",
            "--step-ms",
            "4",
            "--workload",
            "uneven",
        ];
        let parent = Cli::parse_from(flags).compare.run;
        let loader = LoaderArgs {
            loader: LoaderKind::Prefetch,
            prefetch_factor: Some(6),
            prefetch: Some(7),
            memory_budget: Some(Size(10 << 10)),
            staging: StagingArgs {
                staging: Staging::On,
                pin_memory: Some(Switch::Off),
                device_prefetch: Some(8),
                pinned_budget: Some(Size(9 << 20)),
            },
        };
        let mut args: Vec<OsString> = vec!["resnet-cifar".into(), "contender".into()];
        args.extend(parent.to_args());
        args.extend(loader.to_args());
        let Some(Command::Contender(child)) = Cli::parse_from(args).command else {
            panic!("not read as a contender");
        };
        assert_eq!(format!("{:?}", child.run), format!("{parent:?}"));
        assert_eq!(format!("{:?}", child.loader), format!("{loader:?}"));
    }

    /// The flag and the help of every number that a command takes.
    fn numbers(command: &str) -> Vec<(String, String)> {
        let cli = Cli::command();
        let args = cli.find_subcommand(command).unwrap().get_arguments();
        let numeric = args.filter(|arg| {
            let names = arg.get_value_names().unwrap_or_default();
            let name = names.first().map_or("", |name| name.as_str());
            ["N", "T", "SEED", "RATE", "SIZE"].contains(&name)
        });
        let described = numeric.map(|arg| {
            let flag = format!("--{}", arg.get_long().unwrap());
            (flag, arg.get_help().unwrap().to_string())
        });
        described.collect()
    }

    #[test]
    fn a_number_beyond_reason_is_refused_by_name_with_the_range_that_help_gives() {
        for (command, count) in [("compare", 10), ("train", 13), ("contender", 13)] {
            let numbers = numbers(command);
            assert_eq!(numbers.len(), count, "{numbers:?}");
            for (flag, help) in &numbers {
                let check = |value| check_refusal([command, flag, value], help);
                ["-1", "1e999", "many"].into_iter().for_each(check);
            }
        }
    }

    fn check_refusal([command, flag, value]: [&str; 3], help: &str) {
        let line = ["resnet-cifar", command, flag, value];
        let said = Cli::try_parse_from(line).unwrap_err().to_string();
        let sentence = said.lines().next().unwrap();
        let named = format!("'{value}' for '{flag}");
        assert!(sentence.contains(&named), "{said}");
        let range = match sentence.split_once(" from ") {
            Some((_, range)) => range.split(", such as").next().unwrap(),
            None => "above 0",
        };
        let help = help.replace(',', "");
        assert!(help.contains(range), "{flag}: {range}: {help}");
    }

    #[test]
    fn the_highest_number_of_a_range_is_taken_and_the_next_is_not() {
        for (flag, highest) in [
            ("--images", 1_000_000_u64),
            ("--batch-size", 8_192),
            ("--workers", 1_024),
            ("--steps", 1_000_000),
            ("--step-ms", 60_000),
            ("--runs", 1_000),
            ("--size", 1_024),
        ] {
            let read = |number: u64| {
                let number = number.to_string();
                Cli::try_parse_from(["resnet-cifar", flag, &number]).is_ok()
            };
            assert!(read(highest) && !read(highest + 1), "{flag}");
        }
    }

    #[test]
    fn burns_loader_takes_no_prefetch_setting() {
        let args = LoaderArgs {
            prefetch: Some(2),
            ..LoaderArgs::plain(LoaderKind::Burn)
        };
        assert!(args.check().unwrap_err().to_string().contains("--prefetch"));
    }
}
