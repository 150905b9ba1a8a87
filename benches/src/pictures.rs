//! CIFAR-like pictures in memory: 8-bit pixels, a random crop and flip in `get`, tensors of f32 in the batcher.

use std::sync::Arc;

use burn::data::dataloader::batcher::Batcher;
use burn::data::dataset::{Dataset, DatasetError};
use burn::tensor::{Device, Int, Tensor, TensorData};
use rand::rngs::SmallRng;
use rand::{Rng, RngExt, SeedableRng};

const SIDE: usize = 32;
const CHANNELS: usize = 3;
const PIXELS: usize = CHANNELS * SIDE * SIDE;
const PADDING: usize = 4;
const CLASSES: u8 = 10;

/// One picture, channel by channel, row by row.
#[derive(Clone, Debug)]
pub struct Picture {
    pixels: Vec<u8>,
    label: u8,
}

/// Pictures of random pixels.
#[derive(Clone, Debug)]
pub struct Pictures {
    pixels: Arc<[u8]>,
    labels: Arc<[u8]>,
}

impl Pictures {
    /// `len` pictures, the same in every run.
    #[must_use]
    pub fn new(len: usize) -> Self {
        let mut pixels = vec![0; len * PIXELS];
        SmallRng::seed_from_u64(1).fill_bytes(&mut pixels);
        Self {
            pixels: pixels.into(),
            labels: (0..CLASSES).cycle().take(len).collect(),
        }
    }
}

impl Dataset<Picture> for Pictures {
    fn get(&self, index: usize) -> Result<Picture, DatasetError> {
        let source = &self.pixels[index * PIXELS..][..PIXELS];
        Ok(Picture {
            pixels: augmented(source, &mut burn_prefetch::rng()),
            label: self.labels[index],
        })
    }

    fn len(&self) -> usize {
        self.labels.len()
    }
}

/// Pads by 4 on every side, cuts 32 by 32 pixels out anywhere, and mirrors every second picture.
fn augmented(source: &[u8], rng: &mut impl Rng) -> Vec<u8> {
    let top = rng.random_range(0..=2 * PADDING);
    let left = rng.random_range(0..=2 * PADDING);
    let mirror = rng.random_bool(0.5);

    let mut target = vec![0; PIXELS];
    let (from, to) = (left.saturating_sub(PADDING), PADDING.saturating_sub(left));
    let width = SIDE - left.abs_diff(PADDING);
    for (source, target) in source
        .chunks_exact(SIDE * SIDE)
        .zip(target.chunks_exact_mut(SIDE * SIDE))
    {
        for (y, target) in target.chunks_exact_mut(SIDE).enumerate() {
            let padded = y + top;
            if (PADDING..PADDING + SIDE).contains(&padded) {
                let row = &source[(padded - PADDING) * SIDE..][..SIDE];
                target[to..to + width].copy_from_slice(&row[from..from + width]);
            }
            if mirror {
                target.reverse();
            }
        }
    }
    target
}

/// Makes f32 tensors.
#[derive(Clone, Copy, Debug)]
pub struct PictureBatcher;

/// A batch of pictures.
#[derive(Clone, Debug)]
pub struct PictureBatch {
    /// `[batch, 3, 32, 32]`, each pixel between -1 and 1.
    pub images: Tensor<4>,
    /// `[batch]`.
    pub labels: Tensor<1, Int>,
}

impl Batcher<Picture, PictureBatch> for PictureBatcher {
    fn batch(&self, items: Vec<Picture>, device: &Device) -> PictureBatch {
        let shape = [items.len(), CHANNELS, SIDE, SIDE];
        let mut images = Vec::with_capacity(items.len() * PIXELS);
        let mut labels = Vec::with_capacity(items.len());
        for item in items {
            images.extend(
                item.pixels
                    .iter()
                    .map(|&pixel| f32::from(pixel) / 127.5 - 1.0),
            );
            labels.push(i64::from(item.label));
        }
        let labels_shape = [labels.len()];
        PictureBatch {
            images: Tensor::from_data(TensorData::new(images, shape), device),
            labels: Tensor::from_data(TensorData::new(labels, labels_shape), device),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crop_is_the_padded_picture_shifted_and_perhaps_mirrored() {
        let source: Vec<u8> = (0..PIXELS)
            .map(|i| u8::try_from(i % 251 + 1).unwrap())
            .collect();
        let padded = |c: usize, y: usize, x: usize| {
            let inside =
                (PADDING..PADDING + SIDE).contains(&y) && (PADDING..PADDING + SIDE).contains(&x);
            if inside {
                source[(c * SIDE + y - PADDING) * SIDE + x - PADDING]
            } else {
                0
            }
        };
        for seed in 0..50 {
            let mut rng = SmallRng::seed_from_u64(seed);
            let got = augmented(&source, &mut rng.clone());
            let (top, left) = (rng.random_range(0..=8_usize), rng.random_range(0..=8_usize));
            let mirror = rng.random_bool(0.5);
            for (i, &pixel) in got.iter().enumerate() {
                let (c, y, x) = (i / SIDE / SIDE, i / SIDE % SIDE, i % SIDE);
                let x = [x, SIDE - 1 - x][usize::from(mirror)];
                assert_eq!(
                    pixel,
                    padded(c, y + top, x + left),
                    "seed {seed}, pixel {i}"
                );
            }
        }
    }
}
