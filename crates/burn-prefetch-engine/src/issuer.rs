//! Which batch is started next, and whether it may be: by the window, the budget and the end of the pass.

use crate::claim::Before;
use crate::ledger::Turn;
use crate::plan::EpochPlan;
use crate::source::Source;
use crate::standing::Standing;
use crate::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use crate::ticket::{Cost, Ticket, Tickets};
use crate::upcoming::Upcoming;
use crate::window::Window;

/// Starts the batches of one pass, one after the other. No thread, no lock.
///
/// Invariant: `end` only falls, and no batch at or beyond it is started.
pub(crate) struct Issuer {
    window: Window,
    before: Option<Before>,
    /// Which batches were returned before: a ticket is for the batch whose turn it is from there on.
    begins: Standing,
    /// No batch of this number or beyond is made: the pass ends, or failed, before it.
    end: usize,
    /// How many batches have been finished.
    put: usize,
    /// How many batches are known to have been returned: read again only when the window is full, so
    /// that reader and workers do not pull one cache line to and fro.
    returned: usize,
    /// What the next batch will take, by its number: asked for more often than it changes.
    price: Option<(usize, Cost)>,
    tickets: Tickets,
}

impl Issuer {
    /// With `ahead` batches alive, of those before `end` that a pass which stood there had left.
    pub(crate) fn new((ahead, begins): (usize, Standing), end: usize, tickets: Tickets) -> Self {
        Self {
            window: Window::new(ahead),
            before: None,
            begins,
            end,
            put: 0,
            returned: 0,
            price: None,
            tickets,
        }
    }

    /// What another pass has alive counts in the window.
    pub(crate) fn comes_after(&mut self, before: Before) {
        self.before = Some(before);
    }

    pub(crate) fn tickets(&self) -> &Tickets {
        &self.tickets
    }

    /// Changes how many batches may be alive; those that are stay so.
    pub(crate) fn set_window(&mut self, batches: usize) {
        self.window.set_limit(batches);
    }

    /// Whether anybody comes to this batch.
    pub(crate) fn wants(&self, number: usize) -> bool {
        number < self.end
    }

    /// Nobody comes to batches from this one on; asked for later ones than before it changes nothing.
    pub(crate) fn ends_before(&mut self, number: usize) {
        self.end = self.end.min(number);
    }

    /// The turn of a batch among those that are returned.
    pub(crate) fn turn(&self, number: usize) -> usize {
        self.begins.turn(number)
    }

    /// One more is finished.
    pub(crate) fn finished_one(&mut self) {
        self.put += 1;
    }

    /// How many batches are left to start.
    pub(crate) fn left(&self) -> usize {
        let all = self.begins.turn(self.end);
        all.saturating_sub(self.window.issued())
    }

    /// How many batches may be started now.
    pub(crate) fn places(&self) -> usize {
        self.window.places(self.returned).min(self.left())
    }

    /// Counts what is left of the pass before, if that is not known to be over; gives how much.
    pub(crate) fn look_before(&mut self) -> Option<usize> {
        let before = self.before.as_ref()?;
        let left = before.batches - before.returned.load(SeqCst);
        self.window.set_before(left);
        if left == 0 {
            self.before = None;
        }
        Some(left)
    }

    /// Whether a batch may be started, and in which turn of the reader, which has returned so many and
    /// may be asking for the next.
    pub(crate) fn may_issue<S: Source>(
        &mut self,
        of: (&S, &EpochPlan),
        (returned, asking): (&AtomicUsize, bool),
    ) -> Option<Turn> {
        if !self.wants(self.upcoming()) {
            return None;
        }
        let cost = self.price(of);
        if let Some(ahead) = self.tickets.ahead() {
            self.window.set_limit(ahead);
        }
        let admitted = self.has_room(cost, asking);
        if admitted.is_some() {
            return admitted;
        }
        self.returned = returned.load(SeqCst);
        self.has_room(cost, asking)
    }

    /// Starts the next batch, which [may](Self::may_issue) be in this turn.
    pub(crate) fn issue<S: Source>(
        &mut self,
        of: (&S, &EpochPlan),
        turn: Turn,
    ) -> Option<(usize, Ticket)> {
        let number = self.upcoming();
        let cost = self.price(of);
        let ticket = self.tickets.issue(cost, turn)?;
        self.window.issue();
        Some((number, ticket))
    }

    /// The batch that is started next.
    fn upcoming(&self) -> usize {
        self.begins.nth(self.window.issued())
    }

    /// What the next batch will take.
    fn price<S: Source>(&mut self, (source, plan): (&S, &EpochPlan)) -> Cost {
        let number = self.upcoming();
        match self.price {
            Some((of, cost)) if of == number => cost,
            Some(_) | None => {
                let cost = source.cost(&Upcoming::new(plan, number));
                self.price = Some((number, cost));
                cost
            }
        }
    }

    fn has_room(&self, cost: Cost, asking: bool) -> Option<Turn> {
        let Some(turn) = self.window.room(self.returned, asking) else {
            if self.put == self.window.issued() {
                self.tickets.tally().full(self.window.limit());
            }
            return None;
        };
        self.tickets.admits(cost, turn).then_some(turn)
    }
}
