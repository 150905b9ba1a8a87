//! How many batches are alive, and how many bytes: counted by guards, not by a loader's word.
//!
//! The same guards ride in every item and every batch, whichever loader moves them.
//!
//! A batch is alive from the first line of its first `get` until the `next()` that returns it takes
//! it, or it is dropped. When that is cannot be seen from outside: a batch that is there when
//! `next()` is called is taken at once, any other as soon as its batcher is done with it. So the
//! moment at which a loader frees a batch's place, somewhere inside `next()`, does not matter, and
//! a batch that `next()` itself makes is alive while it is made.
//!
//! Batches are told apart by what `burn_prefetch::context()` says, and outside of it by the thread
//! (a worker of Burn's makes one batch at a time). As a check on that word there are never fewer
//! than the items fill. Bytes are those of items and of batches; inside a batcher both exist and
//! both count.

mod state;

use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub(crate) use state::Peak;
use state::{Key, State};

/// Counts what is alive and remembers the most.
#[derive(Debug)]
pub(crate) struct Gauge(Mutex<State>);

/// Rides in an item, or stands for the rows of a batch.
#[derive(Debug)]
pub(crate) struct ItemGuard {
    gauge: Arc<Gauge>,
    key: Key,
    items: usize,
    bytes: usize,
    /// The batcher has taken the item: its batch counts for it now, its bytes still count.
    absorbed: bool,
}

/// Rides in a batch.
#[derive(Debug)]
pub(crate) struct BatchGuard {
    gauge: Arc<Gauge>,
    number: u64,
}

/// The training thread is inside `next()`.
#[derive(Debug)]
pub(crate) struct Asking<'a>(&'a Gauge);

impl Gauge {
    pub(crate) fn new(batch_size: usize) -> Arc<Self> {
        Arc::new(Self(Mutex::new(State::new(batch_size))))
    }

    /// An item of `bytes` bytes is about to be fetched on this thread.
    pub(crate) fn start_item(self: &Arc<Self>, bytes: usize) -> ItemGuard {
        self.track((Key::here(), 1), bytes)
    }

    /// The batcher starts to turn these items into a batch of `bytes` bytes.
    pub(crate) fn start_batch<'a>(
        self: &Arc<Self>,
        items: impl Iterator<Item = &'a mut ItemGuard>,
        bytes: usize,
    ) -> BatchGuard {
        let mut state = self.lock();
        for item in items {
            if !mem::replace(&mut item.absorbed, true) {
                state.absorb_items((item.key, item.items));
            }
        }
        self.make(state, bytes)
    }

    /// The training thread is about to call `next()`; to be dropped, or answered, when that has
    /// returned.
    pub(crate) fn ask(&self) -> Asking<'_> {
        self.lock().ask();
        Asking(self)
    }

    /// The most that was alive so far.
    pub(crate) fn peak(&self) -> Peak {
        self.lock().peak()
    }

    /// Bytes of items and batches alive now.
    pub(crate) fn bytes(&self) -> usize {
        self.lock().bytes()
    }

    /// Batches alive now.
    pub(crate) fn alive(&self) -> usize {
        self.lock().alive()
    }

    fn track(self: &Arc<Self>, (key, items): (Key, usize), bytes: usize) -> ItemGuard {
        self.lock().add_items((key, items), bytes);
        ItemGuard {
            gauge: Arc::clone(self),
            key,
            items,
            bytes,
            absorbed: false,
        }
    }

    fn make(self: &Arc<Self>, mut state: MutexGuard<'_, State>, bytes: usize) -> BatchGuard {
        let number = state.add_batch(Key::here(), bytes);
        drop(state);
        BatchGuard {
            gauge: Arc::clone(self),
            number,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ItemGuard {
    /// Whether it stands for items of the batch that this thread works on.
    pub(crate) fn is_of_here(&self) -> bool {
        self.key == Key::here()
    }

    /// One more item of the same batch.
    pub(crate) fn grow(&mut self, bytes: usize) {
        self.gauge.lock().add_items((self.key, 1), bytes);
        self.items += 1;
        self.bytes += bytes;
    }

    /// A batch that consists of these very bytes.
    pub(crate) fn into_batch(mut self) -> BatchGuard {
        let bytes = mem::take(&mut self.bytes);
        let mut state = self.gauge.lock();
        self.absorbed = true;
        state.absorb_items((self.key, self.items));
        state.forget_bytes(bytes);
        self.gauge.make(state, bytes)
    }
}

impl Asking<'_> {
    /// `next()` has returned this batch: it is the training's now.
    pub(crate) fn got(self, batch: &BatchGuard) {
        let mut state = self.0.lock();
        state.forget_batch(batch.number);
        state.answer();
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.0.lock().answer();
    }
}

impl BatchGuard {
    /// The batcher is done with it.
    pub(crate) fn ready(&self) {
        self.gauge.lock().batch_is_ready(self.number);
    }
}

impl Drop for BatchGuard {
    fn drop(&mut self) {
        self.gauge.lock().forget_batch(self.number);
    }
}

impl Clone for ItemGuard {
    /// A copy of an item is one more item of its batch.
    fn clone(&self) -> Self {
        self.gauge.track((self.key, self.items), self.bytes)
    }
}

impl Drop for ItemGuard {
    fn drop(&mut self) {
        let mut state = self.gauge.lock();
        state.forget_bytes(self.bytes);
        if !self.absorbed {
            state.absorb_items((self.key, self.items));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_alive_from_its_first_item_until_it_was_handed_over() {
        let gauge = Gauge::new(2);
        let mut items = vec![gauge.start_item(10), gauge.start_item(10)];
        assert_eq!(gauge.alive(), 1);
        let batch = gauge.start_batch(items.iter_mut(), 100);
        batch.ready();
        drop(items);
        assert_eq!((gauge.alive(), gauge.bytes()), (1, 100));
        gauge.ask().got(&batch);
        assert_eq!((gauge.alive(), gauge.bytes()), (0, 0));
        drop(batch);
        assert_eq!((gauge.alive(), gauge.bytes()), (0, 0));
        let (batches, bytes) = (1, 120);
        assert_eq!(gauge.peak(), Peak { batches, bytes });
    }

    #[test]
    fn a_copied_item_counts_and_leaves_nothing_behind() {
        let gauge = Gauge::new(4);
        let item = gauge.start_item(3);
        let copies = vec![item.clone(), item.clone()];
        assert_eq!(gauge.peak().bytes, 9);
        drop((item, copies));
        assert_eq!((gauge.alive(), gauge.bytes()), (0, 0));
    }
}
