//! Settings that a loader found by itself, to be set by the next run.

use serde::{Deserialize, Serialize};

/// What was found, once it need not be found again: from
/// [`freeze`](crate::LoaderControl::freeze) to [`frozen`](crate::DataLoaderBuilder::frozen).
///
/// ```
/// # use burn::data::dataloader::batcher::Batcher;
/// # use burn::data::dataset::InMemDataset;
/// # use burn::tensor::Device;
/// # use burn_prefetch::DataLoaderBuilder;
/// # struct Collect;
/// # impl Batcher<u32, Vec<u32>> for Collect {
/// #     fn batch(&self, items: Vec<u32>, _device: &Device) -> Vec<u32> { items }
/// # }
/// # let data = || InMemDataset::new((0..40).collect());
/// let loader = DataLoaderBuilder::new(Collect).auto().try_build(data())?;
/// // .. after an epoch or two, perhaps kept in a file between two runs:
/// let found = loader.control().freeze();
///
/// let next = DataLoaderBuilder::new(Collect).frozen(found).try_build(data())?;
/// assert_eq!(next.effective_config().num_workers, found.num_workers);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FrozenSettings {
    /// For [`num_workers`](crate::DataLoaderBuilder::num_workers).
    pub num_workers: usize,
    /// For [`prefetch`](crate::DataLoaderBuilder::prefetch), if the window was ever changed.
    pub prefetch: Option<usize>,
}
