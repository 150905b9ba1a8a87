//! Doubles that the engine's tests share: a source of numbers and loaders over it.

#![allow(dead_code, reason = "each test file uses a part of them")]
#![allow(clippy::unwrap_used, reason = "a double is a part of a test")]
#![allow(unreachable_pub, reason = "a module of a test is its crate's own")]

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use burn_prefetch_engine::{
    Account, Ahead, BoxError, Cost, Delivery, FetchError, Job, Lifetime, Limits, MemoryBudget,
    Order, Part, Parts, Patience, Pieces, Plan, Pool, PoolConfig, Reader, ReaderConfig, Remainder,
    Source, Standing, Upcoming, Uploader, WorkerInit,
};

/// What a source does besides returning the index; it may panic.
pub type Hook = Box<dyn Fn(usize) -> Result<(), BoxError> + Send + Sync>;

/// Item `i` is `i`, batches are vectors; hooks run inside the fetch of each item and the assembly.
#[allow(clippy::struct_field_names, reason = "each says when it runs")]
pub struct Numbers {
    pub on_fetch: Hook,
    pub on_assemble: Hook,
    pub on_upload: Hook,
    /// How large a batch is, which begins with this index; and whether that is known beforehand.
    pub size: Option<(SizeOf, Declared)>,
}

/// How large a batch is, by its first index.
pub type SizeOf = fn(usize) -> u64;

/// When the size of a batch is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Declared {
    /// Before it is made: no batch is larger than this.
    AtMost(u64),
    /// When it is made.
    Never,
}

impl Numbers {
    pub fn new() -> Self {
        Self {
            on_fetch: Box::new(|_| Ok(())),
            on_assemble: Box::new(|_| Ok(())),
            size: None,
            on_upload: Box::new(|_| Ok(())),
        }
    }

    /// With batches whose size follows from their first index.
    pub fn sized(mut self, size: SizeOf, declared: Declared) -> Self {
        self.size = Some((size, declared));
        self
    }

    pub fn fetching(
        on_fetch: impl Fn(usize) -> Result<(), BoxError> + Send + Sync + 'static,
    ) -> Self {
        Self {
            on_fetch: Box::new(on_fetch),
            ..Self::new()
        }
    }

    pub fn assembling(
        hook: impl Fn(usize) -> Result<(), BoxError> + Send + Sync + 'static,
    ) -> Self {
        Self {
            on_assemble: Box::new(hook),
            ..Self::new()
        }
    }

    pub fn uploading(hook: impl Fn(usize) -> Result<(), BoxError> + Send + Sync + 'static) -> Self {
        Self {
            on_upload: Box::new(hook),
            ..Self::new()
        }
    }
}

impl Source for Numbers {
    type Piece = Vec<usize>;
    type Batch = Vec<usize>;
    type Output = Vec<usize>;

    fn open(&self, _len: usize, parts: usize) -> Pieces<Vec<usize>> {
        Pieces::from_fn(parts, |_| Vec::new())
    }

    fn fetch(&self, piece: &mut Vec<usize>, part: &mut Part<'_>) -> Result<(), FetchError> {
        for index in part {
            (self.on_fetch)(index).map_err(FetchError::Dataset)?;
            piece.push(index);
        }
        Ok(())
    }

    fn assemble(&self, pieces: Pieces<Vec<usize>>) -> Result<Vec<usize>, BoxError> {
        let batch: Vec<_> = pieces.into_iter().flatten().collect();
        (self.on_assemble)(batch[0])?;
        Ok(batch)
    }

    fn cost(&self, _batch: &Upcoming<'_>) -> Cost {
        match self.size {
            Some((_, Declared::AtMost(bytes))) => Cost::Known(bytes),
            Some((_, Declared::Never)) => Cost::Learned { items: 0 },
            None => Cost::Known(0),
        }
    }

    fn size(&self, batch: &Vec<usize>) -> Option<u64> {
        self.size.map(|(size, _)| size(batch[0]))
    }

    fn upload(&self, batch: Vec<usize>) -> Result<Vec<usize>, BoxError> {
        (self.on_upload)(batch[0])?;
        Ok(batch)
    }
}

/// A loader in the small: a source, a pool, and how passes are made.
#[derive(Clone)]
pub struct Loader {
    pub source: Arc<Numbers>,
    pub pool: Arc<Pool>,
    pub plan: Plan,
    pub uploader: Option<Uploader>,
    pub config: ReaderConfig,
    pub account: Account,
}

