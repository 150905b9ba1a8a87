//! A shuffle in which every item stays near its place, for data that must be read nearly in
//! sequence.

use std::sync::Arc;

use crate::order::Order;
use crate::permutation::Permutation;
use crate::recipe::{Identity, Prepared, Recipe};
use crate::seed::{Domain, Keys, derive, digest};
use crate::shuffles::{self, Shuffles};

/// The version of the order: it rises whenever any index changes.
const VERSION: u32 = 1 + shuffles::VERSION;

/// A shuffle in which no item is farther from its place in sequence than a distance that you
/// choose.
///
/// For data that is cheap to read from front to back: at any moment what is read lies within a
/// stretch of twice the distance (and what the batches ahead add).
///
/// ```
/// use burn_prefetch_engine::{Order, Windowed};
///
/// let epoch = Order::from(Windowed::new(1_000, 10, 7)).at(0);
/// assert!((0..1_000).all(|position| epoch.index(position).abs_diff(position) <= 10));
/// ```
///
/// # Algorithm, version 1
///
/// Two layers of shuffled blocks, the blocks of the second half a block off, so that an item
/// crosses the borders of the first. With a distance d the blocks of one layer have `d/2 + 1` items
/// (rounded up) and those of the other `d/2 + 1` (rounded down); a layer moves an item by less than
/// a block. The two moves add up, so that most items stay within half of the distance. Any position
/// can be asked for without those before it. Memory: 256 KiB at most up to a distance of 8,190, and
/// for longer ones about a hundred bytes a block.
#[derive(Clone, Debug)]
pub struct Windowed {
    data_len: usize,
    start: usize,
    len: usize,
    distance: usize,
    seed: u64,
}

impl Windowed {
    /// All of `len` indices, none more than `distance` from its place; another order every epoch.
    #[must_use]
    pub fn new(len: usize, distance: usize, seed: u64) -> Self {
        Self {
            data_len: len,
            start: 0,
            len,
            distance,
            seed,
        }
    }
}

impl From<Windowed> for Order {
    fn from(windowed: Windowed) -> Self {
        Self::made_from(Arc::new(windowed))
    }
}

impl Recipe for Windowed {
    fn data_len(&self) -> usize {
        self.data_len
    }

    fn len(&self, _epoch: usize) -> usize {
        self.len
    }

    fn prepare(&self, epoch: usize) -> Box<dyn Prepared> {
        let bounds = derive(
            self.seed,
            Domain::Window,
            self.start as u64,
            self.len as u64,
        );
        let key = |layer| derive(bounds, Domain::Window, epoch as u64, layer);
        // A block beyond the data is one block of all of it.
        let distance = self.distance.min(self.len.saturating_mul(2));
        let (first, second) = (distance.div_ceil(2) + 1, distance / 2 + 1);
        let first = first.min(self.len.max(1));
        Box::new(Epoch {
            start: self.start,
            first: Layer::new(self.len, (first, 0), key(0)),
            second: Layer::new(self.len, (second.min(self.len.max(1)), first / 2), key(1)),
        })
    }

    fn slice(&self, start: usize, end: usize) -> Option<Arc<dyn Recipe>> {
        assert!(end <= self.len, "the caller checks the bounds of a slice");
        Some(Arc::new(Self {
            start: self.start + start,
            len: end - start,
            ..*self
        }))
    }

    fn identity(&self) -> Identity {
        let numbers = [self.start, self.len, self.distance].map(|number| number as u64);
        Identity {
            name: "windowed shuffle",
            version: VERSION,
            digest: digest(numbers.into_iter().chain([self.seed])),
        }
    }
}

struct Epoch {
    start: usize,
    first: Layer,
    second: Layer,
}

impl Prepared for Epoch {
    fn index(&self, position: usize) -> usize {
        self.start + self.first.index(self.second.index(position))
    }
}

