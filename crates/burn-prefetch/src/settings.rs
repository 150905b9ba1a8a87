//! What can be set, its defaults, its checks, and what is in force.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use burn_prefetch_engine::{
    Account, Ahead, Delivery, Lifetime, Limits, Parts, Patience, ReaderConfig, Remainder,
};

use crate::auto::AutoSettings;
use crate::burn::Device;
use crate::config_error::ConfigError;
use crate::effective::{EffectiveConfig, Ignored, StagingConfig, WindowConfig};
use crate::memory::MemoryLimit;
use crate::stage::StageSettings;
use crate::state::Cut;
use crate::weigh::{Declared, SampleBytes};
use crate::workers::{Crew, SHUTDOWN_GRACE, Workers};

/// The builder's method for batches that are made by the user.
pub(crate) const BATCH_SAMPLER: &str = "batch_sampler";

/// A worker in one item for so long while a batch is waited for is worth a line in the log.
const STALL_WARNING: Duration = Duration::from_secs(30);

/// More parts than this is a slip of the keyboard: it exceeds any useful batch size.
const MOST_PARTS: usize = 65_536;

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
    /// Says what cannot be used; the size of a batch comes back as what it was checked to be.
    pub(crate) fn check(&self) -> Result<NonZeroUsize, ConfigError> {
        let batch_size = self.batch_size.unwrap_or(1);
        let batch_size = NonZeroUsize::new(batch_size).ok_or(ConfigError::BatchSizeZero)?;
        self.check_order()?;
        self.check_workers()?;
        self.check_waiting()?;
        self.check_memory()?;
        self.auto
            .check(self.persistent_workers() && self.num_workers() > 0)?;
        match self.parts_per_batch {
            Some(0) => Err(ConfigError::PartsZero),
            Some(parts) if parts > MOST_PARTS => Err(ConfigError::TooManyParts {
                parts,
                most: MOST_PARTS,
            }),
            Some(_) | None => Ok(batch_size),
        }
    }

    fn check_order(&self) -> Result<(), ConfigError> {
        if let [one, other, ..] = self.orders[..] {
            return Err(ConfigError::TwoOrders { one, other });
        }
        if self.drop_last && self.pad_last {
            return Err(ConfigError::DropAndPad);
        }
        let beside = [
            ("batch_size", self.batch_size.is_some()),
            ("drop_last", self.drop_last),
            ("pad_last", self.pad_last),
        ];
        match beside.into_iter().find(|(_, given)| *given) {
            Some((setting, _)) if self.has_batch_sampler() => {
                Err(ConfigError::GivenBesideBatchSampler { setting })
            }
            Some(_) | None => Ok(()),
        }
    }

    fn check_workers(&self) -> Result<(), ConfigError> {
        self.crew.check()?;
        if self.workers.is_some() && self.auto.workers {
            return Err(ConfigError::AutoBesideWorkers);
        }
        if let (Some(_), Some(setting)) = (&self.workers, self.crew.given()) {
            return Err(ConfigError::GivenBesideWorkers { setting });
        }
        match self.warm_next_epoch {
            true if self.num_workers() == 0 => Err(ConfigError::WarmWithoutWorkers),
            true if !self.persistent_workers() => Err(ConfigError::WarmWithoutPersistence),
            true | false => Ok(()),
        }
    }

    fn check_waiting(&self) -> Result<(), ConfigError> {
        if self.stall_warning == Some(StallWarning::After(Duration::ZERO)) {
            return Err(ConfigError::StallWarningZero);
        }
        match self.timeout {
            Some(Duration::ZERO) => Err(ConfigError::TimeoutZero),
            Some(timeout) if self.num_workers() == 0 => {
                Err(ConfigError::TimeoutWithoutWorkers { timeout })
            }
            Some(_) | None => Ok(()),
        }
    }

    /// A budget counts nothing of batches that nobody weighs.
    fn check_memory(&self) -> Result<(), ConfigError> {
        if self.staging.device_budget == Some(0) {
            return Err(ConfigError::DeviceBudgetZero);
        }
        if let (Some(_), Some(_)) = (self.declared.max_batch, &self.declared.samples) {
            return Err(ConfigError::SizedTwice);
        }
        let weighed = self.measured || self.declared.is_given();
        match &self.budget {
            Some(_) if !weighed => Err(ConfigError::BudgetUnweighed),
            Some(_) | None => Ok(()),
        }
    }

    /// Sizes by index have to be of this data.
    pub(crate) fn check_samples(&self, len: usize) -> Result<(), ConfigError> {
        let sizes = self.declared.samples.as_ref().map(SampleBytes::len);
        match sizes.filter(|sizes| *sizes != len) {
            Some(sizes) => Err(ConfigError::SampleSizes { sizes, len }),
            None => Ok(()),
        }
    }

    /// Where the batches of one loader are counted, and what changes its settings while it runs.
    pub(crate) fn account(&self) -> Result<Account, ConfigError> {
        let budget = self.budget.as_ref().map(MemoryLimit::budget).transpose()?;
        let may_widen = self.bound().is_none();
        let account = Account {
            budget,
            tuning: self.auto.tuning(may_widen).map(Arc::new),
            ..Account::default()
        };
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

    /// `can_pin`: whether the loader's device has page-locked memory and a stream of its own.
    pub(crate) fn effective(&self, can_pin: bool) -> EffectiveConfig {
        let num_workers = self.num_workers();
        let pool = self.workers.as_ref().map(|workers| workers.0.config());
        let reader = self.reader();
        let window = match (num_workers, self.bound()) {
            (0, _) => WindowConfig::Inline,
            (_, Some(batches)) => WindowConfig::Batches(batches),
            (workers, None) => WindowConfig::Learned { most: 2 * workers },
        };
        EffectiveConfig {
            batch_size: self.cut().batch_size,
            num_workers,
            shared_workers: self.workers.is_some(),
            window,
            order: self.order,
            shuffle: self.shuffle,
            seed: self.seed(),
            drop_last: self.drop_last,
            pad_last: self.pad_last,
            in_order: reader.delivery == Delivery::InOrder,
            timeout: self.timeout,
            stall_warning: reader.patience.stall_warning.filter(|_| num_workers > 0),
            persistent_workers: self.persistent_workers() && num_workers > 0,
            shutdown_grace: pool.map_or_else(
                || self.crew.shutdown_grace.unwrap_or(SHUTDOWN_GRACE),
                |pool| pool.shutdown_grace,
            ),
            warm_next_epoch: self.warm_next_epoch,
            parts_per_batch: match reader.limits.parts {
                Parts::Fixed(parts) => Some(parts.get()),
                Parts::Learned => None,
            },
            batched: self.fetches_together(),
            start_epoch: self.start_epoch,
            staging: self.staging_config(can_pin),
            memory_budget: None,
            auto_workers: self.auto.workers,
            auto_window: self.auto.window && self.bound().is_none(),
            ignored: [self.ignored(can_pin), self.not_automatic()].concat(),
        }
    }

    /// Whether items are fetched with `get_many`.
    fn fetches_together(&self) -> bool {
        self.batched && !self.written
    }

    fn stall_warning(&self) -> Option<Duration> {
        match self.stall_warning {
            Some(StallWarning::After(limit)) => Some(limit),
            Some(StallWarning::Never) => None,
            None => Some(STALL_WARNING),
        }
    }

    fn persistent_workers(&self) -> bool {
        match &self.workers {
            Some(workers) => workers.0.config().lifetime == Lifetime::Pool,
            None => self.crew.persistent.unwrap_or(true),
        }
    }

    /// The strictest of the bounds given.
    fn bound(&self) -> Option<usize> {
        let by_factor = self.by_factor();
        match (by_factor, self.prefetch) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        }
    }

    fn by_factor(&self) -> Option<usize> {
        self.prefetch_factor
            .map(|factor| factor.saturating_mul(self.num_workers()))
    }

    /// What of the automatic settings has no effect.
    fn not_automatic(&self) -> Vec<Ignored> {
        let window = self.auto.window && self.bound().is_some();
        let bounded = window.then(|| Ignored {
            setting: "prefetch",
            value: "Auto".to_owned(),
            why: "prefetch_factor says how many batches may be alive".to_owned(),
        });
        let share = self.auto.cpu_share.filter(|_| !self.auto.workers);
        let idle = share.map(|share| Ignored {
            setting: "cpu_share",
            value: share.to_string(),
            why: "the number of workers does not change by itself".to_owned(),
        });
        bounded.into_iter().chain(idle).collect()
    }

    fn staging_config(&self, can_pin: bool) -> Option<StagingConfig> {
        let stage = self.stage();
        self.staging.staged.then(|| StagingConfig {
            pin_memory: can_pin && stage.pin_memory,
            device_prefetch: Some(stage.device_prefetch).filter(|_| can_pin && stage.workers),
            pinned_budget: stage.pinned_budget.filter(|_| can_pin),
            device_budget: stage.device_budget.filter(|_| can_pin && stage.workers),
        })
    }

    /// What was set for a device of another kind.
    fn ignored_staging(&self, can_pin: bool) -> Vec<Ignored> {
        let Staging {
            pin_memory,
            device_prefetch,
            pinned_budget,
            device_budget,
            ..
        } = self.staging;
        let here = "the device uses the host's memory as it is";
        let inline = "with 0 workers a batch is uploaded when next() asks for it";
        let of_no_use = |setting, value: Option<String>, why: &str| {
            let why = why.to_owned();
            value.map(|value| Ignored {
                setting,
                value,
                why,
            })
        };
        let pin = pin_memory.filter(|pin| *pin && !can_pin);
        let budget = pinned_budget.filter(|_| !can_pin);
        let ahead = device_prefetch.filter(|_| !can_pin || self.num_workers() == 0);
        let bytes_ahead = device_budget.filter(|_| !can_pin || self.num_workers() == 0);
        let why_ahead = if can_pin { inline } else { here };
        let all = [
            of_no_use("pin_memory", pin.map(|pin| pin.to_string()), here),
            of_no_use("device_prefetch", ahead.map(|it| it.to_string()), why_ahead),
            of_no_use("pinned_budget", budget.map(|it| it.to_string()), here),
            of_no_use(
                "device_budget",
                bytes_ahead.map(|it| it.to_string()),
                why_ahead,
            ),
        ];
        all.into_iter().flatten().collect()
    }

    fn ignored(&self, can_pin: bool) -> Vec<Ignored> {
        let mut ignored = self.ignored_staging(can_pin);
        let mut note = |setting, value: Option<String>, why: String| {
            ignored.extend(value.map(|value| Ignored {
                setting,
                value,
                why,
            }));
        };
        let batched = Some(self.batched.to_string()).filter(|_| self.batched && self.written);
        let one_by_one = "FetchInto writes one sample at a time".to_owned();
        note("batched", batched, one_by_one);
        let factor = self.prefetch_factor.map(|factor| factor.to_string());
        let total = self.prefetch.map(|total| total.to_string());
        if self.num_workers() == 0 {
            let inline = "with 0 workers a batch is made when next() asks for it".to_owned();
            note("prefetch_factor", factor, inline.clone());
            note("prefetch", total, inline);
            let threadless = "with 0 workers there is no thread to keep".to_owned();
            let crew = &self.crew;
            let persistent = crew.persistent.map(|on| on.to_string());
            note("persistent_workers", persistent, threadless.clone());
            let grace = crew.shutdown_grace.map(|grace| format!("{grace:?}"));
            note("shutdown_grace", grace, threadless);
            let unwatched = "with 0 workers get runs inside next()".to_owned();
            let stall = self.stall_warning.map(|_| self.stall_warning());
            let stall = stall.map(|limit| limit.map_or("None".to_owned(), |it| format!("{it:?}")));
            note("stall_warning", stall, unwatched);
            let one_by_one = "with 0 workers batches are made one after the other".to_owned();
            let in_order = self.in_order.filter(|in_order| !in_order);
            note("in_order", in_order.map(|on| on.to_string()), one_by_one);
            return ignored;
        }
        if let (Some(by_factor), Some(given)) = (self.by_factor(), self.prefetch) {
            let workers = self.num_workers();
            if given < by_factor {
                let why = format!("prefetch({given}) is stricter than {by_factor} batches");
                note("prefetch_factor", factor, why);
            } else if given > by_factor {
                let why = format!(
                    "prefetch_factor for {workers} workers is stricter, with {by_factor} batches"
                );
                note("prefetch", total, why);
            }
        }
        ignored
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_workers(num_workers: usize) -> Settings {
        Settings {
            crew: Crew {
                num_workers: Some(num_workers),
                ..Crew::default()
            },
            ..Settings::default()
        }
    }

    fn bound(settings: &Settings) -> WindowConfig {
        settings.effective(false).window
    }

    #[test]
    fn the_strictest_bound_wins_and_the_other_is_named() {
        let mut settings = Settings {
            prefetch_factor: Some(2),
            prefetch: Some(3),
            ..with_workers(4)
        };
        assert_eq!(bound(&settings), WindowConfig::Batches(3));
        assert_eq!(
            settings.effective(false).ignored[0].setting,
            "prefetch_factor"
        );
        settings.prefetch = Some(9);
        assert_eq!(bound(&settings), WindowConfig::Batches(8));
        assert_eq!(settings.effective(false).ignored[0].setting, "prefetch");
        settings.prefetch = Some(8);
        assert!(settings.effective(false).ignored.is_empty());
        settings.prefetch_factor = Some(usize::MAX);
        assert_eq!(bound(&settings), WindowConfig::Batches(8));
    }

    #[test]
    fn without_workers_the_prefetch_settings_are_ignored() {
        let settings = Settings {
            prefetch_factor: Some(2),
            crew: Crew {
                persistent: Some(true),
                ..Crew::default()
            },
            ..Settings::default()
        };
        let effective = settings.effective(false);
        assert_eq!(effective.window, WindowConfig::Inline);
        let names: Vec<_> = effective
            .ignored
            .iter()
            .map(|ignored| ignored.setting)
            .collect();
        assert_eq!(names, ["prefetch_factor", "persistent_workers"]);
        assert!(Settings::default().effective(false).ignored.is_empty());
    }

    #[test]
    fn automatic_settings_without_effect_are_named() {
        let settings = Settings {
            prefetch_factor: Some(2),
            auto: AutoSettings {
                window: true,
                cpu_share: Some(0.5),
                ..AutoSettings::default()
            },
            ..with_workers(2)
        };
        let effective = settings.effective(false);
        assert_eq!(effective.window, WindowConfig::Batches(4));
        assert!(!effective.auto_window);
        let names = effective.ignored.iter().map(|ignored| ignored.setting);
        assert_eq!(names.collect::<Vec<_>>(), ["prefetch", "cpu_share"]);
    }

    #[test]
    fn values_beyond_reason_are_refused() {
        let check = |settings: Settings| settings.check().map(NonZeroUsize::get);
        assert_eq!(check(Settings::default()), Ok(1));
        let zero = Settings {
            batch_size: Some(0),
            ..Settings::default()
        };
        assert_eq!(check(zero), Err(ConfigError::BatchSizeZero));
        assert!(matches!(
            check(with_workers(5_000)),
            Err(ConfigError::TooManyWorkers { .. })
        ));
        let parts = Settings {
            parts_per_batch: Some(0),
            ..Settings::default()
        };
        assert_eq!(check(parts), Err(ConfigError::PartsZero));
        let parts = Settings {
            parts_per_batch: Some(MOST_PARTS + 1),
            ..Settings::default()
        };
        assert!(matches!(
            check(parts),
            Err(ConfigError::TooManyParts { .. })
        ));
    }

    #[test]
    fn what_needs_workers_says_so() {
        let timed = |timeout: Duration, workers: usize| Settings {
            timeout: Some(timeout),
            ..with_workers(workers)
        };
        assert_eq!(
            timed(Duration::ZERO, 2).check(),
            Err(ConfigError::TimeoutZero)
        );
        let second = Duration::from_secs(1);
        let refused = ConfigError::TimeoutWithoutWorkers { timeout: second };
        assert_eq!(timed(second, 0).check(), Err(refused.clone()));
        assert!(timed(second, 1).check().is_ok());
        let on_none = Settings {
            timeout: Some(second),
            workers: Some(Workers::new(0)),
            ..Settings::default()
        };
        assert_eq!(on_none.check(), Err(refused));
        let warm = |workers: usize| Settings {
            warm_next_epoch: true,
            ..with_workers(workers)
        };
        assert_eq!(warm(0).check(), Err(ConfigError::WarmWithoutWorkers));
        assert!(warm(1).check().is_ok());
        let mut fleeting = warm(1);
        fleeting.crew.persistent = Some(false);
        assert_eq!(fleeting.check(), Err(ConfigError::WarmWithoutPersistence));
    }

    #[test]
    fn threads_have_their_settings_once() {
        let mut shared = Settings {
            workers: Some(Workers::new(2)),
            ..Settings::default()
        };
        assert!(shared.check().is_ok());
        assert_eq!(shared.effective(false).num_workers, 2);
        shared.crew.num_workers = Some(2);
        let setting = "num_workers";
        assert_eq!(
            shared.check(),
            Err(ConfigError::GivenBesideWorkers { setting })
        );
    }
}
