//! From settings and a dataset to a loader.

use std::error::Error;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use burn_prefetch_engine::{BoxError, Decision, IntoOrder, IntoPlan, WorkerInit};

use crate::auto::{Amount, Auto, first_workers};
use crate::burn::{Batcher, DataLoader, Dataset, Device};
use crate::chosen::Chosen;
use crate::config_error::ConfigError;
use crate::frozen::FrozenSettings;
use crate::host_batcher::{FetchInto, HostBatcher, RowBatcher, Rowwise};
use crate::loader::PrefetchDataLoader;
use crate::maker::{Make, MovedBatcher, PlainBatcher, StagedBatcher, Stages};
use crate::memory::MemoryLimit;
use crate::settings::{BATCH_SAMPLER, Settings, StallWarning};
use crate::source::Supply;
use crate::staged_batch::StagedBatch;
use crate::state::LoaderState;
use crate::weigh::{SampleBytes, Weigh};
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
pub struct DataLoaderBuilder<I, O, M = PlainBatcher<I, O>> {
    maker: M,
    chosen: Chosen,
    state: Option<LoaderState>,
    settings: Settings,
    items: PhantomData<fn(I) -> O>,
}

impl<I, O, M> fmt::Debug for DataLoaderBuilder<I, O, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DataLoaderBuilder")
            .field("chosen", &self.chosen)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

impl<I, O> DataLoaderBuilder<I, O, PlainBatcher<I, O>> {
    /// A builder of loaders whose batches `batcher` makes.
    pub fn new<B>(batcher: B) -> Self
    where
        B: Batcher<I, O> + 'static,
    {
        Self {
            maker: PlainBatcher(Arc::new(batcher), Weigh(None)),
            chosen: Chosen::default(),
            state: None,
            settings: Settings::default(),
            items: PhantomData,
        }
    }

    /// Goes through host memory, page-locked if `pin`: the batcher is given the host device, and the
    /// tensors of its batches are copied into [slots](crate::StagedBatch) and moved from there, by one
    /// stream for all workers.
    ///
    /// That is for devices with page-locked memory, which are CUDA's, with this crate's feature `cuda`;
    /// on others the batcher is given the device itself, as ever. A tensor in the host's default type
    /// becomes one in the device's.
    ///
    /// Batches are then measured by their tensors. To measure them yourself call
    /// [`batch_bytes`](Self::batch_bytes) before this: what it was given goes on to hold, and afterwards
    /// there is no such method.
    #[must_use]
    pub fn pin_memory(self, pin: bool) -> DataLoaderBuilder<I, O, MovedBatcher<I, O>>
    where
        O: StagedBatch,
    {
        let mut settings = self.settings;
        settings.staging.staged = true;
        settings.staging.pin_memory = Some(pin);
        settings.measured = true;
        DataLoaderBuilder {
            maker: MovedBatcher(self.maker.0, self.maker.1),
            chosen: self.chosen,
            state: self.state,
            settings,
            items: PhantomData,
        }
    }
}

impl<I, O> DataLoaderBuilder<I, O, PlainBatcher<I, O>> {
    /// Measures every batch that is made, for [`memory_budget`](Self::memory_budget) and
    /// [`stats`](PrefetchDataLoader::stats): for tensors there is
    /// [`ByteCount`](crate::ByteCount).
    ///
    /// Runs where the batcher does; a panic is an error of the batch. Comes before
    /// [`pin_memory`](Self::pin_memory), if that is wanted too: a builder of batches that go through host
    /// memory has no such method, since they are measured without it.
    ///
    /// Beside [`sample_bytes`](Self::sample_bytes) or [`max_batch_bytes`](Self::max_batch_bytes) those say
    /// what is reserved for a batch before it is made, and this what it takes from then on.
    #[must_use]
    pub fn batch_bytes(mut self, measure: impl Fn(&O) -> usize + Send + Sync + 'static) -> Self {
        self.maker.1 = Weigh::new(measure);
        self.with(|settings| settings.measured = true)
    }
}

impl<I, O, B, Form> DataLoaderBuilder<I, O, StagedBatcher<B, Form>>
where
    B: HostBatcher<I, O, Form>,
{
    /// A builder of loaders whose batches are assembled in host memory, which is page-locked where the
    /// device can do that, and uploaded from there by one stream for all workers.
    ///
    /// `batcher` is a [`RowBatcher`](crate::RowBatcher) or a [`CollateBatcher`](crate::CollateBatcher).
    pub fn staged(batcher: B) -> Self {
        let maker = StagedBatcher {
            batcher: Arc::new(batcher),
            form: PhantomData,
        };
        let mut settings = Settings {
            measured: true,
            ..Settings::default()
        };
        settings.staging.staged = true;
        Self {
            maker,
            chosen: Chosen::default(),
            state: None,
            settings,
            items: PhantomData,
        }
    }
}

