//! Named threads that outlive epochs and serve readers fairly.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use crossbeam_utils::CachePadded;

use crate::activity::Activity;
use crate::budget::Bell;
use crate::crew::{Badge, Crew, Sight};
use crate::error::{LoadError, Place, SharedError, Stage};
use crate::init::{Guests, WorkerInit};
use crate::line::Line;
use crate::rest::Rest;
use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use crate::sync::{Condvar, Moment, Mutex, MutexGuard, spawn, thread_local};
use crate::unwind::dispose;

/// Who is not inside user code is looked for again after so long,
const A_MOMENT: Duration = Duration::from_millis(1);

/// and is given so much longer than the grace: it has the loader's own business only, and perhaps the
/// drop of a dataset.
const OWN_BUSINESS: Duration = Duration::from_secs(10);

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
    config: PoolConfig,
    state: Mutex<State>,
    work: Condvar,
    ended: Condvar,
    /// How many workers sleep or are about to, and have no token: a copy of `state.sleepers`
    /// that can be read without the lock.
    sleepers: CachePadded<AtomicUsize>,
    /// Counts the changes of the registry and of who is a worker.
    version: CachePadded<AtomicUsize>,
    /// Whether there is a `state.trouble`.
    troubled: AtomicBool,
    ticks: AtomicUsize,
    live: AtomicUsize,
    disowned: AtomicUsize,
    wanted: AtomicUsize,
    rest: Rest,
    /// How many wait until workers have let go of their readers.
    settling: AtomicUsize,
    guests: Guests,
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
struct State {
    line: Line<Arc<dyn Serve>>,
    sleepers: usize,
    /// How many sleepers have been told to wake.
    tokens: usize,
    crew: Crew,
    trouble: Option<Trouble>,
    closing: bool,
}

/// Why no reader can be served at the moment.
#[derive(Clone, Debug)]
enum Trouble {
    /// As many threads as there are workers have been given up, and more would have to be.
    Exhausted,
    /// A thread could not be prepared.
    Init(Option<usize>, SharedError),
}

/// A number of workers, shared by any number of readers.
///
/// The threads start with the first reader that has work. Dropping the pool lets every worker end
/// the part that it is in, for at most [`shutdown_grace`](PoolConfig::shutdown_grace), and joins it;
/// one that takes longer is given up, and ends when it comes back. Dropped on one of its own
/// workers, a pool lets them end by themselves.
#[derive(Debug)]
pub struct Pool {
    shared: Arc<Shared>,
}

/// A reader's place in the registry; leaving is up to the reader.
#[derive(Debug)]
pub(crate) struct Registration(usize);

