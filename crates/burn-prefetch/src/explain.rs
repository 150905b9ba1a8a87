//! How a loader is doing, in words that a person can act on.

use std::fmt::Write;
use std::time::Duration;

use burn_prefetch_engine::Stats;

use crate::effective::WindowConfig;

/// Batches that are there when asked for, in so many of 100, need nothing changed.
const READY: f64 = 0.95;

/// Workers that sleep more than this share of their time have nothing to do.
const IDLE: f64 = 0.3;

/// An item that takes so many times the usual one is worth a word.
const OUTLIER: u32 = 20;

/// What is in force.
pub(crate) struct Frame {
    pub(crate) num_workers: usize,
    /// Items in a batch, where all have as many.
    pub(crate) batch_size: Option<usize>,
    /// What bounds the batches alive.
    pub(crate) window: WindowConfig,
}

/// What is bounded by what, what waits for what, and what to change next.
pub(crate) fn explain(stats: &Stats, frame: &Frame) -> String {
    let mut text = bounds(stats, frame);
    if stats.waits.count == 0 {
        text.push_str("\nNothing was read yet: look again after some batches.");
        return text;
    }
    let sight = Sight::of(stats, frame);
    // Writing into a text does not fail.
    let _ = write!(text, "\n{}", sight.waits(stats));
    if let Some(words) = sight.ceiling() {
        let _ = write!(text, "\n{words}");
    }
    let _ = write!(text, "\nNext: {}", sight.next(stats));
    if let Some(words) = sight.outlier(stats) {
        let _ = write!(text, "\n{words}");
    }
    text
}

fn bounds(stats: &Stats, frame: &Frame) -> String {
    let mut text = format!("Bounded: {}", frame.window);
    let (batches, bytes) = (stats.batches.most, stats.bytes.most);
    let _ = write!(text, "; at most {batches} were");
    if bytes > 0 {
        let _ = write!(text, ", with {}", mebi(bytes));
    }
    if let Some(largest) = stats.largest_batch.filter(|bytes| *bytes > 0) {
        let all = largest.saturating_mul(batches + 1);
        let _ = write!(
            text,
            "; with the one in use ({batches} + 1) × {} = {}",
            mebi(largest),
            mebi(all)
        );
    }
    text.push('.');
    if let Some(budget) = &stats.budget {
        let _ = write!(
            text,
            "\nBudget: {} of {} in use, {} at most; iterators: {}; no room for a batch: {} times.",
            mebi(budget.used.now),
            mebi(budget.limit),
            mebi(budget.used.most),
            budget.readers,
            budget.refused
        );
        if budget.overshoot > 0 {
            let _ = write!(
                text,
                " Batches larger than the 64 before them took it {} beyond.",
                mebi(budget.overshoot)
            );
        }
    }
    text
}

/// What the numbers show.
struct Sight {
    workers: usize,
    /// How many batches may be alive, where that is not learned.
    window: Option<u64>,
    batches: u64,
    fetch: Duration,
    /// With what the same threads uploaded.
    assemble: Duration,
    /// The share of their time that workers slept.
    idle: f64,
    readiness: f64,
    /// Fetched in all, where every batch has as many.
    items: Option<u64>,
}

