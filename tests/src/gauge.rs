//! How much is alive: guards in items and batches, and batches begun but not asked for.

use std::collections::BTreeSet;
use std::sync::Arc;

use burn::data::dataset::{Dataset, DatasetError};

use crate::Tally;

/// How many guards are alive, and the most there ever were.
#[derive(Debug)]
pub struct Alive(Arc<Tally<Count>>);

#[derive(Clone, Copy, Debug, Default)]
struct Count {
    now: usize,
    peak: usize,
}

impl Alive {
    /// Nothing is alive.
    #[must_use]
    pub fn none() -> Arc<Self> {
        Arc::new(Self(Tally::new(Count::default())))
    }

    /// One more, until the token is dropped.
    #[must_use]
    pub fn token(&self) -> Token {
        self.0.update(|count| {
            count.now += 1;
            count.peak = count.peak.max(count.now);
        });
        Token(Arc::clone(&self.0))
    }

    /// How many there are.
    #[must_use]
    pub fn now(&self) -> usize {
        self.0.now().now
    }

    /// The most there ever were.
    #[must_use]
    pub fn peak(&self) -> usize {
        self.0.now().peak
    }

    /// Waits until none is left.
    pub fn wait_for_none(&self) {
        self.0.wait_until(|count| count.now == 0);
    }
}

/// Something that counts as alive until it is dropped.
#[derive(Debug)]
pub struct Token(Arc<Tally<Count>>);

impl Drop for Token {
    fn drop(&mut self) {
        self.0.update(|count| count.now -= 1);
    }
}

/// An item that counts as alive; it is neither `Clone` nor `Copy`.
#[derive(Debug)]
pub struct Guarded {
    /// The index it was fetched for.
    pub index: usize,
    _token: Token,
}

/// The items `0..len`, each counted while it lives.
#[derive(Clone, Debug)]
pub struct GuardedNumbers {
    /// How many items there are.
    pub len: usize,
    /// Where they are counted.
    pub alive: Arc<Alive>,
}

impl Dataset<Guarded> for GuardedNumbers {
    fn get(&self, index: usize) -> Result<Guarded, DatasetError> {
        assert!(index < self.len, "index {index} of {}", self.len);
        Ok(Guarded {
            index,
            _token: self.alive.token(),
        })
    }

    fn len(&self) -> usize {
        self.len
    }
}

/// How many batches were begun beyond those that the reader asked for.
///
/// A batch is begun by its first `get`. It is asked for when the reader calls `next()`, which is
/// noted *before* the call, so that the difference is never above a bound that holds.
#[derive(Debug)]
pub struct Lead {
    batch_size: usize,
    count: Arc<Tally<Ahead>>,
}

#[derive(Clone, Debug, Default)]
struct Ahead {
    begun: BTreeSet<usize>,
    asked: usize,
    most: usize,
}

impl Ahead {
    fn lead(&self) -> usize {
        self.begun.len().saturating_sub(self.asked)
    }
}

impl Lead {
    /// Of one unshuffled pass in batches of `batch_size`.
    #[must_use]
    pub fn new(batch_size: usize) -> Arc<Self> {
        Arc::new(Self {
            batch_size,
            count: Tally::new(Ahead::default()),
        })
    }

    /// A `get` of this index began.
    pub fn fetch(&self, index: usize) {
        self.count.update(|ahead| {
            ahead.begun.insert(index / self.batch_size);
            ahead.most = ahead.most.max(ahead.lead());
        });
    }

    /// The reader is about to call `next()`.
    pub fn ask(&self) {
        self.count.update(|ahead| ahead.asked += 1);
    }

    /// How many batches were begun.
    #[must_use]
    pub fn begun(&self) -> usize {
        self.count.now().begun.len()
    }

    /// By how many batches the workers lead now.
    #[must_use]
    pub fn now(&self) -> usize {
        self.count.now().lead()
    }

    /// By how many batches they ever led.
    #[must_use]
    pub fn most(&self) -> usize {
        self.count.now().most
    }

    /// Waits until they lead at all.
    pub fn wait_for_any(&self) {
        self.count.wait_until(|ahead| ahead.lead() > 0);
    }

    /// Waits until they lead by `batches`.
    pub fn wait_for(&self, batches: usize) {
        self.count.wait_until(|ahead| ahead.lead() == batches);
    }
}
