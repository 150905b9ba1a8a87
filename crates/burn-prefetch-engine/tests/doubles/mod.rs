//! Doubles that the engine's tests share: a source of numbers and loaders over it.

#![allow(dead_code, reason = "each test file uses a part of them")]
#![allow(clippy::unwrap_used, reason = "a double is a part of a test")]
#![allow(unreachable_pub, reason = "a module of a test is its crate's own")]

use std::num::NonZeroUsize;
use std::sync::Arc;

use burn_prefetch_engine::{
    Ahead, BoxError, FetchError, Job, Lifetime, Limits, Order, Part, Parts, Pieces, Plan, Pool,
    Reader, Remainder, Source,
};

/// What a source does besides returning the index; it may panic.
pub type Hook = Box<dyn Fn(usize) -> Result<(), BoxError> + Send + Sync>;

/// Item `i` is `i`, batches are vectors; hooks run inside the fetch of each item and the assembly.
pub struct Numbers {
    pub on_fetch: Hook,
    pub on_assemble: Hook,
}

impl Numbers {
    pub fn new() -> Self {
        Self {
            on_fetch: Box::new(|_| Ok(())),
            on_assemble: Box::new(|_| Ok(())),
        }
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
}

impl Source for Numbers {
    type Piece = Vec<usize>;
    type Batch = Vec<usize>;

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
}

/// A loader in the small: a source, a pool, and how passes are made.
#[derive(Clone)]
pub struct Loader {
    pub source: Arc<Numbers>,
    pub pool: Arc<Pool>,
    pub plan: Plan,
    pub limits: Limits,
}

impl Loader {
    /// `items` in batches of `size` under `workers`, at most `ahead` alive, `parts` a batch.
    pub fn new(source: Numbers, workers: usize, (items, size): (usize, usize)) -> Self {
        let size = NonZeroUsize::new(size).unwrap();
        Self {
            source: Arc::new(source),
            pool: Arc::new(Pool::new(workers, Lifetime::Pool)),
            plan: Plan::new(Order::sequential(items), size, Remainder::Keep),
            limits: Limits {
                ahead: Ahead::Learned,
                bytes: None,
                parts: Parts::Learned,
            },
        }
    }

    pub fn ahead(mut self, batches: usize) -> Self {
        self.limits.ahead = Ahead::Fixed(batches);
        self
    }

    pub fn parts(mut self, parts: usize) -> Self {
        self.limits.parts = Parts::Fixed(NonZeroUsize::new(parts).unwrap());
        self
    }

    pub fn lifetime(mut self, lifetime: Lifetime) -> Self {
        self.pool = Arc::new(Pool::new(self.pool.size(), lifetime));
        self
    }

    pub fn iter(&self) -> Reader<Numbers> {
        let job = Job {
            source: Arc::clone(&self.source),
            plan: self.plan.at(0),
            seed: 0,
        };
        Reader::new(Arc::clone(&self.pool), job, self.limits)
    }

    /// What a pass without errors yields.
    pub fn expected(&self) -> Vec<Vec<usize>> {
        let plan = self.plan.at(0);
        (0..plan.num_batches())
            .map(|k| plan.batch(k).collect())
            .collect()
    }
}
