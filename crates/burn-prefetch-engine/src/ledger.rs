//! Who may take how many bytes of a budget.

use crate::stats::{BudgetStats, Level};

/// Whether the reader has another batch alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// It has none: a budget delays, it never stops a pass.
    Oldest,
    /// It has, and so can wait for room.
    Further,
}

/// What is reserved of a budget. No thread, no lock.
///
/// Invariant, where no batch is larger than was reserved for it: the sum reserved is at most the
/// limit (or one batch, where that is larger) and one batch for each reader but one. For a batch that
/// is not its reader's oldest keeps the sum within the limit, and while it is alive its reader has
/// no oldest one begun after it.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    limit: u64,
    used: Level,
    readers: usize,
    /// What batches that turned out larger took it beyond the limit, until that is paid back.
    debt: u64,
    overshoot: u64,
    refused: u64,
}

impl Ledger {
    pub(crate) fn new(limit: u64) -> Self {
        Self {
            limit,
            ..Self::default()
        }
    }

    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }

    /// From now on; what is reserved stays so.
    pub(crate) fn set_limit(&mut self, limit: u64) {
        self.limit = limit;
    }

    pub(crate) fn join(&mut self) {
        self.readers += 1;
    }

    pub(crate) fn leave(&mut self) {
        self.readers -= 1;
    }

    /// Whether so many bytes may be reserved; `None`: nobody knows how many it will be.
    pub(crate) fn admits(&self, bytes: Option<u64>, turn: Turn) -> bool {
        let fits = |bytes| self.used.now.saturating_add(bytes) <= self.limit;
        turn == Turn::Oldest || bytes.is_some_and(fits)
    }

    pub(crate) fn refuse(&mut self) {
        self.refused += 1;
    }

    pub(crate) fn reserve(&mut self, bytes: u64) {
        self.set(self.used.now.saturating_add(bytes));
    }

    pub(crate) fn release(&mut self, bytes: u64) {
        debug_assert!(bytes <= self.used.now, "only what was reserved is released");
        self.set(self.used.now.saturating_sub(bytes));
        let beyond = self.used.now.saturating_sub(self.limit);
        self.debt = self.debt.min(beyond);
    }

    /// A batch turned out larger than was reserved for it by so many bytes, while its reader has
    /// `others` in other batches. What that takes beyond the limit is an overshoot; the oldest of a
    /// reader may have any size, but with it not more than the others.
    pub(crate) fn grow(&mut self, bytes: u64, (turn, others): (Turn, u64)) {
        let before = self.used.now;
        self.reserve(bytes);
        let beyond = self.used.now.saturating_sub(self.limit.max(before));
        self.debt += match turn {
            Turn::Oldest => beyond.min(others),
            Turn::Further => beyond,
        };
        self.overshoot = self.overshoot.max(self.debt);
    }

    pub(crate) fn stats(&self) -> BudgetStats {
        BudgetStats {
            limit: self.limit,
            used: self.used,
            readers: self.readers,
            overshoot: self.overshoot,
            refused: self.refused,
        }
    }

    fn set(&mut self, used: u64) {
        self.used.now = used;
        self.used.most = self.used.most.max(used);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    #[test]
    fn the_oldest_is_always_allowed() {
        let mut ledger = Ledger::new(10);
        ledger.reserve(9);
        assert!(ledger.admits(Some(1), Turn::Further));
        assert!(!ledger.admits(Some(2), Turn::Further));
        assert!(!ledger.admits(None, Turn::Further));
        assert!(ledger.admits(Some(1_000), Turn::Oldest));
        assert!(ledger.admits(None, Turn::Oldest));
    }

    #[test]
    fn what_turned_out_larger_is_paid_back_first() {
        let mut ledger = Ledger::new(10);
        ledger.reserve(4);
        ledger.reserve(4);
        ledger.grow(5, (Turn::Further, 4));
        assert_eq!((ledger.stats().used.now, ledger.stats().overshoot), (13, 3));
        ledger.grow(2, (Turn::Further, 9));
        assert_eq!((ledger.stats().used.now, ledger.stats().overshoot), (15, 5));
        ledger.release(6);
        assert!(!ledger.admits(Some(2), Turn::Further));
        ledger.release(9);
        assert!(ledger.admits(Some(2), Turn::Further));
        ledger.grow(20, (Turn::Oldest, 0));
        assert_eq!(ledger.stats().overshoot, 5, "one batch may have any size");
        ledger.grow(20, (Turn::Oldest, 8));
        assert_eq!(ledger.stats().overshoot, 8, "but not with others beside it");
    }

    proptest! {
        /// The bound of the type's own sentence, whatever the readers do.
        #[test]
        fn never_more_than_the_limit_and_a_batch_for_each_reader_but_one(
            limit in 1u64..60,
            readers in 1usize..5,
            steps in proptest::collection::vec((0usize..5, any::<bool>(), 0u64..30), 0..300),
        ) {
            let mut ledger = Ledger::new(limit);
            let mut alive = vec![VecDeque::new(); readers];
            for (reader, gives_back, bytes) in steps {
                let own = &mut alive[reader % readers];
                if gives_back {
                    ledger.release(own.pop_front().unwrap_or(0));
                    continue;
                }
                let turn = if own.is_empty() { Turn::Oldest } else { Turn::Further };
                if ledger.admits(Some(bytes), turn) {
                    ledger.reserve(bytes);
                    own.push_back(bytes);
                }
                let used: u64 = alive.iter().flatten().sum();
                prop_assert_eq!(ledger.stats().used.now, used);
                let largest = 29;
                let bound = limit.max(largest) + (readers as u64 - 1) * largest;
                prop_assert!(used <= bound, "{} of {}", used, bound);
            }
        }
    }
}
