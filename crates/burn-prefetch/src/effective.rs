//! What is in force, and what was ignored and why.

use std::fmt;
use std::time::Duration;

/// How many batches may be alive: started and not yet returned by `next()`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WindowConfig {
    /// One, made on the calling thread when `next()` asks for it: there are no workers.
    Inline,
    /// At most so many; with 0, one, started when `next()` asks for it.
    Batches(usize),
    /// As many as keep all workers busy, learned as they run.
    Learned {
        /// Never more than this: two for each worker.
        most: usize,
    },
}

impl fmt::Display for WindowConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Inline => f.write_str("1 batch, made when next() asks for it"),
            Self::Batches(0) => f.write_str("1 batch, started when next() asks for it"),
            Self::Batches(batches) => {
                let batches = count(*batches as u64, "batch", "batches");
                write!(f, "at most {batches} alive")
            }
            Self::Learned { most } => {
                let batches = count(*most as u64, "batch", "batches");
                write!(f, "learned, at most {batches} alive")
            }
        }
    }
}

/// So many of something, in words.
pub(crate) fn count(number: u64, one: &str, several: &str) -> String {
    match number {
        1 => format!("1 {one}"),
        _ => format!("{number} {several}"),
    }
}

/// How batches go through host memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct StagingConfig {
    /// Whether slots are page-locked; never on a device that cannot.
    pub pin_memory: bool,
    /// Batches on the device before `next()` returns them; `None` where whoever assembles a batch
    /// uploads it.
    pub device_prefetch: Option<usize>,
    /// Bytes that may be page-locked; `None` for as many as are needed.
    pub pinned_budget: Option<u64>,
    /// Bytes that batches on the device may have before `next()` returns them, if they are several;
    /// `None` for as many as `device_prefetch` batches have.
    pub device_budget: Option<u64>,
}

impl fmt::Display for StagingConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let memory = if self.pin_memory {
            "page-locked"
        } else {
            "pageable"
        };
        write!(f, "in {memory} memory")?;
        if let Some(bytes) = self.pinned_budget {
            write!(f, " of {} at most", count(bytes, "byte", "bytes"))?;
        }
        match self.device_prefetch {
            Some(batches) => {
                let batches = count(batches as u64, "batch", "batches");
                write!(f, ", {batches} ahead on the device")?;
            }
            None => f.write_str(", uploaded by whoever assembles")?,
        }
        match self.device_budget {
            Some(bytes) => write!(f, " with {} at most", count(bytes, "byte", "bytes")),
            None => Ok(()),
        }
    }
}

/// A setting that has no effect. That is no error.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Ignored {
    /// The name of the builder's method.
    pub setting: &'static str,
    /// What was given.
    pub value: String,
    /// Why it has no effect.
    pub why: String,
}

