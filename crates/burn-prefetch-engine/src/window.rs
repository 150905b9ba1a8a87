//! How far work may run ahead of the reader, in batches and bytes.

use std::collections::VecDeque;

/// Says whether one more batch may be started, and numbers those that are.
///
/// A batch is alive from its [`issue`](Self::issue) until the reader has returned it.
/// Invariant: `before + issued - returned <= max(limit, asked)` and, beyond the oldest batch alive,
/// the costs of those alive never pass `max_bytes`.
#[derive(Debug)]
pub(crate) struct Window {
    limit: usize,
    max_bytes: Option<u64>,
    issued: usize,
    /// Batches and bytes of the pass before that are still alive.
    before: (usize, u64),
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
            before: (0, 0),
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

    /// Sets how many batches, of which cost, of the pass before are still alive: they count.
    pub(crate) fn set_before(&mut self, batches: usize, bytes: u64) {
        self.before = (batches, bytes);
    }

    /// Whether a batch of `cost` bytes may be started, when `returned` batches have been returned
    /// so far and the reader is `asking` for the next one.
    ///
    /// The oldest batch is always allowed once the reader asks for it (or where the window has
    /// room), whatever it costs: a budget delays, it never stops a pass.
    pub(crate) fn has_room(&mut self, returned: usize, asking: bool, cost: u64) -> bool {
        self.settle(returned);
        let (before, bytes_before) = self.before;
        let alive = self.issued - returned + before;
        let limit = self.limit.max(usize::from(asking));
        if alive >= limit {
            return false;
        }
        let bytes = self.bytes.saturating_add(bytes_before);
        let fits = self
            .max_bytes
            .is_none_or(|max| bytes.saturating_add(cost) <= max);
        alive == 0 || fits
    }

    /// How many batches may be started now, as far as their number is concerned.
    pub(crate) fn places(&self, returned: usize) -> usize {
        let alive = self.issued - returned + self.before.0;
        self.limit.saturating_sub(alive)
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

    #[test]
    fn the_pass_before_counts() {
        let mut window = Window::new(2, Some(10));
        window.set_before(2, 8);
        assert!(!window.has_room(0, false, 1));
        window.set_before(1, 8);
        assert!(!window.has_room(0, false, 3));
        assert!(window.has_room(0, false, 2));
        assert_eq!(window.places(0), 1);
        window.issue(2);
        assert!(!window.has_room(0, false, 0));
        window.set_before(0, 0);
        assert!(window.has_room(0, false, 8));
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
