//! What is alive at one moment, as numbers without a lock.

use std::thread::{self, ThreadId};

/// The most that was alive at any time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Peak {
    pub(crate) batches: usize,
    pub(crate) bytes: usize,
}

/// Which batch something belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    Batch { epoch: usize, batch: usize },
    Thread(ThreadId),
}

/// Counts, and remembers the most.
#[derive(Debug)]
pub(super) struct State {
    batch_size: usize,
    /// Items of each batch on which no batcher has started; no entry has 0.
    fetching: Vec<(Key, usize)>,
    item_bytes: usize,
    /// Batches on which a batcher has started, in no order.
    made: Vec<Made>,
    /// Of the next of these.
    number: u64,
    asking: bool,
    peak: Peak,
}

/// A batch from the start of its batcher on.
#[derive(Debug, Clone, Copy)]
struct Made {
    number: u64,
    key: Key,
    bytes: usize,
    /// The batcher is done with it.
    ready: bool,
}

impl Key {
    /// Of the item that is fetched, or the batch that is made, on this thread.
    pub(super) fn here() -> Self {
        match burn_prefetch::context() {
            Some(at) => Self::Batch {
                epoch: at.epoch,
                batch: at.batch,
            },
            None => Self::Thread(thread::current().id()),
        }
    }

    /// Where its batch stands in the order of all; of one that only its thread is known of, nobody
    /// knows.
    fn place(self) -> Option<(usize, usize)> {
        match self {
            Self::Batch { epoch, batch } => Some((epoch, batch)),
            Self::Thread(_) => None,
        }
    }
}

impl State {
    pub(super) fn new(batch_size: usize) -> Self {
        Self {
            batch_size,
            fetching: Vec::new(),
            item_bytes: 0,
            made: Vec::new(),
            number: 0,
            asking: false,
            peak: Peak::default(),
        }
    }

    pub(super) fn peak(&self) -> Peak {
        self.peak
    }

    pub(super) fn alive(&self) -> usize {
        let items: usize = self.fetching.iter().map(|(_, items)| items).sum();
        // Whatever the keys say, a batch has no more items than that.
        let fetching = self.fetching.len().max(items.div_ceil(self.batch_size));
        fetching + self.made.len() - usize::from(self.taken().is_some())
    }

    /// Bytes of items and batches.
    pub(super) fn bytes(&self) -> usize {
        let made: usize = self.made.iter().map(|made| made.bytes).sum();
        self.item_bytes + made - self.taken().map_or(0, |taken| taken.bytes)
    }

    pub(super) fn add_items(&mut self, (key, more): (Key, usize), bytes: usize) {
        match self.fetching.iter_mut().find(|(known, _)| *known == key) {
            Some((_, items)) => *items += more,
            None => self.fetching.push((key, more)),
        }
        self.item_bytes += bytes;
        self.mark();
    }

    /// A batcher has them; their bytes stay.
    pub(super) fn absorb_items(&mut self, (key, items): (Key, usize)) {
        if let Some(at) = self.fetching.iter().position(|(known, _)| *known == key) {
            self.fetching[at].1 -= items;
            if self.fetching[at].1 == 0 {
                self.fetching.swap_remove(at);
            }
        }
    }

    pub(super) fn forget_bytes(&mut self, bytes: usize) {
        self.item_bytes -= bytes;
    }

    /// A batcher has started on a batch of so many bytes; the number is its name from now on.
    pub(super) fn add_batch(&mut self, key: Key, bytes: usize) -> u64 {
        let number = self.number;
        self.number += 1;
        self.made.push(Made {
            number,
            key,
            bytes,
            ready: false,
        });
        self.mark();
        number
    }

    pub(super) fn batch_is_ready(&mut self, number: u64) {
        let mut made = self.made.iter_mut();
        if let Some(made) = made.find(|made| made.number == number) {
            made.ready = true;
        }
    }

    /// It was handed over or dropped.
    pub(super) fn forget_batch(&mut self, number: u64) {
        self.made.retain(|made| made.number != number);
    }

    pub(super) fn ask(&mut self) {
        self.asking = true;
    }