#[expect(
    private_bounds,
    reason = "who makes batches is said by the builder's own functions"
)]
impl<I, O, M: Stages> DataLoaderBuilder<I, O, M> {
    /// Whether host batches are in page-locked memory (default: yes, where the device can).
    #[must_use]
    pub fn pin_memory(self, pin: bool) -> Self {
        self.with(|settings| settings.staging.pin_memory = Some(pin))
    }

    /// How many batches may be on the device before `next()` returns them (default 1), beside the one in
    /// use. With 0 a batch is uploaded when `next()` asks for it.
    ///
    /// For a plain batcher there is no such thing:
    ///
    /// ```compile_fail
    /// # use burn::data::dataloader::batcher::Batcher;
    /// # use burn::tensor::Device;
    /// # struct Collect;
    /// # impl Batcher<u32, Vec<u32>> for Collect {
    /// #     fn batch(&self, items: Vec<u32>, _device: &Device) -> Vec<u32> { items }
    /// # }
    /// let builder = burn_prefetch::DataLoaderBuilder::new(Collect).device_prefetch(2);
    /// ```
    ///
    /// They count in the window as all batches do. Without effect on a device without a stream of its
    /// own, and with 0 workers.
    #[must_use]
    pub fn device_prefetch(self, batches: usize) -> Self {
        self.with(|settings| settings.staging.device_prefetch = Some(batches))
    }

    /// How many bytes batches on the device may have before `next()` returns them, if they are several
    /// (default: as many as [`device_prefetch`](Self::device_prefetch) batches have). Counted by
    /// [`stats`](PrefetchDataLoader::stats) as `uploads.ahead`, apart from host memory; each iterator has
    /// as many.
    #[must_use]
    pub fn device_budget(self, bytes: u64) -> Self {
        self.with(|settings| settings.staging.device_budget = Some(bytes))
    }

    /// How many bytes may be page-locked (default: as many as the batches need that are alive).
    ///
    /// Slots are rounded up, by a quarter at most, and have at least 4,096 bytes. With 0 none is page-locked,
    /// as with `pin_memory(false)`. Where the budget is used up a batch goes through pageable memory, and is [counted](crate::StagingStats::pageable_fallbacks); nobody waits. Loaders
    /// for the same device share its slots, and their budgets are one.
    #[must_use]
    pub fn pinned_budget(self, bytes: u64) -> Self {
        self.with(|settings| settings.staging.pinned_budget = Some(bytes))
    }
}

impl<I, O, M> DataLoaderBuilder<I, O, M> {
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

    /// Bytes that batches alive may have together, those of all iterators and copies of this loader
    /// (default: no bound but the number of batches): so many, a
    /// [`Fraction`](crate::Fraction) of what the process may use, or a
    /// [`MemoryBudget`](crate::MemoryBudget) that several loaders share.
    ///
    /// Not 0, of a shared budget neither: with that no batch could begin before another was returned. One
    /// that is in use may become 0, by [`set_limit`](crate::MemoryBudget::set_limit), and then every
    /// iterator has one batch alive at a time.
    ///
    /// An iterator's oldest batch is always allowed, so that nothing can wait for ever; the bound is the
    /// budget and one batch for each iterator beyond the first. It is exact where sizes are declared:
    /// [`max_batch_bytes`](Self::max_batch_bytes), [`sample_bytes`](Self::sample_bytes), or batches
    /// whose rows have one layout; and for batches that all have one size. Where sizes are learned
    /// ([`batch_bytes`](Self::batch_bytes), and other batches that go through host memory), each batch
    /// counts as the largest of the last 64 until it is made: one that turns out larger is counted at once,
    /// nothing is begun until that is paid back, and [`stats`](PrefetchDataLoader::stats) says by how much.
    /// The first one is made alone. Where nobody says how large a batch is, a budget is refused; what its
    /// items take ([`item_bytes`](Self::item_bytes)) is not that.
    ///
    /// Counted are batches from their first fetch to the `next()` that returns them, and with
    /// [`item_bytes`](Self::item_bytes) the items of those in the making. Not counted are items
    /// without it, what your code allocates besides, batches that you keep, the allocator's own, and
    /// what the device holds of a batch that has been uploaded.
    #[must_use]
    pub fn memory_budget(self, budget: impl Into<MemoryLimit>) -> Self {
        self.with(|settings| settings.budget = Some(budget.into()))
    }

