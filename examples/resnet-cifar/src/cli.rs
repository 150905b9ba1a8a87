//! The command line: what can be asked for, its defaults and its help.

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use anyhow::bail;
use clap::{Args, Parser, Subcommand, ValueEnum};
use serde::{Deserialize, Serialize};

use crate::data::Source;
use crate::number::{positive, within};

/// 3 GB of pixels.
const MOST_IMAGES: NonZeroUsize = NonZeroUsize::MIN.saturating_add(999_999);
/// Under ResNet-8 each of some ten layers keeps half a gigabyte for that many pictures.
const MOST_IN_A_BATCH: NonZeroUsize = NonZeroUsize::MIN.saturating_add(8_191);
/// What the loader takes.
const MOST_WORKERS: u16 = 1_024;
const MOST_STEPS: u32 = 1_000_000;
/// A minute.
const MOST_STEP_MS: u64 = 60_000;
const MOST_EPOCHS: NonZeroUsize = NonZeroUsize::MIN.saturating_add(9_999);
const MOST_AHEAD: usize = 65_536;

const EXAMPLES: &str = "\
Examples:
  resnet-cifar                                     compare the loaders on drawn pictures
  resnet-cifar --step-ms 5 --workers 4             the same, as a fast device would see them
  resnet-cifar --data cifar-10-batches-bin --json rows.json
                                                   on CIFAR-10, and keep the figures
  resnet-cifar train --data cifar-10-batches-bin --model resnet20 --epochs 10
                                                   train, with the test accuracy of each epoch
  resnet-cifar train --workers 4 --prefetch 3      train with at most three batches in memory

The table and the lines of each epoch go to standard output; bars, notes and errors to standard
error. CIFAR's binary files: https://www.cs.toronto.edu/~kriz/cifar.html";

/// Train a small residual network on CIFAR with burn-prefetch, and measure it beside Burn's own
/// data loader.
///
/// Without a command it runs `compare`: the same training four times, each in its own process,
/// once with Burn's loader and three times with burn-prefetch, and prints one table.
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
    /// One row of `compare`, printed as one JSON object.
    #[command(hide = true)]
    Contender(ContenderArgs),
}

/// What every command shares: data, model, batch, workers, seed.
#[derive(Debug, Clone, Args)]
pub(crate) struct Setup {
    /// A folder with CIFAR-10 or CIFAR-100 binary files, or `shapes`: drawn pictures of ten shapes.
    #[arg(long, value_name = "DIR|shapes", default_value = "shapes")]
    pub(crate) data: Source,
    /// How many training pictures `shapes` draws, 1 to 1,000,000; `train` tests on an eighth as
    /// many others.
    #[arg(
        long,
        value_name = "N",
        default_value = "8192",
        allow_negative_numbers = true
    )]
    #[arg(value_parser = within(NonZeroUsize::MIN..=MOST_IMAGES))]
    pub(crate) images: NonZeroUsize,
    /// The network: He et al. 2015, section 4.2, with 6n + 2 layers.
    #[arg(long, value_enum, default_value_t = Architecture::Resnet8)]
    pub(crate) model: Architecture,
    /// Pictures in a batch, 1 to 8,192.
    #[arg(
        long,
        value_name = "N",
        default_value = "64",
        allow_negative_numbers = true
    )]
    #[arg(value_parser = within(NonZeroUsize::MIN..=MOST_IN_A_BATCH))]
    pub(crate) batch_size: NonZeroUsize,
    /// Worker threads of the loader, 0 to 1,024; 0 loads on the training thread, and no batch is
    /// made ahead.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 2,
        allow_negative_numbers = true
    )]
    #[arg(value_parser = within(0..=MOST_WORKERS))]
    pub(crate) workers: u16,
    /// Seed of the weights, the order, the augmentation and the drawn pictures, 0 to
    /// 18,446,744,073,709,551,615.
    #[arg(
        long,
        value_name = "SEED",
        default_value_t = 42,
        allow_negative_numbers = true
    )]
    #[arg(value_parser = within(0..=u64::MAX))]
    pub(crate) seed: u64,
    /// Learning rate of SGD (momentum 0.9, weight decay 1e-4), above 0.
    #[arg(
        long,
        value_name = "RATE",
        default_value_t = 0.1,
        value_parser = positive,
        allow_negative_numbers = true
    )]
    pub(crate) lr: f64,
}

/// How long one contender runs, and on what kind of step.
#[derive(Debug, Clone, Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) setup: Setup,
    /// Training steps of each contender, 2 to 1,000,000; the first fifth (at most 5) is warm-up and
    /// not measured.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 32,
        allow_negative_numbers = true
    )]
    #[arg(value_parser = within(2..=MOST_STEPS))]
    pub(crate) steps: u32,
    /// Wait T milliseconds, 0 to 60,000, instead of training: what a fast device sees ("simulated
    /// step").
    #[arg(long, value_name = "T", allow_negative_numbers = true)]
    #[arg(value_parser = within(0..=MOST_STEP_MS))]
    pub(crate) step_ms: Option<u64>,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct CompareArgs {
    #[command(flatten)]
    pub(crate) run: RunArgs,
    /// Also write the rows to FILE, as a JSON list (bytes, seconds, shares from 0 to 1).
    ///
    /// A plain file is replaced when all rows are there; a link, pipe or device is written through.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct ContenderArgs {
    /// End as soon as standard input ends: a parent that is gone needs no row.
    #[arg(long)]
    pub(crate) with_parent: bool,
    #[command(flatten)]
    pub(crate) run: RunArgs,
    #[command(flatten)]
    pub(crate) loader: LoaderArgs,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct TrainArgs {
    #[command(flatten)]
    pub(crate) setup: Setup,
    /// Passes over the training pictures, 1 to 10,000; the learning rate falls to a tenth at 1/2
    /// and at 3/4 of all steps.
    #[arg(
        long,
        value_name = "N",
        default_value = "2",
        allow_negative_numbers = true
    )]
    #[arg(value_parser = within(NonZeroUsize::MIN..=MOST_EPOCHS))]
    pub(crate) epochs: NonZeroUsize,
    #[command(flatten)]
    pub(crate) loader: LoaderArgs,
}

