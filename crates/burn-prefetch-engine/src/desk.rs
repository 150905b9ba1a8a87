//! The state of one pass between its reader and the workers: what may be made, is being made, is made.

use std::collections::VecDeque;
use std::ops::Range;
use std::time::Duration;

use crate::assembly::{Assembly, Failure, Finished};
use crate::cost::{Ahead, Costs, Parts};
use crate::plan::EpochPlan;
use crate::ring::Ring;
use crate::source::{Outcome, Source};
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
/// last part is back; numbers in `open` and `ring` are below `window.issued()`; nothing is claimed
/// and nothing is put at or beyond `end`, which only falls.
pub(crate) struct Desk<S: Source> {
    window: Window,
    ahead: Ahead,
    /// Items in a full batch.
    batch_len: usize,
    open: VecDeque<Assembly<S::Piece>>,
    ring: Ring<Outcome<S>>,
    costs: Costs,
    /// No batch of this number or beyond is made: the pass ends, or failed, before it.
    end: usize,
    /// How many batches are known to have been returned: read again only when the window is full, so
    /// that reader and workers do not pull one cache line to and fro.
    returned: usize,
    /// The reader is inside `next()` and has nothing to return.
    asking: bool,
    /// The reader sleeps until the ring is ready.
    parked: bool,
}

impl<S: Source> Desk<S> {
    pub(crate) fn new(plan: &EpochPlan, workers: usize, limits: Limits) -> Self {
        let costs = Costs::new(workers, limits.parts);
        let ahead = match (workers, limits.ahead) {
            (0, _) => 0,
            (_, Ahead::Learned) => costs.ahead(plan.batch(0).len()),
            (_, Ahead::Fixed(batches)) => batches,
        };
        Self {
            window: Window::new(ahead, limits.bytes),
            ahead: limits.ahead,
            batch_len: plan.batch(0).len(),
            open: VecDeque::new(),
            ring: Ring::new(),
            costs,
            end: plan.num_batches(),
            returned: 0,
            asking: false,
            parked: false,
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
            self.end = number + 1;
        }
        self.ring.put(number, outcome);
        let wake = self.parked && self.ring.is_ready();
        self.parked &= !wake;
        (None, wake)
    }

    /// Moves what is ready to `out`; if there is nothing, the reader is asking from now on.
    pub(crate) fn take_ready(&mut self, out: &mut VecDeque<Outcome<S>>) {
        self.ring.take_ready(out);
        self.asking = out.is_empty();
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.ring.is_ready()
    }

    /// The reader goes to sleep until [`put`](Self::put) says that it is to be woken.
    pub(crate) fn park(&mut self) {
        self.parked = true;
    }

    /// Whether the sleeping reader has not been woken yet.
    pub(crate) fn is_parked(&self) -> bool {
        self.parked
    }

    /// Whether no batch is left to start.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.window.issued() >= self.end
    }

    /// Whether a batch is so cheap that waking a worker for each would cost more.
    pub(crate) fn is_cheap(&self) -> bool {
        self.costs.is_cheap(self.batch_len)
    }

    /// Ends the pass: nothing is started any more. Gives back what is to be dropped outside the
    /// lock; parts still out come back as unwanted.
    pub(crate) fn close(&mut self) -> (Vec<S::Piece>, Vec<Outcome<S>>) {
        self.end = 0;
        let pieces = self.open.drain(..).flat_map(Assembly::abandon).collect();
        (pieces, self.ring.take_all().collect())
    }

    fn learn(&mut self, took: &Took) {
        if let Some((items, took)) = took.fetch {
            self.costs.fetched(items, took);
        }
        if let Some(took) = took.assembly {
            self.costs.assembled(took);
            if self.ahead == Ahead::Learned {
                self.window.set_limit(self.costs.ahead(self.batch_len));
            }
        }
    }

    fn may_issue(&mut self, source: &S, plan: &EpochPlan, returned: &AtomicUsize) -> bool {
        let number = self.window.issued();
        if number >= self.end {
            return false;
        }
        let cost = source.cost(plan.batch(number).len());
        if self.window.has_room(self.returned, self.asking, cost) {
            return true;
        }
        self.returned = returned.load(SeqCst);
        self.window.has_room(self.returned, self.asking, cost)
    }

    fn worth_waking(&self) -> bool {
        let left = self.end - self.window.issued();
        let places = self.window.places(self.returned).min(left);
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
        let len = plan.batch(self.window.issued()).len();
        let number = self.window.issue(source.cost(len));
        let pieces = source.open(len, self.costs.parts(len));
        if pieces.rest.is_empty() {
            return Some((number, None, pieces.first, 0..len));
        }
        self.open.push_back(Assembly::new(number, len, pieces));
        take_part(self.open.back_mut()?)
    }
}

/// A batch's number, which part, its piece, its offsets.
type PartOf<P> = (usize, Option<usize>, P, Range<usize>);

fn take_part<P>(assembly: &mut Assembly<P>) -> Option<PartOf<P>> {
    let (part, piece, within) = assembly.claim()?;
    Some((assembly.number(), Some(part), piece, within))
}
