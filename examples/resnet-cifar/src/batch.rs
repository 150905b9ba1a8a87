//! From 8-bit pictures to one normalised batch on the device.

use std::sync::Arc;

use burn::data::dataloader::batcher::Batcher;
use burn::data::dataset::{Dataset, DatasetError};
use burn::tensor::{Device, Int, Tensor, TensorData};

use crate::augment;
use crate::data::{CHANNELS, Norm, PICTURE, PLANE, Pictures, SIDE};
use crate::gauge::{BatchGuard, Gauge, ItemGuard};

/// One 8-bit picture, cropped and mirrored where that was asked for.
#[derive(Debug, Clone)]
pub(crate) struct CifarItem {
    pub(crate) pixels: Vec<u8>,
    pub(crate) label: u8,
    guard: ItemGuard,
}

/// A batch as the network takes it.
#[derive(Debug, Clone)]
pub(crate) struct CifarBatch {
    /// Normalised, `[batch, 3, 32, 32]`.
    pub(crate) images: Tensor<4>,
    /// Classes, `[batch]`.
    pub(crate) targets: Tensor<1, Int>,
    pub(crate) guard: Arc<BatchGuard>,
}

/// The pictures as a Burn dataset; every item is counted.
#[derive(Debug, Clone)]
pub(crate) struct CifarDataset {
    pub(crate) pictures: Arc<Pictures>,
    /// Crop and mirror at random, as He et al. train; without it a picture comes as it is.
    pub(crate) augmented: bool,
    pub(crate) gauge: Arc<Gauge>,
}

/// Stacks items into one batch; every batch is counted.
#[derive(Debug, Clone)]
pub(crate) struct CifarBatcher {
    pub(crate) norm: Norm,
    pub(crate) gauge: Arc<Gauge>,
}

impl Dataset<CifarItem> for CifarDataset {
    fn get(&self, index: usize) -> Result<CifarItem, DatasetError> {
        let guard = self.gauge.start_item(PICTURE + 1);
        let (picture, label) = self.pictures.get(index);
        let pixels = if self.augmented {
            augment::crop_and_mirror(picture, &mut burn_prefetch::rng())
        } else {
            picture.to_vec()
        };
        Ok(CifarItem {
            pixels,
            label,
            guard,
        })
    }

    fn len(&self) -> usize {
        self.pictures.len()
    }
}

impl Batcher<CifarItem, CifarBatch> for CifarBatcher {
    fn batch(&self, mut items: Vec<CifarItem>, device: &Device) -> CifarBatch {
        let count = items.len();
        let bytes = count * (PICTURE * size_of::<f32>() + size_of::<i64>());
        let guard = self
            .gauge
            .start_batch(items.iter_mut().map(|item| &mut item.guard), bytes);
        let mut values = Vec::with_capacity(count * PICTURE);
        for item in &items {
            normalise(&item.pixels, &self.norm, &mut values);
        }
        let labels: Vec<i64> = items.iter().map(|item| i64::from(item.label)).collect();
        CifarBatch {
            images: Tensor::from_data(
                TensorData::new(values, [count, CHANNELS, SIDE, SIDE]),
                device,
            ),
            targets: Tensor::from_data(TensorData::new(labels, [count]), device),
            guard: Arc::new(guard),
        }
    }
}

impl CifarBatch {
    pub(crate) fn len(&self) -> usize {
        self.images.dims()[0]
    }
}

fn normalise(pixels: &[u8], norm: &Norm, values: &mut Vec<f32>) {
    for (channel, plane) in pixels.chunks_exact(PLANE).enumerate() {
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
        normalise(&[255; PICTURE], &norm, &mut values);
        for (channel, expected) in [1.0, 1.0, 0.0].into_iter().enumerate() {
            assert!((values[channel * PLANE] - expected).abs() < 1e-5);
            assert!((values[(channel + 1) * PLANE - 1] - expected).abs() < 1e-5);
        }
    }
}
