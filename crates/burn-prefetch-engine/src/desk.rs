//! The state of one pass between its reader and the workers: what may be made, is being made, is made.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use crossbeam_utils::CachePadded;

use crate::assembly::{Assembly, Failure, Finished};
use crate::cost::{Ahead, CostMemory, Costs, Parts};
use crate::dock::Dock;
use crate::job::Job;
use crate::plan::EpochPlan;
use crate::ring::{Delivery, Ring};
use crate::source::{Assembled, Outcome, Source};
use crate::standing::Standing;
use crate::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use crate::window::Window;

/// How far a pass may run ahead, and how its batches are cut.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Batches alive.
    pub ahead: Ahead,
    /// Bytes alive beyond the oldest batch, by [`Source::cost`].
    pub bytes: Option<u64>,
    /// The parts of a batch.
    pub parts: Parts,
}

/// How far a pass may run ahead, in which order it delivers, and where it begins.
#[derive(Clone, Debug)]
pub(crate) struct PassConfig {
    pub(crate) limits: Limits,
    pub(crate) delivery: Delivery,
    pub(crate) begins: Standing,
}

/// The pass whose last batches are being used while this one begins: the window is one.
#[derive(Debug)]
pub(crate) struct Before {
    /// How many batches its reader returns in all.
    pub(crate) batches: usize,
    /// How many its reader has returned.
    pub(crate) returned: Counted,
}

/// A count of batches that one thread writes and others read.
pub(crate) type Counted = Arc<CachePadded<AtomicUsize>>;

/// Permission to fetch one part of one batch.
#[derive(Debug)]
pub(crate) struct Claim<P> {
    pub(crate) number: usize,
    /// Which part; `None` where the batch has one only, which need not be given back.
    pub(crate) part: Option<usize>,
    pub(crate) piece: P,
    /// The offsets within the batch.
    pub(crate) within: Range<usize>,
    /// Whether reading the clock is worth it.
    pub(crate) measured: bool,
    /// Whether there is work left that is worth waking another worker for.
    pub(crate) more: bool,
}

/// How long the steps of a batch took, where that was measured.
#[derive(Debug, Default)]
pub(crate) struct Took {
    /// Fetching so many items.
    pub(crate) fetch: Option<(usize, Duration)>,
    /// Assembling the batch.
    pub(crate) assembly: Option<Duration>,
}

/// What giving a part back leads to.
#[derive(Debug)]
pub(crate) enum Returned<P> {
    /// Other parts are still out.
    Waiting,
    /// The batch is complete: whoever gets this assembles it.
    Complete(Finished<P>),
    /// Nobody wants the batch any more: whoever gets this drops it, outside the lock.
    Unwanted(P),
}

/// A state machine without a thread; [`Feed`](crate::feed::Feed) puts a lock around it.
///
/// Invariants: the assembly of a batch with several parts is in `open` from its ticket until its
/// last part is back; the turns of what is in `open` and `ring` are below `window.issued()`; nothing
/// is claimed and nothing is put at or beyond `end`, which only falls.
pub(crate) struct Desk<S: Source> {
    window: Window,
    before: Option<Before>,
    limits: Limits,
    delivery: Delivery,
    /// Which batches were returned before: a ticket is for the batch whose turn it is from there on.
    begins: Standing,
    /// Items in a full batch.
    batch_len: usize,
    open: VecDeque<Assembly<S::Piece>>,
    /// Assembled batches on their way to the uploader, where there is one.
    dock: Option<Dock<Assembled<S>>>,
    ring: Ring<Outcome<S>>,
    costs: Costs,
    /// No batch of this number or beyond is made: the pass ends, or failed, before it.
    end: usize,
    /// How many batches are known to have been returned: read again only when the window is full, so
    /// that reader and workers do not pull one cache line to and fro.
    returned: usize,
    /// The reader is inside `next()` and has nothing to return.
    asking: bool,
    /// The reader sleeps until the ring is ready,
    parked: bool,
    /// or, where it uploads itself, until there is something to upload.
    uploads_itself: bool,
}

impl<S: Source> Desk<S> {
    pub(crate) fn new(job: &Job<S>, workers: usize, mut config: PassConfig) -> Self {
        if workers == 0 {
            config.limits.ahead = Ahead::Fixed(0);
        }
        let costs = Costs::new(workers, config.limits.parts).remembering(&job.costs);
        let uploads = job.uploader.as_ref().map(|uploader| uploader.ahead);
        Self::with(costs, &job.plan, (config, uploads))
    }

    /// The desk of the epoch after this one, begun while batches of this one are alive.
    pub(crate) fn following(&self, plan: &EpochPlan, before: Before) -> Self {
        let config = PassConfig {
            limits: self.limits,
            delivery: self.delivery,
            begins: Standing::default(),
        };
        let uploads = self.dock.as_ref().map(Dock::ahead);
        Self {
            before: Some(before),
            ..Self::with(self.costs.clone(), plan, (config, uploads))
        }
    }

