//! The state of one pass between its reader and the workers: what may be made, is being made, is made.

use std::collections::VecDeque;
use std::ops::Range;

use crate::assembly::{Assembly, Failure};
use crate::claim::{Before, Claim, Leftover, Limits, Lost, PassConfig, Returned, Took, Which};
use crate::cost::{Ahead, CostMemory, Costs};
use crate::dock::{Dock, RoomAhead};
use crate::issuer::Issuer;
use crate::job::Job;
use crate::ledger::Turn;
use crate::plan::EpochPlan;
use crate::ring::{Delivery, Ring};
use crate::source::{Assembled, Outcome, Source};
use crate::standing::Standing;
use crate::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use crate::ticket::{Cost, Ticket, Tickets};

/// A batch with several parts on its way.
struct Open<P> {
    assembly: Assembly<P>,
    ticket: Ticket,
}

/// Whether a pass goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Running,
    /// Nothing is started or assembled any more; what is `open` waits for its last part.
    Closed,
}

/// A state machine without a thread; [`Feed`](crate::feed::Feed) puts a lock around it.
///
/// Invariants: the assembly of a batch with several parts is in `open` from its ticket until its
/// last part is back; what is in `open` and `ring` was issued; nothing is claimed and nothing is put
/// that the issuer does not [want](Issuer::wants).
pub(crate) struct Desk<S: Source> {
    issuer: Issuer,
    limits: Limits,
    delivery: Delivery,
    /// Items in a full batch.
    batch_len: usize,
    open: VecDeque<Open<S::Piece>>,
    /// Assembled batches on their way to the uploader, where there is one.
    dock: Option<Dock<Assembled<S>>>,
    ring: Ring<Outcome<S>>,
    costs: Costs,
    phase: Phase,
    /// The first batch that was lost.
    lost: Option<usize>,
    /// The reader is inside `next()` and has nothing to return.
    asking: bool,
    /// The reader sleeps until the ring is ready,
    parked: bool,
    /// or, where it uploads itself, until there is something to upload.
    uploads_itself: bool,
}

impl<S: Source> Desk<S> {
    pub(crate) fn new(
        job: &Job<S>,
        (workers, tickets): (usize, Tickets),
        mut config: PassConfig,
    ) -> Self {
        if workers == 0 {
            config.limits.ahead = Ahead::Fixed(0);
        }
        let costs = Costs::new(workers, config.limits.parts).remembering(&job.costs);
        let uploads = job.uploader.as_ref().map(|uploader| RoomAhead {
            batches: uploader.ahead,
            bytes: uploader.ahead_bytes,
        });
        Self::with((costs, tickets), &job.plan, (config, uploads))
    }

    /// The desk of the epoch after this one, begun while batches of this one are alive.
    pub(crate) fn following(&self, plan: &EpochPlan, before: Before) -> Self {
        let config = PassConfig {
            limits: self.limits,
            delivery: self.delivery,
            begins: Standing::default(),
        };
        let uploads = self.dock.as_ref().map(Dock::room);
        let learned = (self.costs.following(), self.issuer.tickets().clone());
        let mut desk = Self::with(learned, plan, (config, uploads));
        desk.issuer.comes_after(before);
        desk
    }

