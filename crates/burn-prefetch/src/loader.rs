//! Burn's `DataLoader` over the engine: passes, copies for other devices, slices.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use burn_prefetch_engine::{
    Account, Knob, MemoryBudget, Plan, Pool, ReaderConfig, Standing, Stats,
};

use crate::advice::{Frame, Hired};
use crate::bookmark::{Bookmark, Shelf};
use crate::burn::{DataLoader, DataLoaderIterator, Device};
use crate::config_error::ConfigError;
use crate::control::LoaderControl;
use crate::effective::{EffectiveConfig, WindowConfig};
use crate::explain::explain;
use crate::progress::{PrefetchIterator, WarmEpoch};
use crate::settings::Settings;
use crate::slots::StagingStats;
use crate::source::{Pass, PassSettings, Supplied, Supply};
use crate::state::LoaderState;
use crate::state_error::StateError;
use crate::workers::Workers;

/// A data loader: batches in one order, made ahead by workers, never more alive than allowed.
///
/// All copies made by `to_device` and `slice` are one family and share its workers, which start
/// with the first pass that has work. The epoch is counted by each copy for itself, from the
/// count of the loader that it was made from; every `iter()` is one epoch. Order depends on the
/// seed, the epoch and the bounds of a slice alone.
///
/// Dropping the last of a family joins its workers after the part each is in, for at most
/// [`shutdown_grace`](crate::DataLoaderBuilder::shutdown_grace); dropped on one of its own workers, it
/// lets them end by themselves. An iterator that is leaked (`mem::forget`) keeps them, as does a
/// handle of [`Workers`] that are shared.
pub struct PrefetchDataLoader<O> {
    /// The next epoch, where its first batches are made before its `iter()`.
    warm: Arc<WarmEpoch<O>>,
    supply: Supplied<O>,
    workers: Workers,
    plan: Plan,
    settings: Arc<Settings>,
    upcoming: Mutex<Upcoming>,
    /// Where its passes stand, and those of its copies for other devices.
    shelf: Arc<Shelf>,
    /// Where the batches of the whole family are counted.
    account: Account,
}

/// What the next `iter()` will be.
#[derive(Clone, Debug, Default)]
struct Upcoming {
    epoch: usize,
    /// What of the epoch was returned before the loader was restored.
    standing: Standing,
}

impl Upcoming {
    fn start_of(epoch: usize) -> Self {
        let standing = Standing::default();
        Self { epoch, standing }
    }
}