    /// `uploads`: how many batches may be uploaded ahead, where somebody else uploads.
    fn with(
        costs: Costs,
        plan: &EpochPlan,
        (config, uploads): (PassConfig, Option<usize>),
    ) -> Self {
        let PassConfig {
            limits,
            delivery,
            begins,
        } = config;
        let batch_len = plan.largest_batch();
        let ahead = match limits.ahead {
            Ahead::Learned => costs.ahead(batch_len) + uploads.unwrap_or(0),
            Ahead::Fixed(batches) => batches,
        };
        Self {
            dock: uploads.map(|ahead| Dock::new(ahead, delivery)),
            window: Window::new(ahead, limits.bytes),
            before: None,
            limits,
            delivery,
            begins,
            batch_len,
            open: VecDeque::new(),
            ring: Ring::new(delivery),
            costs,
            end: plan.num_batches(),
            returned: 0,
            asking: false,
            parked: false,
            uploads_itself: false,
        }
    }

    /// Work that may be done now: a part of the oldest batch that has one, else a new batch.
    pub(crate) fn claim(
        &mut self,
        source: &S,
        plan: &EpochPlan,
        returned: &AtomicUsize,
    ) -> Option<Claim<S::Piece>> {
        let end = self.end;
        let mut open = self.open.iter_mut();
        let oldest = open.find(|assembly| assembly.number() < end && assembly.has_unclaimed());
        let (number, part, piece, within) = match oldest {
            Some(assembly) => take_part(assembly)?,
            None => self.issue(source, plan, returned)?,
        };
        let measured = self.costs.wants(number, plan.batch(number).len());
        let more = part.is_some() && self.open.iter().any(Assembly::has_unclaimed)
            || self.may_issue(source, plan, returned) && self.worth_waking();
        Some(Claim {
            number,
            part,
            piece,
            within,
            measured,
            more,
        })
    }

    /// Takes back a part.
    pub(crate) fn give_back(
        &mut self,
        claim: (usize, usize, S::Piece),
        failure: Option<Failure>,
        took: &Took,
    ) -> Returned<S::Piece> {
        let (number, part, piece) = claim;
        self.learn(took);
        let mut open = self.open.iter();
        let Some(at) = open.position(|assembly| assembly.number() == number) else {
            return Returned::Unwanted(piece);
        };
        if !self.open[at].give_back(part, piece, failure) {
            return Returned::Waiting;
        }
        let finished = self.open.remove(at).and_then(Assembly::finish);
        finished.map_or(Returned::Waiting, Returned::Complete)
    }

    /// Takes an assembled batch for the uploader. An error goes the same way, to its place behind the
    /// batches before it. Gives back what is unwanted, and whether the reader is to be woken.
    pub(crate) fn dock(
        &mut self,
        number: usize,
        assembled: Assembled<S>,
        took: &Took,
    ) -> (Option<Assembled<S>>, bool) {
        self.learn(took);
        if number >= self.end {
            return (Some(assembled), false);
        }
        if assembled.is_err() {
            self.end = number + 1;
        }
        let turn = self.begins.turn(number);
        match &mut self.dock {
            Some(dock) => dock.put(turn, (number, assembled)),
            None => return (Some(assembled), false),
        }
        let wake = self.parked && self.uploads_itself;
        self.parked &= !wake;
        (None, wake)
    }

    /// A batch that may be uploaded now.
    pub(crate) fn claim_upload(
        &mut self,
        source: &S,
        returned: &AtomicUsize,
    ) -> Option<(usize, Assembled<S>)> {
        self.look_before(source);
        let dock = self.dock.as_mut()?;
        dock.take(returned.load(SeqCst), self.asking)
    }

    /// Whether there is a batch for [`claim_upload`](Self::claim_upload).
    pub(crate) fn may_upload(&mut self, source: &S, returned: &AtomicUsize) -> bool {
        self.look_before(source);
        let (returned, asking) = (returned.load(SeqCst), self.asking);
        let dock = self.dock.as_mut();
        dock.is_some_and(|dock| dock.is_ready(returned, asking))
    }

    /// Takes a finished batch. Gives back what is to be dropped outside the lock, and whether the
    /// reader is to be woken.
    pub(crate) fn put(
        &mut self,
        number: usize,
        outcome: Outcome<S>,
        took: &Took,
    ) -> (Option<Outcome<S>>, bool) {
        self.learn(took);
        if number >= self.end {
            return (Some(outcome), false);
        }
        if outcome.is_err() {
            self.end = match self.delivery {
                Delivery::InOrder => number + 1,
                Delivery::AsFinished => 0,
            };
        }
        let turn = self.begins.turn(number);
        self.ring.put(turn, (number, outcome));
        let wake = self.parked && self.ring.is_ready();
        self.parked &= !wake;
        (None, wake)
    }

    /// Moves what is ready to `out`; if there is nothing, the reader is asking from now on.
    pub(crate) fn take_ready(&mut self, out: &mut VecDeque<(usize, Outcome<S>)>) {
        self.ring.take_ready(out);
        self.asking = out.is_empty();
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.ring.is_ready()
    }

