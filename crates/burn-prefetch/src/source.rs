//! A `Dataset` and a `Batcher` as what the engine asks for: fetch these, assemble those.

use std::error::Error;
use std::marker::PhantomData;
use std::sync::Arc;

use burn_prefetch_engine::{
    Account, BoxError, Cost, CostMemory, EpochPlan, FetchError, Job, LoadError, Part, Pieces, Pool,
    Reader, ReaderConfig, Source, Standing,
};

use crate::burn::{Batcher, Dataset, Device};

/// One pass, whatever its dataset and items are.
pub(crate) trait Pass<O>: Iterator<Item = Result<O, LoadError>> + Send {
    /// Items in the batches returned, and in the whole pass.
    fn items(&self) -> (usize, usize);
    /// The batches of its epoch.
    fn plan(&self) -> &EpochPlan;
    /// Which of them have been returned.
    fn standing(&self) -> &Standing;
    /// The last items of the batch returned last that are there to fill it up.
    fn padding(&self) -> usize;
    /// The pass over the next epoch, if it has begun and this one is complete.
    fn take_next(&mut self) -> Option<Box<dyn Pass<O>>>;
    /// Goes on with a pass that began before its `iter()`.
    fn take_up(&self);
    /// Lets no next epoch begin.
    fn let_nothing_follow(&mut self);
}

impl<S: Source> Pass<S::Output> for Reader<S> {
    fn items(&self) -> (usize, usize) {
        (self.items_returned(), self.num_items())
    }

    fn plan(&self) -> &EpochPlan {
        Reader::plan(self)
    }

    fn standing(&self) -> &Standing {
        Reader::standing(self)
    }

    fn padding(&self) -> usize {
        Reader::padding(self)
    }

    fn take_next(&mut self) -> Option<Box<dyn Pass<S::Output>>> {
        let next = Reader::take_next(self)?;
        Some(Box::new(next))
    }

    fn take_up(&self) {
        Reader::take_up(self);
    }

    fn let_nothing_follow(&mut self) {
        Reader::let_nothing_follow(self);
    }
}

/// Where the passes of one loader come from, whatever its dataset and items are.
pub(crate) trait Supply<O>: Send + Sync {
    fn start(&self, pool: &Arc<Pool>, pass: PassSettings) -> Box<dyn Pass<O>>;
    /// The same data on another device.
    fn on(&self, device: Device) -> Arc<dyn Supply<O>>;
}

/// What tells one pass from another.
pub(crate) struct PassSettings {
    pub(crate) plan: EpochPlan,
    /// What of it was returned before.
    pub(crate) standing: Standing,
    pub(crate) seed: u64,
    pub(crate) reader: ReaderConfig,
}

/// How items are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fetch {
    /// One by one, each in its own context.
    Each,
    /// A part's items in one call.
    Many,
}

/// How many bytes a batch has: what the user says of one that is made, and of any beforehand.
pub(crate) struct Weigh<O> {
    pub(crate) batch: Option<Arc<dyn Fn(&O) -> usize + Send + Sync>>,
    pub(crate) max_batch: Option<u64>,
    pub(crate) item: Option<u64>,
}

impl<O> Clone for Weigh<O> {
    fn clone(&self) -> Self {
        Self {
            batch: self.batch.clone(),
            ..*self
        }
    }
}

impl<O> Weigh<O> {
    /// What a batch of so many items will take. Items are alive until the batch is made of them.
    fn cost(&self, len: usize) -> Cost {
        let items = self.item.unwrap_or(0).saturating_mul(len as u64);
        match (self.max_batch, &self.batch) {
            (Some(batch), _) => Cost::Known(items.saturating_add(batch)),
            (None, Some(_)) => Cost::Learned { items },
            (None, None) => Cost::Known(items),
        }
    }

    /// What it takes once it is made.
    fn size(&self, batch: &O) -> Option<u64> {
        match (&self.batch, self.max_batch) {
            (Some(weigh), _) => Some(weigh(batch) as u64),
            (None, max_batch) => max_batch,
        }
    }
}

