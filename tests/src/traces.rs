//! What a loader must not leave behind: its items, its batches, its dataset.

use std::fmt;
use std::sync::Arc;

use burn::data::dataset::{Dataset, DatasetError};
use burn_prefetch::DataLoaderBuilder;

use crate::{Alive, Guarded, GuardedNumbers, Keep, Token};

/// A batch that is counted, of items that are counted.
pub type Kept = (Vec<Guarded>, Token);

/// The counts of what is alive.
#[derive(Clone, Debug)]
pub struct Traces {
    /// Items fetched and not dropped.
    pub items: Arc<Alive>,
    /// Batches made and not dropped.
    pub batches: Arc<Alive>,
    /// Datasets not dropped.
    pub datasets: Arc<Alive>,
}

impl Traces {
    /// Nothing is alive.
    #[must_use]
    pub fn none() -> Self {
        Self {
            items: Alive::none(),
            batches: Alive::none(),
            datasets: Alive::none(),
        }
    }

    /// The items `0..len`, where `get` first does what the test says.
    pub fn dataset<F: Fn(usize) + Send + Sync>(&self, len: usize, before: F) -> Traced<F> {
        let alive = Arc::clone(&self.items);
        Traced {
            numbers: GuardedNumbers { len, alive },
            before,
            _token: self.datasets.token(),
        }
    }

    /// A builder of loaders whose batches are counted.
    #[must_use]
    pub fn builder(&self) -> DataLoaderBuilder<Guarded, Kept> {
        DataLoaderBuilder::new(Keep(Arc::clone(&self.batches)))
    }

    /// Waits until no item and no batch is left.
    pub fn wait_for_no_items(&self) {
        self.items.wait_for_none();
        self.batches.wait_for_none();
    }

    /// Waits until nothing is left.
    pub fn wait_for_none(&self) {
        self.wait_for_no_items();
        self.datasets.wait_for_none();
    }
}

/// The indices in a batch.
#[must_use]
pub fn indices(batch: &Kept) -> Vec<usize> {
    batch.0.iter().map(|item| item.index).collect()
}

/// What [`Traces::dataset`] gives.
pub struct Traced<F> {
    numbers: GuardedNumbers,
    before: F,
    _token: Token,
}

impl<F> fmt::Debug for Traced<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.numbers.fmt(f)
    }
}

impl<F: Fn(usize) + Send + Sync> Dataset<Guarded> for Traced<F> {
    fn get(&self, index: usize) -> Result<Guarded, DatasetError> {
        (self.before)(index);
        self.numbers.get(index)
    }

    fn len(&self) -> usize {
        self.numbers.len
    }
}
