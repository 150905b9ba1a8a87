//! Which dataset indices an epoch visits, and when.

use crate::permutation::Permutation;
use crate::seed::{Domain, derive};

/// A range of dataset indices and the way an epoch goes through it.
///
/// A pure function of its fields and the epoch: no state, no randomness of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    start: usize,
    len: usize,
    shuffle: Option<u64>,
}

impl Order {
    /// All of `len` indices, one after the other.
    #[must_use]
    pub fn sequential(len: usize) -> Self {
        Self {
            start: 0,
            len,
            shuffle: None,
        }
    }

    /// All of `len` indices in another order every epoch, a function of `seed` and the epoch.
    #[must_use]
    pub fn shuffled(len: usize, seed: u64) -> Self {
        Self {
            start: 0,
            len,
            shuffle: Some(seed),
        }
    }

    /// The part `start..end` of this range, ordered within itself.
    ///
    /// # Panics
    ///
    /// When `start > end` or `end` is beyond the range: the caller checks.
    #[must_use]
    pub fn slice(self, start: usize, end: usize) -> Self {
        assert!(
            start <= end && end <= self.len,
            "the caller checks the bounds of a slice"
        );
        Self {
            start: self.start + start,
            len: end - start,
            ..self
        }
    }

    /// How many indices an epoch visits.
    #[must_use]
    pub fn num_items(&self) -> usize {
        self.len
    }

    /// The order of one epoch.
    ///
    /// Slices of one loader draw different permutations: their bounds are part of the key.
    #[must_use]
    pub fn at(&self, epoch: usize) -> EpochOrder {
        let permutation = self.shuffle.map(|seed| {
            let bounds = derive(seed, Domain::Shuffle, self.start as u64, self.len as u64);
            Permutation::new(self.len, derive(bounds, Domain::Shuffle, epoch as u64, 0))
        });
        EpochOrder {
            start: self.start,
            len: self.len,
            permutation,
        }
    }
}

/// The order of one epoch: from position to dataset index.
#[derive(Clone, Debug)]
pub struct EpochOrder {
    start: usize,
    len: usize,
    permutation: Option<Permutation>,
}

impl EpochOrder {
    /// The dataset index at `position`.
    ///
    /// # Panics
    ///
    /// When `position` is not below the number of items.
    #[must_use]
    pub fn index(&self, position: usize) -> usize {
        assert!(
            position < self.len,
            "position {position} of {} items",
            self.len
        );
        let offset = match &self.permutation {
            Some(permutation) => permutation.index(position),
            None => position,
        };
        self.start + offset
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(order: Order, epoch: usize) -> Vec<usize> {
        let at = order.at(epoch);
        (0..order.num_items())
            .map(|position| at.index(position))
            .collect()
    }

    #[test]
    fn a_slice_stays_within_its_bounds() {
        let order = Order::shuffled(100, 7).slice(20, 50).slice(5, 15);
        let mut seen = all(order, 3);
        seen.sort_unstable();
        assert_eq!(seen, (25..35).collect::<Vec<_>>());
    }

    #[test]
    fn the_whole_as_a_slice_changes_nothing() {
        let order = Order::shuffled(100, 7);
        assert_eq!(all(order, 1), all(order.slice(0, 100), 1));
        assert_eq!(order.slice(2, 9).slice(1, 4), order.slice(3, 6));
    }

    #[test]
    fn epochs_and_slices_differ() {
        let order = Order::shuffled(100, 7);
        assert_ne!(all(order, 0), all(order, 1));
        let halves = [order.slice(0, 50), order.slice(50, 100)].map(|half| all(half, 0));
        assert_ne!(
            halves[0],
            halves[1].iter().map(|i| i - 50).collect::<Vec<_>>()
        );
    }
}
