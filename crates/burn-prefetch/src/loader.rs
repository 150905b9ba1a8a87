//! Burn's `DataLoader` over the engine: passes, copies for other devices, slices.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, Weak};

use burn_prefetch_engine::Plan;

use crate::burn::{DataLoader, DataLoaderIterator, Device};
use crate::config_error::ConfigError;
use crate::effective::EffectiveConfig;
use crate::progress::{PrefetchIterator, WarmEpoch};
use crate::settings::Settings;
use crate::slots::StagingStats;
use crate::source::{Pass, PassSettings, Supply};
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
    supply: Arc<dyn Supply<O>>,
    workers: Workers,
    plan: Plan,
    settings: Arc<Settings>,
    next_epoch: AtomicUsize,
    /// The next epoch, where its first batches are made before its `iter()`.
    warm: Arc<WarmEpoch<O>>,
}

impl<O: Send + 'static> PrefetchDataLoader<O> {
    pub(crate) fn new(supply: Arc<dyn Supply<O>>, plan: Plan, settings: Settings) -> Self {
        warn_if_nothing_is_left(&plan, &settings);
        let next_epoch = AtomicUsize::new(settings.start_epoch);
        Self {
            supply,
            workers: settings.hire(),
            plan,
            settings: Arc::new(settings),
            next_epoch,
            warm: Arc::default(),
        }
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

    /// How many batches a pass yields.
    #[must_use]
    pub fn num_batches(&self) -> usize {
        self.plan.num_batches(self.epoch())
    }

    /// The epoch that the next `iter()` will be.
    #[must_use]
    pub fn epoch(&self) -> usize {
        self.next_epoch.load(Ordering::Relaxed)
    }

    /// Sets the epoch that the next `iter()` will be; copies keep their own count.
    pub fn set_epoch(&self, epoch: usize) {
        self.next_epoch.store(epoch, Ordering::Relaxed);
    }

    /// A pass over one epoch; the count of epochs stays as it is.
    #[must_use]
    pub fn iter_epoch(&self, epoch: usize) -> PrefetchIterator<'_, O> {
        self.pass_alone(epoch)
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
        self.pass_alone(self.epoch())
    }

    /// What `iter()` gives, as an iterator that owns all it needs and may go to another thread.
    #[must_use]
    pub fn iter_owned(&self) -> PrefetchIterator<'static, O> {
        PrefetchIterator::new(self.next_pass(), Arc::downgrade(&self.warm))
    }

    /// The loader as its next pass; the workers stay until that ends.
    #[must_use]
    pub fn into_iter_owned(self) -> PrefetchIterator<'static, O> {
        let mut pass = self.next_pass();
        pass.let_nothing_follow();
        PrefetchIterator::new(pass, Weak::new())
    }

    /// The pass over the next epoch, which may have begun already.
    fn next_pass(&self) -> Box<dyn Pass<O>> {
        let epoch = self.count_epoch();
        self.take_warm(epoch)
            .unwrap_or_else(|| self.supply.start(&self.workers.0, self.pass(epoch)))
    }

    /// A pass that nothing follows.
    fn pass_alone<'a>(&self, epoch: usize) -> PrefetchIterator<'a, O> {
        let mut pass = self.pass(epoch);
        pass.reader.warm_next = false;
        PrefetchIterator::new(self.supply.start(&self.workers.0, pass), Weak::new())
    }

    fn pass(&self, epoch: usize) -> PassSettings {
        PassSettings {
            plan: self.plan.at(epoch),
            seed: self.settings.shuffle.unwrap_or_default(),
            reader: self.settings.reader(),
        }
    }

    /// The epoch of a new pass.
    fn count_epoch(&self) -> usize {
        let next = |epoch: usize| Some(epoch.saturating_add(1));
        let counted = self
            .next_epoch
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        let (Ok(epoch) | Err(epoch)) = counted;
        epoch
    }

    /// The pass over `epoch` if it has begun already; one over another epoch is of no use.
    fn take_warm(&self, epoch: usize) -> Option<Box<dyn Pass<O>>> {
        let mut warm = self.warm.lock().unwrap_or_else(PoisonError::into_inner);
        let pass = warm.take();
        drop(warm);
        let pass = pass.filter(|pass| pass.epoch() == epoch)?;
        pass.take_up();
        Some(pass)
    }

    /// What is in force, and what was ignored and why.
    #[must_use]
    pub fn effective_config(&self) -> EffectiveConfig {
        self.settings.effective()
    }

    /// A loader over the dataset's indices `start..end`, shuffled within themselves.
    ///
    /// With `drop_last` a slice has a remainder of its own, and the bounds end where
    /// [`num_items`](DataLoader::num_items) does: to slice all of the data, drop the remainder after
    /// slicing, or slice the dataset.
    ///
    /// # Errors
    ///
    /// When `start > end`, or `end` is beyond [`num_items`](DataLoader::num_items).
    pub fn try_slice(&self, start: usize, end: usize) -> Result<Self, ConfigError> {
        let num_items = self.plan.num_items(self.epoch());
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
        let slice = Self {
            plan: self.plan.slice(start, end, self.epoch()),
            ..self.copy()
        };
        warn_if_nothing_is_left(&slice.plan, &slice.settings);
        Ok(slice)
    }

    fn copy(&self) -> Self {
        Self {
            supply: Arc::clone(&self.supply),
            workers: self.workers.clone(),
            plan: self.plan.clone(),
            settings: Arc::clone(&self.settings),
            next_epoch: AtomicUsize::new(self.epoch()),
            warm: Arc::default(),
        }
    }
}

/// An empty pass over data that is not empty is legal, and most often not meant.
fn warn_if_nothing_is_left(plan: &Plan, settings: &Settings) {
    let items = plan.all_items(0);
    if plan.num_items(0) == 0 && items > 0 {
        log::warn!(
            "drop_last leaves nothing of {items} items with batch_size {}: every pass is empty; \
             use a batch_size of at most {items}, or drop_last(false)",
            settings.batch_size
        );
    }
}

impl<O> fmt::Debug for PrefetchDataLoader<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PrefetchDataLoader")
            .field("plan", &self.plan)
            .field("settings", &self.settings)
            .field("next_epoch", &self.next_epoch)
            .finish_non_exhaustive()
    }
}

impl<O: Send + 'static> DataLoader<O> for PrefetchDataLoader<O> {
    fn iter<'a>(&'a self) -> Box<dyn DataLoaderIterator<O> + 'a> {
        Box::new(self.iter_owned())
    }

    /// What a pass yields: with `drop_last`, without the items left out.
    fn num_items(&self) -> usize {
        self.plan.num_items(self.epoch())
    }

    fn to_device(&self, device: &Device) -> Arc<dyn DataLoader<O>> {
        Arc::new(Self {
            supply: self.supply.on(device.clone()),
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
