//! Named threads that outlive epochs and serve readers fairly.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use crossbeam_utils::CachePadded;

use crate::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use crate::sync::{Condvar, JoinHandle, Moment, Mutex, MutexGuard, spawn, thread_local};
use crate::unwind::dispose;

/// How long dropping a pool waits for workers that are inside user code.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(5);

/// How long workers live.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lifetime {
    /// Until the pool is dropped.
    Pool,
    /// Until no reader is left; the next reader starts them anew.
    Readers,
}

/// One reader's work, as a worker sees it.
pub(crate) trait Serve: Send + Sync {
    /// Does work until there is none or `hand` is wanted elsewhere; `false` when there was none.
    fn serve(&self, hand: &Hand<'_>) -> bool;
    /// Since when the reader has been waiting in `next()`, in [`Shared::tick`]s; 0 when it is not.
    fn waiting_since(&self) -> usize;
}

/// Who does the work, and what it can tell the others.
#[derive(Debug)]
pub(crate) struct Hand<'a> {
    /// The worker's number; `None` on a thread that is none.
    pub(crate) worker: Option<usize>,
    shared: &'a Shared,
    /// The state of the registry under which this worker may stay with one reader.
    stays_while: Option<usize>,
}

impl Hand<'_> {
    /// Whether the worker may go on with the same reader without asking who else waits.
    pub(crate) fn may_stay(&self) -> bool {
        self.stays_while == Some(self.shared.version.load(SeqCst))
    }

    /// Wakes one more worker if one sleeps: there is work for it.
    pub(crate) fn wake_another(&self) {
        self.shared.wake_one();
    }
}

thread_local! {
    /// The pool (by address) and number of the worker that this thread is.
    static WORKER: Cell<Option<(usize, usize)>> = const { Cell::new(None) };
}

/// The number of the worker that the calling thread is, of whatever pool.
pub(crate) fn current_worker() -> Option<usize> {
    WORKER.with(Cell::get).map(|(_, number)| number)
}

/// What the workers and the handle share.
pub(crate) struct Shared {
    size: usize,
    lifetime: Lifetime,
    state: Mutex<State>,
    work: Condvar,
    ended: Condvar,
    /// How many workers sleep or are about to, and have no token: a copy of `state.sleepers`
    /// that can be read without the lock.
    sleepers: CachePadded<AtomicUsize>,
    /// Counts the changes of the registry.
    version: CachePadded<AtomicUsize>,
    ticks: AtomicUsize,
    live: AtomicUsize,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool")
            .field("size", &self.size)
            .field("lifetime", &self.lifetime)
            .field("live", &self.live.load(SeqCst))
            .finish_non_exhaustive()
    }
}

/// Invariants: `tokens + sleepers` is the number of workers between [`Shared::announce`] and the
/// end of their sleep; `threads[k]` is set while worker k runs or has not been joined.
struct State {
    readers: Vec<(usize, Arc<dyn Serve>)>,
    next_reader: usize,
    /// Where the round robin goes on.
    turn: usize,
    sleepers: usize,
    /// How many sleepers have been told to wake.
    tokens: usize,
    threads: Vec<Option<JoinHandle<()>>>,
    running: Vec<bool>,
    closing: bool,
}

/// A number of workers, shared by any number of readers.
///
/// The threads start with the first reader that has work. Dropping the pool lets every worker end
/// the part that it is in, for at most five seconds, and joins it; dropped on one of its own
/// workers, it lets them end by themselves.
#[derive(Debug)]
pub struct Pool {
    shared: Arc<Shared>,
}

/// A reader's place in the registry; leaving is up to the reader.
#[derive(Debug)]
pub(crate) struct Registration(usize);

