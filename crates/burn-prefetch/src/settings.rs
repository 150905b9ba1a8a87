//! What can be set, its defaults, its checks, and what is in force.

use std::num::NonZeroUsize;

use burn_prefetch_engine::{Ahead, Lifetime, Limits, Parts, Remainder};

use crate::burn::Device;
use crate::config_error::ConfigError;
use crate::effective::{EffectiveConfig, Ignored, WindowConfig};

/// More workers than this is a slip of the keyboard: each is an operating-system thread.
const MOST_WORKERS: usize = 1_024;

/// More parts than this is a slip of the keyboard: it exceeds any useful batch size.
const MOST_PARTS: usize = 65_536;

/// The builder's settings, as given; they travel whole.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) batch_size: usize,
    pub(crate) shuffle: Option<u64>,
    pub(crate) num_workers: usize,
    pub(crate) device: Option<Device>,
    pub(crate) prefetch_factor: Option<usize>,
    pub(crate) prefetch: Option<usize>,
    pub(crate) persistent_workers: Option<bool>,
    pub(crate) drop_last: bool,
    pub(crate) parts_per_batch: Option<usize>,
    pub(crate) batched: bool,
    pub(crate) start_epoch: usize,
}

impl Default for Settings {
    /// Burn's defaults where Burn has the setting, PyTorch's where it has not, but for the workers,
    /// which persist.
    fn default() -> Self {
        Self {
            batch_size: 1,
            shuffle: None,
            num_workers: 0,
            device: None,
            prefetch_factor: None,
            prefetch: None,
            persistent_workers: None,
            drop_last: false,
            parts_per_batch: None,
            batched: false,
            start_epoch: 0,
        }
    }
}

impl Settings {
    /// Says what cannot be used; the size of a batch comes back as what it was checked to be.
    pub(crate) fn check(&self) -> Result<NonZeroUsize, ConfigError> {
        let batch_size = NonZeroUsize::new(self.batch_size).ok_or(ConfigError::BatchSizeZero)?;
        if self.num_workers > MOST_WORKERS {
            let num_workers = self.num_workers;
            return Err(ConfigError::TooManyWorkers {
                num_workers,
                most: MOST_WORKERS,
            });
        }
        match self.parts_per_batch {
            Some(0) => Err(ConfigError::PartsZero),
            Some(parts) if parts > MOST_PARTS => Err(ConfigError::TooManyParts {
                parts,
                most: MOST_PARTS,
            }),
            Some(_) | None => Ok(batch_size),
        }
    }

    pub(crate) fn remainder(&self) -> Remainder {
        if self.drop_last {
            Remainder::Drop
        } else {
            Remainder::Keep
        }
    }

    pub(crate) fn lifetime(&self) -> Lifetime {
        if self.persistent_workers() {
            Lifetime::Pool
        } else {
            Lifetime::Readers
        }
    }

    pub(crate) fn limits(&self) -> Limits {
        let ahead = match self.bound() {
            Some(batches) => Ahead::Fixed(batches),
            None => Ahead::Learned,
        };
        let parts = match (
            self.parts_per_batch.and_then(NonZeroUsize::new),
            self.batched,
        ) {
            (Some(parts), _) => Parts::Fixed(parts),
            (None, true) => Parts::Fixed(NonZeroUsize::MIN),
            (None, false) => Parts::Learned,
        };
        Limits {
            ahead,
            bytes: None,
            parts,
        }
    }

    pub(crate) fn effective(&self) -> EffectiveConfig {
        let window = match (self.num_workers, self.bound()) {
            (0, _) => WindowConfig::Inline,
            (_, Some(batches)) => WindowConfig::Batches(batches),
            (workers, None) => WindowConfig::Learned { most: 2 * workers },
        };
        EffectiveConfig {
            batch_size: self.batch_size,
            num_workers: self.num_workers,
            window,
            shuffle: self.shuffle,
            drop_last: self.drop_last,
            persistent_workers: self.persistent_workers() && self.num_workers > 0,
            parts_per_batch: match self.limits().parts {
                Parts::Fixed(parts) => Some(parts.get()),
                Parts::Learned => None,
            },
            batched: self.batched,
            start_epoch: self.start_epoch,
            ignored: self.ignored(),
        }
    }

    fn persistent_workers(&self) -> bool {
        self.persistent_workers.unwrap_or(true)
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
            .map(|factor| factor.saturating_mul(self.num_workers))
    }

    fn ignored(&self) -> Vec<Ignored> {
        let mut ignored = Vec::new();
        let mut note = |setting, value: Option<String>, why: String| {
            ignored.extend(value.map(|value| Ignored {
                setting,
                value,
                why,
            }));
        };
        let factor = self.prefetch_factor.map(|factor| factor.to_string());
        let total = self.prefetch.map(|total| total.to_string());
        if self.num_workers == 0 {
            let inline = "with 0 workers a batch is made when next() asks for it".to_owned();
            note("prefetch_factor", factor, inline.clone());
            note("prefetch", total, inline);
            let threadless = "with 0 workers there is no thread to keep".to_owned();
            note(
                "persistent_workers",
                self.persistent_workers.map(|on| on.to_string()),
                threadless,
            );
            return ignored;
        }
        if let (Some(by_factor), Some(given)) = (self.by_factor(), self.prefetch) {
            let workers = self.num_workers;
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

    fn bound(settings: &Settings) -> WindowConfig {
        settings.effective().window
    }

    #[test]
    fn the_strictest_bound_wins_and_the_other_is_named() {
        let mut settings = Settings {
            num_workers: 4,
            prefetch_factor: Some(2),
            prefetch: Some(3),
            ..Settings::default()
        };
        assert_eq!(bound(&settings), WindowConfig::Batches(3));
        assert_eq!(settings.effective().ignored[0].setting, "prefetch_factor");
        settings.prefetch = Some(9);
        assert_eq!(bound(&settings), WindowConfig::Batches(8));
        assert_eq!(settings.effective().ignored[0].setting, "prefetch");
        settings.prefetch = Some(8);
        assert!(settings.effective().ignored.is_empty());
        settings.prefetch_factor = Some(usize::MAX);
        assert_eq!(bound(&settings), WindowConfig::Batches(8));
    }

    #[test]
    fn without_workers_the_prefetch_settings_are_ignored() {
        let settings = Settings {
            prefetch_factor: Some(2),
            persistent_workers: Some(true),
            ..Settings::default()
        };
        let effective = settings.effective();
        assert_eq!(effective.window, WindowConfig::Inline);
        let names: Vec<_> = effective
            .ignored
            .iter()
            .map(|ignored| ignored.setting)
            .collect();
        assert_eq!(names, ["prefetch_factor", "persistent_workers"]);
        assert!(Settings::default().effective().ignored.is_empty());
    }

    #[test]
    fn values_beyond_reason_are_refused() {
        let check = |settings: Settings| settings.check().map(NonZeroUsize::get);
        assert_eq!(check(Settings::default()), Ok(1));
        let zero = Settings {
            batch_size: 0,
            ..Settings::default()
        };
        assert_eq!(check(zero), Err(ConfigError::BatchSizeZero));
        let workers = Settings {
            num_workers: MOST_WORKERS + 1,
            ..Settings::default()
        };
        assert!(matches!(
            check(workers),
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
}
