//! A batch as it arrives, and as the network takes it.

use std::sync::Arc;

use burn::tensor::{Int, Tensor, TensorData};

use crate::data::{CHANNELS, Norm};
use crate::gauge::BatchGuard;

/// A batch of any loader.
#[derive(Debug, Clone)]
pub(crate) struct PictureBatch {
    images: Images,
    /// Classes, `[batch]`.
    pub(crate) targets: Tensor<1, Int>,
    pub(crate) guard: Arc<BatchGuard>,
}

/// Pictures, `[batch, 3, side, side]`.
#[derive(Debug, Clone)]
pub(crate) enum Images {
    Normalised(Tensor<4>),
    /// As they were stored: a quarter of the bytes, until the device widens and normalises them.
    Bytes(Tensor<4, Int>, Norm),
}

impl PictureBatch {
    pub(crate) fn new(images: Images, targets: Tensor<1, Int>, guard: BatchGuard) -> Self {
        Self {
            images,
            targets,
            guard: Arc::new(guard),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.targets.dims()[0]
    }

    /// Bytes of its tensors.
    pub(crate) fn bytes(&self) -> usize {
        let of_one = match &self.images {
            Images::Normalised(images) => {
                images.dims().iter().product::<usize>() * size_of::<f32>()
            }
            Images::Bytes(bytes, _) => bytes.dims().iter().product(),
        };
        of_one + self.len() * self.targets.dtype().size()
    }

    /// Pictures as the network takes them, and their classes.
    pub(crate) fn into_tensors(self) -> (Tensor<4>, Tensor<1, Int>) {
        (self.images.normalised(), self.targets)
    }

    /// The same batch with pictures as the network takes them.
    pub(crate) fn normalised(self) -> Self {
        Self {
            images: Images::Normalised(self.images.normalised()),
            ..self
        }
    }

    /// Pictures as the network takes them.
    pub(crate) fn images(&self) -> Tensor<4> {
        self.images.clone().normalised()
    }
}

impl Images {
    fn normalised(self) -> Tensor<4> {
        match self {
            Self::Normalised(images) => images,
            Self::Bytes(bytes, norm) => {
                let device = bytes.device();
                let of_channels = |values: [f32; CHANNELS]| {
                    let data = TensorData::new(values.to_vec(), [1, CHANNELS, 1, 1]);
                    Tensor::<4>::from_data(data, &device)
                };
                let (scale, shift) = norm.scale_and_shift();
                bytes.float() * of_channels(scale) - of_channels(shift)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::{DType, Device};

    use crate::batcher::normalise;

    use super::*;

    #[test]
    fn the_device_normalises_to_the_bit_as_the_host_does() {
        let norm = Norm {
            mean: [0.1, 0.5, 0.93],
            std: [0.3, 0.5, 0.21],
        };
        let picture: Vec<u8> = (0..=255).cycle().take(CHANNELS * 256).collect();
        let mut expected = Vec::new();
        normalise(&picture, &norm, &mut expected);
        let device = Device::flex();
        let data = TensorData::new(picture, [1, CHANNELS, 16, 16]);
        let bytes = Tensor::from_data(data, (&device, DType::U8));
        let images = Images::Bytes(bytes, norm).normalised().into_data();
        let bits = |values: &[f32]| values.iter().map(|value| value.to_bits()).collect();
        let (found, expected): (Vec<u32>, Vec<u32>) =
            (bits(images.as_slice().unwrap()), bits(&expected));
        assert_eq!(found, expected);
    }
}
