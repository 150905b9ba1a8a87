//! Every name taken from Burn, in one place.

pub(crate) use ::burn::data::dataloader::batcher::Batcher;
pub(crate) use ::burn::data::dataloader::{DataLoader, DataLoaderIterator, Progress};
pub(crate) use ::burn::data::dataset::{Dataset, DatasetError};
pub(crate) use ::burn::tensor::Device;
#[cfg(feature = "cuda")]
pub(crate) use ::burn::tensor::DeviceType;
pub(crate) use ::burn::tensor::kind::Basic;
pub(crate) use ::burn::tensor::{
    AllocationProperty, Bytes, DType, Element, Int, StreamId, Tensor, TensorData,
};
