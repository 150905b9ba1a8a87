//! One pass as reader and workers share it: the desk behind a lock, and who is told when it changes.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use crate::assembly::{Finished, Pieces};
use crate::claim::{Before, Claim, Counted, PassConfig, Returned, Took, Which};
use crate::desk::Desk;
use crate::error::{LoadError, Stage};
use crate::job::Job;
use crate::plan::EpochPlan;
use crate::source::{Assembled, Made, Outcome, Source};
use crate::staff::{Hand, Serve};
use crate::stats::Work;
use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use crate::sync::{Condvar, Moment, Mutex, MutexGuard, came_true_soon};
use crate::ticket::{Ticket, Tickets};
use crate::unwind::{dispose, guard};

/// What the reader and the workers of one pass share.
pub(crate) struct Feed<S: Source> {
    job: Job<S>,
    /// How many batches the reader returns in all.
    turns: usize,
    desk: Mutex<Desk<S>>,
    /// The parked reader's bell.
    ready: Condvar,
    /// How many batches `next()` has returned; written by the reader alone.
    returned: Counted,
    waiting_since: AtomicUsize,
    /// A hint, so that the reader need not take the lock: no batch is left to start.
    exhausted: AtomicBool,
    /// A hint: batches are so cheap that looking once more is cheaper than to sleep and be woken.
    cheap: AtomicBool,
    /// A hint: the next batch is in the ring.
    filled: AtomicBool,
    /// How many hands are at work here.
    hands: AtomicUsize,
    /// Nobody will take what is not finished yet.
    over: AtomicBool,
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

    /// Sleeps until the next batch is ready or an [`alarm`](Serve::alarm), unless what that is for has
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

    /// Ends the pass and drops what nobody took.
    pub(crate) fn close(&self) {
        self.over.store(true, SeqCst);
        let left = self.desk.lock().close(&self.job.costs);
        left.pieces.into_iter().for_each(dispose);
        left.assembled.into_iter().for_each(dispose);
        left.finished.into_iter().for_each(dispose);
        drop(left.tickets);
    }

    fn claim(&self, desk: &mut Desk<S>) -> Option<Claim<S::Piece>> {
        let claim = desk.claim(&self.job.source, &self.job.plan, &self.returned);
        set(&self.exhausted, desk.is_exhausted());
        claim
    }

    /// Claims on, unless the hand is wanted elsewhere.
    fn claim_more(&self, desk: &mut Desk<S>, hand: &Hand<'_>) -> Option<Claim<S::Piece>> {
        if hand.may_stay() {
            self.claim(desk)
        } else {
            None
        }
    }

    /// Fetches one part and, where it was the last of its batch, assembles the batch. Returns what
    /// to do next, if the hand stays.
    fn carry(&self, claim: Claim<S::Piece>, hand: &Hand<'_>) -> Option<Claim<S::Piece>> {
        let Claim {
            number,
            which,
            mut piece,
            within,
            measured,
            slow_items,
            ..
        } = claim;
        self.job.prepare(number, hand);
        let begun = measured.map(|_| Moment::now());
        let slow = slow_items && measured.is_some();
        let failure = self.job.fetch((number, &within, slow), &mut piece, hand);
        let fetch = begun.map(|begun| (within.len(), begun.elapsed()));
        let took = Took {
            fetch,
            ..Took::default()
        };

        let part = match which {
            Which::Nth(part) => part,
            Which::Whole(ticket) => {
                let finished = Finished {
                    number,
                    pieces: Pieces::whole(piece),
                    failure: failure.map(|failure| failure.error),
                };
                return self.complete((finished, ticket), (took, measured), hand);
            }
        };
        self.count(&took, measured, hand);
        hand.outside();
        let mut desk = self.desk.lock();
        match desk.give_back((number, part, piece), failure, &took) {
            Returned::Waiting => self.claim_more(&mut desk, hand),
            Returned::Unwanted(piece, ticket) => {
                drop(desk);
                self.job.dispose(number, [piece], hand);
                drop(ticket);
                None
            }
            Returned::Complete(finished, ticket) => {
                drop(desk);
                self.complete((finished, ticket), (Took::default(), measured), hand)
            }
        }
    }

    fn complete(
        &self,
        (finished, ticket): (Finished<S::Piece>, Ticket),
        (mut took, measured): (Took, Option<u32>),
        hand: &Hand<'_>,
    ) -> Option<Claim<S::Piece>> {
        let number = finished.number;
        if self.over.load(SeqCst) {
            self.job.dispose(number, finished.pieces, hand);
            return None;
        }
        let begun = measured.map(|_| Moment::now());
        let assembled = self.job.assemble((finished, ticket), hand);
        if let Some(uploader) = &self.job.uploader {
            took.assembly = begun.filter(|_| assembled.is_ok()).map(Moment::elapsed);
            self.count(&took, measured, hand);
            hand.outside();
            let mut desk = self.desk.lock();
            let (unwanted, wake) = desk.dock(number, assembled, &took);
            let next = self.claim_more(&mut desk, hand);
            drop(desk);
            if wake {
                self.ready.notify_one();
            }
            uploader.pool.wake_one();
            if unwanted.is_some() {
                self.job.dispose(number, unwanted, hand);
            }
            return next;
        }
        let assembled_at = measured.map(|_| Moment::now());
        let outcome = self.job.upload(number, assembled, hand);
        took.upload = assembled_at
            .filter(|_| outcome.is_ok())
            .map(Moment::elapsed);
        took.assembly = begun.filter(|_| outcome.is_ok()).map(Moment::elapsed);
        self.count(&took, measured, hand);
        hand.outside();
        let (mut desk, put) = self.put(number, outcome, &took);
        let next = self.claim_more(&mut desk, hand);
        drop(desk);
        self.tell(put, hand);
        next
    }

