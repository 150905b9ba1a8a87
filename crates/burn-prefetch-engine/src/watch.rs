//! A waiting reader's clock, and what it sees of the workers meanwhile.

use std::time::Duration;

use crate::crew::{Badge, Sight};
use crate::pool::Pool;
use crate::report::{CrewReport, Doing, WorkerReport};
use crate::sync::Moment;

/// So many looks at the workers fit into the shorter of the two limits.
const LOOKS: u32 = 8;

/// No more looks than one in so long.
const SHORTEST: Duration = Duration::from_millis(1);

/// How long a reader waits for a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Patience {
    /// One `next()` waits so long and then returns an error; `None`: for ever.
    pub timeout: Option<Duration>,
    /// A warning is logged when a worker has been in one call for so long while a reader waits.
    pub stall_warning: Option<Duration>,
}

/// What one wait has seen so far.
#[derive(Debug)]
pub(crate) struct Watch {
    patience: Patience,
    /// The pass of the reader that waits.
    pass: usize,
    begun: Option<Moment>,
    seen: Vec<Sight>,
}

impl Watch {
    pub(crate) fn new(patience: Patience, pass: usize) -> Self {
        Self {
            patience,
            pass,
            begun: None,
            seen: Vec::new(),
        }
    }

    /// The wait begins, unless it has begun already.
    pub(crate) fn begin(&mut self, pool: &Pool) {
        if self.begun.is_some() || self.patience == Patience::default() {
            return;
        }
        let now = Moment::now();
        self.begun = Some(now);
        // A stall may be noticed a look later; who is given up must be known since the beginning.
        if self.patience.timeout.is_some() {
            self.seen = pool.look(now, self.pass);
        }
    }

    pub(crate) fn end(&mut self) {
        self.begun = None;
        self.seen.clear();
    }

    /// How long to wait until the next look; `None`: for ever.
    pub(crate) fn pause(&self) -> Option<Duration> {
        let Patience {
            timeout,
            stall_warning,
        } = self.patience;
        let shorter = timeout.into_iter().chain(stall_warning).min()?;
        let pause = (shorter / LOOKS).max(SHORTEST);
        let left = timeout.map(|timeout| timeout.saturating_sub(self.waited()));
        Some(left.map_or(pause, |left| pause.min(left)))
    }

    /// Looks at every worker: warns of those that stall, and gives up those that somebody has waited
    /// for in vain before and that have been in that same call for long enough now.
    pub(crate) fn look(&mut self, pool: &Pool) {
        self.seen = pool.look(Moment::now(), self.pass);
        if let Some(limit) = self.patience.stall_warning {
            self.stalled(limit).for_each(|seen| self.warn(seen));
        }
        if let Some(limit) = self.patience.timeout {
            let stuck = self.stalled(limit);
            let suspects = stuck.filter(|seen| seen.activity.is_suspect(seen.call));
            let suspects: Vec<_> = suspects.collect();
            if !suspects.is_empty() {
                pool.give_up_on(&suspects);
            }
        }
    }

    /// Whether the wait has lasted as long as it may.
    pub(crate) fn is_over(&self) -> bool {
        let waited = self.begun.map(Moment::elapsed);
        let limit = self.patience.timeout;
        limit
            .zip(waited)
            .is_some_and(|(limit, waited)| waited >= limit)
    }

    /// Gives up the workers that have been in one call for as long as the reader may wait, and
    /// reports of all. The others that are busy are given up by a later look, if they stay so.
    pub(crate) fn give_up(&mut self, pool: &Pool) -> CrewReport {
        self.seen = pool.look(Moment::now(), self.pass);
        let limit = self.limit();
        let stuck: Vec<_> = self.stalled(limit).collect();
        let disowned_before = pool.disowned();
        let gone = pool.give_up_on(&stuck);
        for seen in self.stalled(Duration::ZERO) {
            seen.activity.suspect(seen.call);
        }
        let workers = self.seen.iter().map(|seen| report(seen, &gone)).collect();
        CrewReport {
            workers,
            disowned_before,
        }
    }

    /// The timeout.
    pub(crate) fn limit(&self) -> Duration {
        self.patience.timeout.unwrap_or_default()
    }

    fn waited(&self) -> Duration {
        self.begun.map(Moment::elapsed).unwrap_or_default()
    }

    /// Who has been in one call for so long.
    fn stalled(&self, limit: Duration) -> impl Iterator<Item = &Sight> {
        let busy = self.seen.iter().filter(|seen| seen.doing != Doing::Idle);
        busy.filter(move |seen| seen.since.elapsed() >= limit)
    }

    fn warn(&self, seen: &Sight) {
        if seen.activity.report_once(seen.call) {
            let hint = match self.patience.timeout {
                None => "; a timeout would end the wait",
                Some(_) => "",
            };
            let words = report(seen, &[]);
            log::warn!("{words}, and a batch is waited for{hint}");
        }
    }
}

fn report(seen: &Sight, gone: &[Badge]) -> WorkerReport {
    WorkerReport {
        worker: seen.badge.number,
        doing: seen.doing,
        at_least: seen.since.elapsed(),
        disowned: gone.contains(&seen.badge),
    }
}
