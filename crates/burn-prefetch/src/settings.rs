//! What can be set, its defaults, and what the parts of a loader are told of it.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use burn_prefetch_engine::{
    Account, Ahead, Delivery, Lifetime, Limits, Parts, Patience, ReaderConfig, Remainder,
};

use crate::auto::AutoSettings;
use crate::burn::Device;
use crate::config_error::ConfigError;
use crate::memory::MemoryLimit;
use crate::stage::StageSettings;
use crate::state::Cut;
use crate::weigh::Declared;
use crate::workers::{Crew, Workers};

/// The builder's method for batches that are made by the user.
pub(crate) const BATCH_SAMPLER: &str = "batch_sampler";

/// A worker in one item for so long while a batch is waited for is worth a line in the log.
const STALL_WARNING: Duration = Duration::from_secs(30);

/// When a worker that stalls is worth a line in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StallWarning {
    After(Duration),
    Never,
}

/// The builder's settings, as given; they travel whole.
#[derive(Clone, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a method of the builder, given or not"
)]
pub(crate) struct Settings {
    pub(crate) batch_size: Option<usize>,
    /// The builder's methods that gave an order.
    pub(crate) orders: Vec<&'static str>,
    /// What is in force of them, by the name that the engine gives it.
    pub(crate) order: &'static str,
    /// The seed of a plain or windowed shuffle.
    pub(crate) shuffle: Option<u64>,
    /// The seed of random augmentation.
    pub(crate) seed: Option<u64>,
    /// The loader's own workers.
    pub(crate) crew: Crew,
    /// Workers that it shares with others.
    pub(crate) workers: Option<Workers>,
    pub(crate) device: Option<Device>,
    pub(crate) prefetch_factor: Option<usize>,
    pub(crate) prefetch: Option<usize>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) stall_warning: Option<StallWarning>,
    pub(crate) in_order: Option<bool>,
    pub(crate) warm_next_epoch: bool,
    pub(crate) drop_last: bool,
    pub(crate) pad_last: bool,
    pub(crate) parts_per_batch: Option<usize>,
    pub(crate) batched: bool,
    /// Whether the dataset writes its samples itself, one by one.
    pub(crate) written: bool,
    pub(crate) start_epoch: usize,
    /// What was set for batches that go through host memory.
    pub(crate) staging: Staging,
    pub(crate) budget: Option<MemoryLimit>,
    /// What is said of the size of every batch,
    pub(crate) declared: Declared,
    /// and whether each is measured.
    pub(crate) measured: bool,
    pub(crate) auto: AutoSettings,
}

/// What was set for batches that go through host memory.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Staging {
    /// Whether they do.
    pub(crate) staged: bool,
    pub(crate) pin_memory: Option<bool>,
    pub(crate) device_prefetch: Option<usize>,
    pub(crate) pinned_budget: Option<u64>,
    pub(crate) device_budget: Option<u64>,
}

impl Default for Settings {
    /// Burn's defaults where Burn has the setting, PyTorch's where it has not, but for the workers,
    /// which persist.
    fn default() -> Self {
        Self {
            batch_size: None,
            orders: Vec::new(),
            order: "sequential",
            shuffle: None,
            seed: None,
            crew: Crew::default(),
            workers: None,
            device: None,
            prefetch_factor: None,
            prefetch: None,
            timeout: None,
            stall_warning: None,
            in_order: None,
            warm_next_epoch: false,
            drop_last: false,
            pad_last: false,
            parts_per_batch: None,
            batched: false,
            written: false,
            start_epoch: 0,
            staging: Staging::default(),
            budget: None,
            declared: Declared::default(),
            measured: false,
            auto: AutoSettings::default(),
        }
    }
}

impl Settings {
    /// Where the batches of one loader are counted, and what changes its settings while it runs.
    pub(crate) fn account(&self) -> Result<Account, ConfigError> {
        let budget = self.budget.as_ref().map(MemoryLimit::budget).transpose()?;
        let may_widen = self.bound().is_none();
        let account = Account {
            budget,
            tuning: self.auto.tuning(may_widen).map(Arc::new),
            ..Account::default()
        };
        account.dial.begins_with(self.num_workers());
        if let Some(factor) = self.prefetch_factor {
            let most = self.prefetch.unwrap_or(usize::MAX);
            account.dial.follow_workers((factor, most));
        }
        Ok(account)
    }

