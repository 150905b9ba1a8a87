//! The one setting to change next, from what a loader has measured and what is in force.

use std::time::Duration;

use burn_prefetch_engine::Stats;

use crate::effective::WindowConfig;

/// Less waiting than this share of the time is not worth a change.
const HARDLY: f64 = 0.05;

/// Workers that sleep more than this share of their time have nothing to do.
const IDLE: f64 = 0.3;

/// A share of nothing is none.
const NANO: Duration = Duration::from_nanos(1);

/// Places in the window beyond those of batches in the making: one that is ready, one to follow.
const SPARE: usize = 2;

const NOTHING: &str = "nothing. Batches are there when they are asked for, or almost.";

/// What the number of workers comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hired {
    /// `num_workers(n)`.
    ByNumber,
    /// [`Workers`](crate::Workers) that others may share.
    Shared,
    /// What was measured.
    Automatically,
}

/// What is in force.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    pub(crate) num_workers: usize,
    /// What their number comes from.
    pub(crate) hired: Hired,
    /// How many threads have been given up and are not back.
    pub(crate) disowned: usize,
    /// Items in a batch, where all have as many.
    pub(crate) batch_size: Option<usize>,
    /// What bounds the batches alive,
    pub(crate) window: WindowConfig,
    /// and what was set for that.
    pub(crate) prefetch: Option<usize>,
    pub(crate) prefetch_factor: Option<usize>,
    /// Whether batches are uploaded while `next()` waits for them, although a thread is there for it.
    pub(crate) uploads_late: bool,
    /// Whether the next epoch could begin early and does not.
    pub(crate) may_warm: bool,
}

/// What the numbers show.
pub(crate) struct Sight<'a> {
    pub(crate) frame: &'a Frame,
    pub(crate) fetch: Duration,
    /// With what the same threads uploaded.
    pub(crate) assemble: Duration,
    /// The share of their time that workers slept.
    idle: f64,
}

impl<'a> Sight<'a> {
    pub(crate) fn of(stats: &Stats, frame: &'a Frame) -> Self {
        let workers = stats.workers.iter();
        let all = workers.map(|worker| worker.work).chain([stats.callers]);
        let (fetch, assemble) = all.fold((Duration::ZERO, Duration::ZERO), |sum, work| {
            (sum.0 + work.fetch, sum.1 + work.assemble + work.upload)
        });
        let slept: Duration = stats.workers.iter().map(|worker| worker.idle).sum();
        let whole = slept + fetch + assemble;
        let idle = match frame.num_workers {
            0 => 0.0,
            _ => slept.as_secs_f64() / whole.as_secs_f64().max(f64::MIN_POSITIVE),
        };
        Self {
            frame,
            fetch,
            assemble,
            idle,
        }
    }
}

/// What to change next, and why.
pub(crate) fn next(stats: &Stats, sight: &Sight<'_>) -> String {
    let frame = sight.frame;
    if stats.errors > 0 || frame.disowned > 0 {
        let after = of_speed(stats, sight);
        return format!("see why there were errors; after that, {after}");
    }
    of_speed(stats, sight)
}

fn of_speed(stats: &Stats, sight: &Sight<'_>) -> String {
    let (waits, frame) = (&stats.waits, sight.frame);
    let share = |waited: Duration| waits.share() * waited.div_duration_f64(waits.sum.max(NANO));
    if share(waits.sum) < HARDLY {
        return NOTHING.to_owned();
    }
    if frame.num_workers == 0 {
        let one = workers(frame, 1);
        return format!("{one}: every batch is made while next() waits for it.");
    }
    if share(waits.sum.saturating_sub(waits.first)) < HARDLY {
        return if frame.may_warm && share(waits.first) >= HARDLY {
            "warm_next_epoch(true): what is waited for is the first batch of each epoch.".to_owned()
        } else {
            NOTHING.to_owned()
        };
    }
    let refused = stats.budget.is_some_and(|budget| budget.refused > 0);
    if sight.idle > IDLE && refused {
        return "a larger memory_budget, or a smaller batch_size: workers sleep since there is no room \
                for another batch."
            .to_owned();
    }
    if sight.idle > IDLE && frame.uploads_late {
        return "device_prefetch(1): every batch is uploaded while next() waits for it.".to_owned();
    }
    if sight.idle > IDLE {
        let now = match frame.window {
            WindowConfig::Batches(batches) => (batches as u64).max(1),
            WindowConfig::Inline | WindowConfig::Learned { .. } => stats.batches.most.max(1),
        };
        let twice = usize::try_from(now).unwrap_or(usize::MAX).saturating_mul(2);
        let wider = window(frame, (frame.num_workers, twice));
        let now = match now {
            1 => "1 does".to_owned(),
            more => format!("{more} do"),
        };
        return format!(
            "{wider}: workers sleep while next() waits, so batches are asked for in bursts that {now} \
             not cover."
        );
    }
    more_workers(sight)
}

fn more_workers(sight: &Sight<'_>) -> String {
    let frame = sight.frame;
    let assembles = sight.assemble > sight.fetch;
    let busy = match frame.num_workers {
        1 => "the only worker is busy".to_owned(),
        all => format!("all {all} workers are busy"),
    };
    let (place, mostly) = if assembles {
        ("batcher", ", and most of it is assembly")
    } else {
        ("dataset", "")
    };
    let more = frame.num_workers + 1;
    let mut change = workers(frame, more);
    // Each batch in assembly has one worker, and a place in the window.
    let wanted = more + SPARE;
    if assembles && in_all(frame, more).is_some_and(|batches| batches < wanted) {
        change = format!("{change} and {}", window(frame, (more, wanted)));
    }
    format!("{change}, or less work in the {place}: {busy}{mostly}.")
}

/// How many batches may be alive with so many workers, where that is set.
fn in_all(frame: &Frame, workers: usize) -> Option<usize> {
    let by_factor = frame.prefetch_factor.map(|it| it.saturating_mul(workers));
    by_factor.into_iter().chain(frame.prefetch).min()
}

/// What sets so many workers.
fn workers(frame: &Frame, workers: usize) -> String {
    match frame.hired {
        Hired::ByNumber => format!("num_workers({workers})"),
        Hired::Shared => format!("Workers::new({workers})"),
        Hired::Automatically => "a larger cpu_share or more cores".to_owned(),
    }
}

/// What sets a window of so many batches at least, for so many workers.
fn window(frame: &Frame, (workers, batches): (usize, usize)) -> String {
    let factor = frame.prefetch_factor.map(|factor| {
        let enough = batches.div_ceil(workers.max(1));
        (enough > factor).then(|| format!("prefetch_factor({enough})"))
    });
    let total = match (factor.is_some(), frame.prefetch) {
        (false, _) => Some(format!("prefetch({batches})")),
        (true, Some(total)) if total < batches => Some(format!("prefetch({batches})")),
        (true, Some(_) | None) => None,
    };
    let changes: Vec<_> = factor.flatten().into_iter().chain(total).collect();
    changes.join(" and ")
}