impl Sight {
    fn of(stats: &Stats, frame: &Frame) -> Self {
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
            workers: frame.num_workers,
            window: match frame.window {
                WindowConfig::Batches(batches) => Some(batches.max(1) as u64),
                WindowConfig::Inline | WindowConfig::Learned { .. } => None,
            },
            batches: stats.waits.count,
            fetch,
            assemble,
            idle,
            readiness: stats.waits.readiness(),
            items: frame
                .batch_size
                .map(|items| stats.waits.count.saturating_mul(items as u64)),
        }
    }

    fn waits(&self, stats: &Stats) -> String {
        let waits = &stats.waits;
        let each = |whole: Duration| whole.div_f64(real(self.batches));
        format!(
            "Waits: {:.0} of 100 batches were ready; next() waited {:.1?} in all, 99 of 100 times no \
             longer than {:.1?}, at most {:.1?}. A batch takes {:.1?} to fetch and {:.1?} to assemble.",
            self.readiness * 100.0,
            waits.sum,
            waits.p99,
            waits.max,
            each(self.fetch),
            each(self.assemble)
        )
    }

    /// How fast the workers could be, if they did nothing else.
    fn ceiling(&self) -> Option<String> {
        let work = (self.fetch + self.assemble).as_secs_f64() / real(self.batches);
        if work <= 0.0 {
            return None;
        }
        let hands = self.workers.max(1);
        let rate = real(hands as u64) / work;
        let who = match self.workers {
            0 => "the calling thread makes".to_owned(),
            1 => "1 worker makes".to_owned(),
            more => format!("{more} workers make"),
        };
        Some(format!(
            "Ceiling: {who} {rate:.0} batches a second at most."
        ))
    }

    fn next(&self, stats: &Stats) -> String {
        let refused = stats.budget.is_some_and(|budget| budget.refused > 0);
        let now = self.window.unwrap_or(stats.batches.most);
        if self.workers == 0 {
            return "num_workers(1): every batch is made while next() waits for it.".to_owned();
        }
        if self.readiness >= READY {
            return "nothing. Batches are there when they are asked for.".to_owned();
        }
        if self.idle > IDLE && refused {
            return "a larger memory_budget, or a smaller batch_size: workers sleep since there is no \
                    room for another batch."
                .to_owned();
        }
        if self.idle > IDLE {
            return format!(
                "prefetch({}): workers sleep while next() waits, so batches are asked for in bursts \
                 that {now} do not cover.",
                now.max(1).saturating_mul(2)
            );
        }
        if self.assemble > self.fetch {
            return format!(
                "num_workers({}), or less work in the batcher: all {} workers are busy, and most of \
                 it is assembly.",
                self.workers + 1,
                self.workers
            );
        }
        format!(
            "num_workers({}), or less work in the dataset: all {} workers are busy.",
            self.workers + 1,
            self.workers
        )
    }

    /// An item that takes much longer than the others.
    fn outlier(&self, stats: &Stats) -> Option<String> {
        let slowest = stats.slowest.first()?;
        let items = self.items.filter(|items| *items > 0)?;
        let usual = self.fetch.div_f64(real(items));
        (slowest.took > usual * OUTLIER).then(|| {
            format!(
                "Slow: index {} took {:.1?}, where an item takes {usual:.1?}.",
                slowest.index, slowest.took
            )
        })
    }
}

#[expect(clippy::cast_precision_loss, reason = "for words, not for sums")]
fn real(count: u64) -> f64 {
    count as f64
}

