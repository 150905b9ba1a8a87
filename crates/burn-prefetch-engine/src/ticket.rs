//! The permission to make one batch, and what it holds of the budget until the batch is returned.

use std::sync::Arc;
use std::time::Duration;

use crate::budget::{Bell, Member, MemoryBudget};
use crate::dial::Dial;
use crate::ledger::Turn;
use crate::sizes::Sizes;
use crate::stats::Stats;
use crate::tally::{Tally, Totals};
use crate::tuning::Tuning;

/// No batch counts as more bytes, so that no sum of theirs can overflow: 256 TiB.
const MOST: u64 = 1 << 48;

/// What a batch will take in bytes, as far as that is known before it is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cost {
    /// So many at most, from its first fetch on.
    Known(u64),
    /// So many for its items; what the batch itself takes shows when it is made, and until then is
    /// taken for the largest of the last 64.
    Learned {
        /// Bytes of the items, known beforehand.
        items: u64,
    },
}

/// Where the batches of one loader are counted, whichever pass makes them.
#[derive(Clone, Debug, Default)]
pub struct Account {
    /// Counts and times.
    pub tally: Arc<Tally>,
    /// How large batches turn out.
    pub sizes: Arc<Sizes>,
    /// What they may take together.
    pub budget: Option<MemoryBudget>,
    /// What can be changed while they are made.
    pub dial: Arc<Dial>,
    /// Who changes it, where that is automatic.
    pub tuning: Option<Arc<Tuning>>,
}

impl Account {
    /// How the loader is doing. What the workers [idle](crate::Pool::idle) is the pool's to know.
    #[must_use]
    pub fn stats(&self) -> Stats {
        Stats {
            largest_batch: self.sizes.largest(),
            budget: self.budget.as_ref().map(MemoryBudget::stats),
            ..self.tally.stats()
        }
    }
}

/// Nobody is told.
struct Mute;

impl Bell for Mute {
    fn ring(&self) {}
}

impl Account {
    /// Counts so many batches as a pass does, without making any: for the bench `counting`.
    #[doc(hidden)]
    pub fn rehearse(&self, batches: u32) {
        let bell: Arc<dyn Bell> = Arc::new(Mute);
        let tickets = Tickets::new(self, (1, &bell));
        for _ in 0..batches {
            let cost = Cost::Known(1_000);
            // Once for the batch, and once to see whether another worker is to be woken.
            let looks = [Turn::Oldest, Turn::Further];
            let admitted = looks.iter().all(|turn| tickets.admits(cost, *turn));
            let ticket = tickets.issue(cost, Turn::Further).filter(|_| admitted);
            tickets.tally().waiting_in_line(0);
            tickets.tally().found();
            drop(ticket);
        }
    }

    pub(crate) fn totals(&self) -> Totals {
        let budget = self.budget.as_ref().map(MemoryBudget::stats);
        Totals {
            refused: budget.map_or(0, |budget| budget.refused),
            ..self.tally.totals()
        }
    }
}

/// Issues the tickets of one reader.
#[derive(Clone)]
pub(crate) struct Tickets(Arc<Office>);

struct Office {
    account: Account,
    member: Option<Member>,
    /// Where it is told that the window has changed; without workers it has none of its own.
    seat: Option<usize>,
}

impl Drop for Office {
    fn drop(&mut self) {
        if let Some(seat) = self.seat {
            self.account.dial.leave(seat);
        }
    }
}

impl Tickets {
    /// For a reader with so many workers, that is told through `bell` when there may be room again.
    pub(crate) fn new(account: &Account, (workers, bell): (usize, &Arc<dyn Bell>)) -> Self {
        let budget = account.budget.as_ref();
        let dial = Some(&account.dial).filter(|_| workers > 0);
        Self(Arc::new(Office {
            account: account.clone(),
            member: budget.map(|budget| budget.join(Arc::clone(bell))),
            seat: dial.map(|dial| dial.join(Arc::clone(bell))),
        }))
    }

    /// How many batches may be alive, if that was changed.
    pub(crate) fn ahead(&self) -> Option<usize> {
        self.0.seat.and_then(|_| self.0.account.dial.ahead())
    }

    pub(crate) fn tally(&self) -> &Tally {
        &self.0.account.tally
    }

    /// Whether the budget has room for a batch.
    pub(crate) fn admits(&self, cost: Cost, turn: Turn) -> bool {
        let Some(member) = &self.0.member else {
            return true;
        };
        member.admits(self.expected(cost), turn)
    }

    /// The ticket of a batch, if the budget has room for it.
    pub(crate) fn issue(&self, cost: Cost, turn: Turn) -> Option<Ticket> {
        let expected = self.expected(cost);
        let bytes = match &self.0.member {
            Some(member) => member.reserve(expected, turn)?,
            None => expected.unwrap_or(0),
        };
        self.tally().begin(bytes);
        Some(Ticket {
            office: self.clone(),
            bytes,
            on_device: 0,
            turn,
        })
    }

    fn expected(&self, cost: Cost) -> Option<u64> {
        match cost {
            Cost::Known(bytes) => Some(bytes.min(MOST)),
            Cost::Learned { items } => {
                let batch = self.0.account.sizes.largest()?;
                Some(items.saturating_add(batch).min(MOST))
            }
        }
    }
}

/// One batch's place in the budget and in the counts, for as long as this lives.
///
/// Dropping it gives the bytes back and wakes who waited for them: never under a desk's lock.
pub(crate) struct Ticket {
    office: Tickets,
    /// In host memory.
    bytes: u64,
    /// In that of a device.
    on_device: u64,
    turn: Turn,
}

impl Ticket {
    /// The batch is made and has so many bytes; its items are no more.
    pub(crate) fn weighed(&mut self, bytes: u64) {
        let before = std::mem::replace(&mut self.bytes, bytes);
        let tally = self.office.tally();
        // What is counted is always reserved too: it is the last to grow and the first to shrink.
        if bytes < before {
            tally.resize(before, bytes);
        }
        if let Some(member) = &self.office.0.member {
            member.resize(before, bytes, self.turn);
        }
        if bytes > before {
            tally.resize(before, bytes);
        }
    }

    /// What the batch holds of host memory.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The batch is on a device, and in host memory no more.
    pub(crate) fn uploaded(&mut self, took: Duration) {
        self.on_device = self.bytes;
        self.office.tally().uploaded(self.on_device, took);
        self.weighed(0);
    }

    /// The batch is made, and was measured: later ones may be as large.
    pub(crate) fn learned(&mut self, bytes: u64) {
        let bytes = bytes.min(MOST);
        self.office.0.account.sizes.learn(bytes);
        self.weighed(bytes);
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.office.tally().end(self.bytes, self.on_device);
        if let Some(member) = &self.office.0.member {
            member.release(self.bytes);
        }
    }
}
