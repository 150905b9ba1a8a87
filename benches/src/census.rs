//! Counts the batches that a loader has started, from inside its data set.

use std::collections::HashSet;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use burn::data::dataset::{Dataset, DatasetError};

/// Which batches have been started: one is from the first `get` of one of its items.
#[derive(Debug, Default)]
pub struct Census {
    started: Mutex<HashSet<usize>>,
    changed: Condvar,
}

impl Census {
    /// How many batches have been started once nothing has been fetched for `quiet`.
    ///
    /// # Panics
    ///
    /// Never: a poisoned lock is used as it is.
    #[must_use]
    pub fn started_when_quiet(&self, quiet: Duration) -> usize {
        let mut started = self.started.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let before = started.len();
            let (guard, waited) = self
                .changed
                .wait_timeout(started, quiet)
                .unwrap_or_else(PoisonError::into_inner);
            started = guard;
            if waited.timed_out() && started.len() == before {
                return before;
            }
        }
    }

    fn start(&self, batch: usize) {
        let mut started = self.started.lock().unwrap_or_else(PoisonError::into_inner);
        if started.insert(batch) {
            self.changed.notify_all();
        }
    }
}

/// The numbers from 0 up, whose fetches are counted. Read it without shuffling: an index then says which batch it is for.
#[derive(Clone, Debug)]
pub struct Counted {
    /// How many.
    pub len: usize,
    /// Items a batch, as the loader is told.
    pub batch_size: usize,
    /// Where they are counted.
    pub census: Arc<Census>,
}

impl Dataset<usize> for Counted {
    fn get(&self, index: usize) -> Result<usize, DatasetError> {
        self.census.start(index / self.batch_size);
        Ok(index)
    }

    fn len(&self) -> usize {
        self.len
    }
}
