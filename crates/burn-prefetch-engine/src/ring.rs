//! Batches finish in any order and leave in one.

use std::collections::VecDeque;

/// Holds finished values until all with a lower number have left.
///
/// Its length is bounded by the window: a number beyond it has no ticket.
#[derive(Debug)]
pub(crate) struct Ring<T> {
    /// The number of the first cell.
    first: usize,
    cells: VecDeque<Option<T>>,
}

impl<T> Ring<T> {
    pub(crate) fn new() -> Self {
        Self {
            first: 0,
            cells: VecDeque::new(),
        }
    }

    /// Puts the value of one number; each number is put once.
    pub(crate) fn put(&mut self, number: usize, value: T) {
        debug_assert!(number >= self.first, "number {number} has left already");
        let offset = number - self.first;
        while self.cells.len() <= offset {
            self.cells.push_back(None);
        }
        debug_assert!(
            self.cells[offset].is_none(),
            "number {number} is there already"
        );
        self.cells[offset] = Some(value);
    }

    /// Whether the next value in order is there.
    pub(crate) fn is_ready(&self) -> bool {
        self.cells.front().is_some_and(Option::is_some)
    }

    /// Moves what is ready, in order, to the end of `out`.
    pub(crate) fn take_ready(&mut self, out: &mut VecDeque<T>) {
        while self.is_ready() {
            out.extend(self.cells.pop_front().flatten());
            self.first += 1;
        }
    }

    /// Empties the ring and gives what was in it.
    pub(crate) fn take_all(&mut self) -> impl Iterator<Item = T> + use<T> {
        let cells = std::mem::take(&mut self.cells);
        self.first += cells.len();
        cells.into_iter().flatten()
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
            let (mut ring, mut out) = (Ring::new(), VecDeque::new());
            for number in order {
                ring.put(number, number);
                ring.take_ready(&mut out);
                prop_assert_eq!(ring.first, out.len());
            }
            prop_assert_eq!(out.into_iter().collect::<Vec<_>>(), (0..40).collect::<Vec<_>>());
        }
    }

    #[test]
    fn gives_back_what_never_left() {
        let mut ring = Ring::new();
        ring.put(2, 'c');
        ring.put(1, 'b');
        assert!(!ring.is_ready());
        assert_eq!(ring.take_all().collect::<String>(), "bc");
        assert_eq!(ring.first, 3);
    }
}
