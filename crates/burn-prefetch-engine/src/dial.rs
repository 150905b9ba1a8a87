//! What can be changed about a loader's passes while they run.

use std::fmt;
use std::sync::Arc;

use crate::budget::Bell;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicUsize, Ordering::SeqCst};

/// Nothing was dialled: each pass has what it was made with.
const UNSET: usize = usize::MAX;

/// The window of all passes of one loader, once somebody has changed it.
pub struct Dial {
    ahead: AtomicUsize,
    /// How many workers there are, as far as whoever changes that has said.
    workers: AtomicUsize,
    /// How many batches for each worker, and in all, until the window is set by itself.
    by_workers: Mutex<Option<(usize, usize)>>,
    seats: Mutex<Seats>,
}

#[derive(Default)]
struct Seats {
    readers: Vec<(usize, Arc<dyn Bell>)>,
    next: usize,
}

impl Default for Dial {
    fn default() -> Self {
        Self {
            ahead: AtomicUsize::new(UNSET),
            workers: AtomicUsize::new(0),
            by_workers: Mutex::default(),
            seats: Mutex::default(),
        }
    }
}

impl fmt::Debug for Dial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dial")
            .field("ahead", &self.ahead())
            .finish()
    }
}

impl Dial {
    /// How many batches may be alive, if that was changed.
    #[must_use]
    pub fn ahead(&self) -> Option<usize> {
        Some(self.ahead.load(SeqCst)).filter(|ahead| *ahead != UNSET)
    }

    /// Changes how many batches may be alive in each pass, running ones included: those that are
    /// alive stay so. Passes without workers have one, whatever is said here.
    pub fn set_ahead(&self, batches: usize) {
        *self.by_workers.lock() = None;
        self.set(batches);
    }

    /// The window is `factor` batches for each worker, `most` in all, however many workers there
    /// [come to be](Self::workers_are), until it is [set](Self::set_ahead).
    pub fn follow_workers(&self, (factor, most): (usize, usize)) {
        *self.by_workers.lock() = Some((factor, most));
    }

    /// So many workers there are from now on.
    pub fn workers_are(&self, workers: usize) {
        self.workers.store(workers, SeqCst);
        let by_workers = *self.by_workers.lock();
        if let Some((factor, most)) = by_workers {
            self.set(factor.saturating_mul(workers).min(most));
        }
    }

    /// So many workers there are at first: the window is the one that passes are made with.
    pub fn begins_with(&self, workers: usize) {
        self.workers.store(workers, SeqCst);
    }

    /// How many workers there were when that was last said.
    #[must_use]
    pub fn workers(&self) -> usize {
        self.workers.load(SeqCst)
    }

    fn set(&self, batches: usize) {
        self.ahead.store(batches.min(UNSET - 1), SeqCst);
        let seats = self.seats.lock();
        let readers = seats.readers.iter().map(|(_, bell)| Arc::clone(bell));
        let readers: Vec<_> = readers.collect();
        drop(seats);
        for bell in readers {
            bell.ring();
        }
    }

    /// One more reader, told through its `bell` when there may be more room; until it leaves.
    pub(crate) fn join(&self, bell: Arc<dyn Bell>) -> usize {
        let mut seats = self.seats.lock();
        let seat = seats.next;
        seats.next += 1;
        seats.readers.push((seat, bell));
        seat
    }

    pub(crate) fn leave(&self, seat: usize) {
        let mut seats = self.seats.lock();
        seats.readers.retain(|(own, _)| *own != seat);
    }
}
