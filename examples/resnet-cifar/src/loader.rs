//! One function that gives a loader, Burn's or ours; nothing after it can tell which.

use std::io::{self, Write};
use std::sync::Arc;

use burn::data::dataloader::DataLoader;
use burn::tensor::Device as BurnDevice;
use burn_prefetch::{
    EffectiveConfig, MemoryBudget, PrefetchDataLoader, Rowwise, StagedBatcher, StagingStats,
};

use crate::batch::PictureBatch;
use crate::batcher::{self, PictureBatcher};
use crate::cli::{LoaderArgs, LoaderKind, Setup, Size, Switch, Workload};
use crate::data::Pictures;
use crate::device::Device;
use crate::gauge::Gauge;
use crate::items::{PictureDataset, PictureItem};
use crate::rows::Rows;
use crate::staged::{self, PictureRows};

/// A loader of this project's as its own type.
pub(crate) type Ours = PrefetchDataLoader<PictureBatch>;

/// What a loader reads, and how.
#[derive(Debug)]
pub(crate) struct Feed<'a> {
    pub(crate) setup: &'a Setup,
    pub(crate) pictures: &'a Arc<Pictures>,
    pub(crate) gauge: &'a Arc<Gauge>,
    pub(crate) device: &'a BurnDevice,
    pub(crate) workload: Workload,
    /// The epoch that the training starts with, from 0 (burn-prefetch only: Burn's loader cannot
    /// be told).
    pub(crate) epoch: usize,
    /// What all loaders that are made with it may have alive together.
    pub(crate) budget: Option<&'a MemoryBudget>,
}

/// The budget that these settings are about.
pub(crate) fn budget(args: &LoaderArgs) -> Option<MemoryBudget> {
    let Size(bytes) = args.memory_budget?;
    Some(MemoryBudget::new(bytes))
}

/// What a pass over the pictures is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pass {
    Training,
    Testing,
}

/// A loader, and what else can be asked of ours.
pub(crate) struct Fed {
    pub(crate) loader: Arc<dyn DataLoader<PictureBatch>>,
    pub(crate) ours: Option<Arc<Ours>>,
}

impl Fed {
    fn ours(loader: PrefetchDataLoader<PictureBatch>) -> Self {
        let loader = Arc::new(loader);
        Self {
            loader: Arc::<PrefetchDataLoader<_>>::clone(&loader),
            ours: Some(loader),
        }
    }

    /// The most bytes that it had reserved for batches.
    pub(crate) fn reserved(&self) -> Option<u64> {
        let stats = self.ours.as_ref()?.stats();
        let of_budget = stats.budget.map(|budget| budget.used.most);
        Some(of_budget.unwrap_or(stats.bytes.most))
    }

    /// How batches went through host memory; `None` where they do not.
    pub(crate) fn staging(&self) -> Option<StagingStats> {
        self.ours.as_ref()?.staging()
    }
}

type Builder<M> = burn_prefetch::DataLoaderBuilder<PictureItem, PictureBatch, M>;

