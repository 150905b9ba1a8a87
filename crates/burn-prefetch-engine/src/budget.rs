//! A number of bytes that the batches of any number of readers share.

use std::fmt;
use std::sync::Arc;

use crate::ledger::{Ledger, Turn};
use crate::stats::BudgetStats;
use crate::sync::Mutex;
use crate::sync::quiet::{AtomicU64, Ordering::Relaxed};

/// Somebody who is told that there may be room.
pub(crate) trait Bell: Send + Sync {
    fn ring(&self);
}

/// A bound on the bytes of batches alive, for one loader or shared by several.
///
/// A reader's oldest batch is always allowed, so that nobody waits for ever; every further one only
/// while the sum stays within the budget. So the bound is the budget, and one batch for each reader
/// beyond the first. It is exact where sizes are declared; where they are learned from the last 64
/// batches, one that turns out larger is counted at once, nothing is begun until that is paid
/// back, and the overshoot is [reported](Self::stats).
///
/// From the `next()` that returns it a batch is the user's and not counted.
#[derive(Clone)]
pub struct MemoryBudget(Arc<Inner>);

struct Inner {
    /// A leaf: nothing else is locked under it.
    book: Mutex<Book>,
}

struct Book {
    ledger: Ledger,
    /// Who was refused since something was last released; each reader once.
    refused: Vec<(usize, Arc<dyn Bell>)>,
    next_reader: usize,
    warned: bool,
}

impl fmt::Debug for MemoryBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MemoryBudget").field(&self.stats()).finish()
    }
}

impl MemoryBudget {
    /// So many bytes. With 0, which loaders refuse, every reader has one batch alive at a time.
    #[must_use]
    pub fn new(bytes: u64) -> Self {
        let book = Book {
            ledger: Ledger::new(bytes),
            refused: Vec::new(),
            next_reader: 0,
            warned: false,
        };
        Self(Arc::new(Inner {
            book: Mutex::new(book),
        }))
    }

    /// How many bytes.
    #[must_use]
    pub fn limit(&self) -> u64 {
        self.0.book.lock().ledger.limit()
    }

    /// Changes it while it is in use. What is alive stays so.
    pub fn set_limit(&self, bytes: u64) {
        let mut book = self.0.book.lock();
        book.ledger.set_limit(bytes);
        book.warned = false;
        let refused = std::mem::take(&mut book.refused);
        drop(book);
        tell(&refused);
    }

    /// How it is used.
    #[must_use]
    pub fn stats(&self) -> BudgetStats {
        self.0.book.lock().ledger.stats()
    }

    /// One more reader, to be told through its `bell` when there may be room again.
    pub(crate) fn join(&self, bell: Arc<dyn Bell>) -> Member {
        let mut book = self.0.book.lock();
        book.ledger.join();
        let reader = book.next_reader;
        book.next_reader += 1;
        drop(book);
        Member {
            budget: self.clone(),
            reader,
            bell,
            bytes: AtomicU64::new(0),
        }
    }
}

/// A reader that takes part in a budget, as long as it or a batch of it lives.
pub(crate) struct Member {
    budget: MemoryBudget,
    reader: usize,
    bell: Arc<dyn Bell>,
    /// What its batches have together; changed under the lock of the book.
    bytes: AtomicU64,
}

impl Member {
    /// Whether a batch of so many bytes may be begun; `None`: nobody knows how many. Who is refused
    /// is told of the next bytes that are released.
    pub(crate) fn admits(&self, bytes: Option<u64>, turn: Turn) -> bool {
        let mut book = self.budget.0.book.lock();
        self.admitted(&mut book, bytes, turn)
    }

    /// Reserves bytes for a batch, if it [may](Self::admits) be begun; gives how many.
    pub(crate) fn reserve(&self, bytes: Option<u64>, turn: Turn) -> Option<u64> {
        let mut book = self.budget.0.book.lock();
        if !self.admitted(&mut book, bytes, turn) {
            return None;
        }
        let bytes = bytes.unwrap_or(0);
        book.ledger.reserve(bytes);
        self.bytes.fetch_add(bytes, Relaxed);
        book.warn_of(bytes);
        Some(bytes)
    }

