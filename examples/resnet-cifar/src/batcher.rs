//! The plain batcher: from 8-bit pictures to one normalised batch on the device, in one go.

use std::sync::Arc;

use burn::data::dataloader::batcher::Batcher;
use burn::tensor::{Device, Tensor, TensorData};

use crate::batch::{Images, PictureBatch};
use crate::data::{CHANNELS, Norm};
use crate::gauge::Gauge;
use crate::items::PictureItem;

/// Stacks items into one batch; every batch is counted.
#[derive(Debug, Clone)]
pub(crate) struct PictureBatcher {
    pub(crate) norm: Norm,
    pub(crate) side: usize,
    pub(crate) gauge: Arc<Gauge>,
}

impl Batcher<PictureItem, PictureBatch> for PictureBatcher {
    fn batch(&self, mut items: Vec<PictureItem>, device: &Device) -> PictureBatch {
        let (count, side) = (items.len(), self.side);
        let guards = items.iter_mut().map(|item| &mut item.guard);
        let guard = self.gauge.start_batch(guards, bytes(count, side));
        let mut values = Vec::with_capacity(count * CHANNELS * side * side);
        for item in &items {
            normalise(&item.pixels, &self.norm, &mut values);
        }
        let labels = items
            .iter()
            .map(|item| i64::try_from(item.label).unwrap_or(i64::MAX));
        let images = TensorData::new(values, [count, CHANNELS, side, side]);
        let targets = TensorData::new(labels.collect(), [count]);
        PictureBatch::new(
            Images::Normalised(Tensor::from_data(images, device)),
            Tensor::from_data(targets, device),
            guard,
        )
    }
}

/// Bytes of the tensors of a batch of so many pictures.
pub(crate) fn bytes(count: usize, side: usize) -> usize {
    count * (CHANNELS * side * side * size_of::<f32>() + size_of::<i64>())
}

pub(crate) fn normalise(pixels: &[u8], norm: &Norm, values: &mut Vec<f32>) {
    let (scale, shift) = norm.scale_and_shift();
    let planes = pixels.chunks_exact((pixels.len() / CHANNELS).max(1));
    for (channel, plane) in planes.enumerate() {
        let (scale, shift) = (scale[channel], shift[channel]);
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
