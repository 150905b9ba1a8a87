//! What is in force, and what was ignored and why.

use std::fmt;

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
            Self::Batches(batches) => write!(f, "at most {batches} batches alive"),
            Self::Learned { most } => write!(f, "learned, at most {most} batches alive"),
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
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EffectiveConfig {
    /// Items in a batch; the last may have fewer.
    pub batch_size: usize,
    /// Worker threads; 0 loads on the calling thread.
    pub num_workers: usize,
    /// How many batches may be alive.
    pub window: WindowConfig,
    /// The seed of the shuffle; `None` keeps the order of the dataset.
    pub shuffle: Option<u64>,
    /// Whether items that do not fill a last batch are left out.
    pub drop_last: bool,
    /// Whether workers live as long as the loader.
    pub persistent_workers: bool,
    /// So many parts a batch (fewer for fewer items); `None` sizes parts by what they cost.
    pub parts_per_batch: Option<usize>,
    /// Whether items are fetched with `get_many`.
    pub batched: bool,
    /// The number of the first epoch of the loader that was built, whatever has been iterated since.
    pub start_epoch: usize,
    /// What has no effect.
    pub ignored: Vec<Ignored>,
}

impl fmt::Display for EffectiveConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "batch_size: {}", self.batch_size)?;
        writeln!(f, "num_workers: {}", self.num_workers)?;
        writeln!(f, "window: {}", self.window)?;
        match self.shuffle {
            Some(seed) => writeln!(f, "shuffle: every epoch, seed {seed}")?,
            None => writeln!(f, "shuffle: none, the order of the dataset")?,
        }
        writeln!(f, "drop_last: {}", self.drop_last)?;
        writeln!(f, "persistent_workers: {}", self.persistent_workers)?;
        match self.parts_per_batch {
            Some(parts) => writeln!(f, "parts_per_batch: {parts}")?,
            None => writeln!(f, "parts_per_batch: sized by what they cost")?,
        }
        writeln!(f, "batched: {}", self.batched)?;
        write!(f, "start_epoch: {}", self.start_epoch)?;
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