    /// The workers to be used: those given, or new ones.
    pub(crate) fn hire(&self) -> Workers {
        match &self.workers {
            Some(workers) => workers.clone(),
            None => self.crew.hire(),
        }
    }

    /// How batches go through host memory, where they do.
    pub(crate) fn stage(&self) -> StageSettings {
        StageSettings {
            pin_memory: self.staging.pin_memory.unwrap_or(true),
            device_prefetch: self.staging.device_prefetch.unwrap_or(1),
            pinned_budget: self.staging.pinned_budget,
            device_budget: self.staging.device_budget,
            workers: self.num_workers() > 0,
        }
    }

    pub(crate) fn num_workers(&self) -> usize {
        match &self.workers {
            Some(workers) => workers.num_workers(),
            None => self.crew.num_workers(),
        }
    }

    pub(crate) fn remainder(&self) -> Remainder {
        match (self.drop_last, self.pad_last) {
            (true, _) => Remainder::Drop,
            (false, true) => Remainder::Pad,
            (false, false) => Remainder::Keep,
        }
    }

    /// Whether the user's own sampler makes the batches.
    pub(crate) fn has_batch_sampler(&self) -> bool {
        self.orders.contains(&BATCH_SAMPLER)
    }

    /// The seed of random augmentation.
    pub(crate) fn seed(&self) -> u64 {
        self.seed.or(self.shuffle).unwrap_or_default()
    }

    /// How batches are cut, for the fingerprint of a state.
    pub(crate) fn cut(&self) -> Cut {
        let even = (!self.has_batch_sampler()).then(|| self.batch_size.unwrap_or(1));
        Cut {
            batch_size: even,
            remainder: self.remainder(),
            shuffle: self.shuffle,
            seed: self.seed(),
        }
    }

    pub(crate) fn reader(&self) -> ReaderConfig {
        ReaderConfig {
            limits: self.limits(),
            delivery: if self.in_order.unwrap_or(true) {
                Delivery::InOrder
            } else {
                Delivery::AsFinished
            },
            patience: Patience {
                timeout: self.timeout,
                stall_warning: self.stall_warning(),
            },
            warm_next: self.warm_next_epoch,
        }
    }

    fn limits(&self) -> Limits {
        let ahead = match self.bound() {
            Some(batches) => Ahead::Fixed(batches),
            None => Ahead::Learned,
        };
        let parts = match (
            self.parts_per_batch.and_then(NonZeroUsize::new),
            self.fetches_together(),
        ) {
            (Some(parts), _) => Parts::Fixed(parts),
            (None, true) => Parts::Fixed(NonZeroUsize::MIN),
            (None, false) => Parts::Learned,
        };
        Limits { ahead, parts }
    }

    /// Whether items are fetched with `get_many`.
    pub(crate) fn fetches_together(&self) -> bool {
        self.batched && !self.written
    }

    pub(crate) fn stall_warning(&self) -> Option<Duration> {
        match self.stall_warning {
            Some(StallWarning::After(limit)) => Some(limit),
            Some(StallWarning::Never) => None,
            None => Some(STALL_WARNING),
        }
    }

    pub(crate) fn persistent_workers(&self) -> bool {
        match &self.workers {
            Some(workers) => workers.0.config().lifetime == Lifetime::Pool,
            None => self.crew.persistent.unwrap_or(true),
        }
    }

    /// The strictest of the bounds given.
    pub(crate) fn bound(&self) -> Option<usize> {
        let by_factor = self.by_factor();
        match (by_factor, self.prefetch) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        }
    }

    pub(crate) fn by_factor(&self) -> Option<usize> {
        self.prefetch_factor
            .map(|factor| factor.saturating_mul(self.num_workers()))
    }
}

#[cfg(test)]
pub(crate) mod doubles {
    use super::*;

    /// The default, with so many workers.
    pub(crate) fn with_workers(num_workers: usize) -> Settings {
        Settings {
            crew: Crew {
                num_workers: Some(num_workers),
                ..Crew::default()
            },
            ..Settings::default()
        }
    }
}
