//! Which settings cannot be used, said before anything starts.

use std::num::NonZeroUsize;
use std::time::Duration;

use crate::config_error::ConfigError;
use crate::settings::{Settings, StallWarning};
use crate::weigh::SampleBytes;

/// More parts than this is a slip of the keyboard: it exceeds any useful batch size.
const MOST_PARTS: usize = 65_536;

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
        let sizes = [
            ("max_batch_bytes", self.declared.max_batch),
            ("item_bytes", self.declared.item),
        ];
        if let Some((setting, _)) = sizes.into_iter().find(|(_, bytes)| *bytes == Some(0)) {
            return Err(ConfigError::SizeZero { setting });
        }
        let weighed = self.measured || self.declared.tell_batches();
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::doubles::with_workers;
    use crate::workers::Workers;

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
