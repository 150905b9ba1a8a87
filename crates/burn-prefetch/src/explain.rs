//! How a loader is doing, in words that a person can act on.

use std::fmt::Write;
use std::time::Duration;

use burn_prefetch_engine::Stats;

use crate::effective::EffectiveConfig;

/// Batches that are there when asked for, in so many of 100, need nothing changed.
const READY: f64 = 0.95;

/// Workers that sleep more than this share of their time have nothing to do.
const IDLE: f64 = 0.3;

/// An item that takes so many times the usual one is worth a word.
const OUTLIER: u32 = 20;

/// What is bounded by what, what waits for what, and what to change next.
pub(crate) fn explain(stats: &Stats, config: &EffectiveConfig, window: Option<usize>) -> String {
    let mut text = bounds(stats, config, window);
    if stats.waits.count == 0 {
        text.push_str("\nNothing was read yet: look again after some batches.");
        return text;
    }
    let sight = Sight::of(stats, config);
    // Writing into a text does not fail.
    let _ = write!(text, "\n{}", sight.waits(stats));
    if let Some(words) = sight.ceiling() {
        let _ = write!(text, "\n{words}");
    }
    let _ = write!(text, "\nNext: {}", sight.next(stats, window));
    if let Some(words) = sight.outlier(stats) {
        let _ = write!(text, "\n{words}");
    }
    text
}

fn bounds(stats: &Stats, config: &EffectiveConfig, window: Option<usize>) -> String {
    let mut text = String::from("Bounded: ");
    let _ = match window {
        Some(batches) if config.num_workers > 0 => write!(text, "at most {batches} batches alive"),
        Some(_) | None => write!(text, "{}", config.window),
    };
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
            "\nBudget: {} of {} in use, {} at most, by {} iterators; {} batches were put off.",
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
    batches: u64,
    fetch: Duration,
    assemble: Duration,
    /// The share of their time that workers slept.
    idle: f64,
    readiness: f64,
    /// Fetched in all, where every batch has as many.
    items: Option<u64>,
}

impl Sight {
    fn of(stats: &Stats, config: &EffectiveConfig) -> Self {
        let workers = stats.workers.iter();
        let all = workers.map(|worker| worker.work).chain([stats.callers]);
        let (fetch, assemble) = all.fold((Duration::ZERO, Duration::ZERO), |sum, work| {
            (sum.0 + work.fetch, sum.1 + work.assemble)
        });
        let slept: Duration = stats.workers.iter().map(|worker| worker.idle).sum();
        let whole = slept + fetch + assemble;
        let idle = match config.num_workers {
            0 => 0.0,
            _ => slept.as_secs_f64() / whole.as_secs_f64().max(f64::MIN_POSITIVE),
        };
        Self {
            workers: config.num_workers,
            batches: stats.waits.count,
            fetch,
            assemble,
            idle,
            readiness: stats.waits.readiness(),
            items: config
                .batch_size
                .map(|items| stats.waits.count * items as u64),
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

    fn next(&self, stats: &Stats, window: Option<usize>) -> String {
        let refused = stats.budget.is_some_and(|budget| budget.refused > 0);
        let now = window.map_or(stats.batches.most, |batches| batches as u64);
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
                2 * now.max(1)
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
