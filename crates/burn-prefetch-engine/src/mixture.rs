//! Several data sets in fixed shares.

use std::sync::Arc;

use crate::order::Order;
use crate::order_error::OrderError;
use crate::patterns::{self, Patterns, Slot};
use crate::recipe::{Identity, Prepared, Recipe};
use crate::seed::{Domain, Keys, derive, digest};
use crate::shares::{Share, shares};
use crate::shuffles::{self, Shuffles};

/// The version of the order: it rises whenever any index changes.
pub(crate) const VERSION: u32 = 1 + shuffles::VERSION + patterns::VERSION;

/// Several data sets, one behind the other in one, each with its share of every stretch of an
/// epoch.
///
/// An index is one of the concatenation: that of the second data set's first item is the length of
/// the first. Memory: about 512 KiB, and at most 128 KiB for each data
/// set.
///
/// ```
/// use burn_prefetch_engine::{Mixture, Order};
///
/// // 60 and 1,000 items; of every ten, three are of the first data set.
/// let epoch = Order::from(Mixture::new(&[60, 1_000], &[0.3, 0.7], 500, 7)?).at(0);
/// for block in 0..50 {
///     let indices = (10 * block..10 * block + 10).map(|position| epoch.index(position));
///     assert_eq!(indices.filter(|index| *index < 60).count(), 3);
/// }
/// # Ok::<(), burn_prefetch_engine::OrderError>(())
/// ```
///
/// # Algorithm, version 1
///
/// - An epoch is made of blocks, in which each data set has the same number of positions: its
///   weight's share, exactly. A block is the shortest in which every share is a whole number of
///   positions (two for 1 : 1, ten for 0.7 : 0.2 : 0.1). Where there is none up to 4,096 (or the
///   number of data sets), blocks are that long and shares are rounded, so that they add up
///   (largest remainders first). [`block`](Self::block) and [`share`](Self::share) say what is in
///   force.
/// - Within a block the data sets stand in shuffled order.
/// - Each data set is gone through in passes, shuffled anew: no item comes again before all of its
///   data set have come. A pass goes on in the next epoch, so that a data set larger than its share
///   of an epoch is used up over several. What the last block of an epoch is too short for is left
///   out of that pass.
#[derive(Clone, Debug)]
pub struct Mixture {
    sets: Arc<[Set]>,
    data_len: usize,
    block: usize,
    draws: usize,
    seed: u64,
}

/// A data set: where it begins, how many items it has, how many of a block's positions.
#[derive(Clone, Copy, Debug)]
struct Set {
    start: usize,
    len: usize,
    of_block: usize,
}

impl Mixture {
    /// So many `draws` an epoch from data sets of `lens` items, by `weights`, which need not add up
    /// to 1.
    ///
    /// # Errors
    ///
    /// When there are no data sets, or not as many weights; a weight is negative, infinite or not a
    /// number, or all are 0; a data set without items has a weight; or a weight is so small that
    /// its data set has no position in a block.
    pub fn new(
        lens: &[usize],
        weights: &[f64],
        draws: usize,
        seed: u64,
    ) -> Result<Self, OrderError> {
        if lens.is_empty() {
            return Err(OrderError::Empty { what: "data sets" });
        }
        if weights.len() != lens.len() {
            return Err(OrderError::Unmatched {
                weights: weights.len(),
                sets: lens.len(),
            });
        }
        let Share { block, of_block } = shares(weights)?;
        let mut sets = Vec::with_capacity(lens.len());
        let mut start = 0;
        for (set, (&len, of_block)) in lens.iter().zip(of_block).enumerate() {
            if len == 0 && of_block > 0 {
                let weight = weights[set];
                return Err(OrderError::EmptySet { set, weight });
            }
            sets.push(Set {
                start,
                len,
                of_block,
            });
            start = start.checked_add(len).ok_or(OrderError::TooMuchData)?;
        }
        Ok(Self {
            sets: sets.into(),
            data_len: start,
            block,
            draws,
            seed,
        })
    }

    /// How many positions a block has.
    #[must_use]
    pub fn block(&self) -> usize {
        self.block
    }

    /// How many positions of each block data set `set` has; 0 beyond the last.
    #[must_use]
    pub fn share(&self, set: usize) -> usize {
        self.sets.get(set).map_or(0, |set| set.of_block)
    }

