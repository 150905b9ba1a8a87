//! A waiting reader's clock, and what it sees of the workers meanwhile.

use std::time::Duration;

use crate::crew::{Badge, Sight};
use crate::pool::Pool;
use crate::report::{CrewReport, Doing, OfUploader, WorkerReport};
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

/// Whom a reader waits for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pools<'a> {
    pub(crate) workers: &'a Pool,
    pub(crate) uploader: Option<&'a Pool>,
}

impl Pools<'_> {
    /// How many threads have been given up and have not come back.
    fn disowned(&self) -> usize {
        self.workers.disowned() + self.uploader.map_or(0, Pool::disowned)
    }
}

/// What one wait has seen so far.
#[derive(Debug)]
pub(crate) struct Watch {
    patience: Patience,
    /// The pass of the reader that waits.
    pass: usize,
    begun: Option<Moment>,
    seen: Vec<Sight>,
    /// The uploader, where there is one.
    uploader: Vec<Sight>,
}

impl Watch {
    pub(crate) fn new(patience: Patience, pass: usize) -> Self {
        Self {
            patience,
            pass,
            begun: None,
            seen: Vec::new(),
            uploader: Vec::new(),
        }
    }

    /// The wait begins, unless it has begun already.
    pub(crate) fn begin(&mut self, pools: Pools<'_>) {
        if self.begun.is_some() || self.patience == Patience::default() {
            return;
        }
        let now = Moment::now();
        self.begun = Some(now);
        // A stall may be noticed a look later; who is given up must be known since the beginning.
        if self.patience.timeout.is_some() {
            self.see(now, pools);
        }
    }

    fn see(&mut self, now: Moment, pools: Pools<'_>) {
        self.seen = pools.workers.look(now, self.pass);
        if let Some(uploader) = pools.uploader {
            self.uploader = uploader.look(now, self.pass);
        }
    }

    pub(crate) fn end(&mut self) {
        self.begun = None;
        self.seen.clear();
        self.uploader.clear();
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
    pub(crate) fn look(&mut self, pools: Pools<'_>) {
        self.see(Moment::now(), pools);
        if let Some(limit) = self.patience.stall_warning {
            for seen in stalled(&self.seen, limit) {
                self.warn(seen, || report(seen, &[]).to_string());
            }
            for seen in stalled(&self.uploader, limit) {
                self.warn(seen, || OfUploader(report(seen, &[])).to_string());
            }
        }
        if let Some(limit) = self.patience.timeout {
            give_up_suspects(pools.workers, &self.seen, limit);
            if let Some(uploader) = pools.uploader {
                give_up_suspects(uploader, &self.uploader, limit);
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
    pub(crate) fn give_up(&mut self, pools: Pools<'_>) -> CrewReport {
        self.see(Moment::now(), pools);
        let limit = self.limit();
        let disowned_before = pools.disowned();
        let workers = give_up_stuck(pools.workers, &self.seen, limit);
        let uploader = pools
            .uploader
            .and_then(|pool| give_up_stuck(pool, &self.uploader, limit).pop());
        CrewReport {
            workers,
            uploader,
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

    fn warn(&self, seen: &Sight, words: impl FnOnce() -> String) {
        if seen.activity.report_once(seen.call) {
            let hint = match self.patience.timeout {
                None => "; a timeout would end the wait",
                Some(_) => "",
            };
            let words = words();
            log::warn!("{words}, and a batch is waited for{hint}");
        }
    }
}

/// Who has been in one call for so long.
fn stalled(seen: &[Sight], limit: Duration) -> impl Iterator<Item = &Sight> {
    let busy = seen.iter().filter(|seen| seen.doing != Doing::Idle);
    busy.filter(move |seen| seen.since.elapsed() >= limit)
}

fn give_up_suspects(pool: &Pool, seen: &[Sight], limit: Duration) {
    let stuck = stalled(seen, limit);
    let suspects = stuck.filter(|seen| seen.activity.is_suspect(seen.call));
    let suspects: Vec<_> = suspects.collect();
    if !suspects.is_empty() {
        pool.give_up_on(&suspects);
    }
}

/// Gives up who has been in one call for too long; whoever is busy may be by a later look. All reports.
fn give_up_stuck(pool: &Pool, seen: &[Sight], limit: Duration) -> Vec<WorkerReport> {
    let stuck: Vec<_> = stalled(seen, limit).collect();
    let gone = pool.give_up_on(&stuck);
    for seen in stalled(seen, Duration::ZERO) {
        seen.activity.suspect(seen.call);
    }
    seen.iter().map(|seen| report(seen, &gone)).collect()
}

fn report(seen: &Sight, gone: &[Badge]) -> WorkerReport {
    WorkerReport {
        worker: seen.badge.number,
        doing: seen.doing,
        at_least: seen.since.elapsed(),
        disowned: gone.contains(&seen.badge),
    }
}
