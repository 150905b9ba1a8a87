//! Items drawn by weight, without replacement.

use std::fmt;
use std::sync::Arc;

use rand_core::Rng;

use crate::order::Order;
use crate::order_error::OrderError;
use crate::recipe::{Identity, Prepared, Recipe};
use crate::seed::{self, Domain, Keys, digest};
use crate::weights::sum_of;

/// The version of the order: it rises whenever any index changes.
const VERSION: u32 = seed::VERSION;

/// Items drawn by weight, without replacement: each draw takes one of those left, with the chance
/// of its weight among theirs. Heavy items come early, and no item twice in an epoch.
///
/// Items of weight 0 never come. An epoch has to be prepared, by the first worker that needs it:
/// about a second for ten million weights on one core, with sixteen bytes a weight while that lasts
/// and four a draw until the epoch ends. Besides, eight bytes a weight.
///
/// ```
/// use burn_prefetch_engine::{Order, WeightedWithoutReplacement};
///
/// let weights = vec![1.0, 0.0, 3.0, 2.0];
/// let epoch = Order::from(WeightedWithoutReplacement::new(weights, 3, 7)?).at(0);
/// let mut indices: Vec<_> = (0..3).map(|position| epoch.index(position)).collect();
/// indices.sort();
/// assert_eq!(indices, [0, 2, 3]);
/// # Ok::<(), burn_prefetch_engine::OrderError>(())
/// ```
///
/// # Algorithm, version 1
///
/// That of P. S. Efraimidis and P. G. Spirakis (*Weighted random sampling with a reservoir*,
/// Information Processing Letters 2006) in its exponential form: item i gets the key `E / weight`
/// with an exponential number E drawn for (seed, epoch, index), and the smallest keys come first. E
/// is drawn in J. von Neumann's way (*Various Techniques Used in Connection With Random Digits*,
/// 1951), by comparisons alone, so that no machine's logarithm has a say.
#[derive(Clone)]
pub struct WeightedWithoutReplacement {
    weights: Arc<[f64]>,
    draws: usize,
    seed: u64,
    digest: u64,
}

impl WeightedWithoutReplacement {
    /// So many `draws` an epoch among as many items as there are `weights`.
    ///
    /// # Errors
    ///
    /// When there are no weights, or more than 2³² − 1; one is negative, infinite or not a number;
    /// all are 0; or there are more draws than weights above 0.
    pub fn new(
        weights: impl Into<Arc<[f64]>>,
        draws: usize,
        seed: u64,
    ) -> Result<Self, OrderError> {
        let weights = weights.into();
        sum_of(&weights)?;
        let positive = weights.iter().filter(|weight| **weight > 0.0).count();
        if draws > positive {
            return Err(OrderError::TooManyDraws { draws, positive });
        }
        Ok(Self {
            digest: digest(weights.iter().map(|weight| weight.to_bits())),
            weights,
            draws,
            seed,
        })
    }
}

impl fmt::Debug for WeightedWithoutReplacement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WeightedWithoutReplacement")
            .field("draws", &self.draws)
            .field("seed", &self.seed)
            .finish_non_exhaustive()
    }
}

impl From<WeightedWithoutReplacement> for Order {
    fn from(weighted: WeightedWithoutReplacement) -> Self {
        Self::made_from(Arc::new(weighted))
    }
}

impl Recipe for WeightedWithoutReplacement {
    fn data_len(&self) -> usize {
        self.weights.len()
    }

    fn len(&self, _epoch: usize) -> usize {
        self.draws
    }

    fn prepare(&self, epoch: usize) -> Box<dyn Prepared> {
        let keys = Keys::new(self.seed, Domain::Exponential, epoch as u64);
        let items = (0_u32..).zip(self.weights.iter());
        let drawable = items.filter(|(_, weight)| **weight > 0.0);
        // Numbers from 0 up are ordered as their bits are; of equal keys the lower index comes
        // first.
        let mut all: Vec<_> = drawable
            .map(|(index, weight)| {
                let key = exponential(keys.at(u64::from(index))) / weight;
                (key.to_bits(), index)
            })
            .collect();
        if self.draws < all.len() {
            all.select_nth_unstable(self.draws);
            all.truncate(self.draws);
        }
        all.sort_unstable();
        let indices: Box<[u32]> = all.into_iter().map(|(_, index)| index).collect();
        Box::new(Epoch { indices })
    }

