//! Everything that can go wrong with a batch, and where it went wrong.

use std::error::Error;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use crate::order_error::OrderError;
use crate::report::CrewReport;

/// An error of any type that may cross threads.
pub type BoxError = Box<dyn Error + Send + Sync + 'static>;

/// An error of any type that several may have; it dereferences to that.
#[derive(Clone, Debug)]
pub struct SharedError(Arc<dyn Error + Send + Sync>);

impl From<BoxError> for SharedError {
    fn from(error: BoxError) -> Self {
        Self(Arc::from(error))
    }
}

impl Deref for SharedError {
    type Target = dyn Error + Send + Sync + 'static;

    fn deref(&self) -> &Self::Target {
        self.0.as_ref()
    }
}

impl fmt::Display for SharedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The step of a batch in which something went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Stage {
    /// Choosing which item is next: `Sampler::at` or `BatchSampler::at`.
    Order,
    /// Reading items: `Dataset::get` or `get_many`.
    Fetch,
    /// Making a batch of the items: `Batcher::batch`.
    Assemble,
    /// Moving a batch to its device.
    Upload,
    /// Waiting in `next()` for a batch that others make.
    Wait,
    /// Preparing a thread: `worker_init`.
    Start,
    /// Between the other steps, where a `tracing` subscriber or a logger is called.
    HandOver,
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Order => "choosing an index",
            Self::Fetch => "fetching",
            Self::Assemble => "assembling",
            Self::Upload => "uploading",
            Self::Wait => "waiting",
            Self::Start => "starting a worker",
            Self::HandOver => "handing over",
        })
    }
}

/// Where in an epoch something went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The step.
    pub stage: Stage,
    /// The epoch, by its own number.
    pub epoch: usize,
    /// The batch within the epoch, from 0.
    pub batch: usize,
    /// The dataset index; `None` where a whole batch or part failed and no one index is to blame.
    pub index: Option<usize>,
    /// The dataset indices that were asked for in one call; empty where `index` says it all.
    pub indices: Vec<usize>,
    /// The worker, from 0; `None` on the thread that called `next()`, and on the uploader's.
    pub worker: Option<usize>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// As many indices as a line of text bears; all of them are in [`Place::indices`].
        const SHOWN: usize = 8;
        write!(
            f,
            "{} failed in epoch {}, batch {}",
            self.stage, self.epoch, self.batch
        )?;
        if let Some(index) = self.index {
            write!(f, ", index {index}")?;
        } else if !self.indices.is_empty() {
            let shown = &self.indices[..self.indices.len().min(SHOWN)];
            let more = self.indices.len() - shown.len();
            write!(f, ", indices {shown:?}")?;
            if more > 0 {
                write!(f, " and {more} more")?;
            }
        }
        match (self.worker, self.stage) {
            (Some(worker), _) => write!(f, " (worker {worker})"),
            (None, Stage::Upload) => Ok(()),
            (None, _) => f.write_str(" (calling thread)"),
        }
    }
}

/// Why a batch could not be made; it stands in the batch's place and ends the pass.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The dataset returned an error.
    #[error("{at}: {source}")]
    Dataset {
        /// Where.
        at: Place,
        /// The dataset's own error.
        source: BoxError,
    },
    /// The user's code panicked, or a logger or `tracing` subscriber did.
    #[error("{at}: panicked: {message}")]
    Panic {
        /// Where.
        at: Place,
        /// The text of the panic.
        message: String,
    },
    /// A fetch of several items returned another number of them.
    #[error("{at}: {expected} items were asked for, {got} came back")]
    Count {
        /// Where.
        at: Place,
        /// The number of indices asked for.
        expected: usize,
        /// The number of items returned.
        got: usize,
    },
    /// A batch could not be made of its items.
    #[error("{at}: {source}")]
    Assemble {
        /// Where.
        at: Place,
        /// The cause.
        source: BoxError,
    },
    /// A sampler of the user's own returned an index beyond the data, or a batch of no items.
    #[error("{at}: {source}")]
    Order {
        /// Where.
        at: Place,
        /// What is wrong.
        source: OrderError,
    },
    /// A host batch could not be turned into what the loader yields.
    #[error("{at}: {source}")]
    Upload {
        /// Where.
        at: Place,
        /// The cause.
        source: BoxError,
    },
    /// One `next()` waited longer than it was allowed to.
    #[error("{at}: not there after {after:?}; {crew}")]
    Timeout {
        /// Which batch was waited for.
        at: Place,
        /// The `timeout` that was set.
        after: Duration,
        /// Every worker when the time was over.
        crew: Box<CrewReport>,
    },
    /// As many threads have been given up as there are workers, and one more is stuck: nobody is
    /// served until one of them comes back.
    #[error(
        "{at}: as many threads have been given up as there are workers ({disowned}), one more is \
         stuck in the dataset or batcher, and nobody is served until one comes back"
    )]
    Exhausted {
        /// Which batch was asked for.
        at: Place,
        /// How many threads do not come back.
        disowned: usize,
    },
    /// `worker_init` returned an error or panicked.
    #[error("{at}: {source}")]
    Init {
        /// Which batch was asked for, and which worker could not be prepared.
        at: Place,
        /// The error; every iterator on the same workers may get it.
        source: SharedError,
    },
}

