//! How many batches exist ahead of the training thread, and how many bytes: counted by guards, not
//! by a loader's word.
//!
//! The same guards ride in every item and every batch, whichever loader moves them.
//!
//! A batch *is being made* from the first line of its first `get` until the batcher starts on it;
//! it *is finished* from then until `next()` has returned it or it is dropped. *Alive* is the sum
//! of both, less one while the training thread is inside `next()`: the batch that it has asked for
//! is no longer ahead of it. So the moment at which a loader frees a batch's place, somewhere
//! inside `next()`, does not matter.
//!
//! Batches being made are told apart by what `burn_prefetch::context()` says, and outside of it by
//! the thread (a worker of Burn's makes one batch at a time). As a check on that word there are
//! never fewer than the items fill. Bytes are those of items and of finished batches; inside a
//! batcher both exist and both count.

use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

/// Counts what is alive and remembers the most.
#[derive(Debug)]
pub(crate) struct Gauge {
    batch_size: usize,
    state: Mutex<State>,
}

/// The most that was alive at any time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Peak {
    pub(crate) batches: usize,
    pub(crate) bytes: usize,
}

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
    /// What the batch adds; 0 once it was handed over.
    bytes: Mutex<Option<usize>>,
}

/// The training thread is inside `next()`.
#[derive(Debug)]
pub(crate) struct Asking<'a>(&'a Gauge);

/// Which batch an item is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Key {
    Batch { epoch: usize, batch: usize },
    Thread(ThreadId),
}

#[derive(Debug)]
struct State {
    /// Items of each batch being made; no entry has 0.
    making: Vec<(Key, usize)>,
    item_bytes: usize,
    /// Bytes of each finished batch, in no order.
    finished: Vec<usize>,
    asking: bool,
    peak: Peak,
}

impl Gauge {
    pub(crate) fn new(batch_size: usize) -> Arc<Self> {
        let state = State {
            making: Vec::new(),
            item_bytes: 0,
            finished: Vec::new(),
            asking: false,
            peak: Peak {
                batches: 0,
                bytes: 0,
            },
        };
        Arc::new(Self {
            batch_size,
            state: Mutex::new(state),
        })
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
                state.forget_items((item.key, item.items));
            }
        }
        self.finish(state, bytes)
    }

    /// The training thread is about to call `next()`; to be dropped, or answered, when that has
    /// returned.
    pub(crate) fn ask(&self) -> Asking<'_> {
        self.lock().asking = true;
        Asking(self)
    }

    /// The most that was alive so far.
    pub(crate) fn peak(&self) -> Peak {
        self.lock().peak
    }

    /// Bytes of items and batches alive now.
    pub(crate) fn bytes(&self) -> usize {
        self.lock().bytes()
    }

    /// Batches alive now.
    pub(crate) fn alive(&self) -> usize {
        self.lock().alive(self.batch_size)
    }

    fn track(self: &Arc<Self>, (key, items): (Key, usize), bytes: usize) -> ItemGuard {
        let mut state = self.lock();
        state.count((key, items), bytes);
        self.mark(&mut state);
        drop(state);
        ItemGuard {
            gauge: Arc::clone(self),
            key,
            items,
            bytes,
            absorbed: false,
        }
    }

    fn finish(self: &Arc<Self>, mut state: MutexGuard<'_, State>, bytes: usize) -> BatchGuard {
        state.finished.push(bytes);
        self.mark(&mut state);
        drop(state);
        BatchGuard {
            gauge: Arc::clone(self),
            bytes: Mutex::new(Some(bytes)),
        }
    }

    fn mark(&self, state: &mut State) {
        state.peak.batches = state.peak.batches.max(state.alive(self.batch_size));
        state.peak.bytes = state.peak.bytes.max(state.bytes());
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Key {
    /// Of the item that is fetched, or the batch that is finished, on this thread.
    fn here() -> Self {
        match burn_prefetch::context() {
            Some(at) => Self::Batch {
                epoch: at.epoch,
                batch: at.batch,
            },
            None => Self::Thread(thread::current().id()),
        }
    }
}

impl ItemGuard {
    /// Whether it stands for items of the batch that this thread works on.
    pub(crate) fn is_of_here(&self) -> bool {
        self.key == Key::here()
    }

    /// One more item of the same batch.
    pub(crate) fn grow(&mut self, bytes: usize) {
        let mut state = self.gauge.lock();
        state.count((self.key, 1), bytes);
        self.gauge.mark(&mut state);
        self.items += 1;
        self.bytes += bytes;
    }

    /// A finished batch that consists of these very bytes.
    pub(crate) fn into_batch(mut self) -> BatchGuard {
        let bytes = mem::take(&mut self.bytes);
        let mut state = self.gauge.lock();
        self.absorbed = true;
        state.forget_items((self.key, self.items));
        state.item_bytes -= bytes;
        self.gauge.finish(state, bytes)
    }
}

impl State {
    fn count(&mut self, (key, more): (Key, usize), bytes: usize) {
        match self.making.iter_mut().find(|(known, _)| *known == key) {
            Some((_, items)) => *items += more,
            None => self.making.push((key, more)),
        }
        self.item_bytes += bytes;
    }

    fn alive(&self, batch_size: usize) -> usize {
        let items: usize = self.making.iter().map(|(_, items)| items).sum();
        let making = self.making.len().max(items.div_ceil(batch_size));
        (making + self.finished.len()).saturating_sub(usize::from(self.asking))
    }

    /// Which batch was asked for is not known here: the smallest finished one is left out, so
    /// nothing is counted low.
    fn bytes(&self) -> usize {
        let asked = if self.asking {
            self.finished.iter().min()
        } else {
            None
        };
        self.item_bytes + self.finished.iter().sum::<usize>() - asked.copied().unwrap_or(0)
    }

    fn forget_items(&mut self, (key, items): (Key, usize)) {
        if let Some(at) = self.making.iter().position(|(known, _)| *known == key) {
            self.making[at].1 -= items;
            if self.making[at].1 == 0 {
                self.making.swap_remove(at);
            }
        }
    }

    fn forget_batch(&mut self, bytes: usize) {
        if let Some(at) = self.finished.iter().position(|&known| known == bytes) {
            self.finished.swap_remove(at);
        }
    }
}

impl Asking<'_> {
    /// `next()` has returned this batch: it is the training's now.
    pub(crate) fn got(self, batch: &BatchGuard) {
        let bytes = batch.take();
        let mut state = self.0.lock();
        if let Some(bytes) = bytes {
            state.forget_batch(bytes);
        }
        state.asking = false;
        // `self` drops here, after the lock, and finds nothing left to do.
        drop(state);
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        if mem::replace(&mut state.asking, false) {
            self.0.mark(&mut state);
        }
    }
}

