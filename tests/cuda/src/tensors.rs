//! The tensors that the promises are held for: bytes, floats and integers, each of its own type.

use burn::tensor::{DType, Device, Int, Tensor, TensorData};

/// The element types.
pub const KINDS: [Kind; 3] = [Kind::U8, Kind::F32, Kind::I64];

/// An element type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Bytes, as of pictures.
    U8,
    /// Floats, as of most batches.
    F32,
    /// Integers, as of labels; 64 bits, which is not what a device takes by itself.
    I64,
}

impl Kind {
    /// Burn's name for it.
    #[must_use]
    pub fn dtype(self) -> DType {
        match self {
            Self::U8 => DType::U8,
            Self::F32 => DType::F32,
            Self::I64 => DType::I64,
        }
    }

    /// These data on a device, in this type.
    #[must_use]
    pub fn upload(self, data: TensorData, device: &Device) -> Uploaded {
        let options = (device, self.dtype());
        match self {
            Self::F32 => Uploaded::Float(Tensor::from_data(data, options)),
            Self::U8 | Self::I64 => Uploaded::Int(Tensor::from_data(data, options)),
        }
    }
}

/// A tensor of any of the kinds.
#[derive(Clone, Debug)]
pub enum Uploaded {
    /// Floats.
    Float(Tensor<1>),
    /// Integers.
    Int(Tensor<1, Int>),
}

impl Uploaded {
    /// What is in it.
    ///
    /// # Panics
    ///
    /// When the device cannot tell.
    #[must_use]
    pub fn read(self) -> TensorData {
        self.try_read().expect("the device works")
    }

    /// What is in it, where the device can tell.
    ///
    /// # Errors
    ///
    /// What kept the device from it, in its words.
    pub fn try_read(self) -> Result<TensorData, String> {
        let data = match self {
            Self::Float(tensor) => tensor.try_into_data(),
            Self::Int(tensor) => tensor.try_into_data(),
        };
        data.map_err(|why| format!("{why:?}"))
    }
}

/// The stand-in's device with this number.
#[must_use]
pub fn device(index: usize) -> Device {
    Device::cuda(index)
}

/// Makes the device's server start what was submitted on this thread's stream: a call that it
/// answers, and that costs it nothing.
pub fn kick(device: &Device) {
    let _what_there_is = device.memory_pool_usage();
}

/// This many bytes that depend on `seed` and on their place.
#[must_use]
pub fn payload(bytes: usize, seed: u8) -> Vec<u8> {
    let byte = |place: usize| (place.wrapping_mul(31) >> 3).to_le_bytes()[0];
    (0..bytes).map(|place| byte(place) ^ seed).collect()
}
