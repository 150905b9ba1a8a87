//! Paired runs: contenders take turns, and ratios are taken turn by turn.

use std::fmt;
use std::time::Instant;

use crate::os::usage;

/// What one run took.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Seconds on the clock.
    pub wall: f64,
    /// Seconds of CPU time, of all threads.
    pub cpu: f64,
    /// How many times a thread went to sleep.
    pub sleeps: f64,
}

/// Runs `work` and says what it took.
pub fn timed(work: impl FnOnce()) -> Sample {
    let (start, before) = (Instant::now(), usage());
    work();
    let (wall, after) = (start.elapsed(), usage());
    Sample {
        wall: wall.as_secs_f64(),
        cpu: after.cpu.saturating_sub(before.cpu).as_secs_f64(),
        sleeps: real(after.sleeps.saturating_sub(before.sleeps)),
    }
}

/// One contender: runs once, says what it took.
pub type Run<'a> = Box<dyn FnMut() -> Sample + 'a>;

/// Lets the contenders take turns (A B C A B C ...) for `rounds` rounds after one that is not counted.
#[must_use]
pub fn interleaved(rounds: usize, mut runs: Vec<Run<'_>>) -> Vec<Series> {
    let mut series = vec![Series(Vec::with_capacity(rounds)); runs.len()];
    for round in 0..=rounds {
        for (run, series) in runs.iter_mut().zip(&mut series) {
            let sample = run();
            if round > 0 {
                series.0.push(sample);
            }
        }
    }
    series
}

/// The samples of one contender, one a round.
#[derive(Clone, Debug)]
pub struct Series(Vec<Sample>);

impl Series {
    /// Median seconds on the clock.
    #[must_use]
    pub fn wall(&self) -> f64 {
        median(self.0.iter().map(|sample| sample.wall).collect())
    }

    /// Median seconds of CPU time.
    #[must_use]
    pub fn cpu(&self) -> f64 {
        median(self.0.iter().map(|sample| sample.cpu).collect())
    }

    /// Median number of times a thread went to sleep.
    #[must_use]
    pub fn sleeps(&self) -> f64 {
        median(self.0.iter().map(|sample| sample.sleeps).collect())
    }

    /// How many times the CPU time of `peer`, round by round; below 1 is less work. Other programs
    /// on the machine disturb it less than [`speed_against`](Self::speed_against).
    #[must_use]
    pub fn work_against(&self, peer: &Self) -> Ratio {
        Ratio::of(
            self.0
                .iter()
                .zip(&peer.0)
                .map(|(own, peer)| own.cpu / peer.cpu),
        )
    }

    /// How many times as fast as `peer`, round by round; above 1 is faster.
    #[must_use]
    pub fn speed_against(&self, peer: &Self) -> Ratio {
        Ratio::of(
            self.0
                .iter()
                .zip(&peer.0)
                .map(|(own, peer)| peer.wall / own.wall),
        )
    }
}

/// Pairwise ratios: the median, the smallest and the largest.
#[derive(Clone, Copy, Debug)]
pub struct Ratio {
    /// The middle one.
    pub median: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

impl Ratio {
    fn of(ratios: impl Iterator<Item = f64>) -> Self {
        let ratios: Vec<f64> = ratios.collect();
        Self {
            min: ratios.iter().copied().fold(f64::INFINITY, f64::min),
            max: ratios.iter().copied().fold(0.0, f64::max),
            median: median(ratios),
        }
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.2}x ({:.2}-{:.2})", self.median, self.min, self.max)
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 {
        values[middle]
    } else {
        f64::midpoint(values[middle - 1], values[middle])
    }
}

/// A count as a real number.
#[must_use]
#[expect(
    clippy::cast_precision_loss,
    reason = "counts of items and batches stay far below 2^53"
)]
pub fn real(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(walls: &[f64]) -> Series {
        Series(
            walls
                .iter()
                .map(|&wall| Sample {
                    wall,
                    cpu: 0.0,
                    sleeps: 0.0,
                })
                .collect(),
        )
    }

    #[test]
    fn the_ratio_is_the_median_of_pairs_not_the_ratio_of_medians() {
        let (own, peer) = (series(&[1.0, 2.0, 10.0]), series(&[3.0, 2.0, 40.0]));
        let ratio = own.speed_against(&peer);
        assert_eq!((ratio.median, ratio.min, ratio.max), (3.0, 1.0, 4.0));
        assert_eq!((peer.wall(), own.wall()), (3.0, 2.0));
    }

    #[test]
    fn contenders_take_turns_and_the_first_round_is_not_counted() {
        let calls = std::cell::RefCell::new(String::new());
        let run = |name: char| -> Run<'_> {
            let calls = &calls;
            Box::new(move || {
                calls.borrow_mut().push(name);
                Sample {
                    wall: 1.0,
                    cpu: 0.0,
                    sleeps: 0.0,
                }
            })
        };
        let series = interleaved(2, vec![run('a'), run('b')]);
        assert_eq!(*calls.borrow(), "ababab");
        assert_eq!(series[1].0.len(), 2);
    }
}