impl BatchGuard {
    fn take(&self) -> Option<usize> {
        self.bytes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }
}

impl Drop for BatchGuard {
    fn drop(&mut self) {
        if let Some(bytes) = self.take() {
            self.gauge.lock().forget_batch(bytes);
        }
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
        state.item_bytes -= self.bytes;
        if !self.absorbed {
            state.forget_items((self.key, self.items));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Key = Key::Batch { epoch: 0, batch: 0 };
    const B: Key = Key::Batch { epoch: 0, batch: 1 };

    fn finish(gauge: &Arc<Gauge>, mut items: Vec<ItemGuard>, bytes: usize) -> BatchGuard {
        gauge.start_batch(items.iter_mut(), bytes)
    }

    #[test]
    fn a_batch_is_alive_from_its_first_item_until_it_was_handed_over() {
        let gauge = Gauge::new(2);
        let items = vec![gauge.track((A, 1), 10), gauge.track((A, 1), 10)];
        assert_eq!(gauge.alive(), 1);
        let batch = finish(&gauge, items, 100);
        assert_eq!(gauge.alive(), 1);
        gauge.ask().got(&batch);
        assert_eq!(gauge.alive(), 0);
        drop(batch);
        assert_eq!(gauge.alive(), 0);
        assert_eq!(
            gauge.peak(),
            Peak {
                batches: 1,
                bytes: 120
            }
        );
    }

    #[test]
    fn two_half_fetched_batches_are_two() {
        let gauge = Gauge::new(8);
        let items = [gauge.track((A, 1), 1), gauge.track((B, 1), 1)];
        assert_eq!(gauge.alive(), 2);
        drop(items);
        assert_eq!(gauge.alive(), 0);
    }

    #[test]
    fn more_items_than_a_batch_holds_are_more_batches_whatever_they_say() {
        let gauge = Gauge::new(2);
        let items: Vec<_> = (0..5).map(|_| gauge.track((A, 1), 1)).collect();
        assert_eq!(gauge.alive(), 3);
        drop(items);
    }

    #[test]
    fn the_batch_that_was_asked_for_is_not_ahead_even_while_its_successor_starts() {
        let gauge = Gauge::new(1);
        let first = finish(&gauge, vec![gauge.track((A, 1), 1)], 100);
        let asking = gauge.ask();
        // The loader has freed the first batch's place; a worker starts the second before `next()`
        // is back.
        let second = finish(&gauge, vec![gauge.track((B, 1), 1)], 100);
        asking.got(&first);
        assert_eq!(gauge.alive(), 1);
        assert_eq!(
            gauge.peak(),
            Peak {
                batches: 1,
                bytes: 101
            }
        );
        drop(second);
        assert_eq!(gauge.alive(), 0);
    }

    #[test]
    fn a_next_that_returns_no_batch_takes_none_off_the_count() {
        let gauge = Gauge::new(1);
        let asking = gauge.ask();
        let batch = finish(&gauge, vec![gauge.track((A, 1), 1)], 100);
        assert_eq!(gauge.peak().batches, 0);
        drop(asking);
        assert_eq!(gauge.peak().batches, 1);
        drop(batch);
    }

    #[test]
    fn a_copied_item_counts_and_leaves_nothing_behind() {
        let gauge = Gauge::new(4);
        let item = gauge.track((A, 1), 3);
        let copies = vec![item.clone(), item.clone()];
        assert_eq!(gauge.peak().bytes, 9);
        drop((item, copies));
        assert_eq!((gauge.alive(), gauge.lock().item_bytes), (0, 0));
    }
}
