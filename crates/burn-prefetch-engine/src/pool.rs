//! Named threads that outlive epochs and serve readers fairly.

use std::sync::Arc;
use std::time::Duration;

use crate::budget::Bell;
use crate::crew::{Badge, Sight};
use crate::error::{LoadError, Place, SharedError, Stage};
use crate::staff::{Hand, PoolConfig, Serve, Shared, Trouble, alarm, start_missing};
use crate::sync::Moment;
use crate::sync::atomic::Ordering::SeqCst;

/// Who is not inside user code is looked for again after so long,
const A_MOMENT: Duration = Duration::from_millis(1);

/// and is given so much longer than the grace: it has the loader's own business only, and perhaps the
/// drop of a dataset.
const OWN_BUSINESS: Duration = Duration::from_secs(10);

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
        Self {
            shared: Arc::new(Shared::new(config)),
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
        Ok(Hand::of_guest(&self.shared))
    }

    /// Which of this pool's workers the calling thread is.
    fn own_badge(&self) -> Option<Badge> {
        self.shared.own_badge()
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
