//! Batches without end: one epoch of a loader after the other.

use anyhow::{anyhow, bail};
use burn::data::dataloader::{DataLoader, DataLoaderIterator};

use crate::batch::PictureBatch;
use crate::data::Unreadable;
use crate::gauge::Gauge;

/// A loader's batches over as many epochs as are asked for; it sees Burn's traits only.
pub(super) struct Epochs<'a> {
    loader: &'a dyn DataLoader<PictureBatch>,
    gauge: &'a Gauge,
    batches: Option<Box<dyn DataLoaderIterator<PictureBatch> + 'a>>,
}

impl<'a> Epochs<'a> {
    pub(super) fn of(loader: &'a dyn DataLoader<PictureBatch>, gauge: &'a Gauge) -> Self {
        Self {
            loader,
            gauge,
            batches: None,
        }
    }

    /// The next batch, of the next epoch where this one has none left.
    pub(super) fn next(&mut self) -> anyhow::Result<PictureBatch> {
        if let Some(batch) = self.ask()? {
            return Ok(batch);
        }
        // The old epoch ends before the new one begins.
        self.batches = None;
        self.batches = Some(self.loader.iter());
        match self.ask()? {
            Some(batch) => Ok(batch),
            None => bail!("an epoch of the data has no batch"),
        }
    }

    fn ask(&mut self) -> anyhow::Result<Option<PictureBatch>> {
        let Some(batches) = &mut self.batches else {
            return Ok(None);
        };
        let asking = self.gauge.ask();
        let Some(batch) = batches.next() else {
            return Ok(None);
        };
        let batch = batch.map_err(|error| match Unreadable::among(&error) {
            Some(file) => anyhow!("{file}"),
            None => anyhow!(error).context("the loader gave an error"),
        })?;
        asking.got(&batch.guard);
        Ok(Some(batch))
    }
}
