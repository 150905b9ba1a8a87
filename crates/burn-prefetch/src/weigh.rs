//! How many bytes a batch has: what was said of any beforehand, and of each that is made.

use std::fmt;
use std::sync::Arc;

use burn_prefetch_engine::Cost;

use crate::burn::{Basic, Tensor};

/// What the user says of every batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Declared {
    pub(crate) max_batch: Option<u64>,
    pub(crate) item: Option<u64>,
}

impl Declared {
    /// What a batch of so many items will take, that is measured once it is made or is not. Its items
    /// are alive until then.
    pub(crate) fn cost(self, len: usize, is_measured: bool) -> Cost {
        let items = self.item.unwrap_or(0).saturating_mul(len as u64);
        match self.max_batch {
            Some(batch) => Cost::Known(items.saturating_add(batch)),
            None if is_measured => Cost::Learned { items },
            None => Cost::Known(items),
        }
    }
}

/// Measures a batch that is made, where the user says how.
pub(crate) struct Weigh<O>(pub(crate) Option<Measure<O>>);

type Measure<O> = Arc<dyn Fn(&O) -> usize + Send + Sync>;

impl<O> Clone for Weigh<O> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<O> fmt::Debug for Weigh<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Weigh")
    }
}

impl<O> Weigh<O> {
    pub(crate) fn new(measure: impl Fn(&O) -> usize + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(measure)))
    }

    /// The bytes of a batch; where nobody measures, what was declared.
    pub(crate) fn size(&self, batch: &O, declared: Declared) -> Option<u64> {
        match &self.0 {
            Some(measure) => Some(measure(batch) as u64),
            None => declared.max_batch,
        }
    }
}

/// What knows how many bytes its values take: a tensor, or what is made of tensors.
///
/// For [`batch_bytes`](crate::DataLoaderBuilder::batch_bytes), where a batch is a tuple, a list or a
/// struct of tensors:
///
/// ```
/// use burn::tensor::{Int, Tensor};
/// use burn_prefetch::ByteCount;
///
/// struct Batch {
///     images: Tensor<4>,
///     labels: Tensor<1, Int>,
/// }
///
/// let size = |batch: &Batch| batch.images.byte_count() + batch.labels.byte_count();
/// # let device = Default::default();
/// # let images = Tensor::zeros([2, 3, 4, 4], &device);
/// # let labels = Tensor::zeros([2], &device);
/// # assert_eq!(size(&Batch { images, labels: labels.clone() }), 96 * 4 + labels.byte_count());
/// ```
pub trait ByteCount {
    /// How many bytes.
    fn byte_count(&self) -> usize;
}

impl<const D: usize, K: Basic> ByteCount for Tensor<D, K> {
    fn byte_count(&self) -> usize {
        let values: usize = self.dims().iter().product();
        values * self.dtype().size()
    }
}

impl<T: ByteCount> ByteCount for Vec<T> {
    fn byte_count(&self) -> usize {
        self.iter().map(T::byte_count).sum()
    }
}

impl<T: ByteCount> ByteCount for Option<T> {
    fn byte_count(&self) -> usize {
        self.as_ref().map_or(0, T::byte_count)
    }
}

impl<A: ByteCount, B: ByteCount> ByteCount for (A, B) {
    fn byte_count(&self) -> usize {
        self.0.byte_count() + self.1.byte_count()
    }
}

impl<A: ByteCount, B: ByteCount, C: ByteCount> ByteCount for (A, B, C) {
    fn byte_count(&self) -> usize {
        self.0.byte_count() + self.1.byte_count() + self.2.byte_count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_beforehand_is_not_learned() {
        let none = Declared::default();
        assert_eq!(none.cost(4, false), Cost::Known(0));
        assert_eq!(none.cost(4, true), Cost::Learned { items: 0 });
        let items = Declared {
            item: Some(10),
            ..none
        };
        assert_eq!(items.cost(4, true), Cost::Learned { items: 40 });
        let both = Declared {
            max_batch: Some(7),
            ..items
        };
        assert_eq!(both.cost(4, true), Cost::Known(47));
        assert_eq!(Weigh::<u8>(None).size(&0, both), Some(7));
        assert_eq!(Weigh::new(|_: &u8| 3).size(&0, both), Some(3));
    }
}
