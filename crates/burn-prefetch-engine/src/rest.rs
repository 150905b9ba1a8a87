//! How long each worker has slept, since there was nothing to do.

use std::time::Duration;

use crate::sync::{Moment, QuietMutex};

/// The sleep of a pool's workers, by number.
#[derive(Debug, Default)]
pub(crate) struct Rest(QuietMutex<Vec<Slept>>);

#[derive(Clone, Debug, Default)]
struct Slept {
    so_far: Duration,
    /// Asleep at the moment, since when.
    since: Option<Moment>,
}

impl Rest {
    /// A worker goes to sleep.
    pub(crate) fn begin(&self, worker: usize) {
        let now = Moment::now();
        let mut all = self.0.lock();
        if all.len() <= worker {
            all.resize(worker + 1, Slept::default());
        }
        all[worker].since = Some(now);
    }

    /// It wakes up.
    pub(crate) fn end(&self, worker: usize) {
        let mut all = self.0.lock();
        let Some(slept) = all.get_mut(worker) else {
            return;
        };
        if let Some(since) = slept.since.take() {
            slept.so_far += since.elapsed();
        }
    }

    /// How long each has slept, the sleep it is in included.
    pub(crate) fn all(&self) -> Vec<Duration> {
        let all = self.0.lock();
        let sleep = |slept: &Slept| {
            let now = slept.since.map(Moment::elapsed);
            slept.so_far + now.unwrap_or_default()
        };
        all.iter().map(sleep).collect()
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    #[test]
    fn a_sleep_counts_while_it_lasts_and_once() {
        let rest = Rest::default();
        assert!(rest.all().is_empty());
        rest.begin(1);
        while rest.all()[1].is_zero() {
            std::thread::yield_now();
        }
        rest.end(1);
        let slept = rest.all();
        rest.end(1);
        assert_eq!(rest.all(), slept);
        assert_eq!((slept.len(), slept[0]), (2, Duration::ZERO));
    }
}
