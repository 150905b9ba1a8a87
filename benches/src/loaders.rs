//! The contenders: Burn's own loader and this crate's, built from the same settings.

use std::fmt;
use std::fmt::Debug;
use std::sync::Arc;

use burn::data::dataloader::batcher::Batcher;
use burn::data::dataloader::{DataLoader, DataLoaderBuilder as BurnBuilder};
use burn::data::dataset::Dataset;
use burn_prefetch::DataLoaderBuilder;

use crate::measure::{Run, timed};

/// What both contenders are told.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// Items a batch.
    pub batch_size: usize,
    /// Worker threads.
    pub workers: usize,
    /// The shuffle's seed; `None` keeps the data set's order.
    pub shuffle: Option<u64>,
}

/// How far this crate's loader may run ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// The default: no setting, learned as it runs.
    Learned,
    /// `prefetch_factor(n)`: at most n batches alive per worker.
    Factor(usize),
    /// `prefetch(n)`: at most n batches alive.
    Total(usize),
}

/// Who loads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contender {
    /// `burn::data::dataloader::DataLoaderBuilder`.
    Burn,
    /// `burn_prefetch::DataLoaderBuilder`.
    Ours(Window),
}

impl Contender {
    /// Builds the loader.
    pub fn build<I, O, B, D>(self, setup: Setup, batcher: B, dataset: D) -> Arc<dyn DataLoader<O>>
    where
        I: Send + Sync + Clone + Debug + 'static,
        O: Send + Clone + Debug + 'static,
        B: Batcher<I, O> + 'static,
        D: Dataset<I> + 'static,
    {
        match self {
            Self::Burn => {
                let mut builder = BurnBuilder::new(batcher)
                    .batch_size(setup.batch_size)
                    .num_workers(setup.workers);
                if let Some(seed) = setup.shuffle {
                    builder = builder.shuffle(seed);
                }
                builder.build(dataset)
            }
            Self::Ours(window) => {
                let mut builder = DataLoaderBuilder::new(batcher)
                    .batch_size(setup.batch_size)
                    .num_workers(setup.workers);
                if let Some(seed) = setup.shuffle {
                    builder = builder.shuffle(seed);
                }
                match window {
                    Window::Learned => builder,
                    Window::Factor(factor) => builder.prefetch_factor(factor),
                    Window::Total(total) => builder.prefetch(total),
                }
                .build(dataset)
            }
        }
    }
}

impl fmt::Display for Contender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Burn => write!(f, "Burn"),
            Self::Ours(Window::Learned) => write!(f, "ours, default"),
            Self::Ours(Window::Factor(factor)) => write!(f, "ours, prefetch_factor({factor})"),
            Self::Ours(Window::Total(total)) => write!(f, "ours, prefetch({total})"),
        }
    }
}

/// A run that reads one epoch to its end and drops each batch at once.
///
/// # Panics
///
/// The run, if a batch is an error: the benches' data has none.
#[must_use]
pub fn epoch<O: 'static>(loader: Arc<dyn DataLoader<O>>) -> Run<'static> {
    epoch_with(loader, drop)
}

/// A run that reads one epoch to its end and uses each batch at once.
///
/// # Panics
///
/// The run, if a batch is an error: the benches' data has none.
#[must_use]
pub fn epoch_with<O: 'static>(
    loader: Arc<dyn DataLoader<O>>,
    mut used: impl FnMut(O) + 'static,
) -> Run<'static> {
    Box::new(move || {
        timed(|| {
            for batch in loader.iter() {
                used(batch.expect("the benches' data never fails"));
            }
        })
    })
}
