//! How far work may run ahead of the reader, in batches and bytes.

use std::collections::VecDeque;

/// Says whether one more batch may be started, and numbers those that are.
///
/// A batch is alive from its [`issue`](Self::issue) until the reader has returned it.
/// Invariant: `issued - returned <= max(limit, asked)` and, beyond the oldest batch alive, the
/// costs of those alive never pass `max_bytes`.
#[derive(Debug)]
pub(crate) struct Window {
    limit: usize,
    max_bytes: Option<u64>,
    issued: usize,
    /// Costs of the batches alive, oldest first, where bytes are limited; as long as `issued -
    /// returned` when settled.
    costs: VecDeque<u64>,
    bytes: u64,
}

impl Window {
    pub(crate) fn new(limit: usize, max_bytes: Option<u64>) -> Self {
        Self {
            limit,
            max_bytes,
            issued: 0,
            costs: VecDeque::new(),
            bytes: 0,
        }
    }

    /// The number of the next ticket.
    pub(crate) fn issued(&self) -> usize {
        self.issued
    }

    /// Sets how many batches may be alive; those that are stay so.
    pub(crate) fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// Whether a batch of `cost` bytes may be started, when `returned` batches have been returned
    /// so far and the reader is `asking` for the next one.
    ///
    /// The oldest batch is always allowed once the reader asks for it (or where the window has
    /// room), whatever it costs: a budget delays, it never stops a pass.
    pub(crate) fn has_room(&mut self, returned: usize, asking: bool, cost: u64) -> bool {
        self.settle(returned);
        let alive = self.issued - returned;
        let limit = self.limit.max(usize::from(asking));
        if alive >= limit {
            return false;
        }
        let fits = self
            .max_bytes
            .is_none_or(|max| self.bytes.saturating_add(cost) <= max);
        alive == 0 || fits
    }

    /// How many batches may be started now, as far as their number is concerned.
    pub(crate) fn places(&self, returned: usize) -> usize {
        self.limit.saturating_sub(self.issued - returned)
    }

    /// Takes the place that [`has_room`](Self::has_room) found; returns the ticket's number.
    pub(crate) fn issue(&mut self, cost: u64) -> usize {
        let ticket = self.issued;
        self.issued += 1;
        if self.max_bytes.is_some() {
            self.costs.push_back(cost);
            self.bytes = self.bytes.saturating_add(cost);
        }
        ticket
    }

    fn settle(&mut self, returned: usize) {
        debug_assert!(
            returned <= self.issued,
            "only what was issued can be returned"
        );
        while self.costs.len() > self.issued - returned {
            let cost = self.costs.pop_front().unwrap_or(0);
            self.bytes = self.bytes.saturating_sub(cost);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_window_of_two_holds_two() {
        let mut window = Window::new(2, None);
        assert!(window.has_room(0, false, 0));
        assert_eq!(window.issue(0), 0);
        assert_eq!(window.issue(0), 1);
        assert!(!window.has_room(0, true, 0));
        assert!(window.has_room(1, false, 0));
    }

    #[test]
    fn a_window_of_none_opens_only_when_asked() {
        let mut window = Window::new(0, None);
        assert!(!window.has_room(0, false, 0));
        assert!(window.has_room(0, true, 0));
        window.issue(0);
        assert!(!window.has_room(0, true, 0));
    }

    #[test]
    fn the_oldest_batch_is_allowed_whatever_it_costs() {
        let mut window = Window::new(4, Some(10));
        assert!(window.has_room(0, false, 1_000));
        window.issue(1_000);
        assert!(!window.has_room(0, false, 1));
        assert!(window.has_room(1, false, 1));
    }

    proptest! {
        #[test]
        fn never_more_alive_than_allowed(
            limit in 0usize..6,
            max in proptest::option::of(0u64..50),
            steps in proptest::collection::vec((any::<bool>(), 0u64..30), 0..200),
        ) {
            let mut window = Window::new(limit, max);
            let (mut returned, mut costs) = (0, VecDeque::new());
            for (give_back, cost) in steps {
                if give_back && !costs.is_empty() {
                    costs.pop_front();
                    returned += 1;
                } else if window.has_room(returned, true, cost) {
                    window.issue(cost);
                    costs.push_back(cost);
                }
                prop_assert!(costs.len() <= limit.max(1));
                if let Some(max) = max {
                    let beyond_oldest: u64 = costs.iter().skip(1).sum();
                    prop_assert!(costs.len() <= 1 || costs[0] + beyond_oldest <= max.max(costs[0]));
                }
            }
        }
    }
}
