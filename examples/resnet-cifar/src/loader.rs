//! One function that gives a loader, Burn's or ours; nothing after it can tell which.

use std::io::{self, Write};
use std::sync::Arc;

use burn::data::dataloader::DataLoader;
use burn::tensor::Device;
use burn_prefetch::{EffectiveConfig, PrefetchDataLoader};

use crate::batch::{PictureBatch, PictureBatcher, PictureDataset};
use crate::cli::{LoaderArgs, LoaderKind, Setup, Workload};
use crate::data::Pictures;
use crate::gauge::Gauge;

/// A loader of this project's as its own type.
pub(crate) type Ours = PrefetchDataLoader<PictureBatch>;

/// What a loader reads, and how.
#[derive(Debug)]
pub(crate) struct Feed<'a> {
    pub(crate) setup: &'a Setup,
    pub(crate) pictures: &'a Arc<Pictures>,
    pub(crate) gauge: &'a Arc<Gauge>,
    pub(crate) device: &'a Device,
    pub(crate) workload: Workload,
    /// The epoch that the training starts with, from 0 (burn-prefetch only: Burn's loader cannot
    /// be told).
    pub(crate) epoch: usize,
}

impl Feed<'_> {
    /// Shuffled and augmented, for training.
    pub(crate) fn training(
        &self,
        args: &LoaderArgs,
    ) -> anyhow::Result<Arc<dyn DataLoader<PictureBatch>>> {
        match args.loader {
            LoaderKind::Burn => Ok(self.burns()),
            LoaderKind::Prefetch => Ok(Arc::new(self.ours(args)?)),
        }
    }

    /// In order and as they are, for testing.
    pub(crate) fn testing(&self) -> anyhow::Result<Arc<dyn DataLoader<PictureBatch>>> {
        let loader = burn_prefetch::DataLoaderBuilder::new(self.batcher())
            .batch_size(self.setup.batch_size.get())
            .num_workers(usize::from(self.setup.workers))
            .set_device(self.device.clone())
            .try_build(self.dataset(false))?;
        Ok(Arc::new(loader))
    }

    fn burns(&self) -> Arc<dyn DataLoader<PictureBatch>> {
        burn::data::dataloader::DataLoaderBuilder::new(self.batcher())
            .batch_size(self.setup.batch_size.get())
            .shuffle(self.setup.seed)
            .num_workers(usize::from(self.setup.workers))
            .set_device(self.device.clone())
            .build(self.dataset(true))
    }

    /// This project's loader, shuffled and augmented.
    pub(crate) fn ours(&self, args: &LoaderArgs) -> anyhow::Result<Ours> {
        let mut builder = burn_prefetch::DataLoaderBuilder::new(self.batcher())
            .batch_size(self.setup.batch_size.get())
            .shuffle(self.setup.seed)
            .num_workers(usize::from(self.setup.workers))
            .start_epoch(self.epoch)
            .set_device(self.device.clone());
        if let Some(factor) = args.prefetch_factor {
            builder = builder.prefetch_factor(factor);
        }
        if let Some(total) = args.prefetch {
            builder = builder.prefetch(total);
        }
        let loader = builder.try_build(self.dataset(true))?;
        notes(&loader.effective_config(), &mut io::stderr().lock());
        Ok(loader)
    }

    fn batcher(&self) -> PictureBatcher {
        PictureBatcher {
            norm: self.pictures.norm,
            side: self.pictures.side,
            gauge: Arc::clone(self.gauge),
        }
    }

    fn dataset(&self, augmented: bool) -> PictureDataset {
        PictureDataset {
            pictures: Arc::clone(self.pictures),
            augmented,
            workload: self.workload,
            gauge: Arc::clone(self.gauge),
        }
    }
}

/// Says which flags have no effect, one a line.
fn notes(config: &EffectiveConfig, out: &mut impl Write) {
    for ignored in &config.ignored {
        let flag = ignored.setting.replace('_', "-");
        let (value, why) = (&ignored.value, &ignored.why);
        // With stderr gone there is nobody left to tell, and the training goes on without.
        let _ = writeln!(out, "note: --{flag} {value} has no effect: {why}");
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
    use crate::cli::Cli;
    use crate::data::{Owner, Request, Split};

    use super::*;

    fn bound_of(
        prefetch_factor: Option<usize>,
        prefetch: Option<usize>,
        workers: u16,
    ) -> Option<usize> {
        bound(
            &LoaderArgs {
                loader: LoaderKind::Prefetch,
                prefetch_factor,
                prefetch,
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

    /// The checksum of the first pass of a loader that begins with this epoch, and of the second.
    fn two_passes(kind: LoaderKind, epoch: usize) -> [String; 2] {
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
            device: &Device::flex(),
            workload: Workload::Memory,
            epoch,
        };
        let loader = feed.training(&LoaderArgs::plain(kind)).unwrap();
        // As burn-train does, which never reads the loader that it was given.
        let loader = loader.to_device(&Device::flex());
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
        let [first, second] = two_passes(LoaderKind::Prefetch, 0);
        assert_ne!(first, second);
        assert_eq!(two_passes(LoaderKind::Prefetch, 1)[0], second);
    }
}
