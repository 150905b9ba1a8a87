//! What the operating system knows of this process (Linux: through `/proc`).

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::yield_now;
use std::time::Instant;

use crate::LIMIT;

/// The names of the loader's threads in this process, sorted.
///
/// # Panics
///
/// Where there is no `/proc`.
#[must_use]
pub fn loader_threads() -> Vec<String> {
    let tasks = fs::read_dir("/proc/self/task").expect("Linux lists the threads of a process");
    let mut names: Vec<String> = tasks
        .filter_map(|task| fs::read_to_string(task.ok()?.path().join("comm")).ok())
        .map(|name| name.trim_end().to_owned())
        .filter(|name| name.starts_with("prefetch-"))
        .collect();
    names.sort_unstable();
    names
}

/// How many files this process holds open.
///
/// # Panics
///
/// Where there is no `/proc`.
#[must_use]
pub fn open_files() -> usize {
    fs::read_dir("/proc/self/fd")
        .expect("Linux lists the open files of a process")
        .count()
}

/// Keeps the other tests of this process out: for those that count threads or files.
pub fn alone() -> MutexGuard<'static, ()> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Asks the operating system again until it sees `true_now`, for what it only knows a moment later:
/// a thread that was joined is listed for some microseconds more.
///
/// # Panics
///
/// With `what` when that does not come.
pub fn eventually(what: &str, mut true_now: impl FnMut() -> bool) {
    let asked = Instant::now();
    while !true_now() {
        assert!(asked.elapsed() < LIMIT / 2, "{what}");
        yield_now();
    }
}

/// How many threads that [entered](Self::enter) have not ended yet; a joined thread has.
#[derive(Clone, Debug, Default)]
pub struct LiveThreads(Arc<AtomicUsize>);

struct Present(Arc<AtomicUsize>);

impl Drop for Present {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl LiveThreads {
    /// Counts the calling thread until it ends; once, however often it is called.
    pub fn enter(&self) {
        thread_local!(static PRESENT: Mutex<Vec<Present>> = const { Mutex::new(Vec::new()) });
        PRESENT.with(|present| {
            let mut present = present.lock().unwrap_or_else(PoisonError::into_inner);
            if !present.iter().any(|one| Arc::ptr_eq(&one.0, &self.0)) {
                self.0.fetch_add(1, Ordering::SeqCst);
                present.push(Present(Arc::clone(&self.0)));
            }
        });
    }

    /// How many there are.
    #[must_use]
    pub fn now(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}
