//! An epoch's order cut into numbered batches.

use std::num::NonZeroUsize;
use std::ops::Range;

use crate::order::{EpochOrder, Order};

/// What becomes of the items that do not fill a last batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Remainder {
    /// They make a smaller last batch.
    Keep,
    /// They are left out of this epoch.
    Drop,
}

/// An order and the size of its batches, for every epoch.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    order: Order,
    batch_size: NonZeroUsize,
    remainder: Remainder,
}

impl Plan {
    /// Cuts `order` into batches of `batch_size` items.
    #[must_use]
    pub fn new(order: Order, batch_size: NonZeroUsize, remainder: Remainder) -> Self {
        Self {
            order,
            batch_size,
            remainder,
        }
    }

    /// The plan of the part `start..end` of this one's items.
    ///
    /// # Panics
    ///
    /// When `start > end` or `end` is beyond [`num_items`](Self::num_items): the caller checks.
    #[must_use]
    pub fn slice(&self, start: usize, end: usize) -> Self {
        Self {
            order: self.order.slice(start, end),
            ..*self
        }
    }

    /// How many items there are, with those that an epoch leaves out.
    #[must_use]
    pub fn all_items(&self) -> usize {
        self.order.num_items()
    }

    /// How many items an epoch yields.
    #[must_use]
    pub fn num_items(&self) -> usize {
        let items = self.order.num_items();
        match self.remainder {
            Remainder::Keep => items,
            Remainder::Drop => items - items % self.batch_size,
        }
    }

    /// How many batches an epoch yields.
    #[must_use]
    pub fn num_batches(&self) -> usize {
        self.num_items().div_ceil(self.batch_size.get())
    }

    /// The plan of one epoch.
    #[must_use]
    pub fn at(&self, epoch: usize) -> EpochPlan {
        EpochPlan {
            epoch,
            order: self.order.at(epoch),
            plan: *self,
        }
    }
}

/// One epoch's batches, by number.
#[derive(Clone, Debug)]
pub struct EpochPlan {
    epoch: usize,
    order: EpochOrder,
    plan: Plan,
}

impl EpochPlan {
    /// The epoch.
    #[must_use]
    pub fn epoch(&self) -> usize {
        self.epoch
    }

    /// The plan of the epoch after this one.
    #[must_use]
    pub fn following(&self) -> Self {
        self.plan.at(self.epoch.saturating_add(1))
    }

    /// How many items the epoch yields.
    #[must_use]
    pub fn num_items(&self) -> usize {
        self.plan.num_items()
    }

    /// How many batches the epoch yields.
    #[must_use]
    pub fn num_batches(&self) -> usize {
        self.plan.num_batches()
    }

    /// The positions of batch `number`.
    #[must_use]
    pub fn batch(&self, number: usize) -> Range<usize> {
        let size = self.plan.batch_size.get();
        let items = self.num_items();
        let start = number.saturating_mul(size).min(items);
        start..start.saturating_add(size).min(items)
    }

    /// The dataset index at `position`.
    ///
    /// # Panics
    ///
    /// When `position` is not one of the epoch's.
    #[must_use]
    pub fn index(&self, position: usize) -> usize {
        self.order.index(position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn plan(items: usize, size: usize, remainder: Remainder) -> Plan {
        Plan::new(
            Order::sequential(items),
            NonZeroUsize::new(size).unwrap(),
            remainder,
        )
    }

    #[test]
    fn ten_items_in_threes() {
        let kept = plan(10, 3, Remainder::Keep).at(0);
        let sizes: Vec<_> = (0..kept.num_batches())
            .map(|k| kept.batch(k).len())
            .collect();
        assert_eq!(sizes, [3, 3, 3, 1]);
        let dropped = plan(10, 3, Remainder::Drop);
        assert_eq!((dropped.num_items(), dropped.num_batches()), (9, 3));
        assert_eq!(plan(2, 3, Remainder::Drop).num_batches(), 0);
        assert_eq!(plan(3, usize::MAX, Remainder::Keep).at(0).batch(0), 0..3);
    }

    proptest! {
        #[test]
        fn the_batches_cover_the_items(items in 0usize..500, size in 1usize..40, drop in any::<bool>()) {
            let remainder = if drop { Remainder::Drop } else { Remainder::Keep };
            let plan = plan(items, size, remainder).at(5);
            let mut next = 0;
            for k in 0..plan.num_batches() {
                let batch = plan.batch(k);
                prop_assert_eq!(batch.start, next);
                prop_assert!(!batch.is_empty() && batch.len() <= size);
                next = batch.end;
            }
            prop_assert_eq!(next, plan.num_items());
        }
    }
}
