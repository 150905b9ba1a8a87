//! The time of each step, and what a run is summed up to.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// One step: how many images, and the parts that its time consists of.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample {
    pub(crate) images: usize,
    /// In `next()`, for the batch.
    pub(crate) waited: Duration,
    /// For what the network takes, where the batch is bytes.
    pub(crate) widened: Duration,
    pub(crate) stepped: Duration,
    /// What it took to let go of the batch.
    pub(crate) dropped: Duration,
}

/// What parts of the time the parts of the steps are, 0 to 1: together 1, or 0 of no time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shares {
    /// For data: in `next()`, and while bytes were widened.
    pub(crate) waited: f64,
    pub(crate) stepped: f64,
    pub(crate) dropped: f64,
}

impl Sample {
    /// All of the step's time: there is no other.
    pub(crate) fn total(&self) -> Duration {
        self.waited + self.widened + self.stepped + self.dropped
    }
}

/// How long `next()` took, over many steps, in rising order, exact to one part in a thousand.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Waits(pub(crate) Vec<Wait>);

/// How often `next()` took so long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Wait {
    pub(crate) nanoseconds: u64,
    pub(crate) count: u64,
}

impl Waits {
    pub(crate) fn of(samples: &[Sample]) -> Self {
        let waits = samples.iter().map(|sample| sample.waited.as_nanos());
        let waits = waits.map(|wait| Wait {
            nanoseconds: u64::try_from(wait).unwrap_or(u64::MAX),
            count: 1,
        });
        Self(Vec::new()).and(waits)
    }

    /// These and others.
    #[must_use]
    pub(crate) fn with(&self, others: &Self) -> Self {
        self.and(others.0.iter().copied())
    }

    fn and(&self, others: impl Iterator<Item = Wait>) -> Self {
        let all = histogram(self.0.iter().copied().chain(others));
        let recorded = all.iter_recorded();
        let buckets = recorded.map(|step| Wait {
            nanoseconds: step.value_iterated_to(),
            count: step.count_at_value(),
        });
        Self(buckets.collect())
    }

    /// The wait that this share of all waits does not exceed.
    pub(crate) fn quantile(&self, share: f64) -> Duration {
        let all = histogram(self.0.iter().copied());
        Duration::from_nanos(all.value_at_quantile(share))
    }
}

/// A nanosecond to more than a minute, three digits.
fn histogram(waits: impl Iterator<Item = Wait>) -> Histogram<u64> {
    let mut all = Histogram::new_with_bounds(1, 1 << 37, 3)
        .expect("the bounds are in order and 3 digits are few");
    for wait in waits {
        all.saturating_record_n(wait.nanoseconds, wait.count);
    }
    all
}

/// All images by all the time: a burst of fast steps between slow ones is no speed.
pub(crate) fn images_per_second(samples: &[Sample]) -> f64 {
    let images = samples.iter().map(|sample| sample.images).sum();
    rate(images, samples.iter().map(Sample::total).sum())
}

/// The middle one, or the mean of the middle two; `None` of nothing.
pub(crate) fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        length if length % 2 == 1 => Some(values[middle]),
        _ => Some(f64::midpoint(values[middle - 1], values[middle])),
    }
}

/// What all the time went into.
pub(crate) fn shares(samples: &[Sample]) -> Shares {
    let total: Duration = samples.iter().map(Sample::total).sum();
    let share = |of: fn(&Sample) -> Duration| {
        let part: Duration = samples.iter().map(of).sum();
        if total.is_zero() {
            0.0
        } else {
            part.div_duration_f64(total)
        }
    };
    Shares {
        waited: share(|sample| sample.waited + sample.widened),
        stepped: share(|sample| sample.stepped),
        dropped: share(|sample| sample.dropped),
    }
}

/// Images a second.
pub(crate) fn rate(images: usize, time: Duration) -> f64 {
    to_f64(images) / time.as_secs_f64().max(1e-9)
}

/// A count as a number to calculate with.
#[expect(
    clippy::cast_precision_loss,
    reason = "what is counted here stays far below 2^53"
)]
pub(crate) fn to_f64(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Steps of so many seconds, one of them for data and the last quarter letting go.
    fn samples(totals: &[u64]) -> Vec<Sample> {
        let sample = |total: &u64| Sample {
            images: 10,
            waited: Duration::from_millis(700),
            widened: Duration::from_millis(300),
            stepped: Duration::from_millis(750 * total - 1_000),
            dropped: Duration::from_millis(250 * total),
        };
        totals.iter().map(sample).collect()
    }

    #[test]
    fn slow_steps_count_with_the_time_that_they_take() {
        assert!((images_per_second(&samples(&[2, 96, 2])) - 0.3).abs() < 1e-9);
        assert!((images_per_second(&samples(&[2, 2])) - 5.0).abs() < 1e-9);
        assert!(images_per_second(&[]).abs() < 1e-9);
    }

    #[test]
    fn quantiles_are_exact_to_one_in_a_thousand_and_survive_json_and_merging() {
        let wait = |ms| Sample {
            images: 1,
            waited: Duration::from_millis(ms),
            widened: Duration::from_secs(9),
            stepped: Duration::ZERO,
            dropped: Duration::ZERO,
        };
        let low: Vec<Sample> = (1..=50).map(wait).collect();
        let high: Vec<Sample> = (51..=100).map(wait).collect();
        let merged = Waits::of(&high).with(&Waits::of(&low));
        let json = serde_json::to_string(&merged).unwrap();
        let read: Waits = serde_json::from_str(&json).unwrap();
        assert_eq!(read, merged);
        for (share, ms) in [(0.5, 50.0), (0.95, 95.0), (0.99, 99.0)] {
            let found = read.quantile(share).as_secs_f64() * 1e3;
            assert!((found / ms - 1.0).abs() < 2e-3, "{share}: {found} ms");
        }
        assert_eq!(Waits::default().quantile(0.5), Duration::ZERO);
    }

    #[test]
    fn the_shares_are_of_all_the_time_and_leave_nothing_over() {
        let found = shares(&samples(&[2, 6]));
        let wanted = [
            (found.waited, 0.25),
            (found.dropped, 0.25),
            (found.stepped, 0.5),
        ];
        for (share, wanted) in wanted {
            assert!((share - wanted).abs() < 1e-9, "{found:?}");
        }
        let none = shares(&[]);
        assert!((none.waited + none.stepped + none.dropped).abs() < 1e-9);
    }
}
