//! What a pool's workers share with its handle: who sleeps, who is woken, whom they serve.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use crossbeam_utils::CachePadded;

use crate::activity::Activity;
use crate::budget::Bell;
use crate::crew::{Badge, Crew};
use crate::error::SharedError;
use crate::init::{Guests, WorkerInit};
use crate::line::Line;
use crate::rest::Rest;
use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use crate::sync::{Condvar, Mutex, MutexGuard, spawn, thread_local};
use crate::unwind::dispose;

/// How long workers live.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lifetime {
    /// Until the pool is dropped.
    Pool,
    /// Until no reader is left; the next reader starts them anew.
    Readers,
}

/// How many workers there are, and how they begin and end.
#[derive(Clone, Debug)]
pub struct PoolConfig {
    /// What its threads are called, with their number behind it.
    pub name: &'static str,
    /// How many there may be; with none, readers do their own work.
    pub size: usize,
    /// How long they live.
    pub lifetime: Lifetime,
    /// How long dropping the pool waits for workers that are inside user code.
    pub shutdown_grace: Duration,
    /// What each thread does before its first work.
    pub worker_init: Option<WorkerInit>,
}

/// One reader's work, as a worker sees it.
pub(crate) trait Serve: Send + Sync {
    /// Does work until there is none or `hand` is wanted elsewhere; `false` when there was none.
    fn serve(&self, hand: &Hand<'_>) -> bool;
    /// Since when the reader has been waiting in `next()`, in [`Pool::tick`]s; 0 when it is not.
    fn waiting_since(&self) -> usize;
    /// Wakes the reader, for the workers do not do its work.
    fn alarm(&self);
}

/// Who does the work, and what it can tell the others.
#[derive(Debug)]
pub(crate) struct Hand<'a> {
    /// The worker's number; `None` on a thread that is none.
    pub(crate) worker: Option<usize>,
    /// Where it writes what it does; not for a reader inside a fetch, which is one call.
    pub(crate) activity: Option<&'a Activity>,
    shared: &'a Shared,
    /// The state of the registry under which this worker may stay with one reader.
    stays_while: Option<usize>,
}

impl<'a> Hand<'a> {
    /// The calling thread, for one piece of work.
    pub(crate) fn of_guest(shared: &'a Shared) -> Self {
        Self {
            worker: current_worker(),
            activity: None,
            shared,
            stays_while: None,
        }
    }
}

impl Hand<'_> {
    /// Whether the worker may go on with the same reader without asking who else waits.
    pub(crate) fn may_stay(&self) -> bool {
        self.stays_while == Some(self.shared.version.load(SeqCst))
    }

    /// The worker has come back from user code. To be said before anybody can see what it brings.
    pub(crate) fn outside(&self) {
        if let Some(activity) = self.activity {
            activity.idle();
        }
    }

    /// Wakes one more worker if one sleeps: there is work for it.
    pub(crate) fn wake_another(&self) {
        self.shared.wake_one();
    }
}

thread_local! {
    /// The pool (by address) and badge of the worker that this thread is.
    static WORKER: Cell<Option<(usize, Badge)>> = const { Cell::new(None) };
}

/// The number of the worker that the calling thread is, of whatever pool.
pub(crate) fn current_worker() -> Option<usize> {
    WORKER.with(Cell::get).map(|(_, badge)| badge.number)
}

/// What the workers and the handle share.
pub(crate) struct Shared {
    pub(crate) config: PoolConfig,
    pub(crate) state: Mutex<State>,
    pub(crate) work: Condvar,
    pub(crate) ended: Condvar,
    /// How many workers sleep or are about to, and have no token: a copy of `state.sleepers`
    /// that can be read without the lock.
    sleepers: CachePadded<AtomicUsize>,
    /// Counts the changes of the registry and of who is a worker.
    pub(crate) version: CachePadded<AtomicUsize>,
    /// Whether there is a `state.trouble`.
    pub(crate) troubled: AtomicBool,
    pub(crate) ticks: AtomicUsize,
    pub(crate) live: AtomicUsize,
    pub(crate) disowned: AtomicUsize,
    pub(crate) wanted: AtomicUsize,
    pub(crate) rest: Rest,
    /// How many wait until workers have let go of their readers.
    pub(crate) settling: AtomicUsize,
    pub(crate) guests: Guests,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool")
            .field("config", &self.config)
            .field("live", &self.live.load(SeqCst))
            .field("disowned", &self.disowned.load(SeqCst))
            .finish_non_exhaustive()
    }
}

