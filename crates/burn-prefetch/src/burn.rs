//! Every name taken from Burn, in one place.

pub(crate) use ::burn::data::dataloader::batcher::Batcher;
pub(crate) use ::burn::data::dataloader::{DataLoader, DataLoaderIterator, Progress};
pub(crate) use ::burn::data::dataset::{Dataset, DatasetError};
pub(crate) use ::burn::tensor::Device;
#[cfg(feature = "cuda")]
pub(crate) use ::burn::tensor::DeviceType;
#[cfg(feature = "train")]
pub(crate) use ::burn::tensor::TensorReadError;
pub(crate) use ::burn::tensor::kind::{Basic, Kind};
pub(crate) use ::burn::tensor::{
    AllocationProperty, Bytes, DType, Element, Int, StreamId, Tensor, TensorData,
};
#[cfg(feature = "train")]
pub(crate) use ::burn::train::metric::{
    Metric, MetricAttributes, MetricMetadata, MetricName, Numeric, NumericAttributes, NumericEntry,
    SerializedEntry,
};
