//! What makes a loader's batches: a plain batcher, or one that goes through host memory.

use std::error::Error;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use crate::burn::{Batcher, Dataset, Device};
use crate::collated::CollateWork;
use crate::host_batcher::{CollateBatcher, Collated, FetchInto, RowBatcher, Rowwise};
use crate::moved::MovedWork;
use crate::rows::{Items, RowWork, Written};
use crate::settings::Settings;
use crate::source::{DatasetSource, Fetch, Supply};
use crate::staged::{Staged, Work};
use crate::staged_batch::StagedBatch;
use crate::weigh::Weigh;

/// A plain `Batcher`: it assembles and uploads in one go.
pub struct PlainBatcher<I, O>(pub(crate) Arc<dyn Batcher<I, O>>, pub(crate) Weigh<O>);

/// A plain `Batcher` that is given the host device, and whose batches are moved from there.
pub struct MovedBatcher<I, O>(pub(crate) Arc<dyn Batcher<I, O>>, pub(crate) Weigh<O>);

/// A batcher of either form that assembles in host memory.
pub struct StagedBatcher<B, Form> {
    pub(crate) batcher: Arc<B>,
    pub(crate) form: PhantomData<fn() -> Form>,
}

/// A maker that goes through host memory.
pub(crate) trait Stages {}
impl<I, O> Stages for MovedBatcher<I, O> {}
impl<B, Form> Stages for StagedBatcher<B, Form> {}

impl<I, O> fmt::Debug for PlainBatcher<I, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PlainBatcher")
    }
}

impl<I, O> fmt::Debug for MovedBatcher<I, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MovedBatcher")
    }
}

impl<B, Form> fmt::Debug for StagedBatcher<B, Form> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StagedBatcher")
    }
}

/// From a maker and a dataset to where a loader's passes come from.
pub(crate) trait Make<I, O> {
    fn supply<D, E>(self, dataset: D, settings: &Settings) -> Arc<dyn Supply<O>>
    where
        D: Dataset<I, E> + 'static,
        E: Error + Send + Sync + 'static;
}

impl<I: Send + 'static, O: Send + 'static> Make<I, O> for PlainBatcher<I, O> {
    fn supply<D, E>(self, dataset: D, settings: &Settings) -> Arc<dyn Supply<O>>
    where
        D: Dataset<I, E> + 'static,
        E: Error + Send + Sync + 'static,
    {
        Arc::new(Arc::new(DatasetSource {
            dataset: Arc::new(dataset),
            batcher: self.0,
            device: device(settings),
            fetch: fetch(settings),
            costs: Arc::default(),
            weigh: self.1,
            declared: settings.declared.clone(),
            error: PhantomData,
        }))
    }
}

impl<I: Send + 'static, O: StagedBatch + Send + 'static> Make<I, O> for MovedBatcher<I, O> {
    fn supply<D, E>(self, dataset: D, settings: &Settings) -> Arc<dyn Supply<O>>
    where
        D: Dataset<I, E> + 'static,
        E: Error + Send + Sync + 'static,
    {
        let work = MovedWork {
            dataset,
            batcher: self.0,
            fetch: fetch(settings),
            weigh: self.1,
            error: PhantomData,
        };
        staged(work, settings)
    }
}

impl<I, O, B> Make<I, O> for StagedBatcher<B, Rowwise>
where
    I: Send + 'static,
    O: Send + 'static,
    B: RowBatcher<I, O>,
{
    fn supply<D, E>(self, dataset: D, settings: &Settings) -> Arc<dyn Supply<O>>
    where
        D: Dataset<I, E> + 'static,
        E: Error + Send + Sync + 'static,
    {
        let samples = Items {
            dataset,
            batcher: Arc::clone(&self.batcher),
            fetch: fetch(settings),
            kind: PhantomData,
        };
        let work = RowWork {
            samples,
            batcher: self.batcher,
            kind: PhantomData,
        };
        staged(work, settings)
    }
}

impl<I, O, B> Make<I, O> for StagedBatcher<B, Collated>
where
    I: Send + 'static,
    O: Send + 'static,
    B: CollateBatcher<I, O>,
{
    fn supply<D, E>(self, dataset: D, settings: &Settings) -> Arc<dyn Supply<O>>
    where
        D: Dataset<I, E> + 'static,
        E: Error + Send + Sync + 'static,
    {
        let work = CollateWork {
            dataset,
            batcher: self.batcher,
            fetch: fetch(settings),
            kind: PhantomData,
        };
        staged(work, settings)
    }
}

impl<B> StagedBatcher<B, Rowwise> {
    /// Where passes over a dataset come from that writes its samples itself.
    pub(crate) fn supply_written<I, O, D, E>(
        self,
        dataset: D,
        settings: &Settings,
    ) -> Arc<dyn Supply<O>>
    where
        I: Send + 'static,
        O: Send + 'static,
        B: RowBatcher<I, O>,
        D: FetchInto<I, E> + 'static,
        E: Error + Send + Sync + 'static,
    {
        let samples = Written {
            dataset,
            kind: PhantomData,
        };
        let work = RowWork {
            samples,
            batcher: self.batcher,
            kind: PhantomData,
        };
        staged(work, settings)
    }
}

fn staged<W: Work>(work: W, settings: &Settings) -> Arc<dyn Supply<W::Output>> {
    let stage = settings.stage();
    let how = (stage, settings.declared.clone());
    Arc::new(Arc::new(Staged::new(work, device(settings), how)))
}

fn device(settings: &Settings) -> Device {
    settings.device.clone().unwrap_or_default()
}

fn fetch(settings: &Settings) -> Fetch {
    if settings.batched {
        Fetch::Many
    } else {
        Fetch::Each
    }
}
