//! Batches of one size: which positions each has.

use std::num::NonZeroUsize;
use std::ops::Range;

/// What becomes of the items that do not fill a last batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Remainder {
    /// They make a smaller last batch.
    Keep,
    /// They are left out of this epoch.
    Drop,
    /// The batch is filled up with items from the epoch's start, which are its
    /// [`padding`](crate::EpochPlan::padding).
    Pad,
}

/// So many positions cut into batches of one size; those of padding follow the last.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Even {
    len: usize,
    batch_size: NonZeroUsize,
    remainder: Remainder,
}

impl Even {
    pub(crate) fn new(len: usize, batch_size: NonZeroUsize, remainder: Remainder) -> Self {
        let len = match remainder {
            Remainder::Keep | Remainder::Pad => len,
            Remainder::Drop => len - len % batch_size,
        };
        Self {
            len,
            batch_size,
            remainder,
        }
    }

    /// The positions of all batches, without padding.
    pub(crate) fn num_items(&self) -> usize {
        self.len
    }

    pub(crate) fn num_batches(&self) -> usize {
        self.len.div_ceil(self.batch_size.get())
    }

    /// The positions of batch `number`, with those of its padding.
    pub(crate) fn batch(&self, number: usize) -> Range<usize> {
        let start = number.saturating_mul(self.batch_size.get()).min(self.len);
        let end = start.saturating_add(self.batch_size.get());
        let whole = self.remainder == Remainder::Pad && start < self.len;
        start..if whole { end } else { end.min(self.len) }
    }

    /// How many positions of batch `number` are padding.
    pub(crate) fn padding(&self, number: usize) -> usize {
        self.batch(number).end.saturating_sub(self.len)
    }

    /// The position that one of padding repeats: it begins again at the first.
    #[inline]
    pub(crate) fn unpadded(&self, position: usize) -> usize {
        if position >= self.len && self.remainder == Remainder::Pad {
            position % self.len.max(1)
        } else {
            position
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn even(items: usize, size: usize, remainder: Remainder) -> Even {
        Even::new(items, NonZeroUsize::new(size).unwrap(), remainder)
    }

    #[test]
    fn ten_items_in_threes() {
        let kept = even(10, 3, Remainder::Keep);
        let sizes: Vec<_> = (0..kept.num_batches())
            .map(|k| kept.batch(k).len())
            .collect();
        assert_eq!(sizes, [3, 3, 3, 1]);
        let dropped = even(10, 3, Remainder::Drop);
        assert_eq!((dropped.num_items(), dropped.num_batches()), (9, 3));
        assert_eq!(even(2, 3, Remainder::Drop).num_batches(), 0);
        assert_eq!(even(3, usize::MAX, Remainder::Keep).batch(0), 0..3);
    }

    #[test]
    fn the_last_batch_is_filled_up_from_the_start() {
        let padded = even(10, 4, Remainder::Pad);
        let last = padded.batch(2).map(|position| padded.unpadded(position));
        assert_eq!(last.collect::<Vec<_>>(), [8, 9, 0, 1]);
        assert_eq!([0, 1, 2, 3].map(|k| padded.padding(k)), [0, 0, 2, 0]);
        assert!(padded.batch(3).is_empty());
        let tiny = even(2, 7, Remainder::Pad);
        let all = tiny.batch(0).map(|position| tiny.unpadded(position));
        assert_eq!(all.collect::<Vec<_>>(), [0, 1, 0, 1, 0, 1, 0]);
        assert_eq!(even(0, 7, Remainder::Pad).num_batches(), 0);
        assert_eq!(even(8, 4, Remainder::Pad).padding(1), 0);
    }

    proptest! {
        #[test]
        fn the_batches_cover_the_items(items in 0usize..500, size in 1usize..40, which in 0usize..3) {
            let remainder = [Remainder::Keep, Remainder::Drop, Remainder::Pad][which];
            let even = even(items, size, remainder);
            let mut next = 0;
            for k in 0..even.num_batches() {
                let batch = even.batch(k);
                prop_assert_eq!(batch.start, next);
                prop_assert!(!batch.is_empty() && batch.len() <= size);
                prop_assert!(which == 0 || batch.len() == size);
                next += batch.len() - even.padding(k);
            }
            prop_assert_eq!(next, even.num_items());
        }
    }
}