    pub(crate) fn draws(&self) -> usize {
        self.draws
    }

    /// The number that says which mixture this is.
    pub(crate) fn digest(&self) -> u64 {
        let sets = self.sets.iter();
        let sets = sets.flat_map(|set| [set.len as u64, set.of_block as u64]);
        digest([self.draws as u64, self.seed].into_iter().chain(sets))
    }

    pub(crate) fn epoch(&self, epoch: usize) -> MixtureEpoch {
        let blocks = self.draws.div_ceil(self.block) as u64;
        let sets = self.sets.iter().enumerate();
        let passes = sets.map(|(number, set)| {
            let key = derive(self.seed, Domain::Passes, number as u64, 0);
            Passes::new(
                set,
                Keys::new(key, Domain::Family, 0),
                (epoch as u64, blocks),
            )
        });
        let of_block: Vec<_> = self.sets.iter().map(|set| set.of_block).collect();
        let keys = Keys::new(self.seed, Domain::Blocks, epoch as u64);
        MixtureEpoch {
            block: self.block,
            patterns: Patterns::new(&of_block, blocks, keys),
            passes: passes.collect(),
        }
    }
}

impl From<Mixture> for Order {
    fn from(mixture: Mixture) -> Self {
        Self::made_from(Arc::new(mixture))
    }
}

impl Recipe for Mixture {
    fn data_len(&self) -> usize {
        self.data_len
    }

    fn len(&self, _epoch: usize) -> usize {
        self.draws
    }

    fn prepare(&self, epoch: usize) -> Box<dyn Prepared> {
        Box::new(self.epoch(epoch))
    }

    fn identity(&self) -> Identity {
        Identity {
            name: "mixture",
            version: VERSION,
            digest: self.digest(),
        }
    }
}

/// One epoch of a mixture.
pub(crate) struct MixtureEpoch {
    block: usize,
    patterns: Patterns,
    passes: Box<[Passes]>,
}

impl Prepared for MixtureEpoch {
    fn index(&self, position: usize) -> usize {
        let block = position / self.block;
        let Slot { set, nth } = self.patterns.slot(block, position % self.block);
        self.passes[set as usize].draw(block, nth)
    }
}

/// The passes over one data set that fall into an epoch.
struct Passes {
    set: Set,
    /// The pass in which the epoch begins, and how much of it is over.
    first: u64,
    over: u64,
    shuffles: Shuffles,
}

impl Passes {
    fn new(set: &Set, keys: Keys, (epoch, blocks): (u64, u64)) -> Self {
        let len = (set.len as u64).max(1);
        let draws = blocks * set.of_block as u64;
        let before = u128::from(epoch).wrapping_mul(u128::from(draws));
        // Passes are numbered in 62 bits; 2^62 passes take longer than anything lasts.
        let first = low_bits(before / u128::from(len)) & (u64::MAX >> 2);
        let over = low_bits(before % u128::from(len));
        let passes = if draws == 0 {
            0
        } else {
            (over + draws).div_ceil(len)
        };
        Self {
            set: *set,
            first,
            over,
            shuffles: Shuffles::new(set.len, keys, first..first + passes),
        }
    }

    /// The index of the `nth` draw of a block.
    #[inline]
    fn draw(&self, block: usize, nth: u32) -> usize {
        let len = self.set.len as u64;
        let drawn = self.over + block as u64 * self.set.of_block as u64 + u64::from(nth);
        let within = usize::try_from(drawn % len).expect("it is below a usize");
        self.set.start + self.shuffles.index(self.first + drawn / len, within)
    }
}

