//! Workers as a test needs them: some and not none, counted, and waited for.

use std::fs;
use std::sync::Arc;
use std::thread::{Scope, ScopedJoinHandle, yield_now};

use burn_prefetch::Workers;

use crate::{Tally, eventually, for_each_worker_count};

/// Runs `body` for every number of workers but 0, as
/// [`for_each_worker_count`](crate::for_each_worker_count) does: for what a loader without workers
/// does not have.
///
/// # Panics
///
/// As [`within`](crate::within) does.
pub fn for_each_crew(body: impl Fn(usize) + Send + Sync + 'static) {
    for_each_worker_count(move |workers| {
        if workers > 0 {
            body(workers);
        }
    });
}

/// Waits until so many workers are alive, and so many that were given up have not come back.
///
/// # Panics
///
/// When that does not come.
pub fn expect_crew(workers: &Workers, alive: usize, disowned: usize) {
    let words = format!("{alive} workers alive and {disowned} given up");
    eventually(&words, || {
        (workers.alive(), workers.disowned()) == (alive, disowned)
    });
}

/// Starts `body` on a thread and comes back when that sleeps in the kernel, as it does while it
/// waits in `next()`, or has ended.
///
/// # Panics
///
/// When neither comes.
pub fn once_it_waits<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    body: impl FnOnce() -> T + Send + 'scope,
) -> ScopedJoinHandle<'scope, T> {
    /// So many times in a row it must be seen asleep: a lock on its way is not what it waits for.
    const LOOKS: usize = 20;

    let begun = Tally::new(None);
    let told = Arc::clone(&begun);
    let thread = scope.spawn(move || {
        told.update(|id| *id = Some(own_id()));
        body()
    });
    let id = begun.wait_until(Option::is_some).unwrap_or_default();
    eventually("the thread waits, or has ended", || {
        let asleep = || {
            yield_now();
            sleeps(&id)
        };
        thread.is_finished() || (0..LOOKS).all(|_| asleep())
    });
    thread
}

/// The kernel's number of the calling thread.
fn own_id() -> String {
    let link = fs::read_link("/proc/thread-self").expect("Linux numbers its threads");
    let id = link.file_name().expect("the link ends in the number");
    id.to_string_lossy().into_owned()
}

fn sleeps(id: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/self/task/{id}/stat")).unwrap_or_default();
    stat.rsplit_once(") ")
        .is_some_and(|(_, state)| state.starts_with('S'))
}