impl<O: Send + 'static> PrefetchDataLoader<O> {
    pub(crate) fn new(
        supply: Arc<dyn Supply<O>>,
        plan: Plan,
        (settings, account): (Settings, Account),
    ) -> Self {
        let upcoming = Upcoming::start_of(settings.start_epoch);
        warn_if_nothing_is_left(&plan, &settings, upcoming.epoch);
        Self {
            supply: Supplied(supply),
            workers: settings.hire(),
            shelf: Arc::new(Shelf::new(plan.clone(), settings.cut())),
            plan,
            settings: Arc::new(settings),
            upcoming: Mutex::new(upcoming),
            warm: Arc::default(),
            account,
        }
    }

    /// How the loader is doing: what was counted and measured since it was built, by all of its
    /// iterators and copies together. Costs microseconds.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let mut stats = self.account.stats();
        let idle = self.workers.0.idle();
        if stats.workers.len() < idle.len() {
            stats.workers.resize_with(idle.len(), Default::default);
        }
        for (worker, idle) in stats.workers.iter_mut().zip(idle) {
            worker.idle = idle;
        }
        stats
    }

    /// What is bounded by what, what waits for what, and the one setting to change next: a short
    /// text.
    #[must_use]
    pub fn explain(&self) -> String {
        let config = self.effective_config();
        let dialled = self.account.dial.ahead();
        let may_warm = config.persistent_workers && !config.warm_next_epoch;
        let frame = Frame {
            num_workers: config.num_workers,
            hired: match (config.auto_workers, config.shared_workers) {
                (true, _) => Hired::Automatically,
                (false, true) => Hired::Shared,
                (false, false) => Hired::ByNumber,
            },
            disowned: self.workers.disowned(),
            batch_size: config.batch_size,
            window: config.window,
            prefetch: self.settings.prefetch.or(dialled),
            prefetch_factor: self.settings.prefetch_factor,
            uploads_late: config.staging.and_then(|it| it.device_prefetch) == Some(0),
            may_warm,
        };
        explain(&self.stats(), &frame)
    }

    /// What changes the loader while its iterators run.
    #[must_use]
    pub fn control(&self) -> LoaderControl {
        LoaderControl::new(&self.account, &self.workers)
    }

    /// The threads that make its batches, to be shared with other loaders or counted.
    #[must_use]
    pub fn workers(&self) -> Workers {
        self.workers.clone()
    }

    /// How batches go through host memory; `None` with a plain batcher, and before the first pass.
    ///
    /// What it counts are the slots of the device, which all loaders of the process for it share.
    #[must_use]
    pub fn staging(&self) -> Option<StagingStats> {
        self.supply.staging()
    }

    /// How many batches the next epoch yields, from its start; every epoch as many, but for a
    /// sampler of your own whose epochs have different lengths.
    #[must_use]
    pub fn num_batches(&self) -> usize {
        self.plan.num_batches(self.epoch())
    }

    /// The epoch that the next `iter()` will be.
    #[must_use]
    pub fn epoch(&self) -> usize {
        self.upcoming().epoch
    }

    /// Sets the epoch that the next `iter()` will be, from its start; copies keep their own count.
    pub fn set_epoch(&self, epoch: usize) {
        self.begin_with(Upcoming::start_of(epoch));
    }

    /// Where the pass stands that [`iter`](DataLoader::iter) or [`iter_owned`](Self::iter_owned) of
    /// this loader or of one of its copies for other devices has begun last: to be saved beside the
    /// model, and [restored](Self::restore) in another process.
    ///
    /// It stands after the batches that were *returned*, however many are ready. So a state that is
    /// saved after the training step with a batch goes on with the next one. A pass that has returned
    /// its last batch, or was dropped early, stands at the start of the next epoch; one that ended with
    /// an error stands at the batch that failed. Before the first pass it is where the first will begin.
    ///
    /// Slices have passes and states of their own. Costs about 100 ns; the first call reads all that
    /// the order was made from once, about a nanosecond for each entry of a list.
    #[must_use]
    pub fn state(&self) -> LoaderState {
        match self.shelf.last() {
            Some(mark) => self.shelf.state(&mark),
            None => self.shelf.state(&self.mark(&self.upcoming())),
        }
    }

    /// Makes the next `iter()` go on with what was saved: with the first batch that had not been
    /// returned. What had been is not fetched again.
    ///
    /// Takes as long for the middle of a thousand million items as for the start. Workers, windows,
    /// parts and the device may be others than before. Copies made from now on go on there too;
    /// those made before keep their own count. burn-train reads copies: restore first.
    ///
    /// # Errors
    ///
    /// When the state is of another version, damaged, or from a loader of which data length, seed,
    /// batch size or order differ. The loader then stays as it is.
    pub fn restore(&self, state: &LoaderState) -> Result<(), StateError> {
        let standing = state.check(self.shelf.fingerprint(), &self.plan)?;
        let epoch = state.epoch();
        self.begin_with(Upcoming { epoch, standing });
        Ok(())
    }

    fn begin_with(&self, upcoming: Upcoming) {
        self.shelf.put(&Arc::new(self.mark(&upcoming)));
        *self.upcoming() = upcoming;
    }

    /// The bookmark of a pass that has not begun.
    fn mark(&self, Upcoming { epoch, standing }: &Upcoming) -> Bookmark {
        let batches = match standing.next() {
            // Also of an epoch without batches the start is ahead.
            0 => usize::MAX,
            _ => self.plan.num_batches(*epoch),
        };
        Bookmark::new(*epoch, standing.clone(), batches)
    }

    fn upcoming(&self) -> MutexGuard<'_, Upcoming> {
        self.upcoming.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A pass over one epoch; the count of epochs stays as it is.
    #[must_use]
    pub fn iter_epoch(&self, epoch: usize) -> PrefetchIterator<'_, O> {
        self.pass_alone(Upcoming::start_of(epoch))
    }

    /// The pass that the next `iter()` will be, without counting it: for a look at a first batch.
    ///
    /// ```
    /// # use burn::data::dataloader::{DataLoader, batcher::Batcher};
    /// # use burn::data::dataset::InMemDataset;
    /// # use burn::tensor::Device;
    /// # use burn_prefetch::DataLoaderBuilder;
    /// # struct Collect;
    /// # impl Batcher<u32, Vec<u32>> for Collect {
    /// #     fn batch(&self, items: Vec<u32>, _device: &Device) -> Vec<u32> { items }
    /// # }
    /// # let data = InMemDataset::new((0..10).collect());
    /// let loader = DataLoaderBuilder::new(Collect).batch_size(4).shuffle(7).try_build(data)?;
    /// let first = loader.peek_epoch().next().expect("there is data")?;
    /// assert_eq!(loader.iter().next().expect("there is data")?, first);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn peek_epoch(&self) -> PrefetchIterator<'_, O> {
        let upcoming = self.upcoming().clone();
        self.pass_alone(upcoming)
    }

    /// What `iter()` gives, as an iterator that owns all it needs and may go to another thread.
    #[must_use]
    pub fn iter_owned(&self) -> PrefetchIterator<'static, O> {
        let warm = Arc::downgrade(&self.warm);
        PrefetchIterator::new(self.next_pass(), warm, Arc::clone(&self.shelf)).counted()
    }

    /// The loader as its next pass; the workers stay until that ends.
    #[must_use]
    pub fn into_iter_owned(self) -> PrefetchIterator<'static, O> {
        let mut pass = self.next_pass();
        pass.let_nothing_follow();
        PrefetchIterator::new(pass, Weak::new(), Arc::clone(&self.shelf)).counted()
    }

    /// The pass over the next epoch, which may have begun already.
    fn next_pass(&self) -> Box<dyn Pass<O>> {
        let upcoming = self.count_epoch();
        self.take_warm(&upcoming)
            .unwrap_or_else(|| self.supply.start(&self.workers.0, self.pass(upcoming)))
    }

    /// A pass that nothing follows, and that is not counted.
    fn pass_alone<'a>(&self, upcoming: Upcoming) -> PrefetchIterator<'a, O> {
        let mut pass = self.pass(upcoming);
        pass.reader.warm_next = false;
        let pass = self.supply.start(&self.workers.0, pass);
        PrefetchIterator::new(pass, Weak::new(), Arc::clone(&self.shelf))
    }

    fn pass(&self, Upcoming { epoch, standing }: Upcoming) -> PassSettings {
        PassSettings {
            plan: self.plan.at(epoch),
            standing,
            seed: self.settings.seed(),
            reader: self.settings.reader(),
            account: self.account.clone(),
        }
    }

    /// The pass that the next `iter()` will be, on other threads and in another way, not counted.
    pub(crate) fn start_on(
        &self,
        pool: &Arc<Pool>,
        set: impl FnOnce(&mut ReaderConfig),
    ) -> Box<dyn Pass<O>> {
        let upcoming = self.upcoming().clone();
        let mut pass = self.pass(upcoming);
        pass.reader.warm_next = false;
        pass.account = Account {
            budget: self.account.budget.clone(),
            ..Account::default()
        };
        set(&mut pass.reader);
        self.supply.start(pool, pass)
    }

    pub(crate) fn pool(&self) -> &Pool {
        &self.workers.0
    }

    /// What a new pass is to be; the next one will be the epoch after it.
    fn count_epoch(&self) -> Upcoming {
        let mut upcoming = self.upcoming();
        let next = Upcoming::start_of(upcoming.epoch.saturating_add(1));
        std::mem::replace(&mut *upcoming, next)
    }

    /// The pass that has begun already, if it is the one that is wanted; any other is of no use.
    fn take_warm(&self, wanted: &Upcoming) -> Option<Box<dyn Pass<O>>> {
        let mut warm = self.warm.lock().unwrap_or_else(PoisonError::into_inner);
        let pass = warm.take();
        drop(warm);
        let pass = pass.filter(|pass| {
            pass.plan().epoch() == wanted.epoch && *pass.standing() == wanted.standing
        })?;
        pass.take_up();
        Some(pass)
    }

    /// What is in force, also where [`control`](Self::control) has changed it; and what was ignored and
    /// why.
    #[must_use]
    pub fn effective_config(&self) -> EffectiveConfig {
        let budget = self.account.budget.as_ref();
        let mut config = EffectiveConfig {
            memory_budget: budget.map(MemoryBudget::limit),
            ..self.settings.effective(self.supply.can_pin())
        };
        if config.num_workers > 0 {
            config.num_workers = self.workers.num_workers();
            if let Some(batches) = self.account.dial.ahead() {
                config.window = WindowConfig::Batches(batches);
            }
        }
        if let Some(tuning) = &self.account.tuning {
            config.auto_workers &= tuning.has(Knob::Workers);
            config.auto_window &= tuning.has(Knob::Window);
            config.cpu_share = config.cpu_share.filter(|_| config.auto_workers);
        }
        config
    }

    /// A loader over the dataset's indices `start..end`, shuffled within themselves, or over these
    /// entries of a [`Subset`](crate::Subset).
    ///
    /// What is drawn in another way (by weight, from a mixture, by a sampler of your own) is cut by its
    /// places: a slice is the draws `start..end` of every epoch, or as large a part of an epoch of
    /// another length; batches of a batch sampler stay whole. The slices of several devices then
    /// make up each epoch, as they should. But one item may be in both of two slices, in different
    /// epochs: **for training and validation slice the dataset**, not such a loader.
    ///
    /// With `drop_last` a slice has a remainder of its own, and the bounds end where
    /// [`num_items`](DataLoader::num_items) does: to slice all of the data, drop the remainder after
    /// slicing, or slice the dataset.
    ///
    /// # Errors
    ///
    /// When `start > end`, or `end` is beyond [`num_items`](DataLoader::num_items).
    pub fn try_slice(&self, start: usize, end: usize) -> Result<Self, ConfigError> {
        let epoch = self.epoch();
        let num_items = self.plan.num_items(epoch);
        if start > end {
            return Err(ConfigError::SliceReversed { start, end });
        }
        if end > num_items {
            return Err(ConfigError::SliceBeyond {
                start,
                end,
                num_items,
            });
        }
        let plan = self.plan.slice(start, end, self.plan.all_items(epoch));
        warn_if_nothing_is_left(&plan, &self.settings, epoch);
        Ok(Self {
            shelf: Arc::new(Shelf::new(plan.clone(), self.settings.cut())),
            upcoming: Mutex::new(Upcoming::start_of(epoch)),
            plan,
            ..self.copy()
        })
    }

    fn copy(&self) -> Self {
        Self {
            supply: self.supply.clone(),
            workers: self.workers.clone(),
            plan: self.plan.clone(),
            settings: Arc::clone(&self.settings),
            upcoming: Mutex::new(self.upcoming().clone()),
            warm: Arc::default(),
            shelf: Arc::clone(&self.shelf),
            account: self.account.clone(),
        }
    }
}

