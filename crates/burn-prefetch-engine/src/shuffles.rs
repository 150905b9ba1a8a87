//! A family of shuffles of one length, numbered, in little memory.

use std::ops::Range;

use crate::permutation::{self, Permutation, below};
use crate::seed::{self, Keys};

/// The version of these orders: it rises whenever [`Shuffles::index`] gives another index.
pub(crate) const VERSION: u32 = permutation::VERSION + seed::VERSION;

/// The most items that are shuffled in a table here; more go through the cipher, which is as good
/// from about this length on.
pub(crate) const TABLE_LIMIT: usize = 4_096;

/// How many entries the tables of a family have together: 128 KiB.
const ENTRIES: usize = 65_536;

/// Shuffles of `0..len`, one for each number of a range.
///
/// Up to [`TABLE_LIMIT`] items there are `65,536 / len` tables at most, at least 16: shuffle k is
/// table k modulo their number, begun at a place that k draws. So neighbours in number have nothing
/// in common, and those that share a table differ by a rotation. Longer shuffles are ciphers of
/// their own, of about a hundred bytes each.
///
/// A shuffle depends on the keys, the length and its number, not on the range.
#[derive(Clone, Debug)]
pub(crate) struct Shuffles {
    len: usize,
    first: u64,
    keys: Keys,
    form: Form,
}

#[derive(Clone, Debug)]
enum Form {
    /// Tables one behind the other: of the numbers from the first on, or all there are.
    Tables {
        entries: Vec<u16>,
        tables: u64,
        from_first: bool,
    },
    Ciphers(Vec<Permutation>),
}

impl Shuffles {
    /// The shuffles of `0..len` with the numbers of `numbers`. Takes about 2 ns an entry of a table
    /// and 30 ns a cipher.
    pub(crate) fn new(len: usize, keys: Keys, numbers: Range<u64>) -> Self {
        let (first, count) = (numbers.start, numbers.end.saturating_sub(numbers.start));
        let form = if len > TABLE_LIMIT {
            let cipher = |number| Permutation::compact(len, keys.at(number));
            Form::Ciphers(numbers.map(cipher).collect())
        } else {
            let tables = (ENTRIES / len.max(1)) as u64;
            let from_first = count < tables;
            let made = if from_first { numbers } else { 0..tables };
            let entries = made.flat_map(|number| table(len, keys.at(number % tables)));
            Form::Tables {
                entries: entries.collect(),
                tables,
                from_first,
            }
        };
        Self {
            len,
            first,
            keys,
            form,
        }
    }

    /// The index at `position` of shuffle `number`.
    #[inline]
    pub(crate) fn index(&self, number: u64, position: usize) -> usize {
        debug_assert!(position < self.len, "a position is below the length");
        match &self.form {
            Form::Tables {
                entries,
                tables,
                from_first,
            } => {
                let table = if *from_first {
                    number - self.first
                } else {
                    number % tables
                };
                // Keys of tables have small positions, keys of rotations large ones.
                let begin = below(self.keys.at(!number), self.len as u64);
                let turned = position + to_usize(begin);
                let place = turned - if turned < self.len { 0 } else { self.len };
                usize::from(entries[to_usize(table) * self.len + place])
            }
            Form::Ciphers(ciphers) => ciphers[to_usize(number - self.first)].index(position),
        }
    }
}

fn table(len: usize, key: u64) -> impl Iterator<Item = u16> {
    let shuffle = Permutation::new(len, key);
    (0..len).map(move |position| {
        u16::try_from(shuffle.index(position)).expect("a table has at most 4,096 entries")
    })
}

fn to_usize(number: u64) -> usize {
    usize::try_from(number).expect("a table or cipher of this number is in memory")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seed::Domain;
    use proptest::prelude::*;

    fn keys(seed: u64) -> Keys {
        Keys::new(seed, Domain::Family, 0)
    }

    fn all(shuffles: &Shuffles, number: u64) -> Vec<usize> {
        let positions = 0..shuffles.len;
        positions.map(|p| shuffles.index(number, p)).collect()
    }

    proptest! {
        #[test]
        fn each_is_a_shuffle_and_knows_nothing_of_the_range(
            len in 1usize..300, number in 0u64..2_000, around in 0u64..2_000, seed: u64,
        ) {
            let alone = Shuffles::new(len, keys(seed), number..number + 1);
            let among = Shuffles::new(len, keys(seed), number.saturating_sub(around)..number + around + 1);
            let mut indices = all(&alone, number);
            prop_assert_eq!(&indices, &all(&among, number));
            indices.sort_unstable();
            prop_assert_eq!(indices, (0..len).collect::<Vec<_>>());
        }
    }

    #[test]
    fn long_ones_are_shuffles_too() {
        for len in [4_096, 4_097, 10_000] {
            let shuffles = Shuffles::new(len, keys(1), 3..40);
            let mut orders: Vec<_> = (3..40).map(|number| all(&shuffles, number)).collect();
            for order in &orders {
                let mut sorted = order.clone();
                sorted.sort_unstable();
                assert!(sorted.into_iter().eq(0..len));
            }
            orders.sort_unstable();
            orders.dedup();
            assert_eq!(orders.len(), 37);
        }
    }

    #[test]
    fn indices_are_those_of_this_version() {
        assert_eq!(VERSION, 2, "another order needs new constants below");
        let start = |len, number| {
            let shuffles = Shuffles::new(len, keys(7), number..number + 1);
            [0, 1, 2, 3].map(|position| shuffles.index(number, position))
        };
        assert_eq!(start(10, 0), [9, 3, 7, 0]);
        assert_eq!(start(10, 100_000), [9, 4, 5, 3]);
        assert_eq!(start(5_000, 3), [4_432, 1_087, 4_713, 1_829]);
    }
}