    /// Uploads what may be uploaded now, while nobody else wants the hand; `false` when there is
    /// nothing.
    pub(crate) fn upload(&self, hand: &Hand<'_>) -> bool {
        let mut desk = self.desk.lock();
        let mut served = false;
        while let Some((number, assembled)) = desk.claim_upload(&self.returned) {
            drop(desk);
            served = true;
            guard(|| self.upload_one((number, assembled), hand)).unwrap_or_else(|message| {
                self.break_off((number, Stage::Upload), message, hand);
            });
            if !hand.may_stay() {
                return served;
            }
            desk = self.desk.lock();
        }
        served
    }

    fn upload_one(&self, (number, assembled): (usize, Assembled<S>), hand: &Hand<'_>) {
        let begun = Moment::now();
        let mut outcome = self.job.upload(number, assembled, hand);
        if outcome.is_ok() {
            outcome.ticket.uploaded(begun.elapsed());
        }
        hand.outside();
        let (desk, put) = self.put(number, outcome, &Took::default());
        drop(desk);
        self.tell(put, hand);
    }

    /// Puts a finished batch where the reader takes it.
    fn put(
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
    fn tell(&self, put: Put<S>, hand: &Hand<'_>) {
        if put.wake {
            self.ready.notify_one();
        }
        if put.unwanted.is_some() {
            self.job.dispose(put.number, put.unwanted, hand);
        }
    }

    fn count(&self, took: &Took, measured: Option<u32>, hand: &Hand<'_>) {
        let Some(batches) = measured else { return };
        let upload = took.upload.unwrap_or_default();
        let work = Work {
            fetch: took.fetch.map(|(_, took)| took).unwrap_or_default(),
            assemble: took.assembly.unwrap_or_default().saturating_sub(upload),
            upload,
        };
        let tally = &self.job.account.tally;
        tally.worked(hand.worker, work, batches);
    }

    fn serve_while_there_is_work(&self, hand: &Hand<'_>) -> bool {
        let mut next = self.claim(&mut self.desk.lock());
        let served = next.is_some();
        while let Some(claim) = next {
            if claim.more {
                hand.wake_another();
            }
            let number = claim.number;
            next = guard(|| self.carry(claim, hand)).unwrap_or_else(|message| {
                self.break_off((number, Stage::HandOver), message, hand);
                None
            });
        }
        served
    }

    /// What unwound between the steps of a batch takes the batch's place, and costs no worker.
    fn break_off(&self, (number, stage): (usize, Stage), message: String, hand: &Hand<'_>) {
        hand.outside();
        let lost = self.desk.lock().lose(number);
        if let Some(ticket) = lost.error {
            // The uploader has no number: there is one.
            let worker = hand.worker.filter(|_| stage != Stage::Upload);
            let at = self.job.place(stage, number, worker);
            let error = Box::new(LoadError::Panic { at, message });
            let outcome = Made::failed(error, ticket);
            let (desk, put) = self.put(number, outcome, &Took::default());
            drop(desk);
            self.tell(put, hand);
        }
        self.job.dispose(number, lost.pieces, hand);
        drop(lost.unwanted);
    }

    fn serve_while_places_come(&self, hand: &Hand<'_>) -> bool {
        let mut served = false;
        while self.serve_while_there_is_work(hand) {
            served = true;
            if !self.place_comes_soon(hand) {
                break;
            }
        }
        served
    }

    /// Whether the reader frees a place within microseconds, when that is likely and no other hand
    /// is there to fill it.
    fn place_comes_soon(&self, hand: &Hand<'_>) -> bool {
        let alone = self.hands.load(SeqCst) == 1;
        if !alone || !self.is_cheap() || self.is_exhausted() || !hand.may_stay() {
            return false;
        }
        let before = self.returned.load(SeqCst);
        came_true_soon(|| self.returned.load(SeqCst) != before)
    }
}

impl<S: Source> Serve for Feed<S> {
    fn serve(&self, hand: &Hand<'_>) -> bool {
        let mut served = false;
        loop {
            let returned = self.returned.load(SeqCst);
            self.hands.fetch_add(1, SeqCst);
            served |= self.serve_while_places_come(hand);
            self.hands.fetch_sub(1, SeqCst);
            // Of a place freed before this the reader may have told nobody, for here was a hand.
            if served || self.returned.load(SeqCst) == returned {
                return served;
            }
        }
    }

    fn waiting_since(&self) -> usize {
        self.waiting_since.load(SeqCst)
    }

    fn alarm(&self) {
        let mut desk = self.desk.lock();
        desk.unpark();
        drop(desk);
        self.ready.notify_one();
    }
}

/// A batch that was put, and what is to be done about it.
struct Put<S: Source> {
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
