//! From settings and a dataset to a loader.

use std::error::Error;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use burn_prefetch_engine::{Order, Plan, Pool};

use crate::burn::{Batcher, DataLoader, Dataset, Device};
use crate::config_error::ConfigError;
use crate::loader::PrefetchDataLoader;
use crate::settings::Settings;
use crate::source::{DatasetSource, Fetch};

/// Builds data loaders: Burn's builder under the same names, and what it lacks.
///
/// ```
/// # use burn::data::{dataloader::batcher::Batcher, dataset::InMemDataset};
/// # use burn::tensor::Device;
/// use burn_prefetch::DataLoaderBuilder;
///
/// # struct Collect;
/// # impl Batcher<u32, Vec<u32>> for Collect {
/// #     fn batch(&self, items: Vec<u32>, _device: &Device) -> Vec<u32> { items }
/// # }
/// # fn run(device: Device) {
/// let loader = DataLoaderBuilder::new(Collect)
///     .batch_size(4)
///     .shuffle(42)
///     .num_workers(2)
///     .prefetch_factor(2)
///     .set_device(device)
///     .build(InMemDataset::new((0..10).collect()));
/// assert_eq!(loader.num_items(), 10);
/// # }
/// ```
pub struct DataLoaderBuilder<I, O> {
    batcher: Arc<dyn Batcher<I, O>>,
    settings: Settings,
}

impl<I, O> fmt::Debug for DataLoaderBuilder<I, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DataLoaderBuilder")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

impl<I, O> DataLoaderBuilder<I, O>
where
    I: Send + 'static,
    O: Send + 'static,
{
    /// A builder of loaders whose batches `batcher` makes.
    pub fn new<B>(batcher: B) -> Self
    where
        B: Batcher<I, O> + 'static,
    {
        Self {
            batcher: Arc::new(batcher),
            settings: Settings::default(),
        }
    }

    /// Items in a batch (default 1); the last of a pass may have fewer.
    #[must_use]
    pub fn batch_size(self, batch_size: usize) -> Self {
        self.with(|settings| settings.batch_size = batch_size)
    }

    /// Another order every epoch, a function of `seed` and the epoch (default: the dataset's order).
    #[must_use]
    pub fn shuffle(self, seed: u64) -> Self {
        self.with(|settings| settings.shuffle = Some(seed))
    }

    /// Threads that make batches, at most 1,024; 0 (default) makes them on the thread that calls
    /// `next()`. Where the system refuses to start as many, a warning is logged and fewer do the work.
    #[must_use]
    pub fn num_workers(self, num_workers: usize) -> Self {
        self.with(|settings| settings.num_workers = num_workers)
    }

    /// The device that the batcher is given (default: Burn's default device).
    #[must_use]
    pub fn set_device(self, device: Device) -> Self {
        self.with(|settings| settings.device = Some(device))
    }

    /// Batches for each worker that may be alive: at most `num_workers × factor` in all.
    ///
    /// A batch is alive from its first fetch until the `next()` that returns it takes it; each
    /// iterator counts its own. With a factor of 0 this is `prefetch(0)`. PyTorch's meaning and,
    /// there, a default of 2; here the default is learned (see [`prefetch`](Self::prefetch)) and at
    /// most 2. Where several bounds are given the strictest holds.
    #[must_use]
    pub fn prefetch_factor(self, factor: usize) -> Self {
        self.with(|settings| settings.prefetch_factor = Some(factor))
    }

    /// Batches that may be alive in all, whatever the number of workers.
    ///
    /// With 0 a batch is started when `next()` asks for it. By default the loader learns how many
    /// keep n workers busy: `⌈n/p⌉ + 1 + ⌈n·a/(a+f)⌉`, p being the parts of a batch, a the time
    /// its assembly takes and f its fetch; at most 2n.
    #[must_use]
    pub fn prefetch(self, batches: usize) -> Self {
        self.with(|settings| settings.prefetch = Some(batches))
    }

    /// Whether workers live as long as the loader (default), or end with the last iterator.
    #[must_use]
    pub fn persistent_workers(self, persistent: bool) -> Self {
        self.with(|settings| settings.persistent_workers = Some(persistent))
    }

    /// Whether items that do not fill a last batch are left out of the pass (default: they are not).
    #[must_use]
    pub fn drop_last(self, drop_last: bool) -> Self {
        self.with(|settings| settings.drop_last = drop_last)
    }

    /// So many parts a batch, each fetched by one worker; a batch with fewer items has fewer.
    ///
    /// At most 65,536. By default parts are sized so that one is worth about 100 µs. The order and
    /// content of batches do not depend on it, unless a `get_many` draws from [`rng`](crate::rng).
    #[must_use]
    pub fn parts_per_batch(self, parts: usize) -> Self {
        self.with(|settings| settings.parts_per_batch = Some(parts))
    }

    /// Fetches with `Dataset::get_many`, one call a batch (one a part, if
    /// [`parts_per_batch`](Self::parts_per_batch) is given), instead of `get` for each item.
    ///
    /// For datasets that answer one large question sooner than many small ones, such as a data base.
    /// During such a call [`context`](crate::context) knows no index and [`rng`](crate::rng) draws for
    /// the call, not for an item, also inside a `get` that it calls: use [`rng_at`](crate::rng_at).
    #[must_use]
    pub fn batched(self) -> Self {
        self.with(|settings| settings.batched = true)
    }

    /// The number of the first epoch (default 0): a resumed run gets the order that it would have had.
    #[must_use]
    pub fn start_epoch(self, epoch: usize) -> Self {
        self.with(|settings| settings.start_epoch = epoch)
    }

    /// Builds the loader. Fetches nothing and starts no thread.
    ///
    /// # Panics
    ///
    /// With the sentence of the [`ConfigError`] that [`try_build`](Self::try_build) returns, and
    /// when the dataset's `len` does.
    pub fn build<D, E>(self, dataset: D) -> Arc<dyn DataLoader<O>>
    where
        D: Dataset<I, E> + 'static,
        E: Error + Send + Sync + 'static,
    {
        match self.try_build(dataset) {
            Ok(loader) => Arc::new(loader),
            Err(error) => panic!("{error}"),
        }
    }

    /// Builds the loader as its own type. Fetches nothing and starts no thread.
    ///
    /// The dataset's length is read here, and by Burn's own `get_many`, which checks indices.
    ///
    /// # Errors
    ///
    /// When a setting cannot be used.
    ///
    /// # Panics
    ///
    /// When the dataset's `len` does.
    pub fn try_build<D, E>(self, dataset: D) -> Result<PrefetchDataLoader<O>, ConfigError>
    where
        D: Dataset<I, E> + 'static,
        E: Error + Send + Sync + 'static,
    {
        let Self { batcher, settings } = self;
        let batch_size = settings.check()?;
        let order = match settings.shuffle {
            Some(seed) => Order::shuffled(dataset.len(), seed),
            None => Order::sequential(dataset.len()),
        };
        let plan = Plan::new(order, batch_size, settings.remainder());
        let supply = Arc::new(DatasetSource {
            dataset: Arc::new(dataset),
            batcher,
            device: settings.device.clone().unwrap_or_default(),
            fetch: if settings.batched {
                Fetch::Many
            } else {
                Fetch::Each
            },
            error: PhantomData,
        });
        let pool = Arc::new(Pool::new(settings.num_workers, settings.lifetime()));
        Ok(PrefetchDataLoader::new(
            Arc::new(supply),
            pool,
            plan,
            settings,
        ))
    }

    fn with(mut self, set: impl FnOnce(&mut Settings)) -> Self {
        set(&mut self.settings);
        self
    }
}
