//! The time of each step, and what a run is summed up to.

use std::time::Duration;

/// One step: how many images, how long the data took, how long all of it took.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample {
    pub(crate) images: usize,
    pub(crate) waited: Duration,
    pub(crate) total: Duration,
}

/// The median over the steps of images a second.
pub(crate) fn images_per_second(samples: &[Sample]) -> f64 {
    let mut rates: Vec<f64> = samples
        .iter()
        .map(|sample| rate(sample.images, sample.total))
        .collect();
    rates.sort_by(f64::total_cmp);
    let middle = rates.len() / 2;
    match rates.len() {
        0 => 0.0,
        length if length % 2 == 1 => rates[middle],
        _ => f64::midpoint(rates[middle - 1], rates[middle]),
    }
}

/// The share of all the time that went into waiting for data, 0 to 1.
pub(crate) fn wait_share(samples: &[Sample]) -> f64 {
    let waited: Duration = samples.iter().map(|sample| sample.waited).sum();
    let total: Duration = samples.iter().map(|sample| sample.total).sum();
    if total.is_zero() {
        0.0
    } else {
        waited.div_duration_f64(total)
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

    fn samples(totals: &[u64]) -> Vec<Sample> {
        let sample = |&total| Sample {
            images: 10,
            waited: Duration::from_secs(1),
            total: Duration::from_secs(total),
        };
        totals.iter().map(sample).collect()
    }

    #[test]
    fn the_median_ignores_one_slow_step() {
        assert!((images_per_second(&samples(&[2, 100, 2])) - 5.0).abs() < 1e-9);
        assert!((images_per_second(&samples(&[1, 2])) - 7.5).abs() < 1e-9);
    }

    #[test]
    fn the_share_is_of_all_the_time() {
        assert!((wait_share(&samples(&[2, 6])) - 0.25).abs() < 1e-9);
        assert!(wait_share(&[]).abs() < 1e-9);
    }
}
