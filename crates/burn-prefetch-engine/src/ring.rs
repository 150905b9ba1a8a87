//! Batches finish in any order and leave in one, unless the user wants them as they finish.

use std::collections::VecDeque;

/// In which order a pass delivers its batches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Delivery {
    /// By number, whichever is finished first.
    #[default]
    InOrder,
    /// As they finish.
    AsFinished,
}

/// Holds finished values until all whose turn is before theirs have left; or, if they leave as they
/// finish, until they are taken. Turns are counted from 0.
///
/// Its length is bounded by the window: a turn beyond it has no ticket.
#[derive(Debug)]
pub(crate) struct Ring<T> {
    delivery: Delivery,
    /// The turn of the first cell, where order matters.
    first: usize,
    cells: VecDeque<Option<(usize, T)>>,
}

impl<T> Ring<T> {
    pub(crate) fn new(delivery: Delivery) -> Self {
        Self {
            delivery,
            first: 0,
            cells: VecDeque::new(),
        }
    }

    /// Puts the value of one number, at its turn; each is put once.
    pub(crate) fn put(&mut self, turn: usize, (number, value): (usize, T)) {
        if self.delivery == Delivery::AsFinished {
            self.cells.push_back(Some((number, value)));
            return;
        }
        debug_assert!(turn >= self.first, "turn {turn} is over already");
        let offset = turn - self.first;
        while self.cells.len() <= offset {
            self.cells.push_back(None);
        }
        debug_assert!(
            self.cells[offset].is_none(),
            "number {number} is there already"
        );
        self.cells[offset] = Some((number, value));
    }

    /// Whether the next value is there.
    pub(crate) fn is_ready(&self) -> bool {
        self.cells.front().is_some_and(Option::is_some)
    }

    /// The next value, if it is there.
    pub(crate) fn next(&self) -> Option<&T> {
        let (_, value) = self.cells.front()?.as_ref()?;
        Some(value)
    }

    /// How many values wait for an earlier one.
    pub(crate) fn waiting(&self) -> usize {
        if self.is_ready() {
            return 0;
        }
        self.cells.iter().flatten().count()
    }

    /// Moves what is ready to the end of `out`, with its number.
    pub(crate) fn take_ready(&mut self, out: &mut VecDeque<(usize, T)>) {
        out.extend(std::iter::from_fn(|| self.pop()));
    }

    /// The next value with its number, if it is there.
    pub(crate) fn pop(&mut self) -> Option<(usize, T)> {
        if !self.is_ready() {
            return None;
        }
        self.first += 1;
        self.cells.pop_front().flatten()
    }

    /// Empties the ring and gives what was in it.
    pub(crate) fn take_all(&mut self) -> impl Iterator<Item = T> + use<T> {
        let cells = std::mem::take(&mut self.cells);
        self.first += cells.len();
        cells.into_iter().flatten().map(|(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn leaves_in_order_whatever_the_order_of_arrival(
            order in Just((0..40usize).collect::<Vec<_>>()).prop_shuffle(),
        ) {
            let (mut ring, mut out) = (Ring::new(Delivery::InOrder), VecDeque::new());
            for number in order {
                ring.put(number, (number, number));
                ring.take_ready(&mut out);
                prop_assert_eq!(ring.first, out.len());
            }
            let expected: Vec<_> = (0..40).map(|number| (number, number)).collect();
            prop_assert_eq!(out.into_iter().collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn gives_back_what_never_left() {
        let mut ring = Ring::new(Delivery::InOrder);
        ring.put(2, (2, 'c'));
        ring.put(1, (1, 'b'));
        assert!(!ring.is_ready());
        assert_eq!(ring.waiting(), 2);
        assert_eq!(ring.take_all().collect::<String>(), "bc");
        assert_eq!(ring.first, 3);
    }

    #[test]
    fn leaves_as_it_came_where_order_does_not_matter() {
        let (mut ring, mut out) = (Ring::new(Delivery::AsFinished), VecDeque::new());
        ring.put(2, (2, 'c'));
        ring.take_ready(&mut out);
        ring.put(0, (0, 'a'));
        ring.take_ready(&mut out);
        assert_eq!(out, [(2, 'c'), (0, 'a')]);
        assert!(!ring.is_ready());
    }
}
