//! What a thread does once before its first work for a loader.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use crate::error::{BoxError, SharedError};
use crate::sync::{Mutex, ThreadId, this_thread};
use crate::unwind::guard;

/// The user's code: the worker's number, or `None` on a thread that is no worker of the pool.
type User = dyn Fn(Option<usize>) -> Result<(), BoxError> + Send + Sync;

/// A preparation that each thread makes once.
#[derive(Clone)]
pub struct WorkerInit(Arc<User>);

impl WorkerInit {
    /// Prepares a thread; the argument is the worker's number, or `None` on a calling thread.
    pub fn new(
        user: impl Fn(Option<usize>) -> Result<(), BoxError> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(user))
    }

    pub(crate) fn run(&self, worker: Option<usize>) -> Result<(), SharedError> {
        match guard(|| (self.0)(worker)) {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(SharedError::from(error)),
            Err(message) => Err(SharedError::from(BoxError::from(format!(
                "panicked: {message}"
            )))),
        }
    }
}

impl fmt::Debug for WorkerInit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WorkerInit")
    }
}

/// Which threads besides the workers have been prepared.
#[derive(Debug, Default)]
pub(crate) struct Guests(Mutex<HashSet<ThreadId>>);

impl Guests {
    /// Prepares the calling thread unless that was done; an attempt that failed was none.
    pub(crate) fn prepare(&self, init: &WorkerInit) -> Result<(), SharedError> {
        let thread = this_thread();
        if self.0.lock().contains(&thread) {
            return Ok(());
        }
        init.run(None)?;
        self.0.lock().insert(thread);
        Ok(())
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    #[test]
    fn a_thread_is_prepared_once_and_again_after_a_failure() {
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&calls);
        let init = WorkerInit::new(move |worker| {
            assert_eq!(worker, None);
            match counted.fetch_add(1, SeqCst) {
                0 => Err("not yet".into()),
                1 => panic!("not now"),
                _ => Ok(()),
            }
        });
        let guests = Guests::default();
        let error = guests.prepare(&init).unwrap_err();
        assert_eq!(error.to_string(), "not yet");
        let error = guests.prepare(&init).unwrap_err();
        assert_eq!(error.to_string(), "panicked: not now");
        for _ in 0..2 {
            assert!(guests.prepare(&init).is_ok());
        }
        assert_eq!(calls.load(SeqCst), 3);
    }
}
