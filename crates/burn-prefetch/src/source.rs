//! A `Dataset` and a `Batcher` as what the engine asks for: fetch these, assemble those.

use std::error::Error;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;

use burn_prefetch_engine::{
    Account, BoxError, Cost, CostMemory, EpochPlan, FetchError, Job, LoadError, Part, Pieces, Pool,
    Reader, ReaderConfig, Source, Standing, Upcoming,
};

use crate::burn::{Batcher, Dataset, Device};
use crate::slots::StagingStats;
use crate::weigh::{Declared, Weigh};

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
    /// How batches are staged, if they are.
    fn staging(&self) -> Option<StagingStats> {
        None
    }
    /// Whether the device has page-locked memory and a stream of its own.
    fn can_pin(&self) -> bool {
        false
    }
    /// Waits until nobody uploads for readers that have left.
    fn settle(&self) {}
}

/// A loader's hold on where its passes come from.
pub(crate) struct Supplied<O>(pub(crate) Arc<dyn Supply<O>>);

impl<O> Clone for Supplied<O> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<O> Deref for Supplied<O> {
    type Target = dyn Supply<O>;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl<O> Drop for Supplied<O> {
    fn drop(&mut self) {
        if Arc::strong_count(&self.0) == 1 {
            self.0.settle();
        }
    }
}

/// What tells one pass from another.
pub(crate) struct PassSettings {
    pub(crate) plan: EpochPlan,
    /// What of it was returned before.
    pub(crate) standing: Standing,
    pub(crate) seed: u64,
    pub(crate) reader: ReaderConfig,
    /// Where its batches are counted.
    pub(crate) account: Account,
}

/// How items are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fetch {
    /// One by one, each in its own context.
    Each,
    /// A part's items in one call.
    Many,
}

/// A plain Burn dataset and batcher.
pub(crate) struct DatasetSource<D, I, E, O> {
    pub(crate) dataset: Arc<D>,
    pub(crate) batcher: Arc<dyn Batcher<I, O>>,
    pub(crate) device: Device,
    pub(crate) fetch: Fetch,
    /// What items and batches cost, whichever copy found out.
    pub(crate) costs: Arc<CostMemory>,
    pub(crate) weigh: Weigh<O>,
    pub(crate) declared: Declared,
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
            account,
        } = pass;
        let job = Job {
            source: Arc::clone(self),
            plan,
            seed,
            costs: Arc::clone(&self.costs),
            uploader: None,
            account,
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
            weigh: self.weigh.clone(),
            declared: self.declared.clone(),
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
        fetch_items(&*self.dataset, self.fetch, piece, part)
    }

    fn assemble(&self, pieces: Pieces<Vec<I>>) -> Result<O, BoxError> {
        Ok(self.batcher.batch(join_items(pieces), &self.device))
    }

    /// The batcher has done it already.
    fn upload(&self, batch: O) -> Result<O, BoxError> {
        Ok(batch)
    }

    fn cost(&self, batch: &Upcoming<'_>) -> Cost {
        self.declared.cost(batch, self.weigh.0.is_some())
    }

    fn size(&self, batch: &O) -> Option<u64> {
        self.weigh.size(batch, &self.declared)
    }
}

/// Fetches the items of one part of a batch.
pub(crate) fn fetch_items<D, I, E>(
    dataset: &D,
    fetch: Fetch,
    piece: &mut Vec<I>,
    part: &mut Part<'_>,
) -> Result<(), FetchError>
where
    D: Dataset<I, E>,
    I: Send,
    E: Error + Send + Sync + 'static,
{
    match fetch {
        Fetch::Each => {
            // The first piece becomes the batch: it has room for the others.
            let room = if part.is_first() {
                part.batch_len()
            } else {
                part.len()
            };
            let no_room = |_| dataset_error(NoRoom { items: room });
            piece.try_reserve_exact(room).map_err(no_room)?;
            for index in part {
                piece.push(dataset.get(index).map_err(dataset_error)?);
            }
        }
        Fetch::Many => *piece = get_many(dataset, part)?,
    }
    Ok(())
}

/// A batch of more items than fit into memory.
#[derive(Debug, thiserror::Error)]
#[error("there is no memory for a batch of {items} items: use a smaller batch_size")]
struct NoRoom {
    items: usize,
}

/// Fetches the items of one part in one call.
pub(crate) fn get_many<D, I, E>(dataset: &D, part: &mut Part<'_>) -> Result<Vec<I>, FetchError>
where
    D: Dataset<I, E>,
    I: Send,
    E: Error + Send + Sync + 'static,
{
    let indices = part.take_all()?;
    let expected = indices.len();
    let items = dataset.get_many(indices).map_err(dataset_error)?;
    if items.len() == expected {
        return Ok(items);
    }
    let got = items.len();
    Err(FetchError::Count { expected, got })
}

/// The items of all parts, in order.
pub(crate) fn join_items<I>(pieces: Pieces<Vec<I>>) -> Vec<I> {
    let Pieces {
        first: mut items,
        rest,
    } = pieces;
    for mut piece in rest {
        items.append(&mut piece);
    }
    items
}

pub(crate) fn dataset_error<E: Error + Send + Sync + 'static>(error: E) -> FetchError {
    FetchError::Dataset(Box::new(error))
}
