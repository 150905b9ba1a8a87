//! The orders in which an uploader may flush, upload and kick.

use burn::tensor::{Bytes, DType, Device, TensorData};

use crate::{Kind, Shelf, Uploaded, kick, payload};

/// What happens around the upload of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// A flush before it, and a kick.
    FlushUploadKick,
    /// A kick only.
    UploadKick,
    /// A flush behind it, which is a kick as well: the server answers it.
    UploadFlush,
}

impl Order {
    /// Uploads a batch, one tensor after the other.
    ///
    /// # Panics
    ///
    /// When the device does not work.
    #[must_use]
    pub fn upload(self, batch: Vec<Bytes>, device: &Device) -> Vec<Uploaded> {
        if self == Self::FlushUploadKick {
            device.flush().expect("the device works");
        }
        let uploaded = batch
            .into_iter()
            .map(|bytes| upload(bytes, device))
            .collect();
        match self {
            Self::UploadFlush => device.flush().expect("the device works"),
            Self::FlushUploadKick | Self::UploadKick => kick(device),
        }
        uploaded
    }
}

/// Hands bytes to the device, and does nothing to start it.
#[must_use]
pub fn upload(bytes: Bytes, device: &Device) -> Uploaded {
    let elements = bytes.len();
    Kind::U8.upload(TensorData::from_bytes(bytes, [elements], DType::U8), device)
}

/// Slots of several sizes, made when none lies on the shelf.
#[derive(Debug)]
pub struct Slots {
    device: Device,
    sizes: Vec<(usize, Shelf)>,
    /// How many were made, for each size.
    pub made: Vec<usize>,
}

impl Slots {
    /// None yet, for batches of tensors of these sizes.
    #[must_use]
    pub fn of(device: &Device, sizes: &[usize]) -> Self {
        Self {
            device: device.clone(),
            sizes: sizes.iter().map(|bytes| (*bytes, Shelf::new())).collect(),
            made: vec![0; sizes.len()],
        }
    }

    /// A slot for each tensor of a batch, filled.
    pub fn batch(&mut self, seed: u8) -> Vec<Bytes> {
        let mut batch = Vec::new();
        for ((bytes, shelf), made) in self.sizes.iter().zip(&mut self.made) {
            let mut memory = shelf.take_one().unwrap_or_else(|| {
                *made += 1;
                Shelf::pin(&self.device, *bytes)
            });
            memory.copy_from_slice(&payload(*bytes, seed));
            batch.push(shelf.lend(memory));
        }
        batch
    }
}
