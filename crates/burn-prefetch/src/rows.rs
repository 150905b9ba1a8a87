//! Batches whose rows are written one by one, by the parts themselves.

use std::error::Error;
use std::marker::PhantomData;
use std::sync::Arc;

use burn_prefetch_engine::{BoxError, FetchError, Part, Pieces};

use crate::burn::{Dataset, Device};
use crate::host_batch::HostBatch;
use crate::host_batcher::{FetchInto, RowBatcher};
use crate::layout::{HostError, Layout};
use crate::row::RowWriter;
use crate::slot::{Rows, Slot, Target};
use crate::source::{Fetch, dataset_error, get_many};
use crate::stage::Stage;
use crate::staged::{Work, write_error};

/// Where the samples of a batch come from, as rows.
pub(crate) trait WriteRows: Send + Sync + 'static {
    fn write_rows(&self, part: &mut Part<'_>, writer: &mut RowWriter<'_>)
    -> Result<(), FetchError>;
}

/// Items of a dataset, which the batcher writes.
pub(crate) struct Items<D, I, E, B, O> {
    pub(crate) dataset: D,
    pub(crate) batcher: Arc<B>,
    pub(crate) fetch: Fetch,
    pub(crate) kind: PhantomData<fn(I) -> (E, O)>,
}

impl<D, I, E, B, O> WriteRows for Items<D, I, E, B, O>
where
    D: Dataset<I, E> + 'static,
    I: Send + 'static,
    E: Error + Send + Sync + 'static,
    B: RowBatcher<I, O>,
    O: 'static,
{
    fn write_rows(
        &self,
        part: &mut Part<'_>,
        writer: &mut RowWriter<'_>,
    ) -> Result<(), FetchError> {
        let mut write = |item| {
            let written = writer.next(|row| self.batcher.write(item, row));
            written.map_err(FetchError::Write)
        };
        match self.fetch {
            Fetch::Each => {
                for index in part {
                    write(self.dataset.get(index).map_err(dataset_error)?)?;
                }
            }
            Fetch::Many => {
                let items = get_many(&self.dataset, part)?;
                for (place, item) in items.into_iter().enumerate() {
                    part.work_on(place);
                    write(item)?;
                }
            }
        }
        Ok(())
    }
}

/// A dataset that writes its samples itself.
pub(crate) struct Written<D, I, E> {
    pub(crate) dataset: D,
    pub(crate) kind: PhantomData<fn(I) -> E>,
}

impl<D, I, E> WriteRows for Written<D, I, E>
where
    D: FetchInto<I, E> + 'static,
    I: Send + 'static,
    E: Error + Send + Sync + 'static,
{
    fn write_rows(
        &self,
        part: &mut Part<'_>,
        writer: &mut RowWriter<'_>,
    ) -> Result<(), FetchError> {
        for index in part {
            let written = writer.next(|row| self.dataset.fetch_into(index, row));
            written.map_err(FetchError::Dataset)?;
        }
        Ok(())
    }
}

/// Rows on their way to a host batch.
pub(crate) struct RowWork<F, B, I, O> {
    pub(crate) samples: F,
    pub(crate) batcher: Arc<B>,
    pub(crate) kind: PhantomData<fn(I) -> O>,
}

/// The rows of one part of a batch.
pub(crate) struct RowPiece {
    rows: Rows,
    len: usize,
}

impl<F, B, I, O> Work for RowWork<F, B, I, O>
where
    F: WriteRows,
    B: RowBatcher<I, O>,
    I: 'static,
    O: Send + 'static,
{
    type Piece = RowPiece;
    type Batch = HostBatch;
    type Output = O;

    fn row_bytes(&self) -> Option<u64> {
        let layout = self.batcher.layout(1);
        layout.check(1).ok()?;
        let rows = layout.slots().iter().map(|slot| slot.row_bytes() as u64);
        Some(rows.sum())
    }

    fn open(&self, len: usize, parts: usize) -> Pieces<RowPiece> {
        let mut cut = Target::cut(len, parts);
        Pieces::from_fn(parts, |part| RowPiece {
            rows: cut(part),
            len,
        })
    }

    fn fetch(
        &self,
        piece: &mut RowPiece,
        part: &mut Part<'_>,
        stage: &Stage,
    ) -> Result<(), FetchError> {
        let layout = self.batcher.layout(piece.len);
        layout.check(piece.len).map_err(write_error)?;
        let slots = sizes(&layout).map_err(write_error)?;
        let host = stage.host();
        let opened = piece.rows.open(|| {
            let taken = slots.iter();
            let taken = taken.map(|&(bytes, row)| Some((host.take(bytes).ok()?, row)));
            taken.collect()
        });
        if !opened {
            let bytes = slots.iter().map(|(bytes, _)| bytes).sum();
            return Err(write_error(HostError::NoMemory { bytes }));
        }
        let mut writer = RowWriter::new(&layout, &mut piece.rows);
        self.samples.write_rows(part, &mut writer)
    }

    fn assemble(&self, pieces: Pieces<RowPiece>, _stage: &Stage) -> Result<HostBatch, BoxError> {
        let len = pieces.first.len;
        let slots: Option<Vec<Slot>> = Rows::join(pieces.into_iter().map(|piece| piece.rows));
        let slots = slots.ok_or("the rows of a batch are not all there")?;
        Ok(HostBatch::of(&self.batcher.layout(len), len, slots)?)
    }

    fn sizes(batch: &HostBatch) -> Vec<usize> {
        batch.sizes().collect()
    }

    fn upload(&self, batch: HostBatch, device: &Device) -> Result<O, BoxError> {
        self.batcher.upload(batch, device)
    }
}

/// The bytes of each slot, and of a row of it.
fn sizes(layout: &Layout) -> Result<Vec<(usize, usize)>, HostError> {
    let slots = layout.slots().iter();
    slots
        .map(|slot| Ok((slot.bytes()?, slot.row_bytes())))
        .collect()
}