    /// No batch has more bytes than this, so that [`memory_budget`](Self::memory_budget) is exact from
    /// the first one on. Not 0.
    ///
    /// A batch that has more, and is measured, is counted with what it has and reported. Where rows of one
    /// layout tell what a batch has, the larger of the two counts.
    #[must_use]
    pub fn max_batch_bytes(self, bytes: u64) -> Self {
        self.with(|settings| settings.declared.max_batch = Some(bytes))
    }

    /// How many bytes each sample takes in its batch, by its index in the dataset, so that
    /// [`memory_budget`](Self::memory_budget) is exact from the first batch on although batches differ: a
    /// batch takes the sum.
    ///
    /// Of a sampler of your own, which is not asked for a size, and before an epoch's order has been made
    /// ready, each sample counts as the largest.
    ///
    /// ```
    /// # use burn::data::{dataloader::{DataLoader, batcher::Batcher}, dataset::InMemDataset};
    /// # use burn::tensor::Device;
    /// use burn_prefetch::DataLoaderBuilder;
    ///
    /// # struct Collect;
    /// # impl Batcher<Vec<u8>, Vec<Vec<u8>>> for Collect {
    /// #     fn batch(&self, items: Vec<Vec<u8>>, _device: &Device) -> Vec<Vec<u8>> { items }
    /// # }
    /// let texts: Vec<Vec<u8>> = (0..100).map(|at| vec![b'a'; 1 + at % 50]).collect();
    /// let sizes: Vec<u32> = texts.iter().map(|text| text.len() as u32).collect();
    /// let loader = DataLoaderBuilder::new(Collect)
    ///     .batch_size(4)
    ///     .shuffle(42)
    ///     .num_workers(2)
    ///     .prefetch(8)
    ///     .sample_bytes(sizes)
    ///     .memory_budget(300)
    ///     .try_build(InMemDataset::new(texts))?;
    /// assert_eq!(loader.iter().count(), 25);
    /// let budget = loader.stats().budget.expect("it was given one");
    /// assert!(budget.used.most <= 300 && budget.overshoot == 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// It says what is reserved. A batch that is measured once it is made, because of
    /// [`batch_bytes`](Self::batch_bytes) or on its way through host memory, takes what it really has from
    /// then on: what it has less is given back at once, what it has more is counted and reported as
    /// `overshoot`. If nothing measures it, the sum is what counts, right or wrong. For rows of one layout,
    /// which tell what a batch has, the larger of the two is reserved. A list for other data than the
    /// loader's, by its length, is refused; one of zeros only bounds nothing but what is measured.
    #[must_use]
    pub fn sample_bytes(self, sizes: impl Into<Arc<[u32]>>) -> Self {
        let sizes = SampleBytes::new(sizes.into());
        self.with(|settings| settings.declared.samples = Some(sizes))
    }

    /// No item has more bytes than this: they count, too, until the batch is made of them. Not 0.
    ///
    /// That does not say how large a batch is, so for a [`memory_budget`](Self::memory_budget) there has
    /// to be something else that does.
    #[must_use]
    pub fn item_bytes(self, bytes: u64) -> Self {
        self.with(|settings| settings.declared.item = Some(bytes))
    }

    /// Finds the number of workers and how many batches are alive by itself, and goes on doing so:
    /// [`num_workers`](Self::num_workers) and [`prefetch`](Self::prefetch) with
    /// [`Auto`]. Beside [`frozen`](Self::frozen) the one that is called last wins.
    #[must_use]
    pub fn auto(self) -> Self {
        self.num_workers(Auto).prefetch(Auto)
    }

    /// The share of the cores that automatic workers may be busy with, at most 1 (default 0.4): no
    /// more are hired beyond it.
    #[must_use]
    pub fn cpu_share(self, share: f64) -> Self {
        self.with(|settings| settings.auto.cpu_share = Some(share))
    }

    /// Sets what an earlier run has found: [`num_workers`](Self::num_workers), and
    /// [`prefetch`](Self::prefetch) if that was changed. Beside [`auto`](Self::auto) the one that is called
    /// last wins: nothing is found anew after this.
    #[must_use]
    pub fn frozen(self, found: FrozenSettings) -> Self {
        let builder = self.num_workers(found.num_workers);
        match found.prefetch {
            Some(batches) => builder.prefetch(batches),
            None => builder.with(|settings| settings.auto.window = false),
        }
    }

