//! What the operating system knows of this process (Linux: through `/proc`).

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::yield_now;
use std::time::Instant;

use crate::LIMIT;

/// The names of this process's threads.
///
/// A list that is read while threads end may lack others: it is read again until it has as many as the
/// system counts.
fn names() -> Vec<String> {
    loop {
        let listed = listed();
        if listed.len() == counted() {
            return listed;
        }
        yield_now();
    }
}

fn listed() -> Vec<String> {
    let tasks = fs::read_dir("/proc/self/task").expect("Linux lists the threads of a process");
    let names = tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("comm")).ok());
    names.map(|name| name.trim_end().to_owned()).collect()
}

fn counted() -> usize {
    let status = fs::read_to_string("/proc/self/status").expect("Linux tells of a process");
    let mut lines = status.lines();
    let count = lines.find_map(|line| line.strip_prefix("Threads:"));
    let count = count.and_then(|count| count.trim().parse().ok());
    count.expect("Linux counts the threads of a process")
}

/// The names of the loader's threads in this process, sorted.
///
/// # Panics
///
/// Where there is no `/proc`.
#[must_use]
pub fn loader_threads() -> Vec<String> {
    let mut names = names();
    names.retain(|name| name.starts_with("prefetch-"));
    names.sort_unstable();
    names
}

/// How many threads there are that are the loader's or may yet turn out to be: a thread that was
/// begun a moment ago still has the name of the one that began it.
///
/// # Panics
///
/// Where there is no `/proc`.
#[must_use]
pub fn threads_begun_here() -> usize {
    let own = fs::read_to_string("/proc/thread-self/comm").expect("Linux names its threads");
    let ours = |name: &&String| name.starts_with("prefetch-") || **name == own.trim_end();
    names().iter().filter(ours).count()
}

/// Waits until exactly `count` of the loader's threads are there: a thread has its name a moment
/// after it began, and is listed for a moment after it was joined.
///
/// # Panics
///
/// When that does not come, or there is no `/proc`.
pub fn expect_loader_threads(count: usize) {
    eventually(&format!("{count} threads of the loader"), || {
        loader_threads().len() == count
    });
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

/// Asks again until `true_now`, for what nobody tells and comes in a moment, as what the operating
/// system lists.
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
