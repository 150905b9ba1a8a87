//! Assembled batches on their way to the uploader: which of them may be uploaded now.

use std::collections::VecDeque;

use crate::ledger::Turn;
use crate::ring::{Delivery, Ring};
use crate::window::Window;

/// How much may be uploaded and not yet returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RoomAhead {
    pub(crate) batches: usize,
    /// But for the oldest, which may have any size.
    pub(crate) bytes: Option<u64>,
}

/// Holds assembled batches until they may be uploaded, in the order in which they leave.
///
/// Invariant: at most `room.batches` batches have been [taken](Self::take) and not been returned; one,
/// where that is 0 and the reader asks. If they are several they have `room.bytes` at most.
#[derive(Debug)]
pub(crate) struct Dock<B> {
    room: RoomAhead,
    window: Window,
    /// With its size.
    waiting: Ring<(B, u64)>,
    /// The sizes of those taken last, in the order in which they are returned.
    taken: VecDeque<u64>,
    /// Whether batches of the pass before are among what is uploaded: nobody knows of which size.
    behind_another: bool,
}

impl<B> Dock<B> {
    pub(crate) fn new(room: RoomAhead, delivery: Delivery) -> Self {
        Self {
            room,
            window: Window::new(room.batches),
            waiting: Ring::new(delivery),
            taken: VecDeque::new(),
            behind_another: false,
        }
    }

    /// How much may be uploaded and not yet returned.
    pub(crate) fn room(&self) -> RoomAhead {
        self.room
    }

    /// Counts what the pass before has not returned yet.
    pub(crate) fn set_before(&mut self, batches: usize) {
        self.behind_another = batches > 0;
        self.window.set_before(batches);
    }

    /// Takes in an assembled batch of so many bytes at its turn; each once.
    pub(crate) fn put(&mut self, turn: usize, (number, batch): (usize, B), bytes: u64) {
        self.waiting.put(turn, (number, (batch, bytes)));
    }

    /// The next batch, if it may be uploaded when `returned` have been returned so far and the reader
    /// is `asking`.
    pub(crate) fn take(&mut self, returned: usize, asking: bool) -> Option<(usize, B)> {
        if !self.is_ready(returned, asking) {
            return None;
        }
        let (number, (batch, bytes)) = self.waiting.pop()?;
        self.window.issue();
        if self.room.bytes.is_some() {
            self.taken.push_back(bytes);
        }
        Some((number, batch))
    }

    /// Whether there is a batch for [`take`](Self::take).
    pub(crate) fn is_ready(&mut self, returned: usize, asking: bool) -> bool {
        let Some((_, bytes)) = self.waiting.next() else {
            return false;
        };
        let bytes = *bytes;
        match self.window.room(returned, asking) {
            None => false,
            Some(Turn::Oldest) => true,
            Some(Turn::Further) => self.has_room_for(bytes, returned),
        }
    }

    /// Whether a batch of so many bytes fits beside those that are uploaded.
    fn has_room_for(&mut self, bytes: u64, returned: usize) -> bool {
        let Some(most) = self.room.bytes else {
            return true;
        };
        let alive = self.window.issued() - returned;
        let gone = self.taken.len().saturating_sub(alive);
        self.taken.drain(..gone);
        let all = self
            .taken
            .iter()
            .fold(bytes, |sum, each| sum.saturating_add(*each));
        !self.behind_another && all <= most
    }

    /// Empties the dock and gives what was in it.
    pub(crate) fn take_all(&mut self) -> impl Iterator<Item = B> + use<B> {
        self.waiting.take_all().map(|(batch, _)| batch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dock(batches: usize, bytes: Option<u64>) -> Dock<char> {
        Dock::new(RoomAhead { batches, bytes }, Delivery::InOrder)
    }

    #[test]
    fn the_next_leaves_when_those_before_have_been_returned() {
        let mut dock = dock(1, None);
        dock.put(1, (1, 'b'), 10);
        assert_eq!(dock.take(0, true), None, "its turn has not come");
        dock.put(0, (0, 'a'), 10);
        assert_eq!(dock.take(0, false), Some((0, 'a')));
        assert_eq!(dock.take(0, true), None, "one is on its way");
        assert_eq!(dock.take(1, false), Some((1, 'b')));
    }

    #[test]
    fn with_none_ahead_the_next_leaves_when_it_is_asked_for() {
        let mut dock = dock(0, None);
        dock.put(0, (0, 'a'), 10);
        assert_eq!(dock.take(0, false), None);
        assert_eq!(dock.take(0, true), Some((0, 'a')));
    }

    #[test]
    fn the_pass_before_counts() {
        let mut dock = dock(2, None);
        dock.put(0, (0, 'a'), 10);
        dock.set_before(2);
        assert_eq!(dock.take(0, false), None);
        dock.set_before(1);
        assert_eq!(dock.take(0, false), Some((0, 'a')));
        assert_eq!(dock.take_all().count(), 0);
    }

    #[test]
    fn several_have_the_bytes_at_most_and_the_oldest_any() {
        let mut dock = dock(3, Some(25));
        for (turn, name, bytes) in [(0, 'a', 90), (1, 'b', 10), (2, 'c', 10), (3, 'd', 10)] {
            dock.put(turn, (turn, name), bytes);
        }
        let mut take = |returned| dock.take(returned, false).map(|(_, name)| name);
        assert_eq!((take(0), take(0)), (Some('a'), None));
        assert_eq!((take(1), take(1), take(1)), (Some('b'), Some('c'), None));
        assert_eq!((take(2), take(2)), (Some('d'), None));
    }

    #[test]
    fn beside_batches_of_the_pass_before_bytes_are_not_known() {
        let mut dock = dock(3, Some(25));
        dock.put(0, (0, 'a'), 10);
        dock.set_before(1);
        assert_eq!(dock.take(0, false), None);
        dock.set_before(0);
        assert_eq!(dock.take(0, false), Some((0, 'a')));
    }
}
