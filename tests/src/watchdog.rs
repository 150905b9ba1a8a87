//! A test that hangs fails with its name instead of stopping the suite.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread::{Builder, current};
use std::time::Duration;

/// The numbers of workers that every promise is held for.
pub const WORKERS: [usize; 5] = [0, 1, 2, 4, 8];

/// How long one body may take: far above what any needs, also on a busy machine.
pub const LIMIT: Duration = Duration::from_mins(1);

/// Runs `body` on a thread of its own.
///
/// # Panics
///
/// With what `body` panicked with, or with the test's name when `body` does not end within `limit`.
pub fn within(limit: Duration, body: impl FnOnce() + Send + 'static) {
    run(current().name().unwrap_or("a test"), limit, body);
}

/// Runs `body` under the usual [`LIMIT`].
///
/// # Panics
///
/// As [`within`] does.
pub fn guarded(body: impl FnOnce() + Send + 'static) {
    within(LIMIT, body);
}

/// Runs `body` for every case and every number of workers in [`WORKERS`], each number under the usual
/// [`LIMIT`].
///
/// # Panics
///
/// As [`within`] does; the name then says for how many workers.
pub fn for_each_case<C: Clone + Send + Sync + 'static>(
    cases: impl IntoIterator<Item = C>,
    body: impl Fn(usize, C) + Send + Sync + 'static,
) {
    let cases: Vec<_> = cases.into_iter().collect();
    for_each_worker_count(move |workers| {
        for case in &cases {
            body(workers, case.clone());
        }
    });
}

/// Runs `body` once for every number of workers in [`WORKERS`], each under the usual [`LIMIT`].
///
/// # Panics
///
/// As [`within`] does; the name then says for how many workers.
pub fn for_each_worker_count(body: impl Fn(usize) + Send + Sync + 'static) {
    let body = Arc::new(body);
    let test = current().name().unwrap_or("a test").to_owned();
    for workers in WORKERS {
        let body = Arc::clone(&body);
        run(&format!("{test} ({workers} workers)"), LIMIT, move || {
            body(workers);
        });
    }
}

fn run(name: &str, limit: Duration, body: impl FnOnce() + Send + 'static) {
    let (alive, ended) = channel::<()>();
    let thread = Builder::new()
        .name(name.to_owned())
        .spawn(move || {
            let _dropped_at_the_end_also_of_a_panic = alive;
            body();
        })
        .expect("the system has room for a thread");
    let outcome = ended.recv_timeout(limit);
    assert_ne!(
        outcome,
        Err(RecvTimeoutError::Timeout),
        "{name}: did not end within {limit:?}"
    );
    if let Err(panic) = thread.join() {
        resume_unwind(panic);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Gate;

    #[test]
    #[should_panic(expected = "a_hang_fails_with_the_name_of_its_test: did not end within")]
    fn a_hang_fails_with_the_name_of_its_test() {
        within(Duration::from_millis(20), || Gate::closed().wait());
    }

    #[test]
    #[should_panic(expected = "the body's own words")]
    fn a_panic_passes_through() {
        guarded(|| panic!("the body's own words"));
    }
}