/// An empty pass over data that is not empty is legal, and most often not meant.
fn warn_if_nothing_is_left(plan: &Plan, settings: &Settings, epoch: usize) {
    let items = plan.all_items(epoch);
    if plan.num_items(epoch) == 0 && items > 0 {
        log::warn!(
            "drop_last leaves nothing of {items} items with batch_size {}: every pass is empty; \
             use a batch_size of at most {items}, or drop_last(false)",
            settings.batch_size.unwrap_or(1)
        );
    }
}

impl<O> fmt::Debug for PrefetchDataLoader<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PrefetchDataLoader")
            .field("plan", &self.plan)
            .field("settings", &self.settings)
            .field("upcoming", &self.upcoming)
            .finish_non_exhaustive()
    }
}

impl<O: Send + 'static> DataLoader<O> for PrefetchDataLoader<O> {
    fn iter<'a>(&'a self) -> Box<dyn DataLoaderIterator<O> + 'a> {
        Box::new(self.iter_owned())
    }

    /// What the next epoch yields, from its start: with `drop_last`, without the items left out.
    /// Padding is not counted.
    fn num_items(&self) -> usize {
        self.plan.num_items(self.epoch())
    }

    fn to_device(&self, device: &Device) -> Arc<dyn DataLoader<O>> {
        Arc::new(Self {
            supply: Supplied(self.supply.on(device.clone())),
            ..self.copy()
        })
    }

    /// As [`try_slice`](PrefetchDataLoader::try_slice).
    ///
    /// # Panics
    ///
    /// When `start > end`, or `end` is beyond `num_items`.
    fn slice(&self, start: usize, end: usize) -> Arc<dyn DataLoader<O>> {
        match self.try_slice(start, end) {
            Ok(slice) => Arc::new(slice),
            Err(error) => panic!("{error}"),
        }
    }
}