impl Loader {
    /// `items` in batches of `size` under `workers`, at most `ahead` alive, `parts` a batch.
    pub fn new(source: Numbers, workers: usize, (items, size): (usize, usize)) -> Self {
        let pool = PoolConfig {
            name: "prefetch",
            size: workers,
            lifetime: Lifetime::Pool,
            shutdown_grace: Duration::from_secs(5),
            worker_init: None,
        };
        let size = NonZeroUsize::new(size).unwrap();
        Self {
            source: Arc::new(source),
            pool: Arc::new(Pool::new(pool)),
            plan: Plan::new(Order::sequential(items), size, Remainder::Keep),
            uploader: None,
            config: ReaderConfig {
                limits: Limits {
                    ahead: Ahead::Learned,
                    parts: Parts::Learned,
                },
                delivery: Delivery::InOrder,
                patience: Patience::default(),
                warm_next: false,
            },
            account: Account::default(),
        }
    }

    pub fn ahead(mut self, batches: usize) -> Self {
        self.config.limits.ahead = Ahead::Fixed(batches);
        self
    }

    pub fn parts(mut self, parts: usize) -> Self {
        self.config.limits.parts = Parts::Fixed(NonZeroUsize::new(parts).unwrap());
        self
    }

    pub fn unordered(mut self) -> Self {
        self.config.delivery = Delivery::AsFinished;
        self
    }

    /// Within a budget that it may share.
    pub fn budget(mut self, budget: &MemoryBudget) -> Self {
        self.account.budget = Some(budget.clone());
        self
    }

    pub fn warm(mut self) -> Self {
        self.config.warm_next = true;
        self
    }

    /// Uploads by a thread of its own, at most `ahead` batches before the reader.
    pub fn uploads(mut self, ahead: usize) -> Self {
        let pool = PoolConfig {
            name: "prefetch-upload",
            size: 1,
            worker_init: None,
            ..self.pool.config().clone()
        };
        let pool = Arc::new(Pool::new(pool));
        self.uploader = Some(Uploader {
            pool,
            ahead,
            ahead_bytes: None,
        });
        self
    }

    /// And so many bytes at most, if these are several batches.
    pub fn ahead_bytes(mut self, bytes: u64) -> Self {
        let uploader = self.uploader.as_mut();
        uploader.expect("there is one").ahead_bytes = Some(bytes);
        self
    }

    /// Under the model checker no time or a millisecond passes between any two moments.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.config.patience.timeout = Some(timeout);
        self
    }

    pub fn lifetime(self, lifetime: Lifetime) -> Self {
        self.pooled(|config| config.lifetime = lifetime)
    }

    pub fn init(self, init: WorkerInit) -> Self {
        self.pooled(|config| config.worker_init = Some(init))
    }

    fn pooled(mut self, set: impl FnOnce(&mut PoolConfig)) -> Self {
        let mut config = self.pool.config().clone();
        set(&mut config);
        self.pool = Arc::new(Pool::new(config));
        self
    }

    /// Another source on the same workers, counted by itself.
    pub fn over(&self, source: Numbers) -> Self {
        Self {
            source: Arc::new(source),
            account: Account {
                budget: self.account.budget.clone(),
                ..Account::default()
            },
            ..self.clone()
        }
    }

    /// Other batches.
    pub fn plan(mut self, plan: Plan) -> Self {
        self.plan = plan;
        self
    }

    pub fn iter(&self) -> Reader<Numbers> {
        self.resume(0, Standing::default())
    }

    /// The rest of an epoch.
    pub fn resume(&self, epoch: usize, standing: Standing) -> Reader<Numbers> {
        let job = Job {
            source: Arc::clone(&self.source),
            plan: self.plan.at(epoch),
            seed: 0,
            costs: Arc::default(),
            account: self.account.clone(),
            uploader: self.uploader.clone(),
        };
        Reader::resume(Arc::clone(&self.pool), job, self.config, standing)
    }

    /// What a pass without errors yields.
    pub fn expected(&self) -> Vec<Vec<usize>> {
        self.expected_of(0)
    }

    /// What a pass over `epoch` without errors yields.
    pub fn expected_of(&self, epoch: usize) -> Vec<Vec<usize>> {
        let plan = self.plan.at(epoch);
        let indices = |k| plan.batch(k).map(|position| plan.index(position)).collect();
        (0..plan.num_batches()).map(indices).collect()
    }
}
