//! CIFAR-like pictures in memory: 8-bit pixels, a random crop and flip in `get`, tensors of f32 in the batcher.

use std::sync::Arc;

use burn::data::dataloader::batcher::Batcher;
use burn::data::dataset::{Dataset, DatasetError};
use burn::tensor::{Device, Int, Tensor, TensorData};
use burn_prefetch::{BoxError, FetchInto, HostBatch, Layout, Row, RowBatcher};
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

    fn picture(&self, index: usize) -> &[u8] {
        &self.pixels[index * PIXELS..][..PIXELS]
    }
}

impl Dataset<Picture> for Pictures {
    fn get(&self, index: usize) -> Result<Picture, DatasetError> {
        let mut pixels = vec![0; PIXELS];
        augment(self.picture(index), &mut pixels, &mut burn_prefetch::rng());
        Ok(Picture {
            pixels,
            label: self.labels[index],
        })
    }

    fn len(&self) -> usize {
        self.labels.len()
    }
}

impl FetchInto<Picture, DatasetError> for Pictures {
    fn fetch_into(&self, index: usize, row: &mut Row<'_>) -> Result<(), BoxError> {
        let pixels = row.values_mut::<u8>(IMAGES)?;
        augment(self.picture(index), pixels, &mut burn_prefetch::rng());
        row.write(LABELS, &[i64::from(self.labels[index])])?;
        Ok(())
    }
}

/// Pads by 4 on every side, cuts 32 by 32 pixels out anywhere, and mirrors every second picture; into
/// a target of zeros.
fn augment(source: &[u8], target: &mut [u8], rng: &mut impl Rng) {
    let top = rng.random_range(0..=2 * PADDING);
    let left = rng.random_range(0..=2 * PADDING);
    let mirror = rng.random_bool(0.5);

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

/// Pixels between -1 and 1.
fn widened(pixels: &[u8]) -> impl Iterator<Item = f32> {
    pixels.iter().map(|&pixel| f32::from(pixel) / 127.5 - 1.0)
}

impl Batcher<Picture, PictureBatch> for PictureBatcher {
    fn batch(&self, items: Vec<Picture>, device: &Device) -> PictureBatch {
        let shape = [items.len(), CHANNELS, SIDE, SIDE];
        let mut images = Vec::with_capacity(items.len() * PIXELS);
        let mut labels = Vec::with_capacity(items.len());
        for item in items {
            images.extend(widened(&item.pixels));
            labels.push(i64::from(item.label));
        }
        let labels_shape = [labels.len()];
        PictureBatch {
            images: Tensor::from_data(TensorData::new(images, shape), device),
            labels: Tensor::from_data(TensorData::new(labels, labels_shape), device),
        }
    }
}

/// The slot of the pictures, and that of their labels.
const IMAGES: &str = "images";
const LABELS: &str = "labels";

/// Keeps the bytes: the batch goes through host memory.
#[derive(Clone, Copy, Debug)]
pub struct PictureRows;

/// A batch of pictures as they are stored.
#[derive(Clone, Debug)]
pub struct ByteBatch {
    /// `[batch, 3, 32, 32]`, as `u8`.
    pub images: Tensor<4, Int>,
    /// `[batch]`.
    pub labels: Tensor<1, Int>,
}

impl RowBatcher<Picture, ByteBatch> for PictureRows {
    fn layout(&self, len: usize) -> Layout {
        Layout::new()
            .slot_unfilled::<i64>(LABELS, [len])
            .slot::<u8>(IMAGES, [len, CHANNELS, SIDE, SIDE])
    }

    fn write(&self, item: Picture, row: &mut Row<'_>) -> Result<(), BoxError> {
        row.write(IMAGES, &item.pixels)?;
        row.write(LABELS, &[i64::from(item.label)])?;
        Ok(())
    }

    fn upload(&self, mut batch: HostBatch, device: &Device) -> Result<ByteBatch, BoxError> {
        Ok(ByteBatch {
            labels: batch.int(LABELS, device)?,
            images: batch.int(IMAGES, device)?,
        })
    }
}

impl ByteBatch {
    /// The batch that [`PictureBatcher`] makes.
    #[must_use]
    pub fn widened(self) -> PictureBatch {
        let (device, shape) = (self.images.device(), self.images.dims());
        let bytes = self.images.into_data();
        let images: Vec<f32> = widened(bytes.as_bytes()).collect();
        PictureBatch {
            images: Tensor::from_data(TensorData::new(images, shape), &device),
            labels: self.labels,
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
            let mut got = vec![0; PIXELS];
            augment(&source, &mut got, &mut rng.clone());
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
