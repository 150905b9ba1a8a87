//! What can be changed about a loader while its iterators run.

use std::sync::{Arc, Weak};

use burn_prefetch_engine::{Account, Decision, Dial, Knob, MemoryBudget, Pool, Tally, Tuning};

use crate::config_error::ConfigError;
use crate::frozen::FrozenSettings;
use crate::workers::{MOST_WORKERS, Workers};

/// Changes a loader's settings while its iterators run, without losing a batch or its place.
///
/// It may go to another thread and outlive the loader, its copies and iterators; then it changes
/// nothing any more, not even what they shared with others, and tells what was last in force.
///
/// What is set here is not decided [by itself](crate::Auto) any more.
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
/// # let data = InMemDataset::new((0..40).collect());
/// let loader = DataLoaderBuilder::new(Collect).batch_size(4).num_workers(1).try_build(data)?;
/// let control = loader.control();
/// for (number, _batch) in loader.iter().enumerate() {
///     if number == 3 {
///         control.set_num_workers(2)?;
///         control.set_prefetch(4);
///     }
/// }
/// assert_eq!(control.num_workers(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct LoaderControl {
    /// Lives as long as the loader, its copies and iterators.
    life: Weak<Tally>,
    dial: Arc<Dial>,
    tuning: Option<Arc<Tuning>>,
    budget: Option<MemoryBudget>,
    /// Not kept alive: threads end with the last loader and handle of [`Workers`].
    pool: Weak<Pool>,
}

impl LoaderControl {
    pub(crate) fn new(account: &Account, workers: &Workers) -> Self {
        Self {
            life: Arc::downgrade(&account.tally),
            dial: Arc::clone(&account.dial),
            tuning: account.tuning.clone(),
            budget: account.budget.clone(),
            pool: Arc::downgrade(&workers.0),
        }
    }

    /// The workers, while there is somebody that they work for.
    fn pool(&self) -> Option<Arc<Pool>> {
        if self.is_over() {
            return None;
        }
        self.pool.upgrade()
    }

    fn is_over(&self) -> bool {
        self.life.strong_count() == 0
    }

    /// How many batches of each iterator may be alive, once that was changed; `None` without workers,
    /// where it is one.
    #[must_use]
    pub fn window(&self) -> Option<usize> {
        self.dial.ahead().filter(|_| self.workers() > 0)
    }

    /// How many workers there may be; 0 once the loader is gone.
    #[must_use]
    pub fn num_workers(&self) -> usize {
        self.pool().map_or(0, |pool| pool.size())
    }

    /// How many workers there are, or were.
    fn workers(&self) -> usize {
        self.pool().map_or(self.dial.workers(), |pool| pool.size())
    }

    /// What was decided so far about settings that are [`Auto`](crate::Auto), in order: to be listed,
    /// kept, and [taken again](crate::DataLoaderBuilder::replay).
    #[must_use]
    pub fn decisions(&self) -> Vec<Decision> {
        let tuning = self.tuning.as_ref();
        tuning.map(|tuning| tuning.decisions()).unwrap_or_default()
    }

    /// What the settings are now, or were when the loader went, to be
    /// [set](crate::DataLoaderBuilder::frozen) from the start. So it can be asked after a training that
    /// has taken the loader; then of workers that were shared it knows what was set here or by this
    /// loader.
    #[must_use]
    pub fn freeze(&self) -> FrozenSettings {
        FrozenSettings {
            num_workers: self.workers(),
            prefetch: self.window(),
        }
    }

    /// Changes how many batches of each iterator may be alive; those that are stay so. An iterator
    /// without workers has one, whatever is said here.
    pub fn set_prefetch(&self, batches: usize) {
        if self.is_over() {
            return;
        }
        self.leave(Knob::Window);
        self.dial.set_ahead(batches);
    }

    /// Changes how many workers there may be, also for others that share them: more begin at once, who
    /// is too many ends after the part it is in. With
    /// [`prefetch_factor`](crate::DataLoaderBuilder::prefetch_factor) the window follows, unless it was
    /// [set](Self::set_prefetch).
    ///
    /// # Errors
    ///
    /// When there are more than 1,024, none, or none so far: an iterator that runs does its own work
    /// or has workers, for its whole life.
    pub fn set_num_workers(&self, num_workers: usize) -> Result<(), ConfigError> {
        if num_workers > MOST_WORKERS {
            return Err(ConfigError::TooManyWorkers {
                num_workers,
                most: MOST_WORKERS,
            });
        }
        let Some(pool) = self.pool() else {
            return Ok(());
        };
        let (from, to) = (pool.size(), num_workers);
        if to == 0 || from == 0 {
            return Err(ConfigError::WorkersFromOrToNone { from, to });
        }
        self.leave(Knob::Workers);
        pool.resize(to);
        self.dial.workers_are(to);
        Ok(())
    }

    /// Changes the budget, also for others that share it. What is alive stays so.
    ///
    /// # Errors
    ///
    /// When it is 0, or the loader was built without one.
    pub fn set_memory_budget(&self, bytes: u64) -> Result<(), ConfigError> {
        if bytes == 0 {
            return Err(ConfigError::BudgetZero);
        }
        let budget = self.budget.as_ref();
        let budget = budget.ok_or(ConfigError::NoBudget { bytes })?;
        if !self.is_over() {
            budget.set_limit(bytes);
        }
        Ok(())
    }

    /// What is set by hand is not decided any more.
    fn leave(&self, knob: Knob) {
        if let Some(tuning) = &self.tuning {
            tuning.leave(knob);
        }
    }
}
