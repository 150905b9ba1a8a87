//! The batcher in rows: pictures stay bytes until they are on the device, which normalises them.

use std::sync::Arc;

use burn::tensor::Device;
use burn_prefetch::{BoxError, HostBatch, Layout, Row, RowBatcher};

use crate::batch::{Images, PictureBatch};
use crate::data::{CHANNELS, Norm};
use crate::items::PictureItem;
use crate::rows::Rows;

/// The slot of the pictures.
pub(crate) const IMAGES: &str = "images";
/// The slot of their classes.
pub(crate) const LABELS: &str = "labels";

/// Writes items into rows; every batch is counted.
#[derive(Debug, Clone)]
pub(crate) struct PictureRows {
    pub(crate) norm: Norm,
    pub(crate) side: usize,
    pub(crate) rows: Arc<Rows>,
}

impl RowBatcher<PictureItem, PictureBatch> for PictureRows {
    fn layout(&self, len: usize) -> Layout {
        let side = self.side;
        Layout::new()
            .slot_unfilled::<i32>(LABELS, [len])
            // What a crop leaves out is black.
            .slot::<u8>(IMAGES, [len, CHANNELS, side, side])
    }

    fn write(&self, item: PictureItem, row: &mut Row<'_>) -> Result<(), BoxError> {
        self.rows.start(row_bytes(self.side));
        row.write(IMAGES, &item.pixels)?;
        row.write(LABELS, &[label(item.label)?])?;
        Ok(())
    }

    fn upload(&self, mut batch: HostBatch, device: &Device) -> Result<PictureBatch, BoxError> {
        let guard = self.rows.finish();
        let targets = batch.int::<1>(LABELS, device)?;
        let targets = targets.cast(device.settings().int_dtype);
        let bytes = batch.int::<4>(IMAGES, device)?;
        Ok(PictureBatch::new(
            Images::Bytes(bytes, self.norm),
            targets,
            guard,
        ))
    }
}

/// Bytes of one picture and its class.
pub(crate) fn row_bytes(side: usize) -> usize {
    CHANNELS * side * side + size_of::<i32>()
}

/// A class as its slot has it.
pub(crate) fn label(label: usize) -> Result<i32, BoxError> {
    Ok(i32::try_from(label)?)
}
