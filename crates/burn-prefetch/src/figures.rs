//! What a loader's statistics say since the last look, and of an epoch.

use std::sync::Arc;

use burn_prefetch_engine::{Level, Stats, WaitStats};

use crate::burn::NumericEntry;
use crate::loader::PrefetchDataLoader;

/// The statistics of one loader, which lives as long.
#[derive(Clone)]
pub(crate) struct Source(pub(crate) Arc<dyn Fn() -> Stats + Send + Sync>);

impl Source {
    pub(crate) fn of<O: Send + 'static>(loader: &Arc<PrefetchDataLoader<O>>) -> Self {
        let loader = Arc::clone(loader);
        Self(Arc::new(move || loader.stats()))
    }

    fn now(&self) -> Stats {
        self.0()
    }
}

/// What one of the metrics here shows.
pub(crate) trait Figure {
    /// What there is to see since the last look, which may be nothing.
    fn look(&mut self);
    /// Of what the last look saw.
    fn last(&self) -> Option<NumericEntry>;
    /// Of the epoch so far, or what stands for it.
    fn epoch(&self) -> NumericEntry;
    /// Another epoch begins; what is not looked at yet is its.
    fn clear(&mut self);
    /// Both of them in words.
    fn words(&self) -> String;
}

/// A mean over batches.
#[derive(Clone)]
pub(crate) struct Mean {
    source: Source,
    unit: &'static str,
    /// From all waits so far, what of them is summed up.
    total: fn(&WaitStats) -> f64,
    /// Up to where the waits are in the sums.
    seen: WaitStats,
    epoch: Sum,
    last: Sum,
}

#[derive(Clone, Copy, Default)]
struct Sum {
    total: f64,
    batches: u64,
}

impl Mean {
    pub(crate) fn new(source: Source, unit: &'static str, total: fn(&WaitStats) -> f64) -> Self {
        Self {
            seen: source.now().waits,
            source,
            unit,
            total,
            epoch: Sum::default(),
            last: Sum::default(),
        }
    }
}

impl Sum {
    /// `NaN` of none, as burn-train has it.
    #[expect(clippy::cast_precision_loss, reason = "a mean needs no 53 bits")]
    fn mean(self) -> f64 {
        self.total / self.batches as f64
    }

    fn entry(self) -> NumericEntry {
        NumericEntry::Aggregated {
            aggregated_value: self.mean(),
            count: usize::try_from(self.batches).unwrap_or(usize::MAX),
        }
    }
}

impl Figure for Mean {
    fn look(&mut self) {
        let now = self.source.now().waits;
        self.last = Sum {
            total: (self.total)(&now) - (self.total)(&self.seen),
            batches: now.count.saturating_sub(self.seen.count),
        };
        self.epoch.total += self.last.total;
        self.epoch.batches += self.last.batches;
        self.seen = now;
    }

    fn last(&self) -> Option<NumericEntry> {
        (self.last.batches > 0).then(|| self.last.entry())
    }

    fn epoch(&self) -> NumericEntry {
        self.epoch.entry()
    }

    fn clear(&mut self) {
        self.epoch = Sum::default();
        self.last = Sum::default();
    }

    fn words(&self) -> String {
        let (unit, epoch) = (self.unit, self.epoch.mean());
        match self.last.batches {
            0 => format!("epoch {epoch:.2} {unit} - batch N/A"),
            _ => format!(
                "epoch {epoch:.2} {unit} - batch {:.2} {unit}",
                self.last.mean()
            ),
        }
    }
}

/// Bytes alive, and the most that they were since the loader was built: no smaller most can be told
/// from what a loader keeps.
#[derive(Clone)]
pub(crate) struct Bytes {
    source: Source,
    level: Level,
}

impl Bytes {
    pub(crate) fn new(source: Source) -> Self {
        Self {
            source,
            level: Level::default(),
        }
    }
}

impl Figure for Bytes {
    fn look(&mut self) {
        self.level = self.source.now().bytes;
    }

    fn last(&self) -> Option<NumericEntry> {
        Some(NumericEntry::Value(mebibytes(self.level.now)))
    }

    fn epoch(&self) -> NumericEntry {
        NumericEntry::Value(mebibytes(self.level.most))
    }

    fn clear(&mut self) {}

    fn words(&self) -> String {
        let Level { now, most, .. } = self.level;
        let [now, most] = [now, most].map(mebibytes);
        format!("most {most:.2} MiB - now {now:.2} MiB")
    }
}

#[expect(clippy::cast_precision_loss, reason = "shown with two digits")]
fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}
