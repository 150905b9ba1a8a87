//! From settings and a dataset to a loader.

use std::error::Error;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use burn_prefetch_engine::{Account, BoxError, IntoOrder, IntoPlan, WorkerInit};

use crate::burn::{Batcher, DataLoader, Dataset, Device};
use crate::chosen::Chosen;
use crate::config_error::ConfigError;
use crate::loader::PrefetchDataLoader;
use crate::settings::{BATCH_SAMPLER, Settings, StallWarning};
use crate::source::{DatasetSource, Fetch, Weigh};
use crate::state::LoaderState;
use crate::workers::Workers;

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
    chosen: Chosen,
    state: Option<LoaderState>,
    settings: Settings,
}

impl<I, O> fmt::Debug for DataLoaderBuilder<I, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DataLoaderBuilder")
            .field("chosen", &self.chosen)
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
            chosen: Chosen::default(),
            state: None,
            settings: Settings::default(),
        }
    }

    /// Items in a batch (default 1); the last of a pass may have fewer.
    #[must_use]
    pub fn batch_size(self, batch_size: usize) -> Self {
        self.with(|settings| settings.batch_size = Some(batch_size))
    }

    /// Another order every epoch, a function of `seed` and the epoch (default: the dataset's order).
    #[must_use]
    pub fn shuffle(self, seed: u64) -> Self {
        self.ordered("shuffle", Chosen::Shuffle { seed })
            .with(|settings| settings.shuffle = Some(seed))
    }

    /// A shuffle in which no item is farther than `distance` from its place in the dataset, another
    /// one every epoch: for data that must be read nearly in sequence. See [`Windowed`](crate::Windowed).
    #[must_use]
    pub fn windowed_shuffle(self, distance: usize, seed: u64) -> Self {
        self.ordered("windowed_shuffle", Chosen::Windowed { distance, seed })
            .with(|settings| settings.shuffle = Some(seed))
    }

    /// The order of a sampler: a ready-made one ([`Subset`](crate::Subset),
    /// [`Weighted`](crate::Weighted), [`WeightedWithoutReplacement`](crate::WeightedWithoutReplacement),
    /// [`ClassBalanced`](crate::ClassBalanced), [`Mixture`](crate::Mixture)), or a
    /// [`Sampler`](crate::Sampler) of your own. Not beside a shuffle.
    ///
    /// Where a sampler has to prepare an epoch, the first worker that needs it does. An index beyond
    /// the data, returned by a sampler of your own, is [`LoadError::Order`](crate::LoadError::Order) at
    /// its batch.
    #[must_use]
    pub fn sampler(self, sampler: impl IntoOrder + Send + 'static) -> Self {
        self.ordered("sampler", Chosen::sampler(sampler))
    }

    /// Batches as such: a list of indices for each ([`BatchLists`](crate::BatchLists)), items of like
    /// length together ([`Buckets`](crate::Buckets)), or a [`BatchSampler`](crate::BatchSampler) of your
    /// own. Beside it neither an order nor `batch_size`, `drop_last` or `pad_last` can be given.
    #[must_use]
    pub fn batch_sampler(self, sampler: impl IntoPlan + Send + 'static) -> Self {
        self.ordered(BATCH_SAMPLER, Chosen::batches(sampler))
    }

    /// The seed of random augmentation, of [`rng`](crate::rng) and [`rng_at`](crate::rng_at) (default:
    /// that of the shuffle, 0 without one).
    #[must_use]
    pub fn seed(self, seed: u64) -> Self {
        self.with(|settings| settings.seed = Some(seed))
    }

    /// Threads that make batches, at most 1,024; 0 (default) makes them on the thread that calls
    /// `next()`. Where the system refuses to start as many, a warning is logged and fewer do the work.
    #[must_use]
    pub fn num_workers(self, num_workers: usize) -> Self {
        self.with(|settings| settings.crew.num_workers = Some(num_workers))
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
        self.with(|settings| settings.crew.persistent = Some(persistent))
    }

    /// The threads of `workers`, which may serve other loaders too, instead of ones of its own.
    ///
    /// Their settings are theirs: `num_workers`, `persistent_workers`, `shutdown_grace` and
    /// `worker_init` cannot be given beside it.
    #[must_use]
    pub fn workers(self, workers: &Workers) -> Self {
        self.with(|settings| settings.workers = Some(workers.clone()))
    }

    /// Runs on every worker's thread once, before its first work, with the worker's number; also on
    /// the threads that replace stuck ones, and with `None` on every thread that calls `next()` and
    /// does the work itself, as with 0 workers.
    ///
    /// An error or panic is the next item of every iterator on these workers, as
    /// [`LoadError::Init`](crate::LoadError::Init); the next `iter()` tries again, on a new thread.
    #[must_use]
    pub fn worker_init(
        self,
        init: impl Fn(Option<usize>) -> Result<(), BoxError> + Send + Sync + 'static,
    ) -> Self {
        self.with(|settings| settings.crew.worker_init = Some(WorkerInit::new(init)))
    }

    /// How long one `next()` may wait (default: for ever). Not 0, and not with 0 workers.
    ///
    /// When it is over, the pass ends with [`LoadError::Timeout`](crate::LoadError::Timeout), which says
    /// what each worker is doing. Every worker that has been in *one* `get` or batcher call for as
    /// long is given up: another thread takes its place, and when it comes back it drops what it
    /// brings, unless another iterator waits for that, and ends. A worker that came to its call later
    /// is given up in the next wait, as soon as it has been there for as long. At most `num_workers`
    /// threads are given up at a time; beyond that every `next()` returns
    /// [`LoadError::Exhausted`](crate::LoadError::Exhausted) until one of them has come back.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        self.with(|settings| settings.timeout = Some(timeout))
    }

    /// Logs a warning when a worker has been in one item for so long while a `next()` waits
    /// (default: 30 s; `None` for no warning). One for each such item, with the index.
    #[must_use]
    pub fn stall_warning(self, limit: impl Into<Option<Duration>>) -> Self {
        let warning = limit
            .into()
            .map_or(StallWarning::Never, StallWarning::After);
        self.with(|settings| settings.stall_warning = Some(warning))
    }

    /// How long dropping the last loader waits for workers inside the dataset or batcher (default:
    /// 5 s, at most a day). Who takes longer ends when it comes back; the process can exit before.
    #[must_use]
    pub fn shutdown_grace(self, grace: Duration) -> Self {
        self.with(|settings| settings.crew.shutdown_grace = Some(grace))
    }

    /// Whether batches come in one order (default), or as they finish.
    ///
    /// As they finish they are the same batches, under the same bounds, but in an order that
    /// depends on threads; an error still has its batch's number.
    #[must_use]
    pub fn in_order(self, in_order: bool) -> Self {
        self.with(|settings| settings.in_order = Some(in_order))
    }

    /// Makes the first batches of the next epoch while the last ones of an epoch are being used
    /// (default: not), within the same bounds. Needs workers, and ones that persist.
    ///
    /// The next `iter()` goes on with them. One that never comes costs these batches and nothing
    /// else, until the loader is dropped; after [`set_epoch`](PrefetchDataLoader::set_epoch) they are
    /// dropped and made anew.
    #[must_use]
    pub fn warm_next_epoch(self, warm: bool) -> Self {
        self.with(|settings| settings.warm_next_epoch = warm)
    }

    /// Whether items that do not fill a last batch are left out of the pass (default: they are not).
    #[must_use]
    pub fn drop_last(self, drop_last: bool) -> Self {
        self.with(|settings| settings.drop_last = drop_last)
    }

    /// Whether a last batch that is not full is filled up with the first items of the epoch
    /// (default: it is not), for models that are compiled for one batch size.
    ///
    /// [`real_mask`](crate::real_mask) tells a batcher which items are real, and
    /// [`PrefetchIterator::padding`](crate::PrefetchIterator::padding) the training loop how many are
    /// not. Progress and `num_items` count the real ones.
    #[must_use]
    pub fn pad_last(self, pad_last: bool) -> Self {
        self.with(|settings| settings.pad_last = pad_last)
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

    /// Goes on where a saved [`state`](PrefetchDataLoader::state) stands, as
    /// [`PrefetchDataLoader::restore`] does; it comes before `start_epoch`. A state of another loader is
    /// refused when this one is built.
    #[must_use]
    pub fn restore(mut self, state: LoaderState) -> Self {
        self.state = Some(state);
        self
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
    /// When a setting cannot be used, the order is not one for this data, or the state to be restored
    /// is not one of this loader.
    ///
    /// # Panics
    ///
    /// When the dataset's `len` does, or that of a sampler of your own.
    pub fn try_build<D, E>(self, dataset: D) -> Result<PrefetchDataLoader<O>, ConfigError>
    where
        D: Dataset<I, E> + 'static,
        E: Error + Send + Sync + 'static,
    {
        let Self {
            batcher,
            chosen,
            state,
            mut settings,
        } = self;
        let batch_size = settings.check()?;
        let plan = chosen.plan(dataset.len(), (batch_size, settings.remainder()))?;
        settings.order = plan.identity().name;
        plan.check(settings.start_epoch)?;
        let supply = Arc::new(DatasetSource {
            dataset: Arc::new(dataset),
            batcher,
            device: settings.device.clone().unwrap_or_default(),
            fetch: if settings.batched {
                Fetch::Many
            } else {
                Fetch::Each
            },
            costs: Arc::default(),
            account: Account::default(),
            weigh: Weigh {
                batch: None,
                max_batch: None,
                item: None,
            },
            error: PhantomData,
        });
        let loader = PrefetchDataLoader::new(Arc::new(supply), plan, settings);
        if let Some(state) = state {
            loader.restore(&state)?;
        }
        Ok(loader)
    }

    fn ordered(mut self, method: &'static str, chosen: Chosen) -> Self {
        self.chosen = chosen;
        self.with(|settings| {
            settings.orders.retain(|given| *given != method);
            settings.orders.push(method);
        })
    }

    fn with(mut self, set: impl FnOnce(&mut Settings)) -> Self {
        set(&mut self.settings);
        self
    }
}
