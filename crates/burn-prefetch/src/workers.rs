//! Worker threads as a thing of their own, for one loader or for several.

use std::sync::Arc;
use std::time::Duration;

use burn_prefetch_engine::{BoxError, Lifetime, Pool, PoolConfig, WorkerInit};

use crate::config_error::ConfigError;

/// More workers than this is a slip of the keyboard: each is an operating-system thread.
pub(crate) const MOST_WORKERS: usize = 1_024;

/// How long the end of the workers waits for those inside user code.
pub(crate) const SHUTDOWN_GRACE: Duration = Duration::from_secs(5);

/// Who waits longer than this at the end of a program will end it by other means.
const LONGEST_GRACE: Duration = Duration::from_hours(24);

/// Worker threads that several loaders share, as training and validation do: they need not be
/// twice as many as one loader's.
///
/// A free worker serves the iterator whose thread has waited in `next()` longest, else each in turn.
/// The threads start with the first iterator that has work, and end when the last of the loaders
/// and of these handles is dropped.
///
/// ```
/// # use burn::data::{dataloader::batcher::Batcher, dataset::InMemDataset};
/// # use burn::tensor::Device;
/// use burn_prefetch::{DataLoaderBuilder, Workers};
/// # struct Collect;
/// # impl Batcher<u32, Vec<u32>> for Collect {
/// #     fn batch(&self, items: Vec<u32>, _device: &Device) -> Vec<u32> { items }
/// # }
/// # let (train, valid) = (InMemDataset::new((0..10).collect()), InMemDataset::new((0..4).collect()));
///
/// let workers = Workers::new(4);
/// let train = DataLoaderBuilder::new(Collect).workers(&workers).shuffle(1).build(train);
/// let valid = DataLoaderBuilder::new(Collect).workers(&workers).build(valid);
/// assert_eq!(train.iter().count() + valid.iter().count(), 14);
/// assert_eq!(workers.alive(), 4);
/// ```
#[derive(Clone, Debug)]
pub struct Workers(pub(crate) Arc<Pool>);

impl Workers {
    /// So many workers, at most 1,024, with every other setting as it is by default. With 0, every
    /// iterator does its own work.
    ///
    /// # Panics
    ///
    /// When they are more, with a sentence that says so.
    #[must_use]
    pub fn new(num_workers: usize) -> Self {
        Self::builder(num_workers).build()
    }

    /// So many workers, with settings.
    pub fn builder(num_workers: usize) -> WorkersBuilder {
        WorkersBuilder(Crew {
            num_workers: Some(num_workers),
            ..Crew::default()
        })
    }

    /// How many there may be.
    #[must_use]
    pub fn num_workers(&self) -> usize {
        self.0.size()
    }

    /// How many threads are at work or wait for it.
    #[must_use]
    pub fn alive(&self) -> usize {
        self.0.live()
    }

    /// How many threads were given up by a `timeout` and are still inside the dataset or batcher;
    /// at most [`num_workers`](Self::num_workers).
    #[must_use]
    pub fn disowned(&self) -> usize {
        self.0.disowned()
    }
}

/// Builds [`Workers`].
#[derive(Clone, Debug)]
#[must_use]
pub struct WorkersBuilder(Crew);

impl WorkersBuilder {
    /// Whether they live as long as there is a handle or loader (default), or end with the last
    /// iterator.
    pub fn persistent(mut self, persistent: bool) -> Self {
        self.0.persistent = Some(persistent);
        self
    }

    /// How long their end waits for those that are inside a dataset or batcher (default: 5 s, at
    /// most a day); who takes longer ends when it comes back.
    pub fn shutdown_grace(mut self, grace: Duration) -> Self {
        self.0.shutdown_grace = Some(grace);
        self
    }

    /// Runs on every thread once, before its first work; see
    /// [`DataLoaderBuilder::worker_init`](crate::DataLoaderBuilder::worker_init).
    pub fn worker_init(
        mut self,
        init: impl Fn(Option<usize>) -> Result<(), BoxError> + Send + Sync + 'static,
    ) -> Self {
        self.0.worker_init = Some(WorkerInit::new(init));
        self
    }

    /// The workers; no thread starts yet.
    ///
    /// # Errors
    ///
    /// When a setting cannot be used.
    pub fn try_build(self) -> Result<Workers, ConfigError> {
        self.0.check()?;
        Ok(self.0.hire())
    }

    /// The workers; no thread starts yet.
    ///
    /// # Panics
    ///
    /// With the sentence of the error that [`try_build`](Self::try_build) returns.
    #[must_use]
    pub fn build(self) -> Workers {
        match self.try_build() {
            Ok(workers) => workers,
            Err(error) => panic!("{error}"),
        }
    }
}

/// The settings of threads, as given.
#[derive(Clone, Debug, Default)]
pub(crate) struct Crew {
    pub(crate) num_workers: Option<usize>,
    pub(crate) persistent: Option<bool>,
    pub(crate) shutdown_grace: Option<Duration>,
    pub(crate) worker_init: Option<WorkerInit>,
}

impl Crew {
    pub(crate) fn num_workers(&self) -> usize {
        self.num_workers.unwrap_or(0)
    }

    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let num_workers = self.num_workers();
        if num_workers > MOST_WORKERS {
            return Err(ConfigError::TooManyWorkers {
                num_workers,
                most: MOST_WORKERS,
            });
        }
        match self.shutdown_grace {
            Some(grace) if grace > LONGEST_GRACE => Err(ConfigError::GraceTooLong { grace }),
            Some(_) | None => Ok(()),
        }
    }

    /// The first of these settings that was given, by name.
    pub(crate) fn given(&self) -> Option<&'static str> {
        let given = [
            ("num_workers", self.num_workers.is_some()),
            ("persistent_workers", self.persistent.is_some()),
            ("shutdown_grace", self.shutdown_grace.is_some()),
            ("worker_init", self.worker_init.is_some()),
        ];
        given
            .iter()
            .find(|(_, given)| *given)
            .map(|(name, _)| *name)
    }

    pub(crate) fn hire(&self) -> Workers {
        let config = PoolConfig {
            name: "prefetch",
            size: self.num_workers(),
            lifetime: match self.persistent {
                Some(false) => Lifetime::Readers,
                Some(true) | None => Lifetime::Pool,
            },
            shutdown_grace: self.shutdown_grace.unwrap_or(SHUTDOWN_GRACE),
            worker_init: self.worker_init.clone(),
        };
        Workers(Arc::new(Pool::new(config)))
    }
}
