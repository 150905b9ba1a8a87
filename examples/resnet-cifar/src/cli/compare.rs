//! What a comparison is made of, and one contender of it.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};

use super::setup::{Setup, flag_of};
use super::{Axis, LoaderArgs, Size};
use crate::data::Source;
use crate::misuse::misuse;
use crate::number::{signed, within};

const MOST_STEPS: u32 = 1_000_000;
/// A minute.
const MOST_STEP_MS: u64 = 60_000;
const MOST_RUNS: u32 = 1_000;

/// How long one contender runs, on what kind of items and with what kind of step.
#[derive(Debug, Clone, Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) setup: Setup,
    /// Training steps of each run, 2 to 1,000,000; the first fifth (at most 5) is warm-up and not
    /// measured.
    #[arg(long, value_name = "N", default_value_t = 20)]
    #[arg(value_parser = within(2..=MOST_STEPS))]
    pub(crate) steps: u32,
    /// Wait T milliseconds, 0 to 60,000, instead of training: what a fast device sees ("simulated
    /// step").
    #[arg(long, value_name = "T", value_parser = within(0..=MOST_STEP_MS))]
    pub(crate) step_ms: Option<u64>,
    /// What an item costs.
    #[arg(long, value_enum, default_value_t = Workload::Memory)]
    pub(crate) workload: Workload,
}

/// What the loaders have to work on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Workload {
    /// Pictures in memory, cropped and mirrored: microseconds an item
    Memory,
    /// A folder of PNG files, each decoded when it is asked for (drawn where --data names none)
    Png,
    /// A folder of JPEG files, each decoded and resized to 224 × 224 (drawn where --data names none)
    Jpeg,
    /// Each item waits 2 ms and every 64th 20 ms, as from an object store
    Waiting,
    /// Every 16th item costs about a thousand times as much as the others
    Uneven,
}

#[derive(Debug, Clone, Args)]
#[command(mut_args = signed)]
pub(crate) struct CompareArgs {
    #[command(flatten)]
    pub(crate) run: RunArgs,
    /// Runs of each contender, 1 to 1,000, in turn, so that what slows the machine for a while hits
    /// all alike; figures are medians, with the least and the most beside them.
    #[arg(long, value_name = "N", default_value_t = 3)]
    #[arg(value_parser = within(1..=MOST_RUNS))]
    pub(crate) runs: u32,
    /// Compare every combination instead of five contenders: `workers=0,1,2,4`, `prefetch=1,2,4`
    /// (batches in all), `prefetch-factor=1,2`, `budget=1MiB,4MiB` or `staging=on,off`, beside Burn's
    /// loader; alone it stands for `workers=1,2,4 prefetch=1,2,4,8`.
    #[arg(long, value_name = "AXIS=N,N,…", num_args = 0..)]
    pub(crate) sweep: Option<Vec<Axis>>,
    /// Bytes of batches alive at most, 1KiB to 1024GiB or a number of MiB, and one batch at least, for
    /// every contender but Burn's loader.
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory_budget: Option<Size>,
    /// The memory allocator of every contender.
    #[arg(long, value_enum, default_value_t = Allocator::System)]
    pub(crate) allocator: Allocator,
    /// Also write the rows to FILE, as a JSON list (bytes, seconds, shares from 0 to 1).
    ///
    /// A plain file is replaced when all rows are there; a link, pipe or device is written through.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Also draw throughput against memory into FILE, an SVG with one point for each setting.
    #[arg(long, value_name = "FILE")]
    pub(crate) plot: Option<PathBuf>,
    /// Also write a report into the folder DIR: index.html (one file, no network), report.md,
    /// rows.json and the charts.
    #[arg(long, value_name = "DIR")]
    pub(crate) report: Option<PathBuf>,
}

/// Who serves a contender's `malloc`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Allocator {
    /// The system's (on Linux glibc's)
    System,
    /// mimalloc
    Mimalloc,
}

#[derive(Debug, Clone, Args)]
#[command(mut_args = signed)]
pub(crate) struct ContenderArgs {
    /// End as soon as standard input ends: a parent that is gone needs no row.
    #[arg(long)]
    pub(crate) with_parent: bool,
    /// The folder of `--data` was drawn for this comparison: it is called so, and goes with the
    /// parent.
    #[arg(long)]
    pub(crate) drawn: bool,
    /// What the bar is called.
    #[arg(long, value_name = "TEXT")]
    pub(crate) title: Option<String>,
    #[command(flatten)]
    pub(crate) run: RunArgs,
    #[command(flatten)]
    pub(crate) loader: LoaderArgs,
}

impl RunArgs {
    /// The steps at the start that no figure counts.
    pub(crate) fn warm_up(&self) -> u32 {
        (self.steps / 5).clamp(1, 5)
    }

    /// Whether these settings go together, and the device is there; says which have no effect.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        self.fits()?;
        self.setup.note_unused();
        Ok(())
    }

    /// As [`check`](Self::check), for a process whose parent has said the rest.
    pub(crate) fn fits(&self) -> anyhow::Result<()> {
        self.setup.device.check()?;
        let folder = self.workload.files().is_some();
        if self.setup.download.is_some() && folder {
            let workload = flag_of(&self.workload);
            misuse!("--workload {workload} reads a folder of its own; leave --download out");
        }
        Ok(())
    }

    /// The same settings as command-line arguments, for a child process.
    pub(crate) fn to_args(&self) -> Vec<OsString> {
        let mut args = self.setup.to_args();
        args.extend(["--steps".into(), self.steps.to_string().into()]);
        args.extend(["--workload".into(), flag_of(&self.workload).into()]);
        if let Some(wait) = self.step_ms {
            args.extend(["--step-ms".into(), wait.to_string().into()]);
        }
        args
    }

    /// The same run on the pictures in another folder.
    pub(crate) fn with_data(&self, folder: PathBuf) -> Self {
        let setup = Setup {
            data: Source::Dir(folder),
            ..self.setup.clone()
        };
        Self {
            setup,
            ..self.clone()
        }
    }
}

impl Workload {
    /// The endings of the files that this workload reads, the one that is drawn first; `None`
    /// where it is at home with any pictures.
    pub(crate) fn files(self) -> Option<&'static [&'static str]> {
        match self {
            Self::Png => Some(&["png"]),
            Self::Jpeg => Some(&["jpg", "jpeg"]),
            Self::Memory | Self::Waiting | Self::Uneven => None,
        }
    }

    /// What figures made with it are shown under; nothing for the plain one.
    pub(crate) fn title(self) -> Option<&'static str> {
        match self {
            Self::Memory => None,
            Self::Png => Some("decoded from PNG files"),
            Self::Jpeg => Some("decoded from JPEG files and resized"),
            Self::Waiting => Some("each item waits as for an object store"),
            Self::Uneven => Some("every 16th item a thousand times as costly"),
        }
    }
}

impl Allocator {
    pub(crate) fn name(self) -> String {
        flag_of(&self)
    }
}