impl Feed<'_> {
    /// Shuffled and augmented, for training.
    pub(crate) fn training(&self, args: &LoaderArgs) -> anyhow::Result<Fed> {
        if args.loader == LoaderKind::Burn {
            return Ok(self.burns());
        }
        let loader = self.ours(args, Pass::Training)?;
        let out = &mut io::stderr().lock();
        notes(&loader.effective_config(), self.setup.device, out);
        notes_on_staging(args, self.setup.device, out);
        Ok(Fed::ours(loader))
    }

    /// In order and as they are, for testing.
    pub(crate) fn testing(&self, args: &LoaderArgs) -> anyhow::Result<Fed> {
        self.ours(args, Pass::Testing).map(Fed::ours)
    }

    /// What one batch takes while it is made, its items included.
    pub(crate) fn batch_bytes(&self, args: &LoaderArgs) -> u64 {
        let (count, side) = (self.setup.batch_size.get(), self.pictures.side);
        let bytes = if args.is_staged(self.setup.device) {
            count * staged::row_bytes(side)
        } else {
            batcher::bytes(count, side) + count * self.pictures.item_bytes()
        };
        bytes as u64
    }

    fn burns(&self) -> Fed {
        let rows = Rows::new(self.gauge);
        let loader = burn::data::dataloader::DataLoaderBuilder::new(self.batcher())
            .batch_size(self.setup.batch_size.get())
            .shuffle(self.setup.seed)
            .num_workers(usize::from(self.setup.workers))
            .set_device(self.device.clone())
            .build(self.dataset(Pass::Training, &rows));
        Fed { loader, ours: None }
    }

    fn ours(
        &self,
        args: &LoaderArgs,
        pass: Pass,
    ) -> anyhow::Result<PrefetchDataLoader<PictureBatch>> {
        let rows = Rows::new(self.gauge);
        let dataset = self.dataset(pass, &rows);
        if !args.is_staged(self.setup.device) {
            let builder = self.set(Builder::new(self.batcher()), args, pass);
            let batch = batcher::bytes(self.setup.batch_size.get(), self.pictures.side);
            let builder = builder
                .max_batch_bytes(batch as u64)
                .item_bytes(self.pictures.item_bytes() as u64);
            return Ok(builder.try_build(dataset)?);
        }
        let batcher = PictureRows {
            norm: self.pictures.norm,
            side: self.pictures.side,
            rows,
        };
        let builder = self.set(Builder::staged(batcher), args, pass);
        Ok(staging(builder, args).try_build_into(dataset)?)
    }

    fn set<M>(&self, builder: Builder<M>, args: &LoaderArgs, pass: Pass) -> Builder<M> {
        let mut builder = builder
            .batch_size(self.setup.batch_size.get())
            .num_workers(usize::from(self.setup.workers))
            .set_device(self.device.clone());
        if pass == Pass::Training {
            builder = builder.shuffle(self.setup.seed).start_epoch(self.epoch);
        }
        if let Some(factor) = args.prefetch_factor {
            builder = builder.prefetch_factor(factor);
        }
        if let Some(total) = args.prefetch {
            builder = builder.prefetch(total);
        }
        if let Some(budget) = self.budget {
            builder = builder.memory_budget(budget);
        }
        builder
    }

    fn batcher(&self) -> PictureBatcher {
        PictureBatcher {
            norm: self.pictures.norm,
            side: self.pictures.side,
            gauge: Arc::clone(self.gauge),
        }
    }

    fn dataset(&self, pass: Pass, rows: &Arc<Rows>) -> PictureDataset {
        PictureDataset {
            pictures: Arc::clone(self.pictures),
            augmented: pass == Pass::Training,
            workload: self.workload,
            gauge: Arc::clone(self.gauge),
            rows: Arc::clone(rows),
        }
    }
}

fn staging(
    mut builder: Builder<StagedBatcher<PictureRows, Rowwise>>,
    args: &LoaderArgs,
) -> Builder<StagedBatcher<PictureRows, Rowwise>> {
    if let Some(switch) = args.staging.pin_memory {
        builder = builder.pin_memory(switch == Switch::On);
    }
    if let Some(batches) = args.staging.device_prefetch {
        builder = builder.device_prefetch(batches);
    }
    if let Some(Size(bytes)) = args.staging.pinned_budget {
        builder = builder.pinned_budget(bytes);
    }
    builder
}

/// The loader's settings that only a card has a use for.
const STAGING: [&str; 3] = ["pin_memory", "device_prefetch", "pinned_budget"];

/// Says which flags have no effect, one a line.
fn notes(config: &EffectiveConfig, device: Device, out: &mut impl Write) {
    // What is of no use without a card is said in the flags' own words.
    let said = |setting| !device.is_a_card() && STAGING.contains(&setting);
    for ignored in config.ignored.iter().filter(|it| !said(it.setting)) {
        let flag = ignored.setting.replace('_', "-");
        let (value, why) = (&ignored.value, &ignored.why);
        // With stderr gone there is nobody left to tell, and the training goes on without.
        let _ = writeln!(out, "note: --{flag} {value} has no effect: {why}");
    }
}

/// The same for what only a card has a use for.
fn notes_on_staging(args: &LoaderArgs, device: Device, out: &mut impl Write) {
    if device.is_a_card() {
        return;
    }
    for (flag, value) in args.staging.given() {
        let _ = writeln!(
            out,
            "note: {flag} {value} has no effect: {device} uses the host's memory as it is"
        );
    }
}

