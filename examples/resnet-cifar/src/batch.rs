//! From 8-bit pictures to one normalised batch on the device.

use std::sync::Arc;

use burn::data::dataloader::batcher::Batcher;
use burn::data::dataset::{Dataset, DatasetError};
use burn::tensor::{Device, Int, Tensor, TensorData};

use crate::augment::Square;
use crate::cli::Workload;
use crate::data::{CHANNELS, Norm, Pictures};
use crate::extra;
use crate::gauge::{BatchGuard, Gauge, ItemGuard};

/// One 8-bit picture, cropped and mirrored where that was asked for.
#[derive(Debug, Clone)]
pub(crate) struct PictureItem {
    pub(crate) pixels: Vec<u8>,
    pub(crate) label: usize,
    guard: ItemGuard,
}

/// A batch as the network takes it.
#[derive(Debug, Clone)]
pub(crate) struct PictureBatch {
    /// Normalised, `[batch, 3, side, side]`.
    pub(crate) images: Tensor<4>,
    /// Classes, `[batch]`.
    pub(crate) targets: Tensor<1, Int>,
    pub(crate) guard: Arc<BatchGuard>,
}

/// The pictures as a Burn dataset; every item is counted.
#[derive(Debug, Clone)]
pub(crate) struct PictureDataset {
    pub(crate) pictures: Arc<Pictures>,
    /// Crop and mirror at random, as He et al. train; without it a picture comes as it is.
    pub(crate) augmented: bool,
    pub(crate) workload: Workload,
    pub(crate) gauge: Arc<Gauge>,
}

/// Stacks items into one batch; every batch is counted.
#[derive(Debug, Clone)]
pub(crate) struct PictureBatcher {
    pub(crate) norm: Norm,
    pub(crate) side: usize,
    pub(crate) gauge: Arc<Gauge>,
}

impl Dataset<PictureItem> for PictureDataset {
    fn get(&self, index: usize) -> Result<PictureItem, DatasetError> {
        let guard = self.gauge.start_item(self.pictures.bytes() + 1);
        let (picture, label) = self.pictures.get(index)?;
        let square = Square {
            pixels: &picture,
            side: self.pictures.side,
        };
        extra::spend(self.workload, index, square);
        let pixels = if self.augmented {
            square.crop_and_mirror(&mut burn_prefetch::rng())
        } else {
            picture.into_owned()
        };
        Ok(PictureItem {
            pixels,
            label,
            guard,
        })
    }

    fn len(&self) -> usize {
        self.pictures.len()
    }
}

impl Batcher<PictureItem, PictureBatch> for PictureBatcher {
    fn batch(&self, mut items: Vec<PictureItem>, device: &Device) -> PictureBatch {
        let (count, side) = (items.len(), self.side);
        let values_of_one = CHANNELS * side * side;
        let bytes = count * (values_of_one * size_of::<f32>() + size_of::<i64>());
        let guard = self
            .gauge
            .start_batch(items.iter_mut().map(|item| &mut item.guard), bytes);
        let mut values = Vec::with_capacity(count * values_of_one);
        for item in &items {
            normalise(&item.pixels, &self.norm, &mut values);
        }
        let labels = items
            .iter()
            .map(|item| i64::try_from(item.label).unwrap_or(i64::MAX));
        PictureBatch {
            images: Tensor::from_data(
                TensorData::new(values, [count, CHANNELS, side, side]),
                device,
            ),
            targets: Tensor::from_data(TensorData::new(labels.collect(), [count]), device),
            guard: Arc::new(guard),
        }
    }
}

impl PictureBatch {
    pub(crate) fn len(&self) -> usize {
        self.images.dims()[0]
    }
}

fn normalise(pixels: &[u8], norm: &Norm, values: &mut Vec<f32>) {
    let planes = pixels.chunks_exact((pixels.len() / CHANNELS).max(1));
    for (channel, plane) in planes.enumerate() {
        let scale = 1.0 / (255.0 * norm.std[channel]);
        let shift = norm.mean[channel] / norm.std[channel];
        values.extend(plane.iter().map(|&byte| f32::from(byte) * scale - shift));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pixels_are_normalised_channel_by_channel() {
        let norm = Norm {
            mean: [0.0, 0.5, 1.0],
            std: [1.0, 0.5, 0.25],
        };
        let mut values = Vec::new();
        normalise(&[255; CHANNELS * 64], &norm, &mut values);
        for (channel, expected) in [1.0, 1.0, 0.0].into_iter().enumerate() {
            assert!((values[channel * 64] - expected).abs() < 1e-5);
            assert!((values[(channel + 1) * 64 - 1] - expected).abs() < 1e-5);
        }
    }
}
