//! Items drawn by weight, with replacement.

use std::fmt;
use std::sync::Arc;

use crate::alias::AliasTable;
use crate::order::Order;
use crate::order_error::OrderError;
use crate::recipe::{Identity, Prepared, Recipe};
use crate::seed::{self, Domain, Keys, digest};

/// The version of the order: it rises whenever any index changes.
const VERSION: u32 = seed::VERSION;

/// Items drawn by weight, with replacement: each draw takes an item with the chance of its weight
/// among all, whatever was drawn before.
///
/// The weights are an `f64` for each item of the data and need not add up to 1; chances are exact
/// to about 2⁻⁵³ of the mean weight. A draw is a function of (seed, epoch, position) and looks into
/// a table at two places. The table is made here, once: twelve bytes a weight, sixteen while it is
/// being made, which takes about three seconds of one core for a hundred million weights.
///
/// ```
/// use burn_prefetch_engine::{Order, Weighted};
///
/// // A thousand draws an epoch; the second item never, the third three times as often as the first.
/// let epoch = Order::from(Weighted::new(&[1.0, 0.0, 3.0], 1_000, 7)?).at(0);
/// let third = (0..epoch.len()).filter(|&position| epoch.index(position) == 2).count();
/// assert!((700..800).contains(&third));
/// # Ok::<(), burn_prefetch_engine::OrderError>(())
/// ```
///
/// # Algorithm, version 1
///
/// Walker's alias method, the table filled in Vose's way. The column is `(number × weights) >> 64`,
/// the coin the high 53 bits of another number, both keys of the position.
#[derive(Clone)]
pub struct Weighted {
    table: Arc<AliasTable>,
    draws: usize,
    seed: u64,
    digest: u64,
}

impl Weighted {
    /// So many `draws` an epoch among as many items as there are `weights`.
    ///
    /// # Errors
    ///
    /// When there are no weights, or more than 2³² − 1; one is negative, infinite or not a number;
    /// or all are 0.
    pub fn new(weights: &[f64], draws: usize, seed: u64) -> Result<Self, OrderError> {
        let table = Arc::new(AliasTable::new(weights)?);
        Ok(Self {
            table,
            draws,
            seed,
            digest: digest(weights.iter().map(|weight| weight.to_bits())),
        })
    }
}

impl fmt::Debug for Weighted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Weighted")
            .field("draws", &self.draws)
            .field("seed", &self.seed)
            .finish_non_exhaustive()
    }
}

impl From<Weighted> for Order {
    fn from(weighted: Weighted) -> Self {
        Self::made_from(Arc::new(weighted))
    }
}

impl Recipe for Weighted {
    fn data_len(&self) -> usize {
        self.table.len()
    }

    fn len(&self, _epoch: usize) -> usize {
        self.draws
    }

    fn prepare(&self, epoch: usize) -> Box<dyn Prepared> {
        Box::new(Epoch {
            table: Arc::clone(&self.table),
            columns: Keys::new(self.seed, Domain::Column, epoch as u64),
            coins: Keys::new(self.seed, Domain::Alias, epoch as u64),
        })
    }

    fn identity(&self) -> Identity {
        Identity {
            name: "weighted",
            version: VERSION,
            digest: digest([self.digest, self.draws as u64, self.seed]),
        }
    }
}

struct Epoch {
    table: Arc<AliasTable>,
    columns: Keys,
    coins: Keys,
}

impl Prepared for Epoch {
    fn index(&self, position: usize) -> usize {
        let position = position as u64;
        self.table
            .draw(self.columns.at(position), self.coins.at(position))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chance::{assert_chance, real};

    const WEIGHTS: [f64; 7] = [0.5, 0.0, 3.0, 1.0, 0.25, 7.25, 8.0];

    fn drawn(epoch: usize, draws: usize) -> Vec<usize> {
        let order = Order::from(Weighted::new(&WEIGHTS, draws, 7).unwrap());
        let at = order.at(epoch);
        (0..at.len()).map(|position| at.index(position)).collect()
    }

    #[test]
    fn each_item_comes_as_often_as_it_weighs() {
        let draws = drawn(3, 1_000_000);
        let mut seen = vec![0; WEIGHTS.len()];
        for &index in &draws {
            seen[index] += 1;
        }
        assert_eq!(seen.remove(1), 0);
        let chances = WEIGHTS.iter().filter(|weight| **weight > 0.0);
        let expected: Vec<_> = chances.map(|w| w / 20.0 * real(draws.len())).collect();
        assert_chance(&seen, &expected, "draws by weight");
    }

    #[test]
    fn a_draw_knows_nothing_of_the_one_before_nor_of_the_epoch_before() {
        let [first, second] = [0, 1].map(|epoch| drawn(epoch, 500_000));
        let in_sequence: Vec<_> = first.windows(2).map(|pair| (pair[0], pair[1])).collect();
        let in_epochs = first.into_iter().zip(second).collect();
        for (pairs, what) in [(in_sequence, "neighbours"), (in_epochs, "epochs")] {
            let mut seen = vec![0; 49];
            for (a, b) in &pairs {
                seen[7 * a + b] += 1;
            }
            let chance = |cell: usize| WEIGHTS[cell / 7] * WEIGHTS[cell % 7] / 400.0;
            let possible: Vec<_> = (0..49).filter(|&cell| chance(cell) > 0.0).collect();
            let counts: Vec<_> = possible.iter().map(|&cell| seen[cell]).collect();
            let expected = possible
                .iter()
                .map(|&cell| chance(cell) * real(pairs.len()));
            assert_chance(&counts, &expected.collect::<Vec<_>>(), what);
        }
    }

    #[test]
    fn indices_are_those_of_version_1() {
        assert_eq!(VERSION, 1, "another order needs new constants below");
        assert_eq!(drawn(3, 12), [6, 3, 6, 6, 2, 5, 5, 6, 6, 6, 5, 6]);
    }

    #[test]
    fn a_slice_is_a_part_of_the_draws() {
        let order = Order::from(Weighted::new(&WEIGHTS, 100, 7).unwrap());
        let slice = order.slice(30, 60, order.num_items(0)).at(2);
        let of_slice: Vec<_> = (0..30).map(|position| slice.index(position)).collect();
        assert_eq!(of_slice, drawn(2, 100)[30..60]);
    }
}