impl LoadError {
    /// The load error in `error` or in what caused it.
    ///
    /// Frameworks wrap errors; this finds ours whatever it is wrapped in. The user's own error is
    /// its `source()`.
    #[must_use]
    pub fn of<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Self> {
        let mut cause = Some(error);
        while let Some(error) = cause {
            if let Some(found) = error.downcast_ref() {
                return Some(found);
            }
            cause = error.source();
        }
        None
    }

    /// Where it went wrong.
    #[must_use]
    pub fn place(&self) -> &Place {
        match self {
            Self::Dataset { at, .. }
            | Self::Assemble { at, .. }
            | Self::Panic { at, .. }
            | Self::Count { at, .. }
            | Self::Order { at, .. }
            | Self::Upload { at, .. }
            | Self::Timeout { at, .. }
            | Self::Exhausted { at, .. }
            | Self::Init { at, .. } => at,
        }
    }
}

/// Why a fetch failed, before the engine knows where that was.
#[derive(Debug)]
#[non_exhaustive]
pub enum FetchError {
    /// The dataset's own error.
    Dataset(BoxError),
    /// Another number of items than was asked for.
    Count {
        /// The number of indices asked for.
        expected: usize,
        /// The number of items returned.
        got: usize,
    },
    /// A sampler of the user's own returned an index beyond the data.
    Order(OrderError),
    /// An item did not go where it was to be put.
    Write(BoxError),
}

impl FetchError {
    pub(crate) fn at(self, at: Place) -> LoadError {
        match self {
            Self::Dataset(source) => LoadError::Dataset { at, source },
            Self::Count { expected, got } => LoadError::Count { at, expected, got },
            Self::Order(source) => LoadError::Order { at, source },
            Self::Write(source) => LoadError::Assemble { at, source },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("wrapped")]
    struct Wrapped(#[source] LoadError);

    #[test]
    fn a_place_reads_as_a_sentence() {
        let mut at = Place {
            stage: Stage::Fetch,
            epoch: 3,
            batch: 7,
            index: Some(21),
            indices: Vec::new(),
            worker: Some(1),
        };
        assert_eq!(
            at.to_string(),
            "fetching failed in epoch 3, batch 7, index 21 (worker 1)"
        );
        at.index = None;
        at.indices = (0..10).collect();
        at.worker = None;
        assert_eq!(
            at.to_string(),
            "fetching failed in epoch 3, batch 7, indices [0, 1, 2, 3, 4, 5, 6, 7] and 2 more \
             (calling thread)"
        );
    }

    #[test]
    fn the_source_is_kept() {
        let at = Place {
            stage: Stage::Upload,
            epoch: 0,
            batch: 0,
            index: None,
            indices: Vec::new(),
            worker: None,
        };
        let error = LoadError::Upload {
            at,
            source: Box::new(fmt::Error),
        };
        assert!(error.source().is_some_and(<dyn Error>::is::<fmt::Error>));
        let shared = LoadError::Init {
            at: error.place().clone(),
            source: SharedError::from(BoxError::from(fmt::Error)),
        };
        assert!(shared.source().is_some_and(<dyn Error>::is::<fmt::Error>));
        let wrapped = Wrapped(error);
        let found = LoadError::of(&wrapped).unwrap();
        assert_eq!(found.place().stage, Stage::Upload);
        assert!(LoadError::of(&fmt::Error).is_none());
    }
}