fn low_bits(number: u128) -> u64 {
    u64::try_from(number & u128::from(u64::MAX)).expect("the others are cut off")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chance::{assert_chance, real};
    use proptest::prelude::*;

    fn all(mixture: &Mixture, epoch: usize) -> Vec<usize> {
        let prepared = mixture.prepare(epoch);
        (0..mixture.draws).map(|p| prepared.index(p)).collect()
    }

    fn mixture(lens: &[usize], weights: &[f64], draws: usize) -> Mixture {
        Mixture::new(lens, weights, draws, 7).unwrap()
    }

    proptest! {
        #[test]
        fn every_block_has_the_shares_and_no_item_comes_before_its_turn(
            sets in proptest::collection::vec((1usize..50, 1u32..5), 1..5),
            draws in 0usize..600, epoch in 0usize..5,
        ) {
            let (lens, weights): (Vec<_>, Vec<_>) = sets.iter().copied().unzip();
            let weights: Vec<_> = weights.into_iter().map(f64::from).collect();
            let mixture = mixture(&lens, &weights, draws);
            let indices = all(&mixture, epoch);
            let set_of = |index| mixture.sets.iter().rposition(|set| set.start <= index).unwrap();
            for block in indices.chunks_exact(mixture.block()) {
                for set in 0..lens.len() {
                    let of_set = block.iter().filter(|index| set_of(**index) == set).count();
                    prop_assert_eq!(of_set, mixture.share(set));
                }
            }
            let mut seen = vec![0; lens.iter().sum()];
            for index in indices {
                seen[index] += 1;
                let set = mixture.sets[set_of(index)];
                let seen = &seen[set.start..set.start + set.len];
                // A pass may be under way at the epoch's beginning, and one here.
                prop_assert!(seen.iter().max().unwrap() - seen.iter().min().unwrap() <= 2);
            }
        }
    }

    #[test]
    fn a_data_set_is_used_up_before_it_repeats_over_epochs_too() {
        // 20 blocks of 3 an epoch: 40 of the first and 20 of the second data set.
        let mixture = mixture(&[100, 30], &[2.0, 1.0], 60);
        let mut of_set = [Vec::new(), Vec::new()];
        for index in (0..30).flat_map(|epoch| all(&mixture, epoch)) {
            of_set[usize::from(index >= 100)].push(index);
        }
        for (indices, items) in of_set.iter().zip([0..100, 100..130]) {
            let passes: Vec<_> = indices.chunks_exact(items.len()).collect();
            for pass in &passes {
                let mut sorted = pass.to_vec();
                sorted.sort_unstable();
                assert_eq!(sorted, items.clone().collect::<Vec<_>>());
            }
            assert!(passes.windows(2).all(|pair| pair[0] != pair[1]));
        }
    }

    #[test]
    fn data_sets_stand_anywhere_in_a_block() {
        // The first data set has one of four positions.
        let indices = all(&mixture(&[1_000, 3_000], &[1.0, 3.0], 40_000), 3);
        let mut seen = [0; 4];
        for block in indices.chunks_exact(4) {
            seen[block.iter().position(|index| *index < 1_000).unwrap()] += 1;
        }
        assert_chance(&seen, &[real(10_000) / 4.0; 4], "places in a block");
    }

    #[test]
    fn what_cannot_be_mixed_is_refused() {
        let refused =
            |lens: &[usize], weights: &[f64]| Mixture::new(lens, weights, 1, 0).unwrap_err();
        assert_eq!(refused(&[], &[]), OrderError::Empty { what: "data sets" });
        let unmatched = OrderError::Unmatched {
            weights: 1,
            sets: 2,
        };
        assert_eq!(refused(&[1, 2], &[1.0]), unmatched);
        let empty = OrderError::EmptySet {
            set: 1,
            weight: 0.5,
        };
        assert_eq!(refused(&[1, 0], &[1.0, 0.5]), empty);
        assert!(Mixture::new(&[1, 0], &[1.0, 0.0], 1, 0).is_ok());
        assert_eq!(refused(&[1], &[0.0]), OrderError::AllZero { count: 1 });
    }

    #[test]
    fn an_epoch_far_away_is_as_good_as_any() {
        for epoch in [usize::MAX, usize::MAX / 3] {
            let mut indices = all(&mixture(&[40, 5_000], &[1.0, 1.0], 80), epoch);
            indices.retain(|index| *index < 40);
            assert_eq!(indices.len(), 40);
        }
    }

    #[test]
    fn indices_are_those_of_this_version() {
        assert_eq!(VERSION, 5, "another order needs new constants below");
        assert_eq!(
            all(&mixture(&[5, 9_000], &[1.0, 2.0], 12), 3),
            [
                2, 6_926, 8_947, 3, 2_826, 4_887, 8_064, 4, 5_953, 1_021, 3, 1_919
            ]
        );
    }
}
