//! A waiting reader's clock, and what it sees of the workers meanwhile.

use std::sync::Arc;
use std::time::Duration;

use crate::activity::Activity;
use crate::crew::Badge;
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
    seen: Vec<Seen>,
}

/// One worker since the wait began.
#[derive(Debug)]
struct Seen {
    badge: Badge,
    activity: Arc<Activity>,
    call: usize,
    doing: Doing,
    /// Since when it has been in this call, as far as was looked.
    since: Moment,
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
        // A stall may be noticed a look later; who is given up must not have moved since now.
        if self.patience.timeout.is_some() {
            self.see(pool, now);
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

    /// Looks at every worker, and warns of those that stall.
    pub(crate) fn look(&mut self, pool: &Pool) {
        self.see(pool, Moment::now());
        let Some(limit) = self.patience.stall_warning else {
            return;
        };
        for seen in self.seen.iter().filter(|seen| seen.is_busy_for(limit)) {
            if seen.activity.report_once(seen.call) {
                log::warn!("{}, and a batch is waited for", seen.report(&[]));
            }
        }
    }

    fn see(&mut self, pool: &Pool, now: Moment) {
        let before = std::mem::take(&mut self.seen);
        pool.visit(|badge, activity| {
            let (call, doing) = activity.read(self.pass);
            let same = |seen: &&Seen| seen.badge == badge && seen.call == call;
            let since = before.iter().find(same).map_or(now, |seen| seen.since);
            self.seen.push(Seen {
                badge,
                activity: Arc::clone(activity),
                call,
                doing,
                since,
            });
        });
    }

    /// Whether the wait has lasted as long as it may.
    pub(crate) fn is_over(&self) -> bool {
        self.begun.is_some()
            && self
                .patience
                .timeout
                .is_some_and(|limit| self.waited() >= limit)
    }

    /// Gives up the workers that have been in one call for the whole time, and reports of all.
    pub(crate) fn give_up(&mut self, pool: &Pool) -> CrewReport {
        self.look(pool);
        let limit = self.patience.timeout.unwrap_or(Duration::MAX);
        let busy = self.seen.iter().filter(|seen| seen.is_busy_for(limit));
        let stuck: Vec<_> = busy.map(|seen| seen.badge).collect();
        let disowned_before = pool.disowned();
        let gone = pool.give_up_on(&stuck);
        let workers = self.seen.iter().map(|seen| seen.report(&gone)).collect();
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
}

impl Seen {
    fn is_busy_for(&self, limit: Duration) -> bool {
        self.doing != Doing::Idle && self.since.elapsed() >= limit
    }

    fn report(&self, gone: &[Badge]) -> WorkerReport {
        WorkerReport {
            worker: self.badge.number,
            doing: self.doing,
            at_least: self.since.elapsed(),
            disowned: gone.contains(&self.badge),
        }
    }
}