/// Invariant: `tokens + sleepers` is the number of workers between [`Shared::announce`] and the
/// end of their sleep.
pub(crate) struct State {
    pub(crate) line: Line<Arc<dyn Serve>>,
    sleepers: usize,
    /// How many sleepers have been told to wake.
    tokens: usize,
    pub(crate) crew: Crew,
    pub(crate) trouble: Option<Trouble>,
    pub(crate) closing: bool,
}

/// Why no reader can be served at the moment.
#[derive(Clone, Debug)]
pub(crate) enum Trouble {
    /// As many threads as there are workers have been given up, and more would have to be.
    Exhausted,
    /// A thread could not be prepared.
    Init(Option<usize>, SharedError),
}

impl Bell for Shared {
    fn ring(&self) {
        self.wake_one();
    }
}

impl Shared {
    /// Of workers that have not been started.
    pub(crate) fn new(config: PoolConfig) -> Self {
        let size = config.size;
        let state = State {
            line: Line::new(),
            sleepers: 0,
            tokens: 0,
            crew: Crew::of(config.size),
            trouble: None,
            closing: false,
        };
        Self {
            config,
            state: Mutex::new(state),
            work: Condvar::default(),
            ended: Condvar::default(),
            sleepers: CachePadded::new(AtomicUsize::new(0)),
            version: CachePadded::new(AtomicUsize::new(0)),
            troubled: AtomicBool::new(false),
            ticks: AtomicUsize::new(1),
            live: AtomicUsize::new(0),
            disowned: AtomicUsize::new(0),
            wanted: AtomicUsize::new(size),
            rest: Rest::default(),
            settling: AtomicUsize::new(0),
            guests: Guests::default(),
        }
    }

    /// Which of these workers the calling thread is.
    pub(crate) fn own_badge(&self) -> Option<Badge> {
        let (pool, badge) = WORKER.with(Cell::get)?;
        (pool == self.id()).then_some(badge)
    }

