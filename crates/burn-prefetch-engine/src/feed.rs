//! One pass as reader and workers share it: the desk behind a lock, and who is told when it changes.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use crate::claim::{Before, Claim, Counted, PassConfig, Took};
use crate::desk::Desk;
use crate::job::Job;
use crate::plan::EpochPlan;
use crate::pool::Pool;
use crate::source::{Outcome, Source};
use crate::staff::Hand;
use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use crate::sync::{Condvar, Mutex, MutexGuard, came_true_soon};
use crate::ticket::Tickets;
use crate::unwind::dispose;

/// What the reader and the workers of one pass share.
pub(crate) struct Feed<S: Source> {
    job: Job<S>,
    /// How many batches the reader returns in all.
    turns: usize,
    pub(crate) desk: Mutex<Desk<S>>,
    /// The parked reader's bell.
    pub(crate) ready: Condvar,
    /// How many batches `next()` has returned; written by the reader alone.
    pub(crate) returned: Counted,
    waiting_since: AtomicUsize,
    /// A hint, so that the reader need not take the lock: no batch is left to start.
    exhausted: AtomicBool,
    /// A hint: batches are so cheap that looking once more is cheaper than to sleep and be woken.
    cheap: AtomicBool,
    /// A hint: the next batch is in the ring.
    filled: AtomicBool,
    /// How many hands are at work here.
    pub(crate) hands: AtomicUsize,
    /// Nobody will take what is not finished yet.
    pub(crate) over: AtomicBool,
}

impl<S: Source> Feed<S> {
    pub(crate) fn new(job: Job<S>, by: (usize, Tickets), config: PassConfig) -> Self {
        let turns = config.begins.turn(job.plan.num_batches());
        let desk = Desk::new(&job, by, config);
        Self::with(desk, job, turns)
    }

    /// The feed of `job`, the epoch after this one; what is left of this one counts in its window.
    pub(crate) fn following(&self, job: Job<S>) -> Self {
        let before = Before {
            batches: self.turns,
            returned: Arc::clone(&self.returned),
        };
        let turns = job.plan.num_batches();
        let desk = self.desk.lock().following(&job.plan, before);
        Self::with(desk, job, turns)
    }

    fn with(desk: Desk<S>, job: Job<S>, turns: usize) -> Self {
        Self {
            job,
            turns,
            desk: Mutex::new(desk),
            ready: Condvar::default(),
            returned: Arc::default(),
            waiting_since: AtomicUsize::new(0),
            exhausted: AtomicBool::new(false),
            cheap: AtomicBool::new(false),
            filled: AtomicBool::new(false),
            hands: AtomicUsize::new(0),
            over: AtomicBool::new(false),
        }
    }

    pub(crate) fn job(&self) -> &Job<S> {
        &self.job
    }

    /// Who uploads, where that is somebody else.
    pub(crate) fn uploader(&self) -> Option<&Pool> {
        let uploader = self.job.uploader.as_ref()?;
        Some(&uploader.pool)
    }

    pub(crate) fn wake_uploader(&self) {
        if let Some(uploader) = self.uploader() {
            uploader.wake_one();
        }
    }

    /// How many batches the reader returns in all.
    pub(crate) fn turns(&self) -> usize {
        self.turns
    }

    pub(crate) fn plan(&self) -> &EpochPlan {
        &self.job.plan
    }

    /// Moves what is ready to `out`; if there is nothing, the oldest batch may be started whatever
    /// the window says.
    pub(crate) fn take_ready(&self, out: &mut VecDeque<(usize, Outcome<S>)>) {
        let mut desk = self.desk.lock();
        desk.take_ready(out);
        set(&self.filled, false);
    }

    /// Frees one place in the window.
    pub(crate) fn returned_one(&self, returned: usize) {
        self.returned.store(returned, SeqCst);
    }

