//! A batch as it arrives, and as the network takes it.

use std::sync::Arc;

use burn::tensor::{Device, Int, Tensor, TensorData};

use crate::batcher::normalise;
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
    /// As they were stored: a quarter of the bytes, until the device normalises them.
    Bytes(Tensor<4, Int>, Norm),
}

impl PictureBatch {
    /// A batch that its batcher is done with.
    pub(crate) fn new(images: Images, targets: Tensor<1, Int>, guard: BatchGuard) -> Self {
        guard.ready();
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
            Self::Bytes(bytes, norm) if bytes.device() == Device::flex() => on_host(bytes, norm),
            Self::Bytes(bytes, norm) => on_device(bytes, norm),
        }
    }
}

/// Three operations of the device.
fn on_device(bytes: Tensor<4, Int>, norm: Norm) -> Tensor<4> {
    let device = bytes.device();
    let of_channels = |values: [f32; CHANNELS]| {
        let data = TensorData::new(values.to_vec(), [1, CHANNELS, 1, 1]);
        Tensor::<4>::from_data(data, &device)
    };
    let (scale, shift) = norm.scale_and_shift();
    bytes.float() * of_channels(scale) - of_channels(shift)
}

/// One loop instead: where the host computes, each operation is a pass over all the floats, and
/// reaching the bytes costs nothing.
fn on_host(bytes: Tensor<4, Int>, norm: Norm) -> Tensor<4> {
    let (device, dims) = (bytes.device(), bytes.dims());
    let picture: usize = dims[1..].iter().product();
    let bytes = bytes.into_data();
    let mut values = Vec::with_capacity(dims[0] * picture);
    for pixels in bytes.as_bytes().chunks_exact(picture.max(1)) {
        normalise(pixels, &norm, &mut values);
    }
    Tensor::from_data(TensorData::new(values, dims), &device)
}

#[cfg(test)]
mod tests {
    use burn::tensor::DType;

    use super::*;

    #[test]
    fn the_device_normalises_to_the_bit_as_the_host_does() {
        let norm = Norm {
            mean: [0.1, 0.5, 0.93],
            std: [0.3, 0.5, 0.21],
        };
        let pictures: Vec<u8> = (0..=255).cycle().take(2 * CHANNELS * 256).collect();
        let device = Device::flex();
        let data = TensorData::new(pictures, [2, CHANNELS, 16, 16]);
        let bytes = Tensor::from_data(data, (&device, DType::U8));
        let bits = |images: Tensor<4>| {
            let data = images.into_data();
            let values = data.as_slice::<f32>().unwrap().iter();
            values.map(|value| value.to_bits()).collect::<Vec<_>>()
        };
        let found = bits(on_device(bytes.clone(), norm));
        assert_eq!(found, bits(on_host(bytes, norm)));
        assert_eq!(found.len(), 2 * CHANNELS * 256);
    }
}
