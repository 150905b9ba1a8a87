//! Settings that the loader finds by itself, and goes on finding while it runs.

use std::thread::available_parallelism;

use burn_prefetch_engine::{Decision, Knob, Tuner, TunerConfig, Tuning};

use crate::config_error::ConfigError;
use crate::workers::MOST_WORKERS;

/// A number that the loader finds by itself, where [`num_workers`](crate::DataLoaderBuilder::num_workers)
/// or [`prefetch`](crate::DataLoaderBuilder::prefetch) take one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Auto;

/// A number, or [`Auto`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Amount {
    /// So many.
    Given(usize),
    /// Found while the loader runs.
    Auto,
}

impl From<usize> for Amount {
    fn from(amount: usize) -> Self {
        Self::Given(amount)
    }
}

impl From<Auto> for Amount {
    fn from(_auto: Auto) -> Self {
        Self::Auto
    }
}

/// A window is never made wider than this by itself.
const WIDEST: usize = 64;

/// So many workers there are at first, if there are cores for them.
const FIRST_WORKERS: usize = 2;

/// The share of the cores that workers may be busy with, if nobody says another.
const CPU_SHARE: f64 = 0.4;

/// The most that a decision may ever have come to.
fn most(knob: Knob) -> usize {
    if knob == Knob::Workers {
        MOST_WORKERS
    } else {
        WIDEST
    }
}

/// What is to be found.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct AutoSettings {
    pub(crate) workers: bool,
    pub(crate) window: bool,
    pub(crate) cpu_share: Option<f64>,
    /// Instead of new decisions these are taken again.
    pub(crate) replay: Option<Vec<Decision>>,
}

/// Cores that this process may use: its affinity and the quota of its control group count.
fn cores() -> usize {
    available_parallelism().map_or(1, usize::from)
}

/// The most workers: one core is left for training, where there is one to leave.
fn most_workers(cores: usize) -> usize {
    cores.saturating_sub(1).max(1)
}

/// How many workers there are before anything was measured.
pub(crate) fn first_workers() -> usize {
    most_workers(cores()).min(FIRST_WORKERS)
}

impl AutoSettings {
    /// `persist`: whether there are workers that outlive an epoch.
    pub(crate) fn check(&self, persist: bool) -> Result<(), ConfigError> {
        let is_share = |share: &f64| *share > 0.0 && *share <= 1.0;
        if let Some(share) = self.cpu_share.filter(|share| !is_share(share)) {
            return Err(ConfigError::CpuShare {
                share: share.to_string(),
            });
        }
        let replayed = self.replay.iter().flatten();
        let beyond = replayed.map(|decision| (decision.knob, decision.to));
        let mut beyond = beyond.filter(|(knob, to)| !(1..=most(*knob)).contains(to));
        if let Some((knob, to)) = beyond.next() {
            return Err(ConfigError::ReplayBeyond {
                what: format!("{knob:?}"),
                to,
                most: most(knob),
            });
        }
        match self.given() {
            Some(setting) if !persist => Err(ConfigError::AutoWithoutWorkers { setting }),
            Some(_) | None => Ok(()),
        }
    }

    /// The share of the cores that automatic workers may be busy with.
    pub(crate) fn cpu_share(&self) -> f64 {
        self.cpu_share.unwrap_or(CPU_SHARE)
    }

    fn given(&self) -> Option<&'static str> {
        let given = [
            (self.workers, "num_workers(Auto)"),
            (self.window, "prefetch(Auto)"),
            (self.replay.is_some(), "replay(..)"),
        ];
        let mut given = given.iter();
        given.find(|(is, _)| *is).map(|(_, name)| *name)
    }

    /// What changes the settings of a running loader; `widen`: whether the window is not bounded.
    pub(crate) fn tuning(&self, widen: bool) -> Option<Tuning> {
        self.given()?;
        let cores = cores();
        let config = TunerConfig {
            window: (self.window && widen).then_some(WIDEST),
            workers: self.workers.then_some(most_workers(cores)),
            cores,
            cpu_share: self.cpu_share(),
        };
        Some(Tuning::new(match &self.replay {
            Some(decisions) => Tuner::replay(config, decisions.clone()),
            None => Tuner::new(config),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_core_is_left_where_there_is_one_to_leave() {
        assert_eq!([0, 1, 2, 8].map(most_workers), [1, 1, 1, 7]);
        assert!(first_workers() >= 1);
    }

    #[test]
    fn what_cannot_be_found_is_refused() {
        let auto = AutoSettings {
            window: true,
            ..AutoSettings::default()
        };
        assert_eq!(auto.check(true), Ok(()));
        let setting = "prefetch(Auto)";
        let refused = Err(ConfigError::AutoWithoutWorkers { setting });
        assert_eq!(auto.check(false), refused);
        assert_eq!(AutoSettings::default().check(false), Ok(()));
        for share in [0.0, -1.0, 1.5, f64::NAN] {
            let auto = AutoSettings {
                cpu_share: Some(share),
                ..AutoSettings::default()
            };
            assert!(matches!(
                auto.check(true),
                Err(ConfigError::CpuShare { .. })
            ));
        }
        assert!(AutoSettings::default().tuning(true).is_none());
        assert!(auto.tuning(true).is_some());
    }
}