/// Which loader feeds the training, and how far it may run ahead.
#[derive(Debug, Clone, Args)]
pub(crate) struct LoaderArgs {
    /// The loader to use.
    #[arg(long, value_enum, default_value_t = LoaderKind::Prefetch)]
    pub(crate) loader: LoaderKind,
    /// Batches alive for each worker, 0 to 65,536 (burn-prefetch only; learned as it runs where
    /// nothing is given).
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    #[arg(value_parser = within(0..=MOST_AHEAD))]
    pub(crate) prefetch_factor: Option<usize>,
    /// Batches alive in total, 0 to 65,536 (burn-prefetch only); 0 makes each when it is asked for.
    /// The stricter of the two wins.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    #[arg(value_parser = within(0..=MOST_AHEAD))]
    pub(crate) prefetch: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
pub(crate) enum LoaderKind {
    /// burn-prefetch
    #[serde(rename = "burn-prefetch")]
    Prefetch,
    /// Burn's own loader, as it is
    #[serde(rename = "burn")]
    Burn,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Architecture {
    /// 8 layers (n = 1), 75,000 parameters
    Resnet8,
    /// 20 layers (n = 3), 270,000 parameters
    Resnet20,
}

impl Architecture {
    /// The `n` of the paper: residual blocks in each of the three stages.
    pub(crate) fn blocks_per_stage(self) -> usize {
        match self {
            Self::Resnet8 => 1,
            Self::Resnet20 => 3,
        }
    }

    /// The name that figures are shown under.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Resnet8 => "ResNet-8",
            Self::Resnet20 => "ResNet-20",
        }
    }

    fn flag(self) -> &'static str {
        match self {
            Self::Resnet8 => "resnet8",
            Self::Resnet20 => "resnet20",
        }
    }
}

impl LoaderArgs {
    /// How far the loader may run ahead, or why these settings do not go together.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        let bounded = self.prefetch.is_some() || self.prefetch_factor.is_some();
        if self.loader == LoaderKind::Burn && bounded {
            bail!(
                "--loader burn has no prefetch setting; leave --prefetch and --prefetch-factor out"
            );
        }
        Ok(())
    }

    /// The same settings as command-line arguments, for a child process.
    pub(crate) fn to_args(&self) -> Vec<OsString> {
        let name = match self.loader {
            LoaderKind::Prefetch => "prefetch",
            LoaderKind::Burn => "burn",
        };
        let mut args = vec!["--loader".into(), name.into()];
        if let Some(factor) = self.prefetch_factor {
            args.extend(["--prefetch-factor".into(), factor.to_string().into()]);
        }
        if let Some(total) = self.prefetch {
            args.extend(["--prefetch".into(), total.to_string().into()]);
        }
        args
    }
}

impl RunArgs {
    /// The steps at the start that no figure counts.
    pub(crate) fn warm_up(&self) -> u32 {
        (self.steps / 5).clamp(1, 5)
    }

    /// The same settings as command-line arguments, for a child process.
    pub(crate) fn to_args(&self) -> Vec<OsString> {
        let setup = &self.setup;
        let mut args: Vec<OsString> = vec!["--data".into(), setup.data.as_arg().into()];
        for (flag, value) in [
            ("--images", setup.images.to_string()),
            ("--model", setup.model.flag().to_owned()),
            ("--batch-size", setup.batch_size.to_string()),
            ("--workers", setup.workers.to_string()),
            ("--seed", setup.seed.to_string()),
            ("--lr", setup.lr.to_string()),
            ("--steps", self.steps.to_string()),
        ] {
            args.extend([flag.into(), value.into()]);
        }
        if let Some(wait) = self.step_ms {
            args.extend(["--step-ms".into(), wait.to_string().into()]);
        }
        args
    }
}

#[cfg(test)]
mod tests {
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
            "--model",
            "resnet20",
            "--batch-size",
            "3",
            "--workers",
            "5",
            "--seed",
            "9",
            "--lr",
            "0.125",
            "--steps",
            "11",
            "--step-ms",
            "4",
        ];
        let parent = Cli::parse_from(flags).compare.run;
        let loader = LoaderArgs {
            loader: LoaderKind::Prefetch,
            prefetch_factor: Some(6),
            prefetch: Some(7),
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
            ["N", "T", "SEED", "RATE"].contains(&name)
        });
        let described = numeric.map(|arg| {
            let flag = format!("--{}", arg.get_long().unwrap());
            (flag, arg.get_help().unwrap().to_string())
        });
        described.collect()
    }

    #[test]
    fn a_number_beyond_reason_is_refused_by_name_with_the_range_that_help_gives() {
        for (command, count) in [("compare", 7), ("train", 8), ("contender", 9)] {
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
        let range = match sentence.split_once("choose a whole number from ") {
            Some((_, range)) => range,
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
            loader: LoaderKind::Burn,
            prefetch_factor: None,
            prefetch: Some(2),
        };
        assert!(args.check().unwrap_err().to_string().contains("--prefetch"));
    }
}
