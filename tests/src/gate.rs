//! Places where a test makes other threads wait, and counters that it can wait for.

use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long a thread waits here: less than the watchdog, so that a failed test can still unwind.
const PATIENCE: Duration = Duration::from_secs(30);

/// Where threads wait until the test lets them through.
#[derive(Debug, Default)]
pub struct Gate {
    state: Mutex<GateState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct GateState {
    open: bool,
    waiting: usize,
}

impl Gate {
    /// A gate that lets nobody through yet.
    #[must_use]
    pub fn closed() -> Arc<Self> {
        Arc::default()
    }

    /// Lets everybody through, from now on.
    pub fn open(&self) {
        self.lock().open = true;
        self.changed.notify_all();
    }

    /// Waits until the gate is open.
    ///
    /// # Panics
    ///
    /// When nobody opens it for half a minute.
    pub fn wait(&self) {
        let mut state = self.lock();
        state.waiting += 1;
        self.changed.notify_all();
        let (mut state, waited) = self
            .changed
            .wait_timeout_while(state, PATIENCE, |state| !state.open)
            .unwrap_or_else(PoisonError::into_inner);
        state.waiting -= 1;
        drop(state);
        assert!(!waited.timed_out(), "a gate was never opened");
    }

    /// Waits until at least `count` threads stand at the gate.
    ///
    /// # Panics
    ///
    /// When they do not come within half a minute.
    pub fn wait_for_waiting(&self, count: usize) {
        let (state, waited) = self
            .changed
            .wait_timeout_while(self.lock(), PATIENCE, |state| state.waiting < count)
            .unwrap_or_else(PoisonError::into_inner);
        let waiting = state.waiting;
        drop(state);
        assert!(
            !waited.timed_out(),
            "{waiting} of {count} threads came to the gate"
        );
    }

    fn lock(&self) -> MutexGuard<'_, GateState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Something that threads change and a test can wait for: a count, a set, a list.
#[derive(Debug, Default)]
pub struct Tally<T> {
    value: Mutex<T>,
    changed: Condvar,
}

impl<T> Tally<T> {
    /// Starts at `value`.
    #[must_use]
    pub fn new(value: T) -> Arc<Self> {
        Arc::new(Self {
            value: Mutex::new(value),
            changed: Condvar::new(),
        })
    }

    /// Changes the value, and says what `change` says.
    pub fn update<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        let answer = change(&mut self.value.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_all();
        answer
    }
}

impl<T: Clone + fmt::Debug> Tally<T> {
    /// Waits until `true_of` holds for the value, and changes it in the same moment.
    ///
    /// # Panics
    ///
    /// As [`wait_until`](Self::wait_until) does.
    pub fn update_when(&self, mut true_of: impl FnMut(&T) -> bool, change: impl FnOnce(&mut T)) {
        let value = self.value.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut value, waited) = self
            .changed
            .wait_timeout_while(value, PATIENCE, |value| !true_of(value))
            .unwrap_or_else(PoisonError::into_inner);
        if !waited.timed_out() {
            change(&mut value);
        }
        let seen = value.clone();
        drop(value);
        self.changed.notify_all();
        assert!(
            !waited.timed_out(),
            "what was waited for did not come; the value is {seen:?}"
        );
    }

    /// The value now.
    pub fn now(&self) -> T {
        self.value
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Waits until `true_of` holds for the value, and returns it.
    ///
    /// # Panics
    ///
    /// When that does not happen within half a minute; the message has the value.
    pub fn wait_until(&self, mut true_of: impl FnMut(&T) -> bool) -> T {
        let value = self.value.lock().unwrap_or_else(PoisonError::into_inner);
        let (value, waited) = self
            .changed
            .wait_timeout_while(value, PATIENCE, |value| !true_of(value))
            .unwrap_or_else(PoisonError::into_inner);
        let seen = value.clone();
        drop(value);
        assert!(
            !waited.timed_out(),
            "what was waited for did not come; the value is {seen:?}"
        );
        seen
    }
}