/// The settings in force. `Display` gives them as text, one a line.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a setting under its own name"
)]
pub struct EffectiveConfig {
    /// Items in a batch; the last may have fewer. None where a batch sampler makes the batches.
    pub batch_size: Option<usize>,
    /// Worker threads; 0 loads on the calling thread.
    pub num_workers: usize,
    /// Whether they came from `workers(..)`, and may serve other loaders too.
    pub shared_workers: bool,
    /// How many batches may be alive.
    pub window: WindowConfig,
    /// The kind of order, such as `sequential`, `shuffled` or `weighted`.
    pub order: &'static str,
    /// The seed of the shuffle; `None` without one, or where a sampler has its own.
    pub shuffle: Option<u64>,
    /// The seed of [`rng`](crate::rng).
    pub seed: u64,
    /// Whether items that do not fill a last batch are left out.
    pub drop_last: bool,
    /// Whether the last batch is filled up, its last items being padding.
    pub pad_last: bool,
    /// Whether batches come in one order, or as they finish.
    pub in_order: bool,
    /// How long one `next()` may wait.
    pub timeout: Option<Duration>,
    /// A worker in one item for so long, while a batch is waited for, is logged.
    pub stall_warning: Option<Duration>,
    /// Whether workers live as long as the loader.
    pub persistent_workers: bool,
    /// How long the end of the workers waits for those inside user code.
    pub shutdown_grace: Duration,
    /// Whether the next epoch begins while the last batches of one are being used.
    pub warm_next_epoch: bool,
    /// So many parts a batch (fewer for fewer items); `None` sizes parts by what they cost.
    pub parts_per_batch: Option<usize>,
    /// Whether items are fetched with `get_many`.
    pub batched: bool,
    /// The number of the first epoch of the loader that was built, whatever has been iterated since.
    pub start_epoch: usize,
    /// How batches go through host memory; `None` with a plain batcher.
    pub staging: Option<StagingConfig>,
    /// Bytes that batches alive may have together.
    pub memory_budget: Option<u64>,
    /// Whether the number of workers changes by itself,
    pub auto_workers: bool,
    /// and which share of the cores they may then be busy with.
    pub cpu_share: Option<f64>,
    /// Whether the number of batches alive changes by itself.
    pub auto_window: bool,
    /// What has no effect.
    pub ignored: Vec<Ignored>,
}

impl fmt::Display for EffectiveConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.batch_size {
            Some(batch_size) => writeln!(f, "batch_size: {batch_size}")?,
            None => writeln!(f, "batch_size: made by the batch sampler")?,
        }
        let shared = if self.shared_workers { ", shared" } else { "" };
        write!(f, "num_workers: {}{shared}", self.num_workers)?;
        if self.auto_workers {
            f.write_str(", changes by itself")?;
        }
        if let Some(share) = self.cpu_share {
            write!(f, " while busy with no more than {share} of the cores")?;
        }
        write!(f, "\nwindow: {}", self.window)?;
        f.write_str(if self.auto_window {
            ", changes by itself\n"
        } else {
            "\n"
        })?;
        writeln!(f, "order: {}", self.order)?;
        match self.shuffle {
            Some(seed) => writeln!(f, "shuffle: every epoch, seed {seed}")?,
            None => writeln!(f, "shuffle: none")?,
        }
        writeln!(f, "seed: {} for rng()", self.seed)?;
        writeln!(f, "drop_last: {}", self.drop_last)?;
        writeln!(f, "pad_last: {}", self.pad_last)?;
        writeln!(f, "in_order: {}", self.in_order)?;
        match self.timeout {
            Some(timeout) => writeln!(f, "timeout: {timeout:?} for one next()")?,
            None => writeln!(f, "timeout: none")?,
        }
        match self.stall_warning {
            Some(limit) => writeln!(f, "stall_warning: after {limit:?} in one item")?,
            None => writeln!(f, "stall_warning: none")?,
        }
        writeln!(f, "persistent_workers: {}", self.persistent_workers)?;
        writeln!(f, "shutdown_grace: {:?}", self.shutdown_grace)?;
        writeln!(f, "warm_next_epoch: {}", self.warm_next_epoch)?;
        match self.parts_per_batch {
            Some(parts) => writeln!(f, "parts_per_batch: {parts}")?,
            None => writeln!(f, "parts_per_batch: sized by what they cost")?,
        }
        writeln!(f, "batched: {}", self.batched)?;
        write!(f, "start_epoch: {}", self.start_epoch)?;
        self.write_extras(f)
    }
}

impl EffectiveConfig {
    /// What only some loaders have.
    fn write_extras(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(staging) = &self.staging {
            write!(f, "\nstaging: {staging}")?;
        }
        if let Some(bytes) = self.memory_budget {
            write!(f, "\nmemory_budget: {bytes} bytes")?;
        }
        for Ignored {
            setting,
            value,
            why,
        } in &self.ignored
        {
            write!(f, "\nignored: {setting}({value}), since {why}")?;
        }
        Ok(())
    }
}
