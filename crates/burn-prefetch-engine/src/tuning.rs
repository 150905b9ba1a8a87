//! Brings what a loader measures to its tuner, from time to time, and does what that decides.

use std::time::Duration;

use crate::dial::Dial;
use crate::pool::Pool;
use crate::sync::{Moment, QuietMutex};
use crate::tally::Totals;
use crate::tuner::{Decision, Facts, Knob, Tuner};

/// Looks are this far apart at least.
const PAUSE: Duration = Duration::from_millis(100);

/// A tuner at work for one loader. Readers look after their batches; there is no thread for it.
#[derive(Debug)]
pub struct Tuning {
    began: Moment,
    /// Whether decisions are taken again, each at its batch.
    replays: bool,
    state: QuietMutex<State>,
}

#[derive(Debug)]
struct State {
    tuner: Tuner,
    last: Totals,
    looked: Moment,
}

impl Tuning {
    /// Begins now.
    #[must_use]
    pub fn new(tuner: Tuner) -> Self {
        let now = Moment::now();
        let replays = tuner.replays();
        let state = State {
            tuner,
            last: Totals::default(),
            looked: now,
        };
        Self {
            began: now,
            replays,
            state: QuietMutex::new(state),
        }
    }

    /// What has been decided so far.
    #[must_use]
    pub fn decisions(&self) -> Vec<Decision> {
        self.state.lock().tuner.decisions().to_vec()
    }

    /// Somebody sets this: from now on nothing is decided about it.
    pub fn leave(&self, knob: Knob) {
        self.state.lock().tuner.leave(knob);
    }

    /// Whether something may be decided about this.
    #[must_use]
    pub fn has(&self, knob: Knob) -> bool {
        self.state.lock().tuner.has(knob)
    }

    /// Whether it has to look after every batch.
    pub(crate) fn replays(&self) -> bool {
        self.replays
    }

    /// Looks, if it is time to, and does what is decided.
    pub(crate) fn look(&self, totals: impl FnOnce() -> Totals, (dial, pool): (&Dial, &Pool)) {
        let Some(decision) = self.decide(totals, (dial, pool)) else {
            return;
        };
        match decision.knob {
            Knob::Window => dial.set_ahead(decision.to),
            Knob::Workers => {
                pool.resize(decision.to);
                dial.workers_are(decision.to);
            }
        }
        let Decision {
            batch,
            knob,
            from,
            to,
            why,
            ..
        } = decision;
        log::info!("after {batch} batches: {knob:?} {from} becomes {to} ({why:?})");
    }

    fn decide(
        &self,
        totals: impl FnOnce() -> Totals,
        (dial, pool): (&Dial, &Pool),
    ) -> Option<Decision> {
        let mut state = self.state.lock();
        let passed = state.looked.elapsed();
        if passed < PAUSE && !self.replays {
            return None;
        }
        let now = totals();
        if self.replays && !state.tuner.is_due(now.returned) {
            return None;
        }
        let last = std::mem::replace(&mut state.last, now);
        state.looked = Moment::now();
        state.tuner.look(&Facts {
            at: self.began.elapsed(),
            batch: now.returned,
            passed,
            returned: now.returned - last.returned,
            waited: now.waited.saturating_sub(last.waited),
            busy: now.busy.saturating_sub(last.busy),
            starved: now.starved - last.starved,
            refused: now.refused - last.refused,
            window: dial.ahead().unwrap_or(now.window),
            workers: pool.size(),
        })
    }
}
