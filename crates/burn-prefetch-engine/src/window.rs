//! How far work may run ahead of the reader, in batches.

use crate::ledger::Turn;

/// Says whether one more batch may be started, and numbers those that are.
///
/// A batch is alive from its [`issue`](Self::issue) until the reader has returned it.
/// Invariant: `before + issued - returned <= max(limit, asked)`.
#[derive(Debug)]
pub(crate) struct Window {
    limit: usize,
    issued: usize,
    /// Batches of the pass before that are still alive.
    before: usize,
}

impl Window {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            issued: 0,
            before: 0,
        }
    }

    /// The number of the next ticket.
    pub(crate) fn issued(&self) -> usize {
        self.issued
    }

    /// How many batches may be alive.
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// Sets how many batches may be alive; those that are stay so.
    pub(crate) fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// Sets how many batches of the pass before are still alive: they count.
    pub(crate) fn set_before(&mut self, batches: usize) {
        self.before = batches;
    }

    /// Whether a batch may be started, and in which turn, when `returned` batches have been returned
    /// so far and the reader is `asking` for the next one.
    ///
    /// The oldest batch is always allowed once the reader asks for it.
    pub(crate) fn room(&self, returned: usize, asking: bool) -> Option<Turn> {
        debug_assert!(
            returned <= self.issued,
            "only what was issued can be returned"
        );
        let alive = self.issued - returned + self.before;
        let limit = self.limit.max(usize::from(asking));
        (alive < limit).then_some(match alive {
            0 => Turn::Oldest,
            _ => Turn::Further,
        })
    }

    /// How many batches may be started now.
    pub(crate) fn places(&self, returned: usize) -> usize {
        let alive = self.issued - returned + self.before;
        self.limit.saturating_sub(alive)
    }

    /// Takes the place that [`room`](Self::room) found; returns the ticket's number.
    pub(crate) fn issue(&mut self) -> usize {
        let ticket = self.issued;
        self.issued += 1;
        ticket
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_window_of_two_holds_two() {
        let mut window = Window::new(2);
        assert_eq!(window.room(0, false), Some(Turn::Oldest));
        assert_eq!(window.issue(), 0);
        assert_eq!(window.room(0, false), Some(Turn::Further));
        assert_eq!(window.issue(), 1);
        assert_eq!(window.room(0, true), None);
        assert_eq!(window.room(1, false), Some(Turn::Further));
    }

    #[test]
    fn a_window_of_none_opens_only_when_asked() {
        let mut window = Window::new(0);
        assert_eq!(window.room(0, false), None);
        assert_eq!(window.room(0, true), Some(Turn::Oldest));
        window.issue();
        assert_eq!(window.room(0, true), None);
    }

    #[test]
    fn the_pass_before_counts() {
        let mut window = Window::new(2);
        window.set_before(2);
        assert_eq!(window.room(0, false), None);
        window.set_before(1);
        assert_eq!(window.room(0, false), Some(Turn::Further));
        assert_eq!(window.places(0), 1);
        window.issue();
        assert_eq!(window.room(0, false), None);
        window.set_before(0);
        assert_eq!(window.room(0, false), Some(Turn::Further));
    }

    proptest! {
        #[test]
        fn never_more_alive_than_allowed(
            limit in 0usize..6,
            steps in proptest::collection::vec((any::<bool>(), any::<bool>()), 0..200),
        ) {
            let mut window = Window::new(limit);
            let (mut returned, mut alive) = (0, 0);
            for (give_back, asking) in steps {
                if give_back && alive > 0 {
                    alive -= 1;
                    returned += 1;
                } else if let Some(turn) = window.room(returned, asking) {
                    prop_assert_eq!(turn == Turn::Oldest, alive == 0);
                    window.issue();
                    alive += 1;
                }
                prop_assert!(alive <= limit.max(1));
            }
        }
    }
}