fn mebi(bytes: u64) -> String {
    format!("{:.2} MiB", real(bytes) / f64::from(1 << 20))
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn_prefetch_engine::{BudgetStats, SlowItem, WaitStats, Work, WorkerStats};

    const fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn frame(num_workers: usize) -> Frame {
        Frame {
            num_workers,
            batch_size: Some(32),
            window: match num_workers {
                0 => WindowConfig::Inline,
                _ => WindowConfig::Batches(4),
            },
        }
    }

    /// 100 batches, of which so many were ready, and `waited` for the others; two workers that
    /// fetched, assembled and slept for so many milliseconds each.
    fn stats(ready: u64, waited: u64, each: (u64, u64, u64)) -> Stats {
        let (fetch, assemble, idle) = each;
        let mut stats = Stats::default();
        stats.waits = waits(ready, waited);
        (stats.batches.now, stats.batches.most) = (2, 4);
        (stats.bytes.now, stats.bytes.most) = (2 << 20, 4 << 20);
        stats.largest_batch = Some(1 << 20);
        let mut worker = WorkerStats::default();
        worker.work = work(fetch, assemble);
        worker.idle = millis(idle);
        stats.workers = vec![worker; 2];
        stats
    }

    fn work(fetch: u64, assemble: u64) -> Work {
        let mut work = Work::default();
        work.fetch = millis(fetch);
        work.assemble = millis(assemble);
        work
    }

    fn waits(ready: u64, waited: u64) -> WaitStats {
        let mut waits = WaitStats::default();
        (waits.count, waits.ready) = (100, ready);
        (waits.sum, waits.max) = (millis(waited), millis(waited / 5));
        waits.p99 = millis(waited / 10);
        waits
    }

    #[test]
    fn before_the_first_batch() {
        let text = explain(&Stats::default(), &frame(2));
        assert_eq!(
            text,
            "Bounded: at most 4 batches alive; at most 0 were.\n\
             Nothing was read yet: look again after some batches."
        );
    }

    #[test]
    fn without_workers() {
        let mut stats = stats(0, 500, (0, 0, 0));
        stats.workers.clear();
        stats.callers = work(400, 100);
        (stats.batches.most, stats.bytes.most) = (1, 1 << 20);
        assert_eq!(
            explain(&stats, &frame(0)),
            "Bounded: 1 batch, made when next() asks for it; at most 1 were, with 1.00 MiB; with the one in \
             use (1 + 1) × 1.00 MiB = 2.00 MiB.\n\
             Waits: 0 of 100 batches were ready; next() waited 500.0ms in all, 99 of 100 times no \
             longer than 50.0ms, at most 100.0ms. A batch takes 4.0ms to fetch and 1.0ms to assemble.\n\
             Ceiling: the calling thread makes 200 batches a second at most.\n\
             Next: num_workers(1): every batch is made while next() waits for it."
        );
    }

    #[test]
    fn when_all_is_well() {
        let stats = stats(98, 10, (200, 50, 750));
        assert_eq!(
            explain(&stats, &frame(2)),
            "Bounded: at most 4 batches alive; at most 4 were, with 4.00 MiB; with the one in use \
             (4 + 1) × 1.00 MiB = 5.00 MiB.\n\
             Waits: 98 of 100 batches were ready; next() waited 10.0ms in all, 99 of 100 times no \
             longer than 1.0ms, at most 2.0ms. A batch takes 4.0ms to fetch and 1.0ms to assemble.\n\
             Ceiling: 2 workers make 400 batches a second at most.\n\
             Next: nothing. Batches are there when they are asked for."
        );
    }

    #[test]
    fn when_the_workers_are_busy() {
        let fetching = stats(20, 400, (900, 50, 50));
        assert_eq!(
            explain(&fetching, &frame(2)),
            "Bounded: at most 4 batches alive; at most 4 were, with 4.00 MiB; with the one in use \
             (4 + 1) × 1.00 MiB = 5.00 MiB.\n\
             Waits: 20 of 100 batches were ready; next() waited 400.0ms in all, 99 of 100 \
             times no longer than 40.0ms, at most 80.0ms. A batch takes 18.0ms to fetch \
             and 1.0ms to assemble.\n\
             Ceiling: 2 workers make 105 batches a second at most.\n\
             Next: num_workers(3), or less work in the dataset: all 2 workers are busy."
        );
        let assembling = stats(20, 400, (50, 900, 50));
        assert!(explain(&assembling, &frame(2)).contains("less work in the batcher"));
    }

    #[test]
    fn when_batches_are_asked_for_in_bursts() {
        let mut stats = stats(60, 400, (200, 50, 750));
        let mut item = SlowItem::default();
        (item.index, item.took) = (17, millis(40));
        stats.slowest = vec![item];
        assert_eq!(
            explain(&stats, &frame(2)),
            "Bounded: at most 4 batches alive; at most 4 were, with 4.00 MiB; with the one in use \
             (4 + 1) × 1.00 MiB = 5.00 MiB.\n\
             Waits: 60 of 100 batches were ready; next() waited 400.0ms in all, 99 of 100 \
             times no longer than 40.0ms, at most 80.0ms. A batch takes 4.0ms to fetch \
             and 1.0ms to assemble.\n\
             Ceiling: 2 workers make 400 batches a second at most.\n\
             Next: prefetch(8): workers sleep while next() waits, so batches are asked for in bursts \
             that 4 do not cover.\n\
             Slow: index 17 took 40.0ms, where an item takes 125.0µs."
        );
    }

    #[test]
    fn when_there_is_no_room_for_more() {
        let mut stats = stats(60, 400, (200, 50, 750));
        let mut budget = BudgetStats::default();
        budget.limit = 4 << 20;
        budget.used = stats.bytes;
        (budget.readers, budget.refused, budget.overshoot) = (1, 70, 1 << 19);
        stats.budget = Some(budget);
        assert_eq!(
            explain(&stats, &frame(2)),
            "Bounded: at most 4 batches alive; at most 4 were, with 4.00 MiB; with the one in use \
             (4 + 1) × 1.00 MiB = 5.00 MiB.\n\
             Budget: 2.00 MiB of 4.00 MiB in use, 4.00 MiB at most; iterators: 1; no room for a \
             batch: 70 times. Batches larger than the 64 before them took it 0.50 MiB beyond.\n\
             Waits: 60 of 100 batches were ready; next() waited 400.0ms in all, 99 of 100 \
             times no longer than 40.0ms, at most 80.0ms. A batch takes 4.0ms to fetch \
             and 1.0ms to assemble.\n\
             Ceiling: 2 workers make 400 batches a second at most.\n\
             Next: a larger memory_budget, or a smaller batch_size: workers sleep since there is no \
             room for another batch."
        );
    }
}