    /// A batch for which `before` bytes were reserved has `now`.
    pub(crate) fn resize(&self, before: u64, now: u64, turn: Turn) {
        if now < before {
            self.release(before - now);
        } else if now > before {
            let mut book = self.budget.0.book.lock();
            let all = self.bytes.fetch_add(now - before, Relaxed);
            book.ledger.grow(now - before, (turn, all - before));
            book.warn_of(now);
        }
    }

    /// Gives bytes back, and tells everybody who was refused some.
    pub(crate) fn release(&self, bytes: u64) {
        if bytes == 0 {
            return;
        }
        let mut book = self.budget.0.book.lock();
        book.ledger.release(bytes);
        self.bytes.fetch_sub(bytes, Relaxed);
        let refused = std::mem::take(&mut book.refused);
        drop(book);
        tell(&refused);
    }

    fn admitted(&self, book: &mut Book, bytes: Option<u64>, turn: Turn) -> bool {
        if book.ledger.admits(bytes, turn) {
            return true;
        }
        let mut refused = book.refused.iter();
        if !refused.any(|(reader, _)| *reader == self.reader) {
            book.ledger.refuse();
            book.refused.push((self.reader, Arc::clone(&self.bell)));
        }
        false
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let mut book = self.budget.0.book.lock();
        book.ledger.leave();
        book.refused.retain(|(reader, _)| *reader != self.reader);
    }
}

impl Book {
    /// A batch that is larger than the whole budget is worth a line in the log, once.
    fn warn_of(&mut self, bytes: u64) {
        let limit = self.ledger.limit();
        if bytes > limit && !self.warned {
            self.warned = true;
            log::warn!(
                "memory_budget is {limit} bytes, but one batch takes {bytes}: one batch is alive at \
                 a time; use a budget of two batches or more, or a smaller batch_size"
            );
        }
    }
}

/// Outside the lock: who is told may look at once.
fn tell(refused: &[(usize, Arc<dyn Bell>)]) {
    for (_, bell) in refused {
        bell.ring();
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Bell for Count {
        fn ring(&self) {
            self.0.fetch_add(1, SeqCst);
        }
    }

    #[test]
    fn whoever_was_refused_is_told_once_of_the_next_release() {
        let budget = MemoryBudget::new(10);
        let bells: [Arc<Count>; 2] = Default::default();
        let join = |at: usize| budget.join(Arc::<Count>::clone(&bells[at]));
        let (one, other) = (join(0), join(1));
        let rung = || bells.each_ref().map(|bell| bell.0.load(SeqCst));
        assert_eq!(one.reserve(Some(10), Turn::Further), Some(10));
        for _ in 0..3 {
            assert_eq!(other.reserve(Some(1), Turn::Further), None);
            assert!(!other.admits(Some(1), Turn::Further));
        }
        assert_eq!(rung(), [0, 0]);
        one.resize(10, 8, Turn::Further);
        one.release(8);
        assert_eq!(rung(), [0, 1]);
        assert_eq!(budget.stats().refused, 1);
    }

    #[test]
    fn a_larger_limit_is_told_and_who_has_left_is_not() {
        let budget = MemoryBudget::new(0);
        let bells: [Arc<Count>; 2] = Default::default();
        let join = |at: usize| budget.join(Arc::<Count>::clone(&bells[at]));
        let (one, other) = (join(0), join(1));
        assert!(!one.admits(Some(1), Turn::Further));
        assert!(!other.admits(None, Turn::Further));
        drop(other);
        budget.set_limit(5);
        assert_eq!(bells.each_ref().map(|bell| bell.0.load(SeqCst)), [1, 0]);
        assert_eq!((budget.limit(), budget.stats().readers), (5, 1));
    }
}
