//! What a training is made of, and which loader feeds it.

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};

use super::setup::{Setup, flag_of};
use super::{Size, StagingArgs};
use crate::device::Device;
use crate::misuse::misuse;
use crate::number::{signed, within};

const MOST_EPOCHS: NonZeroUsize = NonZeroUsize::MIN.saturating_add(9_999);
const MOST_STEPS: NonZeroUsize = NonZeroUsize::MIN.saturating_add(999_999);
pub(super) const MOST_AHEAD: usize = 65_536;

#[derive(Debug, Clone, Args)]
#[command(mut_args = signed)]
pub(crate) struct TrainArgs {
    #[command(flatten)]
    pub(crate) setup: Setup,
    /// Passes over the training pictures, 1 to 10,000; the learning rate falls to a tenth at 1/2
    /// and at 3/4 of all steps.
    #[arg(long, value_name = "N", default_value = "2")]
    #[arg(value_parser = within(NonZeroUsize::MIN..=MOST_EPOCHS))]
    pub(crate) epochs: NonZeroUsize,
    #[command(flatten)]
    pub(crate) loader: LoaderArgs,
    /// Keep checkpoints and metrics in the folder DIR; without it nothing is kept.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Keep the training in the middle of epochs too, every N steps, 1 to 1,000,000 (burn-prefetch
    /// only): `--resume` then goes on with the next batch.
    #[arg(long, value_name = "N", requires = "out")]
    #[arg(value_parser = within(NonZeroUsize::MIN..=MOST_STEPS))]
    pub(crate) save_every: Option<NonZeroUsize>,
    /// Continue after the last checkpoint in `--out DIR`, up to `--epochs` in all.
    #[arg(long, requires = "out")]
    pub(crate) resume: bool,
    /// One line for each epoch instead of the dashboard, which a terminal gets otherwise.
    #[arg(long)]
    pub(crate) plain: bool,
}

impl TrainArgs {
    /// Whether these settings go together, or why they do not.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        self.loader.check()?;
        if self.save_every.is_some() && self.loader.loader == LoaderKind::Burn {
            misuse!("--loader burn cannot say where it stands; leave --save-every out");
        }
        Ok(())
    }
}

/// Which loader feeds the training, and how far it may run ahead.
#[derive(Debug, Clone, PartialEq, Args)]
pub(crate) struct LoaderArgs {
    /// The loader to use.
    #[arg(long, value_enum, default_value_t = LoaderKind::Prefetch)]
    pub(crate) loader: LoaderKind,
    /// Batches alive for each worker, 0 to 65,536 (burn-prefetch only; learned as it runs where
    /// nothing is given).
    #[arg(long, value_name = "N", value_parser = within(0..=MOST_AHEAD))]
    pub(crate) prefetch_factor: Option<usize>,
    /// Batches alive in total, 0 to 65,536 (burn-prefetch only); 0 makes each when it is asked for.
    #[arg(long, value_name = "N", value_parser = within(0..=MOST_AHEAD))]
    pub(crate) prefetch: Option<usize>,
    /// Bytes of batches alive at most, 1KiB to 1024GiB or a number of MiB (burn-prefetch only), and
    /// one batch at least; for training and testing together. The strictest of this, --prefetch and
    /// --prefetch-factor wins.
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory_budget: Option<Size>,
    #[command(flatten)]
    pub(crate) staging: StagingArgs,
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

impl LoaderArgs {
    /// A loader without any setting of its own.
    pub(crate) fn plain(loader: LoaderKind) -> Self {
        Self {
            loader,
            prefetch_factor: None,
            prefetch: None,
            memory_budget: None,
            staging: StagingArgs::default(),
        }
    }

    /// Whether batches for this device are staged.
    pub(crate) fn is_staged(&self, device: Device) -> bool {
        self.loader == LoaderKind::Prefetch && self.staging.is_on(device)
    }

    /// Whether these settings go together, or why they do not.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        let bounded = self.prefetch.is_some() || self.prefetch_factor.is_some();
        match self.loader {
            LoaderKind::Burn if bounded => misuse!(
                "--loader burn has no prefetch setting; leave --prefetch and --prefetch-factor out"
            ),
            LoaderKind::Burn if self.memory_budget.is_some() => {
                misuse!("--loader burn keeps to no budget; leave --memory-budget out")
            }
            LoaderKind::Burn => self.staging.check_unused(),
            LoaderKind::Prefetch => self.staging.check(),
        }
    }

    /// The same settings as command-line arguments, for a child process.
    pub(crate) fn to_args(&self) -> Vec<OsString> {
        let mut args = vec!["--loader".into(), flag_of(&self.loader).into()];
        let factor = self.prefetch_factor.map(|batches| batches.to_string());
        let total = self.prefetch.map(|batches| batches.to_string());
        let budget = self.memory_budget.map(|size| size.to_string());
        for (flag, value) in [
            ("--prefetch-factor", factor),
            ("--prefetch", total),
            ("--memory-budget", budget),
        ] {
            if let Some(value) = value {
                args.extend([flag.into(), value.into()]);
            }
        }
        args.extend(self.staging.to_args());
        args
    }
}
