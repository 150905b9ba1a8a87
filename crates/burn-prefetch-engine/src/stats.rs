//! What a loader has counted and measured, as plain values.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How a loader is doing: everything since it was built, all of its iterators together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Stats {
    /// What `next()` waited.
    pub waits: WaitStats,
    /// Batches alive: from the first fetch until the `next()` that returns them takes them.
    pub batches: Level,
    /// Their bytes in host memory, as far as their sizes are known: declared, or measured once they are
    /// made.
    pub bytes: Level,
    /// The largest of the last 64 batches, where batches are measured.
    pub largest_batch: Option<u64>,
    /// The budget that the loader keeps, with what others use of it.
    pub budget: Option<BudgetStats>,
    /// What the workers did, by number.
    pub workers: Vec<WorkerStats>,
    /// What was done on threads that call `next()`: all of it with 0 workers.
    pub callers: Work,
    /// What was moved to a device with memory of its own, by the one thread that does this.
    pub uploads: UploadStats,
    /// The most batches that were finished and waited for an earlier one.
    pub reorder_depth: usize,
    /// Errors that were returned.
    pub errors: u64,
    /// The slowest items, slowest first. None where items are fetched together; where they take less
    /// than 3 µs on average only those of one batch in 16 are looked at, or of none.
    pub slowest: Vec<SlowItem>,
}

/// How long `next()` waited for batches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct WaitStats {
    /// Batches that came when they were asked for, or failed to.
    pub count: u64,
    /// Those that were there already; such a wait counts as none.
    pub ready: u64,
    /// Half waited no longer than this.
    pub p50: Duration,
    /// 95 of 100 waited no longer.
    pub p95: Duration,
    /// 99 of 100 waited no longer.
    pub p99: Duration,
    /// The longest wait.
    pub max: Duration,
    /// All waits together,
    pub sum: Duration,
    /// those for the first batch of a pass among them.
    pub first: Duration,
    /// How long the passes took in all, each from its first wait to its end or, while it runs, to its last
    /// wait.
    pub elapsed: Duration,
}

impl WaitStats {
    /// The share of the passes' time that was waited; 0 where none has passed.
    #[must_use]
    pub fn share(&self) -> f64 {
        if self.elapsed.is_zero() {
            return 0.0;
        }
        (self.sum.as_secs_f64() / self.elapsed.as_secs_f64()).min(1.0)
    }

    /// The share of batches that were there when they were asked for; 1 where none was.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a share needs no 53 bits")]
    pub fn readiness(&self) -> f64 {
        if self.count == 0 {
            return 1.0;
        }
        self.ready as f64 / self.count as f64
    }
}

/// A number that goes up and down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Level {
    /// What it is.
    pub now: u64,
    /// The most it has been.
    pub most: u64,
}

/// What a thread spent its time on. Where batches cost microseconds, one in 16 is measured and
/// stands for all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Work {
    /// Inside the dataset.
    pub fetch: Duration,
    /// Inside the batcher.
    pub assemble: Duration,
    /// Inside `upload`, where no thread is there for that alone.
    pub upload: Duration,
}

impl Work {
    /// All of it.
    #[must_use]
    pub fn sum(&self) -> Duration {
        self.fetch + self.assemble + self.upload
    }
}

/// What was moved to a device with memory of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct UploadStats {
    /// Batches that were.
    pub batches: u64,
    /// Their bytes, as far as their sizes are known.
    pub bytes: u64,
    /// How long the thread took to hand them to the device, which may still copy after that.
    pub took: Duration,
    /// Bytes on the device of batches that `next()` has not returned yet. They are no longer among
    /// those of [`Stats::bytes`].
    pub ahead: Level,
}

/// What one worker did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct WorkerStats {
    /// For this loader.
    pub work: Work,
    /// Asleep, since there was nothing to do: for any loader that shares it.
    pub idle: Duration,
}

/// An item and how long its fetch took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SlowItem {
    /// The index in the dataset.
    pub index: usize,
    /// How long the fetch took.
    pub took: Duration,
}

/// How a budget is used, by all that share it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct BudgetStats {
    /// What it is, in bytes.
    pub limit: u64,
    /// What is reserved.
    pub used: Level,
    /// Iterators that have or may reserve something. Each of them may have its oldest batch, so
    /// that the bound is the limit and one batch for each but the first.
    pub readers: usize,
    /// The most by which batches that turned out larger than the 64 before them took the sum beyond
    /// the bound.
    pub overshoot: u64,
    /// How often an iterator that could have begun a batch had to wait until something was released.
    pub refused: u64,
}