impl Pool {
    /// A pool of `size` workers; with none, readers do their own work.
    #[must_use]
    pub fn new(size: usize, lifetime: Lifetime) -> Self {
        let state = State {
            readers: Vec::new(),
            next_reader: 0,
            turn: 0,
            sleepers: 0,
            tokens: 0,
            threads: (0..size).map(|_| None).collect(),
            running: vec![false; size],
            closing: false,
        };
        let shared = Shared {
            size,
            lifetime,
            state: Mutex::new(state),
            work: Condvar::default(),
            ended: Condvar::default(),
            sleepers: CachePadded::new(AtomicUsize::new(0)),
            version: CachePadded::new(AtomicUsize::new(0)),
            ticks: AtomicUsize::new(1),
            live: AtomicUsize::new(0),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// How many workers there may be.
    #[must_use]
    pub fn size(&self) -> usize {
        self.shared.size
    }

    /// How many workers there are at the moment.
    #[must_use]
    pub fn live(&self) -> usize {
        self.shared.live.load(SeqCst)
    }

    /// Takes a reader into the registry and sees to it that the workers run.
    pub(crate) fn register(&self, reader: Arc<dyn Serve>) -> Registration {
        let mut state = self.shared.state.lock();
        let id = state.next_reader;
        state.next_reader += 1;
        state.readers.push((id, reader));
        self.shared.version.fetch_add(1, SeqCst);
        start_missing(&self.shared, &mut state);
        drop(state);
        self.shared.wake_one();
        Registration(id)
    }

    /// Takes a reader out of the registry; a worker inside its part finishes it.
    pub(crate) fn unregister(&self, registration: &Registration) {
        let mut state = self.shared.state.lock();
        let at = state
            .readers
            .iter()
            .position(|(id, _)| *id == registration.0);
        let gone = at.map(|at| state.readers.remove(at));
        self.shared.version.fetch_add(1, SeqCst);
        let idle = state.readers.is_empty() && self.shared.lifetime == Lifetime::Readers;
        drop(state);
        if idle {
            self.shared.work.notify_all();
        }
        drop(gone);
    }

    /// Wakes one worker if one sleeps.
    pub(crate) fn wake_one(&self) {
        self.shared.wake_one();
    }

    /// A moment for [`Serve::waiting_since`]; later calls give larger numbers.
    pub(crate) fn tick(&self) -> usize {
        self.shared.ticks.fetch_add(1, SeqCst)
    }

    /// The calling thread as one that does one piece of work.
    pub(crate) fn hand(&self) -> Hand<'_> {
        Hand {
            worker: current_worker(),
            shared: &self.shared,
            stays_while: None,
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        state.closing = true;
        self.shared.version.fetch_add(1, SeqCst);
        self.shared.work.notify_all();
        let own = WORKER
            .with(Cell::get)
            .is_some_and(|(pool, _)| pool == self.shared.id());
        if own {
            return;
        }
        let begun = Moment::now();
        while state.running.contains(&true) {
            let left = SHUTDOWN_GRACE.saturating_sub(begun.elapsed());
            let (guard, timed_out) = self.shared.ended.wait_timeout(state, left);
            state = guard;
            if timed_out && state.running.contains(&true) {
                let busy = state.running.iter().filter(|running| **running).count();
                log::warn!(
                    "workers still inside the dataset or batcher {SHUTDOWN_GRACE:?} after the \
                     loader's end: {busy}; they end when they return from it"
                );
                return;
            }
        }
        let threads = std::mem::take(&mut state.threads);
        drop(state);
        for thread in threads.into_iter().flatten() {
            // A worker has no panic of its own: the user's are caught, so there is nothing to tell.
            let _ = thread.join();
        }
    }
}

impl Shared {
    /// Tells pools apart.
    fn id(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    fn wake_one(&self) {
        if self.sleepers.load(SeqCst) == 0 {
            return;
        }
        let mut state = self.state.lock();
        if state.sleepers > 0 {
            state.sleepers -= 1;
            state.tokens += 1;
            self.sleepers.store(state.sleepers, SeqCst);
            drop(state);
            self.work.notify_one();
        }
    }

    /// Says that the calling worker will sleep if it finds no work in one more look. Whoever makes
    /// work after this sees the sleeper; what was made before is found by that look.
    fn announce(&self) {
        let mut state = self.state.lock();
        state.sleepers += 1;
        self.sleepers.store(state.sleepers, SeqCst);
    }

    /// Takes the announcement back: there was work.
    fn recant(&self) {
        let mut state = self.state.lock();
        if state.sleepers > 0 {
            state.sleepers -= 1;
            self.sleepers.store(state.sleepers, SeqCst);
        } else {
            state.tokens -= 1;
        }
    }

    /// Sleeps until there may be work.
    fn sleep(&self) {
        let mut state = self.state.lock();
        while state.tokens == 0 && !self.is_over(&state) {
            state = self.work.wait(state);
        }
        if state.tokens > 0 {
            state.tokens -= 1;
        } else {
            state.sleepers -= 1;
            self.sleepers.store(state.sleepers, SeqCst);
        }
    }

    fn is_over(&self, state: &State) -> bool {
        state.closing || (self.lifetime == Lifetime::Readers && state.readers.is_empty())
    }

    /// The readers in the order in which they are to be served: who waits longest first, the others
    /// in turn. Also whether there is just one, and under which version of the registry.
    fn line_up(&self, line: &mut Vec<Arc<dyn Serve>>) -> Option<usize> {
        let mut state = self.state.lock();
        let readers = state.readers.len();
        let turn = state.turn;
        line.extend((0..readers).map(|k| Arc::clone(&state.readers[(turn + k) % readers].1)));
        state.turn = if readers == 0 {
            0
        } else {
            (turn + 1) % readers
        };
        let version = (readers == 1 && !state.closing).then(|| self.version.load(SeqCst));
        drop(state);
        line.sort_by_key(|reader| match reader.waiting_since() {
            0 => usize::MAX,
            since => since,
        });
        version
    }

    /// Serves the first reader in line that has work; `false` when none has.
    fn serve_one(&self, worker: usize, line: &mut Vec<Arc<dyn Serve>>) -> bool {
        let stays_while = self.line_up(line);
        let hand = Hand {
            worker: Some(worker),
            shared: self,
            stays_while,
        };
        let served = line.iter().any(|reader| reader.serve(&hand));
        // A worker holds no reader while it sleeps; what it held last is the user's to drop.
        line.drain(..).for_each(dispose);
        served
    }
}

fn start_missing(shared: &Arc<Shared>, state: &mut MutexGuard<'_, State>) {
    for number in 0..shared.size {
        if state.running[number] {
            continue;
        }
        if let Some(ended) = state.threads[number].take() {
            let _ = ended.join();
        }
        let own = Arc::clone(shared);
        match spawn(format!("prefetch-{number}"), move || run(&own, number)) {
            Ok(thread) => {
                state.threads[number] = Some(thread);
                state.running[number] = true;
                shared.live.fetch_add(1, SeqCst);
            }
            Err(error) => {
                let live = shared.live.load(SeqCst);
                log::warn!(
                    "worker {number} of {} could not be started ({error}); going on with {live}",
                    shared.size
                );
                return;
            }
        }
    }
}

/// A worker's life.
fn run(shared: &Arc<Shared>, number: usize) {
    WORKER.with(|worker| worker.set(Some((shared.id(), number))));
    let mut line = Vec::new();
    while !leaves(shared, number) {
        if shared.serve_one(number, &mut line) {
            continue;
        }
        shared.announce();
        if shared.serve_one(number, &mut line) {
            shared.recant();
        } else {
            shared.sleep();
        }
    }
}

/// Whether the worker's time is over; if so it is counted out in the same breath.
fn leaves(shared: &Shared, number: usize) -> bool {
    let mut state = shared.state.lock();
    if !shared.is_over(&state) {
        return false;
    }
    state.running[number] = false;
    shared.live.fetch_sub(1, SeqCst);
    drop(state);
    shared.ended.notify_all();
    true
}