    /// The reader goes to sleep until [`put`](Self::put), or [`dock`](Self::dock) if it
    /// `uploads_itself`, says that it is to be woken.
    pub(crate) fn park(&mut self, uploads_itself: bool) {
        self.parked = true;
        self.uploads_itself = uploads_itself;
    }

    /// The reader wakes by itself, or is woken for another reason than a batch.
    pub(crate) fn unpark(&mut self) {
        self.parked = false;
    }

    /// Whether the sleeping reader has not been woken yet.
    pub(crate) fn is_parked(&self) -> bool {
        self.parked
    }

    /// Whether no batch is left to start.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.left() == 0
    }

    /// How many batches are left to start.
    fn left(&self) -> usize {
        let all = self.begins.turn(self.end);
        all.saturating_sub(self.window.issued())
    }

    /// The batch that is started next.
    fn upcoming(&self) -> usize {
        self.begins.nth(self.window.issued())
    }

    /// Whether a batch is so cheap that waking a worker for each would cost more.
    pub(crate) fn is_cheap(&self) -> bool {
        self.costs.is_cheap(self.batch_len)
    }

    /// Ends the pass: nothing is started any more, and what was learned goes to `memory`. Gives back
    /// what is to be dropped outside the lock; parts still out come back as unwanted.
    pub(crate) fn close(&mut self, memory: &CostMemory) -> Leftover<S> {
        self.end = 0;
        self.costs.leave(memory);
        Leftover {
            pieces: self.open.drain(..).flat_map(Assembly::abandon).collect(),
            assembled: self.dock.iter_mut().flat_map(Dock::take_all).collect(),
            finished: self.ring.take_all().collect(),
        }
    }

    fn learn(&mut self, took: &Took) {
        if let Some((items, took)) = took.fetch {
            self.costs.fetched(items, took);
        }
        if let Some(took) = took.assembly {
            self.costs.assembled(took);
            if self.limits.ahead == Ahead::Learned {
                let uploads = self.dock.as_ref().map_or(0, Dock::ahead);
                let ahead = self.costs.ahead(self.batch_len) + uploads;
                self.window.set_limit(ahead);
            }
        }
    }

    fn may_issue(&mut self, source: &S, plan: &EpochPlan, returned: &AtomicUsize) -> bool {
        let number = self.upcoming();
        if number >= self.end {
            return false;
        }
        let cost = self.cost(source, plan.batch(number).len());
        self.look_before(source);
        if self.window.has_room(self.returned, self.asking, cost) {
            return true;
        }
        self.returned = returned.load(SeqCst);
        self.window.has_room(self.returned, self.asking, cost)
    }

    /// What a batch counts for. Where batches leave as they finish nobody knows which cost is given
    /// back first, so each counts as a full one.
    fn cost(&self, source: &S, len: usize) -> u64 {
        match self.delivery {
            Delivery::InOrder => source.cost(len),
            Delivery::AsFinished => source.cost(self.batch_len),
        }
    }

    /// Counts what is left of the pass before.
    fn look_before(&mut self, source: &S) {
        let Some(before) = &self.before else { return };
        let left = before.batches - before.returned.load(SeqCst);
        let bytes = source.cost(self.batch_len).saturating_mul(left as u64);
        self.window.set_before(left, bytes);
        if let Some(dock) = &mut self.dock {
            dock.set_before(left);
        }
        if left == 0 {
            self.before = None;
        }
    }

    fn worth_waking(&self) -> bool {
        let places = self.window.places(self.returned).min(self.left());
        self.costs.worth_waking(places, self.batch_len)
    }

    /// Starts a batch: gives its first part, and opens an assembly if there are others.
    fn issue(
        &mut self,
        source: &S,
        plan: &EpochPlan,
        returned: &AtomicUsize,
    ) -> Option<PartOf<S::Piece>> {
        if !self.may_issue(source, plan, returned) {
            return None;
        }
        let number = self.upcoming();
        let len = plan.batch(number).len();
        self.window.issue(self.cost(source, len));
        let pieces = source.open(len, self.costs.parts(len));
        if pieces.rest.is_empty() {
            return Some((number, None, pieces.first, 0..len));
        }
        self.open.push_back(Assembly::new(number, len, pieces));
        take_part(self.open.back_mut()?)
    }
}

/// What is left of a pass that ends, to be dropped outside the lock.
pub(crate) struct Leftover<S: Source> {
    pub(crate) pieces: Vec<S::Piece>,
    pub(crate) assembled: Vec<Assembled<S>>,
    pub(crate) finished: Vec<Outcome<S>>,
}

/// A batch's number, which part, its piece, its offsets.
type PartOf<P> = (usize, Option<usize>, P, Range<usize>);

fn take_part<P>(assembly: &mut Assembly<P>) -> Option<PartOf<P>> {
    let (part, piece, within) = assembly.claim()?;
    Some((assembly.number(), Some(part), piece, within))
}
