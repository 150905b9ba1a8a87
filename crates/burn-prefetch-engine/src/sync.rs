//! The one door to threads, locks and clocks, which the model checker swaps.
//!
//! Everything in the engine that can block, wake or tell the time comes from here. Under
//! `--cfg shuttle` the same names are [shuttle](https://docs.rs/shuttle)'s, and a timed wait may
//! fire at any moment, so that a schedule in which a timeout wins is explored as any other.

use std::time::Duration;

#[cfg(not(shuttle))]
mod imp {
    pub(crate) use std::sync::{Condvar, Mutex, MutexGuard, atomic};
    pub(crate) use std::thread::{Builder, JoinHandle, ThreadId, current};
    pub(crate) use std::thread_local;
}

#[cfg(shuttle)]
mod imp {
    pub(crate) use shuttle::sync::{Condvar, Mutex, MutexGuard, atomic};
    pub(crate) use shuttle::thread::{Builder, JoinHandle, ThreadId, current};
    pub(crate) use shuttle::thread_local;
}

pub(crate) use imp::{JoinHandle, MutexGuard, ThreadId, atomic, thread_local};

/// Atomics for what is only looked at: the model checker need not know of them.
pub(crate) use std::sync::atomic as quiet;

/// A value that the first to need it makes, while others who need it wait. What makes it runs no
/// user's code and uses nothing else of this door, so the model checker need not know of it.
pub(crate) use std::sync::OnceLock;

/// A lock that is never poisoned: no user code runs under it, so a panic cannot leave it half done.
#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(imp::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(imp::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// A lock for what is only counted: held for a few instructions and never over another one, so that
/// the model checker need not know of it.
#[derive(Debug, Default)]
pub(crate) struct QuietMutex<T>(std::sync::Mutex<T>);

impl<T> QuietMutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(std::sync::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> impl std::ops::DerefMut<Target = T> {
        self.0
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// A condition that threads wait for under a [`Mutex`].
#[derive(Debug, Default)]
pub(crate) struct Condvar(imp::Condvar);

impl Condvar {
    pub(crate) fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        self.0
            .wait(guard)
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    pub(crate) fn notify_one(&self) {
        self.0.notify_one();
    }

    pub(crate) fn notify_all(&self) {
        self.0.notify_all();
    }

    /// Waits under `lock`'s guard for at most `limit`; the flag says whether the time ran out.
    #[cfg(not(shuttle))]
    pub(crate) fn wait_timeout<'a, T>(
        &self,
        (_lock, guard): (&'a Mutex<T>, MutexGuard<'a, T>),
        limit: Duration,
    ) -> (MutexGuard<'a, T>, bool) {
        let (guard, outcome) = self
            .0
            .wait_timeout(guard, limit)
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        (guard, outcome.timed_out())
    }

    /// Lets others run and comes back: for no reason, or because the clock has fired. A wait that
    /// ends by itself cannot be part of a deadlock.
    #[cfg(shuttle)]
    pub(crate) fn wait_timeout<'a, T>(
        &self,
        (lock, guard): (&'a Mutex<T>, MutexGuard<'a, T>),
        _limit: Duration,
    ) -> (MutexGuard<'a, T>, bool) {
        use shuttle::rand::Rng;
        let fires = shuttle::rand::thread_rng().gen_bool(0.2);
        if !fires {
            drop(guard);
            shuttle::thread::yield_now();
            return (lock.lock(), false);
        }
        (guard, true)
    }
}

/// Starts a thread under a name.
///
/// # Errors
///
/// The operating system's refusal to start one more thread.
pub(crate) fn spawn(
    name: String,
    body: impl FnOnce() + Send + 'static,
) -> std::io::Result<JoinHandle<()>> {
    imp::Builder::new().name(name).spawn(body)
}

/// Which thread is calling.
pub(crate) fn this_thread() -> ThreadId {
    imp::current().id()
}

/// Looks at `condition` for a few microseconds, giving way to other threads; whether it came true.
///
/// For waits that are likely to be shorter than a sleep and a wake-up. The length is crossbeam's:
/// about a hundred spins, then four times the rest of a time slice.
#[cfg(not(shuttle))]
pub(crate) fn came_true_soon(condition: impl Fn() -> bool) -> bool {
    let backoff = crossbeam_utils::Backoff::new();
    while !backoff.is_completed() {
        if condition() {
            return true;
        }
        backoff.snooze();
    }
    condition()
}

/// Under the model checker it comes true now or not soon.
#[cfg(shuttle)]
pub(crate) fn came_true_soon(condition: impl Fn() -> bool) -> bool {
    condition()
}

/// A moment on the one clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment(#[cfg(not(shuttle))] std::time::Instant);

impl Moment {
    #[cfg(not(shuttle))]
    pub(crate) fn now() -> Self {
        Self(std::time::Instant::now())
    }

    /// Under the model checker there is no machine to depend on.
    #[cfg(shuttle)]
    pub(crate) fn now() -> Self {
        Self()
    }

    #[cfg(not(shuttle))]
    pub(crate) fn elapsed(self) -> Duration {
        self.0.elapsed()
    }

    /// The time from an earlier moment to this one.
    #[cfg(not(shuttle))]
    pub(crate) fn since(self, earlier: Self) -> Duration {
        self.0.saturating_duration_since(earlier.0)
    }

    /// Under the model checker nothing depends on it.
    #[cfg(shuttle)]
    pub(crate) fn since(self, _earlier: Self) -> Duration {
        Duration::ZERO
    }

    /// No time or a millisecond: the model checker decides.
    #[cfg(shuttle)]
    pub(crate) fn elapsed(self) -> Duration {
        use shuttle::rand::Rng;
        let long = shuttle::rand::thread_rng().gen_bool(0.5);
        Duration::from_millis(u64::from(long))
    }
}