    /// Tells pools apart.
    fn id(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    pub(crate) fn wake_one(&self) {
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
    fn sleep(&self, badge: Badge) {
        let mut state = self.state.lock();
        while state.tokens == 0 && state.crew.wants(badge) && !self.is_over(&state) {
            state = self.work.wait(state);
        }
        if state.tokens > 0 {
            state.tokens -= 1;
        } else {
            state.sleepers -= 1;
            self.sleepers.store(state.sleepers, SeqCst);
        }
    }

    pub(crate) fn is_over(&self, state: &State) -> bool {
        state.closing || (self.config.lifetime == Lifetime::Readers && state.line.len() == 0)
    }

    /// Forgets that a thread could not be prepared.
    pub(crate) fn try_again(&self, state: &mut State) {
        if matches!(state.trouble, Some(Trouble::Init(..))) {
            self.set_trouble(state, None);
        }
    }

    pub(crate) fn set_trouble(&self, state: &mut State, trouble: Option<Trouble>) {
        self.troubled.store(trouble.is_some(), SeqCst);
        state.trouble = trouble;
        self.version.fetch_add(1, SeqCst);
    }

    /// The readers that are to be woken, outside the lock: nobody can be served, or everybody has to
    /// do its own work.
    pub(crate) fn to_be_alarmed(&self, state: &State) -> Vec<Arc<dyn Serve>> {
        if self.troubled.load(SeqCst) || state.crew.running() == 0 {
            state.line.all()
        } else {
            Vec::new()
        }
    }

    /// Copies the counts to where they can be read without the lock.
    pub(crate) fn count(&self, state: &State) {
        self.live.store(state.crew.running(), SeqCst);
        self.disowned.store(state.crew.disowned(), SeqCst);
    }

    /// The readers in the order in which they are to be served: who waits longest first, the others
    /// in turn. Nobody while there is trouble. Gives the version of the registry if there is one only.
    fn line_up(&self, line: &mut Vec<Arc<dyn Serve>>) -> Option<usize> {
        let mut state = self.state.lock();
        if state.trouble.is_none() {
            state.line.in_turn(line);
        }
        let alone = state.line.len() == 1 && !state.closing;
        let version = alone.then(|| self.version.load(SeqCst));
        drop(state);
        line.sort_by_key(|reader| match reader.waiting_since() {
            0 => usize::MAX,
            since => since,
        });
        version
    }

    /// Serves the first reader in line that has work; `false` when none has.
    fn serve_one(&self, me: &Me<'_>, line: &mut Vec<Arc<dyn Serve>>) -> bool {
        me.activity.next_round();
        let stays_while = self.line_up(line);
        let hand = Hand {
            worker: Some(me.badge.number),
            activity: Some(me.activity),
            shared: self,
            stays_while,
        };
        let served = line.iter().any(|reader| reader.serve(&hand));
        // A worker holds no reader while it sleeps; what it held last is the user's to drop.
        line.drain(..).for_each(dispose);
        me.activity.next_round();
        if self.settling.load(SeqCst) > 0 {
            // Under the lock, so that it is not between their look and their sleep.
            drop(self.state.lock());
            self.ended.notify_all();
        }
        served
    }

    /// Prepares a worker's thread; `false` when that failed and the thread has left.
    fn prepare(&self, me: &Me<'_>) -> bool {
        let Some(init) = &self.config.worker_init else {
            return true;
        };
        me.activity.starting();
        let outcome = init.run(Some(me.badge.number));
        me.activity.idle();
        let Err(error) = outcome else { return true };
        let mut state = self.state.lock();
        if state.crew.has(me.badge) {
            let trouble = Trouble::Init(Some(me.badge.number), error);
            self.set_trouble(&mut state, Some(trouble));
        }
        let alarmed = self.to_be_alarmed(&state);
        self.end(state, me.badge);
        alarm(alarmed);
        false
    }

    /// Whether the thread's time is over; if so it is counted out in the same breath.
    fn leaves(&self, badge: Badge) -> bool {
        let state = self.state.lock();
        if state.crew.wants(badge) && !self.is_over(&state) {
            return false;
        }
        self.end(state, badge);
        true
    }

    fn end(&self, mut state: MutexGuard<'_, State>, badge: Badge) {
        let came_back = !state.crew.has(badge);
        state.crew.ended(badge);
        if came_back && matches!(state.trouble, Some(Trouble::Exhausted)) {
            self.set_trouble(&mut state, None);
        }
        self.count(&state);
        drop(state);
        self.ended.notify_all();
        // The pool may serve again; or who leaves was woken for work that is another's now.
        self.wake_one();
    }
}

/// Tells readers that there is trouble, or no worker; a reader may have ended meanwhile, and be the user's to drop.
pub(crate) fn alarm(readers: Vec<Arc<dyn Serve>>) {
    for reader in readers {
        reader.alarm();
        dispose(reader);
    }
}

pub(crate) fn start_missing(shared: &Arc<Shared>, state: &mut State) {
    while let Some((badge, activity)) = state.crew.vacancy() {
        let own = Arc::clone(shared);
        let name = format!("{}-{}", shared.config.name, badge.number);
        let body = move || {
            let me = Me {
                badge,
                activity: &activity,
            };
            run(&own, &me);
        };
        match spawn(name, body) {
            // The thread that had the number before has left; it is let go.
            Ok(thread) => drop(state.crew.started(badge, thread)),
            Err(error) => {
                log::warn!(
                    "worker {} of {} could not be started ({error}); going on with {}",
                    badge.number,
                    shared.config.size,
                    state.crew.running()
                );
                break;
            }
        }
    }
    shared.count(state);
}

/// A worker, to itself.
struct Me<'a> {
    badge: Badge,
    activity: &'a Activity,
}

/// A worker's life.
fn run(shared: &Arc<Shared>, me: &Me<'_>) {
    WORKER.with(|worker| worker.set(Some((shared.id(), me.badge))));
    if !shared.prepare(me) {
        return;
    }
    let mut line = Vec::new();
    while !shared.leaves(me.badge) {
        if shared.serve_one(me, &mut line) {
            continue;
        }
        me.activity.idle();
        shared.announce();
        if shared.serve_one(me, &mut line) {
            shared.recant();
        } else {
            shared.rest.begin(me.badge.number);
            shared.sleep(me.badge);
            shared.rest.end(me.badge.number);
        }
    }
}