    /// What was asked for was returned, and forgotten; or nothing was returned.
    pub(super) fn answer(&mut self) {
        self.asking = false;
        self.mark();
    }

    /// The ready batch that `next()` is taking: the first one in the order. Where several may be it
    /// is the smallest, so that nothing is counted low.
    fn taken(&self) -> Option<&Made> {
        if !self.asking {
            return None;
        }
        let fetching = self.fetching.iter().map(|(key, _)| *key);
        let keys = fetching.chain(self.made.iter().map(|made| made.key));
        let first = keys.filter_map(Key::place).min();
        let may_be =
            |made: &&Made| made.ready && made.key.place().is_none_or(|at| Some(at) == first);
        self.made
            .iter()
            .filter(may_be)
            .min_by_key(|made| made.bytes)
    }

    fn mark(&mut self) {
        self.peak.batches = self.peak.batches.max(self.alive());
        self.peak.bytes = self.peak.bytes.max(self.bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(batch: usize) -> Key {
        Key::Batch { epoch: 0, batch }
    }

    /// Starts and ends the batcher on a batch of one item of a byte.
    fn make(state: &mut State, key: Key, bytes: usize) -> u64 {
        state.absorb_items((key, 1));
        let number = state.add_batch(key, bytes);
        state.batch_is_ready(number);
        state.forget_bytes(1);
        number
    }

    #[test]
    fn two_half_fetched_batches_are_two() {
        let mut state = State::new(8);
        state.add_items((batch(0), 1), 1);
        state.add_items((batch(1), 1), 1);
        assert_eq!((state.alive(), state.bytes()), (2, 2));
    }

    #[test]
    fn more_items_than_a_batch_holds_are_more_batches_whatever_they_say() {
        let mut state = State::new(2);
        state.add_items((batch(0), 5), 5);
        assert_eq!(state.alive(), 3);
    }

    #[test]
    fn a_batch_that_next_itself_makes_is_alive_with_items_and_tensors() {
        let mut state = State::new(1);
        state.ask();
        state.add_items((batch(0), 1), 1);
        assert_eq!((state.alive(), state.bytes()), (1, 1));
        let made = make(&mut state, batch(0), 100);
        assert_eq!((state.alive(), state.bytes()), (0, 0));
        state.forget_batch(made);
        state.answer();
        let (batches, bytes) = (1, 101);
        assert_eq!(state.peak(), Peak { batches, bytes });
    }

    #[test]
    fn the_batch_that_is_taken_is_not_alive_even_while_its_successor_starts() {
        let mut state = State::new(1);
        state.add_items((batch(0), 1), 1);
        let first = make(&mut state, batch(0), 100);
        state.ask();
        // The loader has freed the first batch's place; a worker starts the second before `next()`
        // is back.
        state.add_items((batch(1), 1), 1);
        make(&mut state, batch(1), 100);
        state.forget_batch(first);
        state.answer();
        let (batches, bytes) = (1, 101);
        assert_eq!(state.peak(), Peak { batches, bytes });
    }

    #[test]
    fn a_batch_behind_the_one_asked_for_is_alive_though_it_is_ready() {
        let mut state = State::new(2);
        state.add_items((batch(0), 1), 1);
        state.add_items((batch(1), 1), 1);
        state.ask();
        make(&mut state, batch(1), 100);
        assert_eq!(state.alive(), 2);
        // Without places any may be the one.
        let mut state = State::new(2);
        let thread = Key::Thread(thread::current().id());
        state.add_items((thread, 1), 1);
        state.ask();
        make(&mut state, thread, 100);
        assert_eq!(state.alive(), 0);
    }

    #[test]
    fn a_next_that_returns_no_batch_takes_none_off_the_count() {
        let mut state = State::new(1);
        state.ask();
        state.add_items((batch(0), 1), 1);
        make(&mut state, batch(0), 100);
        state.add_items((batch(1), 1), 1);
        assert_eq!(state.alive(), 1);
        state.answer();
        assert_eq!((state.alive(), state.peak().batches), (2, 2));
    }
}