    fn identity(&self) -> Identity {
        Identity {
            name: "weighted without replacement",
            version: VERSION,
            digest: digest([self.digest, self.draws as u64, self.seed]),
        }
    }
}

struct Epoch {
    indices: Box<[u32]>,
}

impl Prepared for Epoch {
    fn index(&self, position: usize) -> usize {
        self.indices[position] as usize
    }
}

/// A number of the exponential distribution: the length of a falling run is odd with chance
/// `exp(-x)`, where x is the run's first number; each run that is not counts as 1.
fn exponential(key: u64) -> f64 {
    let mut numbers = seed::rng(key);
    let mut whole = 0.0;
    loop {
        let first = numbers.next_u64();
        let (mut last, mut is_odd) = (first, true);
        loop {
            let next = numbers.next_u64();
            if next >= last {
                break;
            }
            (last, is_odd) = (next, !is_odd);
        }
        if is_odd {
            return whole + fraction(first);
        }
        whole += 1.0;
    }
}

/// A number from 0 to 1, the smaller the more exact.
#[expect(clippy::cast_precision_loss, reason = "53 bits are exact enough")]
fn fraction(number: u64) -> f64 {
    number as f64 / 2_f64.powi(64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chance::{assert_chance, assert_near, real};

    fn drawn(weights: &[f64], draws: usize, epoch: usize) -> Vec<usize> {
        let order = Order::from(WeightedWithoutReplacement::new(weights, draws, 7).unwrap());
        let at = order.at(epoch);
        (0..at.len()).map(|position| at.index(position)).collect()
    }

    #[test]
    fn exponential_numbers_are_exponential() {
        const NUMBERS: usize = 400_000;
        // The limits of sixteen equal shares.
        let limits: Vec<f64> = (1..16).map(|k| -(1.0 - real(k) / 16.0).ln()).collect();
        let mut seen = vec![0; 16];
        let keys = Keys::new(5, Domain::Exponential, 0);
        let mut sum = 0.0;
        for key in (0..NUMBERS as u64).map(|position| keys.at(position)) {
            let number = exponential(key);
            sum += number;
            seen[limits.partition_point(|limit| *limit <= number)] += 1;
        }
        assert_chance(&seen, &[real(NUMBERS) / 16.0; 16], "exponential numbers");
        let deviation = 1.0 / real(NUMBERS).sqrt();
        assert_near(sum / real(NUMBERS), 1.0, deviation, "their mean");
    }

    #[test]
    fn every_order_has_its_chance() {
        const EPOCHS: usize = 60_000;
        let weights = [1.0, 0.0, 2.0, 5.0];
        let mut seen = vec![0; 6];
        let orders = [[0, 2], [0, 3], [2, 0], [2, 3], [3, 0], [3, 2]];
        for epoch in 0..EPOCHS {
            let draw = drawn(&weights, 2, epoch);
            seen[orders.iter().position(|order| draw == *order).unwrap()] += 1;
        }
        let expected = orders.map(|[first, second]| {
            let (first, second) = (weights[first], weights[second]);
            first / 8.0 * second / (8.0 - first) * real(EPOCHS)
        });
        assert_chance(&seen, &expected, "orders of two of three");
    }

    #[test]
    fn no_item_comes_twice_and_those_of_weight_0_never() {
        let weights: Vec<_> = (0..1_000).map(|index| real(index % 5)).collect();
        for draws in [0, 1, 399, 800] {
            let mut items = drawn(&weights, draws, 3);
            assert_eq!(items, drawn(&weights, 800, 3)[..draws]);
            assert!(items.iter().all(|index| weights[*index] > 0.0));
            items.sort_unstable();
            items.dedup();
            assert_eq!(items.len(), draws);
        }
        assert_ne!(drawn(&weights, 800, 0), drawn(&weights, 800, 1));
    }

    #[test]
    fn more_draws_than_items_are_refused() {
        let refused = OrderError::TooManyDraws {
            draws: 3,
            positive: 2,
        };
        let made = WeightedWithoutReplacement::new([1.0, 0.0, 1.0], 3, 0);
        assert_eq!(made.unwrap_err(), refused);
    }

    #[test]
    fn indices_are_those_of_version_1() {
        assert_eq!(VERSION, 1, "another order needs new constants below");
        assert_eq!(
            drawn(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 6, 3),
            [1, 4, 2, 0, 5, 3]
        );
    }
}