    /// Whether every batch of the pass has been started.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.exhausted.load(SeqCst)
    }

    /// Whether a freed place is to be told to a sleeping worker: not while one is at work that will
    /// have filled it before another has woken up.
    pub(crate) fn wants_hands(&self) -> bool {
        let covered = self.is_cheap() && self.hands.load(SeqCst) > 0;
        !covered && !self.is_exhausted()
    }

    pub(crate) fn is_cheap(&self) -> bool {
        self.cheap.load(SeqCst)
    }

    /// Whether the next batch is ready within microseconds, when that is likely.
    pub(crate) fn comes_soon(&self) -> bool {
        self.is_cheap() && came_true_soon(|| self.filled.load(SeqCst))
    }

    /// Sleeps until the next batch is ready or an [`alarm`](Self::alarm), unless what that is for has
    /// `come` already; `tick` says since when, for the workers' choice, and
    /// whether the calling thread has to upload itself. Not longer than `limit`;
    /// `false` when that was over first. The place in line stays until it [waits no
    /// more](Self::waits_no_more).
    pub(crate) fn wait(
        &self,
        (tick, uploads_itself): (usize, bool),
        limit: Option<Duration>,
        come: impl Fn() -> bool,
    ) -> bool {
        self.waiting_since.store(tick, SeqCst);
        let mut desk = self.desk.lock();
        let mut in_time = true;
        let has_own = uploads_itself && desk.may_upload(&self.returned);
        if !desk.is_ready() && !has_own && !come() {
            desk.park(uploads_itself);
        }
        while desk.is_parked() && in_time {
            (desk, in_time) = match limit {
                None => (self.ready.wait(desk), true),
                Some(limit) => {
                    let (desk, over) = self.ready.wait_timeout((&self.desk, desk), limit);
                    let in_time = !over || !desk.is_parked();
                    (desk, in_time)
                }
            };
        }
        desk.unpark();
        in_time
    }

    /// The reader has what it waited for.
    pub(crate) fn waits_no_more(&self) {
        self.waiting_since.store(0, SeqCst);
    }

    /// Since when the reader has been waiting, in ticks of its pool; 0 when it is not.
    pub(crate) fn waiting_since(&self) -> usize {
        self.waiting_since.load(SeqCst)
    }

    /// Wakes the reader, for the workers do not do its work.
    pub(crate) fn alarm(&self) {
        let mut desk = self.desk.lock();
        desk.unpark();
        drop(desk);
        self.ready.notify_one();
    }

    /// Ends the pass and drops what nobody took.
    pub(crate) fn close(&self) {
        self.over.store(true, SeqCst);
        let left = self.desk.lock().close(&self.job.costs);
        left.pieces.into_iter().for_each(dispose);
        left.assembled.into_iter().for_each(dispose);
        left.finished.into_iter().for_each(dispose);
        drop(left.tickets);
    }

    pub(crate) fn claim(&self, desk: &mut Desk<S>) -> Option<Claim<S::Piece>> {
        let claim = desk.claim(&self.job.source, &self.job.plan, &self.returned);
        set(&self.exhausted, desk.is_exhausted());
        claim
    }

    /// Claims on, unless the hand is wanted elsewhere.
    pub(crate) fn claim_more(
        &self,
        desk: &mut Desk<S>,
        hand: &Hand<'_>,
    ) -> Option<Claim<S::Piece>> {
        if hand.may_stay() {
            self.claim(desk)
        } else {
            None
        }
    }

    /// Puts a finished batch where the reader takes it.
    pub(crate) fn put(
        &self,
        number: usize,
        outcome: Outcome<S>,
        took: &Took,
    ) -> (MutexGuard<'_, Desk<S>>, Put<S>) {
        let mut desk = self.desk.lock();
        let (unwanted, wake) = desk.put(number, outcome, took);
        set(&self.filled, desk.is_ready());
        set(&self.cheap, desk.is_cheap());
        let put = Put {
            number,
            unwanted,
            wake,
        };
        (desk, put)
    }

    /// What follows a put, outside the lock.
    pub(crate) fn tell(&self, put: Put<S>, hand: &Hand<'_>) {
        if put.wake {
            self.ready.notify_one();
        }
        if put.unwanted.is_some() {
            self.job.dispose(put.number, put.unwanted, hand);
        }
    }
}

/// A batch that was put, and what is to be done about it.
pub(crate) struct Put<S: Source> {
    number: usize,
    /// Nobody takes it any more.
    unwanted: Option<Outcome<S>>,
    /// The reader waits for it.
    wake: bool,
}

/// Writes a hint that seldom changes: others keep their copy of it while it does not.
fn set(hint: &AtomicBool, value: bool) {
    if hint.load(SeqCst) != value {
        hint.store(value, SeqCst);
    }
}
