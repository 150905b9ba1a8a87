//! Where the data sets of a mixture stand in its blocks.

use crate::permutation::{self, Permutation, below};
use crate::seed::{self, Keys};

/// The version of the patterns: it rises whenever [`Patterns::slot`] gives another one.
pub(crate) const VERSION: u32 = permutation::VERSION + seed::VERSION;

/// The patterns of an epoch have about this many entries together: 512 KiB.
const ENTRIES: usize = 65_536;

/// No fewer patterns than these, however long a block is.
const FEWEST: usize = 16;

/// A position of a block: which data set stands there, and how often it has stood in the block
/// before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    pub(crate) set: u32,
    pub(crate) nth: u32,
}

/// Shuffled blocks; an epoch draws one for each of its blocks, or has one for each where they are
/// few.
#[derive(Debug)]
pub(crate) struct Patterns {
    keys: Keys,
    block: usize,
    count: usize,
    slots: Vec<Slot>,
    /// There is a pattern for each block.
    each: bool,
}

impl Patterns {
    /// For `blocks` blocks, in which each data set has as many positions as `of_block` says.
    pub(crate) fn new(of_block: &[usize], blocks: u64, keys: Keys) -> Self {
        let block: usize = of_block.iter().sum();
        let most = (ENTRIES / block.max(1)).max(FEWEST);
        let patterns = usize::try_from(blocks).map_or(most, |blocks| blocks.min(most));
        let sets = (0_u32..).zip(of_block);
        let in_sequence: Vec<_> = sets
            .flat_map(|(set, &positions)| std::iter::repeat_n(set, positions))
            .collect();
        let mut slots = Vec::with_capacity(patterns * block);
        let mut stood = vec![0; of_block.len()];
        for pattern in 0..patterns as u64 {
            let shuffle = Permutation::new(block, keys.at(pattern));
            stood.fill(0);
            for set in (0..block).map(|place| in_sequence[shuffle.index(place)]) {
                let stood = &mut stood[set as usize];
                slots.push(Slot { set, nth: *stood });
                *stood += 1;
            }
        }
        Self {
            keys,
            block,
            count: patterns,
            slots,
            each: blocks == patterns as u64,
        }
    }

    /// What stands at place `within` of a block.
    #[inline]
    pub(crate) fn slot(&self, block: usize, within: usize) -> Slot {
        let pattern = if self.each {
            block
        } else {
            // Keys of patterns have small positions, those of choices large ones.
            let chosen = below(self.keys.at(!(block as u64)), self.count as u64);
            usize::try_from(chosen).expect("a pattern is in memory")
        };
        self.slots[pattern * self.block + within]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chance::{assert_chance, real};
    use crate::seed::Domain;

    fn patterns(of_block: &[usize], blocks: u64) -> Patterns {
        Patterns::new(of_block, blocks, Keys::new(7, Domain::Blocks, 0))
    }

    #[test]
    fn a_data_set_is_counted_as_it_stands() {
        for (blocks, block) in [(1, 0), (5, 3), (1_000_000, 3), (1_000_000, 999_999)] {
            let patterns = patterns(&[3, 0, 5], blocks);
            let mut stood = [0; 3];
            for Slot { set, nth } in (0..8).map(|place| patterns.slot(block, place)) {
                assert_eq!(nth, stood[set as usize]);
                stood[set as usize] += 1;
            }
            assert_eq!(stood, [3, 0, 5]);
        }
    }

    #[test]
    fn every_arrangement_is_equally_frequent() {
        // Six ways to put two of one and two of another; of their own, and drawn from 16,384, which
        // for so few looks makes no difference.
        for (blocks, look) in [(16_384, 16_384), (10_000_000, 2_000)] {
            let patterns = patterns(&[2, 2], blocks);
            let mut seen = vec![0; 16];
            for block in 0..look {
                let ones = (0..4).map(|place| patterns.slot(block, place).set);
                seen[ones.fold(0, |bits, set| 2 * bits + set as usize)] += 1;
            }
            seen.retain(|count| *count > 0);
            assert_chance(&seen, &[real(look) / 6.0; 6], "arrangements");
        }
    }

    #[test]
    fn long_blocks_have_patterns_too() {
        let patterns = patterns(&vec![1; 70_000], 1_000);
        let mut sets: Vec<_> = (0..70_000)
            .map(|place| patterns.slot(999, place).set)
            .collect();
        assert!(!sets.is_sorted());
        sets.sort_unstable();
        assert!(sets.into_iter().eq(0..70_000));
    }

    #[test]
    fn slots_are_those_of_this_version() {
        assert_eq!(VERSION, 2, "another order needs new constants below");
        let sets = |blocks| {
            let patterns = patterns(&[2, 3], blocks);
            [0, 1, 2, 3, 4].map(|place| patterns.slot(3, place).set)
        };
        assert_eq!(sets(4), [1, 0, 1, 1, 0]);
        assert_eq!(sets(1_000_000), [1, 0, 0, 1, 1]);
    }
}