/// A plain Burn dataset and batcher.
pub(crate) struct DatasetSource<D, I, E, O> {
    pub(crate) dataset: Arc<D>,
    pub(crate) batcher: Arc<dyn Batcher<I, O>>,
    pub(crate) device: Device,
    pub(crate) fetch: Fetch,
    /// What items and batches cost, whichever copy found out.
    pub(crate) costs: Arc<CostMemory>,
    /// Where batches are counted, whichever copy makes them.
    pub(crate) account: Account,
    pub(crate) weigh: Weigh<O>,
    pub(crate) error: PhantomData<fn() -> E>,
}

impl<D, I, E, O> Supply<O> for Arc<DatasetSource<D, I, E, O>>
where
    D: Dataset<I, E> + 'static,
    I: Send + 'static,
    E: Error + Send + Sync + 'static,
    O: Send + 'static,
{
    fn start(&self, pool: &Arc<Pool>, pass: PassSettings) -> Box<dyn Pass<O>> {
        let PassSettings {
            plan,
            standing,
            seed,
            reader,
        } = pass;
        let job = Job {
            source: Arc::clone(self),
            plan,
            seed,
            costs: Arc::clone(&self.costs),
            uploader: None,
            account: self.account.clone(),
        };
        Box::new(Reader::resume(Arc::clone(pool), job, reader, standing))
    }

    fn on(&self, device: Device) -> Arc<dyn Supply<O>> {
        Arc::new(Arc::new(DatasetSource {
            dataset: Arc::clone(&self.dataset),
            batcher: Arc::clone(&self.batcher),
            device,
            fetch: self.fetch,
            costs: Arc::clone(&self.costs),
            account: self.account.clone(),
            weigh: self.weigh.clone(),
            error: PhantomData,
        }))
    }
}

impl<D, I, E, O> Source for DatasetSource<D, I, E, O>
where
    D: Dataset<I, E> + 'static,
    I: Send + 'static,
    E: Error + Send + Sync + 'static,
    O: Send + 'static,
{
    type Piece = Vec<I>;
    type Batch = O;
    type Output = O;

    fn open(&self, _len: usize, parts: usize) -> Pieces<Vec<I>> {
        Pieces::from_fn(parts, |_| Vec::new())
    }

    fn fetch(&self, piece: &mut Vec<I>, part: &mut Part<'_>) -> Result<(), FetchError> {
        // The first piece becomes the batch: it has room for the others.
        let room = if part.is_first() {
            part.batch_len()
        } else {
            part.len()
        };
        match self.fetch {
            Fetch::Each => {
                piece.reserve_exact(room);
                for index in part {
                    piece.push(self.dataset.get(index).map_err(dataset_error)?);
                }
            }
            Fetch::Many => {
                let indices = part.take_all()?;
                let expected = indices.len();
                let items = self.dataset.get_many(indices).map_err(dataset_error)?;
                if items.len() != expected {
                    return Err(FetchError::Count {
                        expected,
                        got: items.len(),
                    });
                }
                *piece = items;
            }
        }
        Ok(())
    }

    fn assemble(&self, pieces: Pieces<Vec<I>>) -> Result<O, BoxError> {
        let Pieces {
            first: mut items,
            rest,
        } = pieces;
        for mut piece in rest {
            items.append(&mut piece);
        }
        Ok(self.batcher.batch(items, &self.device))
    }

    /// The batcher has done it already.
    fn upload(&self, batch: O) -> Result<O, BoxError> {
        Ok(batch)
    }

    fn cost(&self, len: usize) -> Cost {
        self.weigh.cost(len)
    }

    fn size(&self, batch: &O) -> Option<u64> {
        self.weigh.size(batch)
    }
}

fn dataset_error<E: Error + Send + Sync + 'static>(error: E) -> FetchError {
    FetchError::Dataset(Box::new(error))
}
