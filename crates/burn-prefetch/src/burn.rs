//! Every name taken from Burn, in one place.

pub(crate) use ::burn::data::dataloader::batcher::Batcher;
pub(crate) use ::burn::data::dataloader::{DataLoader, DataLoaderIterator, Progress};
pub(crate) use ::burn::data::dataset::{Dataset, DatasetError};
pub(crate) use ::burn::tensor::Device;