/// The most batches that may be alive under these settings; `None` where the user gave no bound,
/// or has none to give.
pub(crate) fn bound(args: &LoaderArgs, workers: u16) -> Option<usize> {
    let workers = usize::from(workers);
    if args.loader == LoaderKind::Burn {
        return None;
    }
    let by_factor = args
        .prefetch_factor
        .filter(|_| workers > 0)
        .map(|factor| workers.saturating_mul(factor).max(1));
    match (by_factor, args.prefetch) {
        (Some(factor), Some(total)) => Some(factor.min(total.max(1))),
        (Some(factor), None) => Some(factor),
        // The one that `next()` itself makes.
        (None, _) if workers == 0 => Some(1),
        (None, total) => total.map(|total| total.max(1)),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use crate::checksum::Checksum;
    use crate::cli::{Cli, Staging, StagingArgs};
    use crate::data::{Owner, Request, Split};

    use super::*;

    fn bound_of(
        prefetch_factor: Option<usize>,
        prefetch: Option<usize>,
        workers: u16,
    ) -> Option<usize> {
        bound(
            &LoaderArgs {
                prefetch_factor,
                prefetch,
                ..LoaderArgs::plain(LoaderKind::Prefetch)
            },
            workers,
        )
    }

    #[test]
    fn the_strictest_bound_given_holds() {
        assert_eq!(bound_of(Some(2), None, 4), Some(8));
        assert_eq!(bound_of(Some(2), Some(3), 4), Some(3));
        assert_eq!(bound_of(Some(1), Some(3), 2), Some(2));
        assert_eq!(bound_of(None, Some(0), 2), Some(1));
        assert_eq!(bound_of(Some(0), None, 2), Some(1));
        assert_eq!(bound_of(Some(usize::MAX), None, 2), Some(usize::MAX));
        assert_eq!(bound_of(None, None, 2), None);
    }

    #[test]
    fn without_workers_one_batch_exists_at_a_time() {
        assert_eq!(bound_of(Some(2), None, 0), Some(1));
        assert_eq!(bound_of(None, Some(5), 0), Some(1));
    }

    const STAGED: StagingArgs = StagingArgs {
        staging: Staging::On,
        pin_memory: None,
        device_prefetch: None,
        pinned_budget: None,
    };

    /// The checksum of the first pass of a loader that begins with this epoch, and of the second.
    fn two_passes(args: &LoaderArgs, epoch: usize) -> [String; 2] {
        let cli = Cli::parse_from(["resnet-cifar", "--images", "96", "--batch-size", "32"]);
        let setup = &cli.compare.run.setup;
        let request = Request {
            setup,
            workload: Workload::Memory,
            owner: Owner::User,
        };
        let feed = Feed {
            setup,
            pictures: &request.load(Split::Train).unwrap(),
            gauge: &Gauge::new(32),
            device: &BurnDevice::flex(),
            workload: Workload::Memory,
            epoch,
            budget: None,
        };
        let loader = feed.training(args).unwrap().loader;
        // As burn-train does, which never reads the loader that it was given.
        let loader = loader.to_device(&BurnDevice::flex());
        [(); 2].map(|()| {
            let mut sum = Checksum::new();
            for batch in loader.iter() {
                sum.add(&batch.unwrap()).unwrap();
            }
            sum.hex()
        })
    }

    #[test]
    fn a_training_that_goes_on_sees_the_batches_that_it_would_have_seen() {
        let plain = LoaderArgs::plain(LoaderKind::Prefetch);
        let staged = LoaderArgs {
            staging: STAGED,
            ..plain.clone()
        };
        let [first, second] = two_passes(&plain, 0);
        assert_ne!(first, second);
        for args in [&plain, &staged] {
            assert_eq!(two_passes(args, 1)[0], second);
        }
    }

    #[test]
    fn what_a_cpu_has_no_use_for_is_named() {
        let args = LoaderArgs {
            staging: StagingArgs {
                pinned_budget: Some(Size(64 << 20)),
                ..STAGED
            },
            ..LoaderArgs::plain(LoaderKind::Prefetch)
        };
        let mut said = Vec::new();
        notes_on_staging(&args, Device::Flex, &mut said);
        let said = String::from_utf8(said).unwrap();
        assert!(said.starts_with("note: --pinned-budget 64MiB has no effect: flex"));
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}