impl Pool {
    /// A pool without threads yet.
    #[must_use]
    pub fn new(config: PoolConfig) -> Self {
        let size = config.size;
        let state = State {
            line: Line::new(),
            sleepers: 0,
            tokens: 0,
            crew: Crew::of(config.size),
            trouble: None,
            closing: false,
        };
        let shared = Shared {
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
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// How its workers begin and end.
    #[must_use]
    pub fn config(&self) -> &PoolConfig {
        &self.shared.config
    }

    /// How many workers there may be.
    #[must_use]
    pub fn size(&self) -> usize {
        self.shared.wanted.load(SeqCst)
    }

    /// Changes how many workers there may be, while they work: others come, or those with the highest
    /// numbers leave after the part they are in. A pool of none stays one, and another never becomes
    /// one. Passes that run go on with what they have learned of their workers.
    pub fn resize(&self, workers: usize) {
        if self.size() == 0 {
            return;
        }
        let workers = workers.max(1);
        let mut state = self.shared.state.lock();
        self.shared.wanted.store(workers, SeqCst);
        state.crew.resize(workers);
        if state.line.len() > 0 && !self.shared.is_over(&state) {
            start_missing(&self.shared, &mut state);
        }
        self.shared.version.fetch_add(1, SeqCst);
        drop(state);
        // Who is not wanted any more may be asleep.
        self.shared.work.notify_all();
    }

    /// How long each worker has slept, by number, since there was nothing to do.
    #[must_use]
    pub fn idle(&self) -> Vec<Duration> {
        self.shared.rest.all()
    }

    /// How many workers there are at the moment.
    #[must_use]
    pub fn live(&self) -> usize {
        self.shared.live.load(SeqCst)
    }

    /// How many threads have been given up and have not come back yet; at most
    /// [`size`](Self::size).
    #[must_use]
    pub fn disowned(&self) -> usize {
        self.shared.disowned.load(SeqCst)
    }

    /// Takes a reader into the registry and sees to it that the workers run. A thread that could
    /// not be prepared is forgotten: another tries again.
    pub(crate) fn register(&self, reader: Arc<dyn Serve>) -> Registration {
        let mut state = self.shared.state.lock();
        let id = state.line.join(reader);
        self.shared.version.fetch_add(1, SeqCst);
        self.shared.try_again(&mut state);
        start_missing(&self.shared, &mut state);
        drop(state);
        self.shared.wake_one();
        Registration(id)
    }

    /// Sees to it again that the workers run, for a reader that is registered.
    pub(crate) fn revive(&self) {
        let mut state = self.shared.state.lock();
        self.shared.try_again(&mut state);
        start_missing(&self.shared, &mut state);
        drop(state);
        self.shared.wake_one();
    }

    /// Takes a reader out of the registry; a worker inside its part finishes it.
    pub(crate) fn unregister(&self, registration: &Registration) {
        let mut state = self.shared.state.lock();
        let gone = state.line.leave(registration.0);
        self.shared.version.fetch_add(1, SeqCst);
        let idle = self.shared.is_over(&state);
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

    /// What does the same, for whoever does not know the pool.
    pub(crate) fn bell(&self) -> Arc<dyn Bell> {
        Arc::<Shared>::clone(&self.shared)
    }

    /// Changes with who is a worker and who is served.
    pub(crate) fn version(&self) -> usize {
        self.shared.version.load(SeqCst)
    }

    /// A moment for [`Serve::waiting_since`]; later calls give larger numbers.
    pub(crate) fn tick(&self) -> usize {
        self.shared.ticks.fetch_add(1, SeqCst)
    }

    /// The calling thread as one that does one piece of work, once it has been prepared.
    pub(crate) fn hand(&self) -> Result<Hand<'_>, SharedError> {
        let own = self.own_badge().is_some();
        match &self.shared.config.worker_init {
            Some(init) if !own => self.shared.guests.prepare(init)?,
            Some(_) | None => {}
        }
        Ok(Hand {
            worker: current_worker(),
            activity: None,
            shared: &self.shared,
            stays_while: None,
        })
    }

    /// Which of this pool's workers the calling thread is.
    fn own_badge(&self) -> Option<Badge> {
        let (pool, badge) = WORKER.with(Cell::get)?;
        (pool == self.shared.id()).then_some(badge)
    }

    /// Looks at every worker, for the reader of a `pass`.
    pub(crate) fn look(&self, now: Moment, pass: usize) -> Vec<Sight> {
        self.shared.state.lock().crew.look(now, pass)
    }

    /// Gives up workers that do not come back, and puts others in their places; which they were.
    ///
    /// Who has moved on since it was seen is not given up, and neither is the calling thread. When
    /// there are too many such threads already, the pool serves nobody until one comes back.
    pub(crate) fn give_up_on(&self, stuck: &[&Sight]) -> Vec<Badge> {
        let own = self.own_badge();
        let mut threads = Vec::new();
        let mut given_up = Vec::new();
        let mut state = self.shared.state.lock();
        let stuck = stuck.iter().filter(|seen| seen.is_still_so());
        for badge in stuck.map(|seen| seen.badge) {
            if Some(badge) == own {
                continue;
            }
            if let Some(thread) = state.crew.disown(badge) {
                threads.push(thread);
                given_up.push(badge);
            } else if state.crew.has(badge) {
                self.shared
                    .set_trouble(&mut state, Some(Trouble::Exhausted));
            }
        }
        if !self.shared.is_over(&state) {
            start_missing(&self.shared, &mut state);
        }
        self.shared.count(&state);
        // After the counts: who reads this version sees these.
        self.shared.version.fetch_add(1, SeqCst);
        let alarmed = self.shared.to_be_alarmed(&state);
        drop(state);
        // Who has come back in this very moment may be on its way to sleep.
        self.shared.work.notify_all();
        alarm(alarmed);
        given_up
    }

    /// Waits, for at most `grace`, until no worker holds a reader any more that has left before this
    /// call. On a worker's own thread it does not wait.
    pub fn settle(&self, grace: Duration) {
        if self.own_badge().is_some() {
            return;
        }
        self.shared.settling.fetch_add(1, SeqCst);
        let begun = Moment::now();
        let mut state = self.shared.state.lock();
        let mut holding = state.crew.holding();
        while !holding.is_empty() && begun.elapsed() < grace {
            let left = grace.saturating_sub(begun.elapsed());
            let waited = self
                .shared
                .ended
                .wait_timeout((&self.shared.state, state), left);
            (state, _) = waited;
            holding.retain(|(activity, round)| activity.holds() == Some(*round));
        }
        drop(state);
        self.shared.settling.fetch_sub(1, SeqCst);
    }

    /// Whether no reader can be served at the moment.
    pub(crate) fn is_troubled(&self) -> bool {
        self.shared.troubled.load(SeqCst)
    }

    /// Why that is so, as the error of a batch whose place is `at`.
    pub(crate) fn trouble(
        &self,
        at: impl FnOnce(Stage, Option<usize>) -> Place,
    ) -> Option<LoadError> {
        if !self.is_troubled() {
            return None;
        }
        let trouble = self.shared.state.lock().trouble.clone()?;
        Some(match trouble {
            Trouble::Exhausted => LoadError::Exhausted {
                at: at(Stage::Wait, None),
                disowned: self.disowned(),
            },
            Trouble::Init(worker, source) => LoadError::Init {
                at: at(Stage::Start, worker),
                source,
            },
        })
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        state.closing = true;
        self.shared.version.fetch_add(1, SeqCst);
        self.shared.work.notify_all();
        if self.own_badge().is_some() {
            return;
        }
        let grace = self.shared.config.shutdown_grace;
        let begun = Moment::now();
        while state.crew.running() > 0 {
            let left = grace.saturating_sub(begun.elapsed()).max(A_MOMENT);
            let (guard, _) = self
                .shared
                .ended
                .wait_timeout((&self.shared.state, state), left);
            state = guard;
            let (inside, passed) = (state.crew.busy(), begun.elapsed());
            let (late, patience) = if inside > 0 {
                (inside, grace)
            } else {
                (state.crew.running(), grace.saturating_add(OWN_BUSINESS))
            };
            if late > 0 && passed >= patience {
                log::warn!(
                    "workers still inside the dataset or batcher {patience:?} after the loader's \
                     end: {late}; they end when they return from it"
                );
                return;
            }
        }
        let threads = state.crew.take_threads();
        drop(state);
        for thread in threads {
            // A worker has no panic of its own: the user's are caught, so there is nothing to tell.
            let _ = thread.join();
        }
    }
}

impl Bell for Shared {
    fn ring(&self) {
        self.wake_one();
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

    fn is_over(&self, state: &State) -> bool {
        state.closing || (self.config.lifetime == Lifetime::Readers && state.line.len() == 0)
    }

    /// Forgets that a thread could not be prepared.
    fn try_again(&self, state: &mut State) {
        if matches!(state.trouble, Some(Trouble::Init(..))) {
            self.set_trouble(state, None);
        }
    }

    fn set_trouble(&self, state: &mut State, trouble: Option<Trouble>) {
        self.troubled.store(trouble.is_some(), SeqCst);
        state.trouble = trouble;
        self.version.fetch_add(1, SeqCst);
    }

    /// The readers that are to be woken, outside the lock: nobody can be served, or everybody has to
    /// do its own work.
    fn to_be_alarmed(&self, state: &State) -> Vec<Arc<dyn Serve>> {
        if self.troubled.load(SeqCst) || state.crew.running() == 0 {
            state.line.all()
        } else {
            Vec::new()
        }
    }

    /// Copies the counts to where they can be read without the lock.
    fn count(&self, state: &State) {
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
fn alarm(readers: Vec<Arc<dyn Serve>>) {
    for reader in readers {
        reader.alarm();
        dispose(reader);
    }
}

fn start_missing(shared: &Arc<Shared>, state: &mut State) {
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