    /// Takes the decisions of an earlier run again, each after as many batches as then, instead of
    /// new ones: what [`decisions`](crate::LoaderControl::decisions) gave.
    #[must_use]
    pub fn replay(self, decisions: impl Into<Vec<Decision>>) -> Self {
        self.with(|settings| settings.auto.replay = Some(decisions.into()))
    }

    /// Threads that make batches, at most 1,024; 0 (default) makes them on the thread that calls
    /// `next()`. Where the system refuses to start as many, a warning is logged and fewer do the work.
    ///
    /// With [`Auto`] there are 2 at first, or 1 on a machine of one core or two, so that one is left for
    /// training, and while `next()` waits for them one more after the other, as long as that makes batches
    /// come faster: at most as many as there are cores but one, and not beyond
    /// [`cpu_share`](Self::cpu_share).
    #[must_use]
    pub fn num_workers(self, num_workers: impl Into<Amount>) -> Self {
        let num_workers = num_workers.into();
        self.with(|settings| {
            settings.auto.workers = num_workers == Amount::Auto;
            settings.crew.num_workers = Some(match num_workers {
                Amount::Given(workers) => workers,
                Amount::Auto => first_workers(),
            });
        })
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
    ///
    /// With [`Auto`] that is the start: the window is doubled when `next()` found nothing
    /// although all of it had been ready before, and made smaller again when nobody waited for a
    /// while; at most 64 batches, and never beyond [`memory_budget`](Self::memory_budget). Beside
    /// [`prefetch_factor`](Self::prefetch_factor) that one holds.
    #[must_use]
    pub fn prefetch(self, batches: impl Into<Amount>) -> Self {
        let batches = batches.into();
        self.with(|settings| {
            settings.auto.window = batches == Amount::Auto;
            settings.prefetch = match batches {
                Amount::Given(batches) => Some(batches),
                Amount::Auto => None,
            };
        })
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
    /// [`PrefetchDataLoader::restore`] does: the state says which epoch is next, whatever
    /// [`start_epoch`](Self::start_epoch) does. A state of another loader is refused when this one is
    /// built.
    #[must_use]
    pub fn restore(mut self, state: LoaderState) -> Self {
        self.state = Some(state);
        self
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

#[expect(
    private_bounds,
    reason = "who makes batches is said by the builder's own functions"
)]
impl<I, O, M> DataLoaderBuilder<I, O, M>
where
    I: Send + 'static,
    O: Send + 'static,
    M: Make<I, O>,
{
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
            maker,
            chosen,
            state,
            settings,
            ..
        } = self;
        let order = (chosen, state);
        finish(order, settings, dataset.len(), |settings| {
            maker.supply(dataset, settings)
        })
    }
}

impl<I, O, B> DataLoaderBuilder<I, O, StagedBatcher<B, Rowwise>>
where
    I: Send + 'static,
    O: Send + 'static,
    B: RowBatcher<I, O>,
{
    /// Builds a loader over a dataset that writes its samples itself: the batcher's `write` is not used.
    ///
    /// # Errors
    ///
    /// When a setting cannot be used.
    ///
    /// # Panics
    ///
    /// When the dataset's `len` does.
    pub fn try_build_into<D, E>(self, dataset: D) -> Result<PrefetchDataLoader<O>, ConfigError>
    where
        D: FetchInto<I, E> + 'static,
        E: Error + Send + Sync + 'static,
    {
        let builder = self.with(|settings| settings.written = true);
        let Self {
            maker,
            chosen,
            state,
            settings,
            ..
        } = builder;
        let order = (chosen, state);
        finish(order, settings, dataset.len(), |settings| {
            maker.supply_written(dataset, settings)
        })
    }
}

/// A loader of `len` items, which `supply` gives.
fn finish<O: Send + 'static>(
    (chosen, state): (Chosen, Option<LoaderState>),
    mut settings: Settings,
    len: usize,
    supply: impl FnOnce(&Settings) -> Arc<dyn Supply<O>>,
) -> Result<PrefetchDataLoader<O>, ConfigError> {
    let batch_size = settings.check()?;
    settings.check_samples(len)?;
    let plan = chosen.plan(len, (batch_size, settings.remainder()))?;
    settings.order = plan.identity().name;
    plan.check(settings.start_epoch)?;
    let account = settings.account()?;
    let supply = supply(&settings);
    let loader = PrefetchDataLoader::new(supply, plan, (settings, account));
    if let Some(state) = state {
        loader.restore(&state)?;
    }
    Ok(loader)
}
