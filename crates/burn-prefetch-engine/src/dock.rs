//! Assembled batches on their way to the uploader: which of them may be uploaded now.

use crate::ring::{Delivery, Ring};
use crate::window::Window;

/// Holds assembled batches until they may be uploaded, in the order in which they leave.
///
/// Invariant: at most `ahead` batches have been [taken](Self::take) and not been returned; one, where
/// that is 0 and the reader asks.
#[derive(Debug)]
pub(crate) struct Dock<B> {
    ahead: usize,
    window: Window,
    waiting: Ring<B>,
}

impl<B> Dock<B> {
    pub(crate) fn new(ahead: usize, delivery: Delivery) -> Self {
        Self {
            ahead,
            window: Window::new(ahead),
            waiting: Ring::new(delivery),
        }
    }

    /// How many batches may be uploaded and not yet returned.
    pub(crate) fn ahead(&self) -> usize {
        self.ahead
    }

    /// Counts what the pass before has not returned yet.
    pub(crate) fn set_before(&mut self, batches: usize) {
        self.window.set_before(batches);
    }

    /// Takes in an assembled batch at its turn; each once.
    pub(crate) fn put(&mut self, turn: usize, (number, batch): (usize, B)) {
        self.waiting.put(turn, (number, batch));
    }

    /// The next batch, if it may be uploaded when `returned` have been returned so far and the reader
    /// is `asking`.
    pub(crate) fn take(&mut self, returned: usize, asking: bool) -> Option<(usize, B)> {
        if !self.is_ready(returned, asking) {
            return None;
        }
        self.window.issue();
        self.waiting.pop()
    }

    /// Whether there is a batch for [`take`](Self::take).
    pub(crate) fn is_ready(&mut self, returned: usize, asking: bool) -> bool {
        self.waiting.is_ready() && self.window.room(returned, asking).is_some()
    }

    /// Empties the dock and gives what was in it.
    pub(crate) fn take_all(&mut self) -> impl Iterator<Item = B> + use<B> {
        self.waiting.take_all()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_leaves_when_those_before_have_been_returned() {
        let mut dock = Dock::new(1, Delivery::InOrder);
        dock.put(1, (1, 'b'));
        assert_eq!(dock.take(0, true), None, "its turn has not come");
        dock.put(0, (0, 'a'));
        assert_eq!(dock.take(0, false), Some((0, 'a')));
        assert_eq!(dock.take(0, true), None, "one is on its way");
        assert_eq!(dock.take(1, false), Some((1, 'b')));
    }

    #[test]
    fn with_none_ahead_the_next_leaves_when_it_is_asked_for() {
        let mut dock = Dock::new(0, Delivery::InOrder);
        dock.put(0, (0, 'a'));
        assert_eq!(dock.take(0, false), None);
        assert_eq!(dock.take(0, true), Some((0, 'a')));
    }

    #[test]
    fn the_pass_before_counts() {
        let mut dock = Dock::new(2, Delivery::InOrder);
        dock.put(0, (0, 'a'));
        dock.set_before(2);
        assert_eq!(dock.take(0, false), None);
        dock.set_before(1);
        assert_eq!(dock.take(0, false), Some((0, 'a')));
        assert_eq!(dock.take_all().count(), 0);
    }
}