/// Blocks of one size from `shift` on, each shuffled within itself; what is before the first and
/// behind the last is a smaller block.
struct Layer {
    size: usize,
    shift: usize,
    /// Where the last whole block ends.
    end: usize,
    before: Permutation,
    blocks: Shuffles,
    behind: Permutation,
}

impl Layer {
    fn new(len: usize, (size, shift): (usize, usize), key: u64) -> Self {
        let shift = shift.min(len);
        let blocks = (len - shift) / size;
        let end = shift + blocks * size;
        let ends = Keys::new(key, Domain::Window, 0);
        let keys = Keys::new(key, Domain::Family, 0);
        Self {
            size,
            shift,
            end,
            before: Permutation::new(shift, ends.at(0)),
            blocks: Shuffles::new(size, keys, 0..blocks as u64),
            behind: Permutation::new(len - end, ends.at(1)),
        }
    }

    #[inline]
    fn index(&self, position: usize) -> usize {
        if position < self.shift {
            self.before.index(position)
        } else if position >= self.end {
            self.end + self.behind.index(position - self.end)
        } else {
            let offset = position - self.shift;
            let (block, within) = (offset / self.size, offset % self.size);
            self.shift + block * self.size + self.blocks.index(block as u64, within)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(windowed: &Windowed, epoch: usize) -> Vec<usize> {
        let prepared = windowed.prepare(epoch);
        (0..windowed.len).map(|p| prepared.index(p)).collect()
    }

    proptest! {
        #[test]
        fn every_index_once_and_none_farther_than_it_may(
            len in 0usize..700, distance in prop_oneof![0usize..40, 0usize..2_000, Just(usize::MAX)],
            seed: u64, epoch in 0usize..9,
        ) {
            let mut seen = vec![false; len];
            for (position, index) in all(&Windowed::new(len, distance, seed), epoch).into_iter().enumerate() {
                prop_assert!(index.abs_diff(position) <= distance);
                prop_assert!(!std::mem::replace(&mut seen[index], true));
            }
        }
    }

    #[test]
    fn slices_share_no_item_and_epochs_differ() {
        let whole = Windowed::new(100, 9, 7);
        assert_ne!(all(&whole, 0), all(&whole, 1));
        let order = Order::from(whole).slice(20, 50, 100).slice(5, 15, 30);
        let epoch = order.at(3);
        let mut seen: Vec<_> = (0..10).map(|position| epoch.index(position)).collect();
        assert!(
            seen.iter()
                .zip(25..)
                .all(|(&index, place): (_, usize)| index.abs_diff(place) <= 9)
        );
        seen.sort_unstable();
        assert!(seen.into_iter().eq(25..35));
    }

    #[test]
    fn items_go_to_every_place_that_they_may_and_across_the_borders_of_blocks() {
        // Blocks of 6 and 5, so that places repeat after 30; the middle, far from both ends.
        let mut seen = [0; 19];
        for epoch in 0..4_000 {
            let prepared = Windowed::new(100, 9, 3).prepare(epoch);
            for position in 30..60 {
                seen[prepared.index(position) + 9 - position] += 1;
            }
        }
        assert!(seen.iter().all(|count| *count > 0), "{seen:?}");
        // To the left as often as to the right, as far as chance goes: of 120,000 in all.
        let (left, right): (i32, i32) = (seen[..9].iter().sum(), seen[10..].iter().sum());
        assert!((left - right).abs() < 2_000, "{left} {right}");
    }

    #[test]
    fn indices_are_those_of_this_version() {
        assert_eq!(VERSION, 3, "another order needs new constants below");
        assert_eq!(
            all(&Windowed::new(12, 4, 7), 3),
            [1, 2, 0, 5, 3, 4, 6, 8, 11, 7, 9, 10]
        );
        let long = Windowed::new(1_000_000, 20_000, 7).prepare(3);
        assert_eq!(
            [0, 500_000, 999_999].map(|p| long.index(p)),
            [6_830, 493_422, 998_284]
        );
    }
}
