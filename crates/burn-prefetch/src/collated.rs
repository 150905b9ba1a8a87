//! Batches that are made in host memory of all their items at once.

use std::error::Error;
use std::marker::PhantomData;
use std::sync::Arc;

use burn_prefetch_engine::{BoxError, FetchError, Part, Pieces};

use crate::burn::{Dataset, Device};
use crate::host_batch::HostBatch;
use crate::host_batcher::CollateBatcher;
use crate::source::{Fetch, fetch_items, join_items};
use crate::stage::Stage;
use crate::staged::Work;

/// Items on their way to a host batch.
pub(crate) struct CollateWork<D, I, E, B, O> {
    pub(crate) dataset: D,
    pub(crate) batcher: Arc<B>,
    pub(crate) fetch: Fetch,
    pub(crate) kind: PhantomData<fn(I) -> (E, O)>,
}

impl<D, I, E, B, O> Work for CollateWork<D, I, E, B, O>
where
    D: Dataset<I, E> + 'static,
    I: Send + 'static,
    E: Error + Send + Sync + 'static,
    B: CollateBatcher<I, O>,
    O: Send + 'static,
{
    type Piece = Vec<I>;
    type Batch = HostBatch;
    type Output = O;

    fn open(&self, _len: usize, parts: usize) -> Pieces<Vec<I>> {
        Pieces::from_fn(parts, |_| Vec::new())
    }

    fn fetch(
        &self,
        piece: &mut Vec<I>,
        part: &mut Part<'_>,
        _stage: &Stage,
    ) -> Result<(), FetchError> {
        fetch_items(&self.dataset, self.fetch, piece, part)
    }

    fn assemble(&self, pieces: Pieces<Vec<I>>, stage: &Stage) -> Result<HostBatch, BoxError> {
        let items = join_items(pieces);
        let len = items.len();
        let batch = self.batcher.collate(items, &stage.host())?;
        batch.check(len)?;
        Ok(batch)
    }

    fn sizes(batch: &HostBatch) -> Vec<usize> {
        batch.sizes().collect()
    }

    fn upload(&self, batch: HostBatch, device: &Device) -> Result<O, BoxError> {
        self.batcher.upload(batch, device)
    }
}