    /// `uploads`: how far ahead batches may be uploaded, where somebody else uploads.
    fn with(
        (costs, tickets): (Costs, Tickets),
        plan: &EpochPlan,
        (config, uploads): (PassConfig, Option<RoomAhead>),
    ) -> Self {
        let PassConfig {
            limits,
            delivery,
            begins,
        } = config;
        let batch_len = plan.largest_batch();
        let ahead = match limits.ahead {
            Ahead::Learned => costs.ahead(batch_len) + uploads.map_or(0, |room| room.batches),
            Ahead::Fixed(batches) => batches,
        };
        Self {
            dock: uploads.map(|room| Dock::new(room, delivery)),
            issuer: Issuer::new((ahead, begins), plan.num_batches(), tickets),
            limits,
            delivery,
            batch_len,
            open: VecDeque::new(),
            ring: Ring::new(delivery),
            costs,
            phase: Phase::Running,
            lost: None,
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
        let (issuer, mut open) = (&self.issuer, self.open.iter_mut());
        let oldest =
            open.find(|open| issuer.wants(open.assembly.number()) && open.assembly.has_unclaimed());
        let (number, which, piece, within) = match oldest {
            Some(open) => take_part(&mut open.assembly)?,
            None => self.issue(source, plan, returned)?,
        };
        let measured = self.costs.wants(number, plan.batch(number).len());
        let mut open = self.open.iter();
        let more = matches!(which, Which::Nth(_)) && open.any(|open| open.assembly.has_unclaimed())
            || self.may_issue(source, plan, returned).is_some() && self.worth_waking();
        Some(Claim {
            number,
            which,
            piece,
            within,
            measured,
            slow_items: self.costs.has_slow_items(),
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
        let Some(at) = open.position(|open| open.assembly.number() == number) else {
            return Returned::Unwanted(piece, None);
        };
        let assembly = &mut self.open[at].assembly;
        if self.phase == Phase::Closed {
            let last = assembly.forget().then(|| self.open.remove(at)).flatten();
            return Returned::Unwanted(piece, last.map(|open| open.ticket));
        }
        if !assembly.give_back(part, piece, failure) {
            return Returned::Waiting;
        }
        let open = self.open.remove(at);
        let finished = open.and_then(|open| Some((open.assembly.finish()?, open.ticket)));
        match finished {
            Some((finished, ticket)) => Returned::Complete(finished, ticket),
            None => unreachable!("all parts are back"),
        }
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
        if !self.issuer.wants(number) {
            return (Some(assembled), false);
        }
        if assembled.is_err() {
            self.issuer.ends_before(number + 1);
        }
        let turn = self.issuer.turn(number);
        match &mut self.dock {
            Some(dock) => {
                let bytes = assembled.ticket.bytes();
                dock.put(turn, (number, assembled), bytes);
            }
            None => return (Some(assembled), false),
        }
        let wake = self.parked && self.uploads_itself;
        self.parked &= !wake;
        (None, wake)
    }

    /// A batch that may be uploaded now.
    pub(crate) fn claim_upload(&mut self, returned: &AtomicUsize) -> Option<(usize, Assembled<S>)> {
        self.look_before();
        let dock = self.dock.as_mut()?;
        dock.take(returned.load(SeqCst), self.asking)
    }

    /// Whether there is a batch for [`claim_upload`](Self::claim_upload).
    pub(crate) fn may_upload(&mut self, returned: &AtomicUsize) -> bool {
        self.look_before();
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
        if !self.issuer.wants(number) {
            return (Some(outcome), false);
        }
        if outcome.is_err() {
            self.issuer.ends_before(match self.delivery {
                Delivery::InOrder => number + 1,
                Delivery::AsFinished => 0,
            });
        }
        let turn = self.issuer.turn(number);
        self.ring.put(turn, (number, outcome));
        self.issuer.finished_one();
        let tally = self.issuer.tickets().tally();
        tally.waiting_in_line(self.ring.waiting());
        let wake = self.parked && self.ring.is_ready();
        self.parked &= !wake;
        if wake {
            self.costs.doubt();
        }
        (None, wake)
    }

    /// A hand broke off its work on a batch, and what it had of that is gone.
    pub(crate) fn lose(&mut self, number: usize) -> Lost<S::Piece> {
        let mut open = self.open.iter();
        let at = open.position(|open| open.assembly.number() == number);
        let mut open = at.and_then(|at| self.open.remove(at));
        let pieces = open.iter_mut().flat_map(|open| open.assembly.abandon());
        let pieces = pieces.collect();
        let left = open.map(|open| open.ticket);
        if !self.issuer.wants(number) || self.lost == Some(number) {
            return Lost {
                pieces,
                error: None,
                unwanted: left,
            };
        }
        self.lost = Some(number);
        Lost {
            pieces,
            error: left.or_else(|| self.issuer.tickets().issue(Cost::Known(0), Turn::Oldest)),
            unwanted: None,
        }
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
        self.issuer.left() == 0
    }

    /// Whether a batch is so cheap that waking a worker for each would cost more.
    pub(crate) fn is_cheap(&self) -> bool {
        self.costs.is_cheap(self.batch_len)
    }

    /// Ends the pass: nothing is started any more, and what was learned goes to `memory`. Gives back
    /// what is to be dropped outside the lock; parts still out come back as unwanted, and the last of
    /// a batch brings its ticket.
    pub(crate) fn close(&mut self, memory: &CostMemory) -> Leftover<S> {
        self.issuer.ends_before(0);
        self.phase = Phase::Closed;
        self.costs.leave(memory);
        let open = self.open.iter_mut();
        let pieces = open.flat_map(|open| open.assembly.abandon()).collect();
        let open = std::mem::take(&mut self.open).into_iter();
        let (home, out): (VecDeque<_>, _) = open.partition(|open| open.assembly.is_home());
        self.open = out;
        Leftover {
            pieces,
            tickets: home.into_iter().map(|open| open.ticket).collect(),
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
            if self.limits.ahead == Ahead::Learned && self.issuer.tickets().ahead().is_none() {
                let uploads = self.dock.as_ref().map_or(0, |dock| dock.room().batches);
                let ahead = self.costs.ahead(self.batch_len) + uploads;
                self.issuer.set_window(ahead);
            }
        }
    }

    /// Whether a batch may be started, and in which turn of the reader.
    fn may_issue(&mut self, source: &S, plan: &EpochPlan, returned: &AtomicUsize) -> Option<Turn> {
        self.look_before();
        self.issuer
            .may_issue((source, plan), (returned, self.asking))
    }

    /// Counts what is left of the pass before.
    fn look_before(&mut self) {
        let left = self.issuer.look_before();
        if let (Some(left), Some(dock)) = (left, &mut self.dock) {
            dock.set_before(left);
        }
    }

    fn worth_waking(&self) -> bool {
        self.costs
            .worth_waking(self.issuer.places(), self.batch_len)
    }

    /// Starts a batch: gives its first part, and opens an assembly if there are others.
    fn issue(
        &mut self,
        source: &S,
        plan: &EpochPlan,
        returned: &AtomicUsize,
    ) -> Option<PartOf<S::Piece>> {
        let turn = self.may_issue(source, plan, returned)?;
        let (number, ticket) = self.issuer.issue((source, plan), turn)?;
        let len = plan.batch(number).len();
        let pieces = source.open(len, self.costs.parts(len));
        if pieces.rest.is_empty() {
            return Some((number, Which::Whole(ticket), pieces.first, 0..len));
        }
        let assembly = Assembly::new(number, len, pieces);
        self.open.push_back(Open { assembly, ticket });
        take_part(&mut self.open.back_mut()?.assembly)
    }
}

/// A batch's number, which part, its piece, its offsets.
type PartOf<P> = (usize, Which, P, Range<usize>);

fn take_part<P>(assembly: &mut Assembly<P>) -> Option<PartOf<P>> {
    let (part, piece, within) = assembly.claim()?;
    Some((assembly.number(), Which::Nth(part), piece, within))
}
