//! What a worker is doing, written by it alone and read by whoever waits for it.

use crate::report::Doing;
use crate::sync::atomic::{AtomicUsize as Counter, Ordering::SeqCst};
use crate::sync::quiet::{
    AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};

/// One worker's blackboard. Nothing but words and the choice of whom to give up depends on it, so
/// that a call costs its writer two plain stores.
#[derive(Debug, Default)]
pub(crate) struct Activity {
    /// Counts changes: while it stays, the worker is in one and the same call.
    changes: AtomicUsize,
    what: AtomicUsize,
    pass: AtomicUsize,
    epoch: AtomicUsize,
    batch: AtomicUsize,
    index: AtomicUsize,
    /// The call, by `changes`, for which a stall was reported.
    reported: AtomicUsize,
    /// The call that somebody has waited for in vain.
    suspected: AtomicUsize,
    /// Odd while the worker holds readers, and another odd number each time.
    round: Counter,
}

const IDLE: usize = 0;
const STARTING: usize = 1;
const FETCHING: usize = 2;
const FETCHING_ONE: usize = 3;
const ASSEMBLING: usize = 4;
const UPLOADING: usize = 5;

/// How often a reading is tried again when the worker moves on during it.
const TRIES: usize = 4;

/// For which pass and batch user code runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Whereabouts {
    pub(crate) pass: usize,
    pub(crate) epoch: usize,
    pub(crate) batch: usize,
}

impl Activity {
    pub(crate) fn idle(&self) {
        self.change(IDLE);
    }

    pub(crate) fn starting(&self) {
        self.change(STARTING);
    }

    pub(crate) fn fetching(&self, at: Whereabouts) {
        self.go_to(at);
        self.change(FETCHING);
    }

    /// Moves on to one item of what it is fetching.
    #[inline]
    pub(crate) fn item(&self, index: usize) {
        self.index.store(index, Relaxed);
        self.change(FETCHING_ONE);
    }

    pub(crate) fn assembling(&self, at: Whereabouts) {
        self.go_to(at);
        self.change(ASSEMBLING);
    }

    pub(crate) fn uploading(&self, at: Whereabouts) {
        self.go_to(at);
        self.change(UPLOADING);
    }

    /// The worker takes readers in its hands, or has let go of them.
    pub(crate) fn next_round(&self) {
        self.round.fetch_add(1, SeqCst);
    }

    /// The round in which the worker holds readers, if it does.
    pub(crate) fn holds(&self) -> Option<usize> {
        let round = self.round.load(SeqCst);
        (round % 2 == 1).then_some(round)
    }

    fn go_to(&self, at: Whereabouts) {
        self.pass.store(at.pass, Relaxed);
        self.epoch.store(at.epoch, Relaxed);
        self.batch.store(at.batch, Relaxed);
    }

    #[inline]
    fn change(&self, what: usize) {
        self.what.store(what, Relaxed);
        // The worker is the only writer.
        let changes = self.changes.load(Relaxed).wrapping_add(1);
        self.changes.store(changes, Release);
    }

    /// Which call the worker is in, and what it does there, as seen from `pass`.
    pub(crate) fn read(&self, pass: usize) -> (usize, Doing) {
        let mut tries = 0;
        loop {
            let before = self.changes.load(Acquire);
            let doing = self.doing(pass);
            tries += 1;
            if self.changes.load(Acquire) == before || tries == TRIES {
                return (before, doing);
            }
        }
    }

    fn doing(&self, pass: usize) -> Doing {
        let here = self.pass.load(Relaxed) == pass;
        let (epoch, batch) = (self.epoch.load(Relaxed), self.batch.load(Relaxed));
        let index = self.index.load(Relaxed);
        match self.what.load(Relaxed) {
            IDLE => Doing::Idle,
            STARTING => Doing::Starting,
            ASSEMBLING => Doing::Assembling { epoch, batch, here },
            UPLOADING => Doing::Uploading { epoch, batch, here },
            what => Doing::Fetching {
                epoch,
                batch,
                index: (what == FETCHING_ONE).then_some(index),
                here,
            },
        }
    }

    /// Somebody has waited in vain while the worker was in this `call`.
    pub(crate) fn suspect(&self, call: usize) {
        self.suspected.store(call, Relaxed);
    }

    pub(crate) fn is_suspect(&self, call: usize) -> bool {
        self.suspected.load(Relaxed) == call && call > 0
    }

    /// Whether nobody has reported yet that the worker stalls in this `call`; now somebody has.
    pub(crate) fn report_once(&self, call: usize) -> bool {
        self.reported.swap(call, Relaxed) != call
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: Whereabouts = Whereabouts {
        pass: 5,
        epoch: 1,
        batch: 2,
    };

    #[test]
    fn every_call_is_another() {
        let activity = Activity::default();
        assert_eq!(activity.read(5).1, Doing::Idle);
        activity.fetching(AT);
        activity.item(9);
        let (first, doing) = activity.read(5);
        let fetching = |index, here| Doing::Fetching {
            epoch: 1,
            batch: 2,
            index,
            here,
        };
        assert_eq!(doing, fetching(Some(9), true));
        assert_eq!(activity.read(6).1, fetching(Some(9), false));
        activity.item(9);
        assert_ne!(activity.read(5).0, first);
        activity.fetching(AT);
        assert_eq!(activity.read(5).1, fetching(None, true));
    }

    #[test]
    fn a_stall_is_reported_once_a_call() {
        let activity = Activity::default();
        activity.starting();
        let (call, _) = activity.read(0);
        assert!(activity.report_once(call));
        assert!(!activity.report_once(call));
        activity.idle();
        assert!(activity.report_once(activity.read(0).0));
    }
}
