//! Batches of the user's own, and how the engine makes them.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::batches::{Batches, EpochBatches};
use crate::recipe::Identity;

/// Batches of your own: how many items each has, and which.
///
/// All methods are pure functions: the same arguments give the same result, in any thread and in a
/// resumed run. For lists that are written down there is [`BatchLists`](crate::BatchLists), for
/// batches of items of like length [`Buckets`](crate::Buckets).
///
/// ```
/// use burn_prefetch_engine::{BatchSampler, BatchSizes, Plan};
///
/// /// One item, then two, then three.
/// struct Stairs;
///
/// impl BatchSampler for Stairs {
///     fn sizes(&self, _epoch: usize) -> BatchSizes {
///         BatchSizes::each([1, 2, 3])
///     }
///
///     fn at(&self, _epoch: usize, batch: usize, place: usize) -> usize {
///         [0, 1, 3][batch] + place
///     }
/// }
///
/// let epoch = Plan::sampled(Stairs, 6).at(0);
/// let last: Vec<_> = epoch.batch(2).map(|position| epoch.index(position)).collect();
/// assert_eq!((epoch.num_batches(), epoch.num_items(), last), (3, 6, vec![3, 4, 5]));
/// ```
pub trait BatchSampler: Send + Sync + 'static {
    /// How many items each batch of `epoch` has. Asked for once, when a pass begins, on the thread
    /// that begins it.
    fn sizes(&self, epoch: usize) -> BatchSizes;

    /// The dataset index at `place` of `batch` in `epoch`, both below what
    /// [`sizes`](Self::sizes) said.
    ///
    /// A panic, an index beyond the data, or a batch of no items is an error at that batch.
    fn at(&self, epoch: usize, batch: usize, place: usize) -> usize;

    /// A number that is another for other batches, so that a state saved under one sampler is
    /// refused under another.
    fn digest(&self) -> u64 {
        0
    }
}

/// How many items each batch has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchSizes(Sizes);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Sizes {
    Equal { batches: usize, size: usize },
    Each(Vec<usize>),
}

impl BatchSizes {
    /// So many batches, all of one size.
    #[must_use]
    pub fn equal(batches: usize, size: usize) -> Self {
        Self(Sizes::Equal { batches, size })
    }

    /// A size for each batch; eight bytes a batch while the epoch lasts.
    #[must_use]
    pub fn each(sizes: impl IntoIterator<Item = usize>) -> Self {
        Self(Sizes::Each(sizes.into_iter().collect()))
    }

    fn count(&self) -> usize {
        match &self.0 {
            Sizes::Equal { batches, .. } => *batches,
            Sizes::Each(sizes) => sizes.len(),
        }
    }

    fn of(&self, batch: usize) -> usize {
        match &self.0 {
            Sizes::Equal { size, .. } => *size,
            Sizes::Each(sizes) => sizes[batch],
        }
    }

    fn first_empty(&self, mut batches: Range<usize>) -> Option<usize> {
        match &self.0 {
            Sizes::Equal { size: 0, .. } => batches.next(),
            Sizes::Equal { .. } => None,
            Sizes::Each(sizes) => batches.find(|batch| sizes[*batch] == 0),
        }
    }

    fn longest(&self) -> usize {
        match &self.0 {
            Sizes::Equal { size, .. } => *size,
            Sizes::Each(sizes) => sizes.iter().copied().max().unwrap_or(0),
        }
    }

    fn sum(&self) -> usize {
        match &self.0 {
            Sizes::Equal { batches, size } => batches.saturating_mul(*size),
            Sizes::Each(sizes) => sizes.iter().fold(0, |sum, size| sum.saturating_add(*size)),
        }
    }
}

/// A user's batch sampler over data of so many items.
pub(crate) struct Custom<S> {
    pub(crate) sampler: Arc<S>,
    pub(crate) data_len: usize,
}

impl<S> fmt::Debug for Custom<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Custom")
            .field("sampler", &std::any::type_name::<S>())
            .field("data_len", &self.data_len)
            .finish()
    }
}

impl<S: BatchSampler> Batches for Custom<S> {
    fn data_len(&self) -> usize {
        self.data_len
    }

    fn at(&self, epoch: usize) -> Arc<dyn EpochBatches> {
        let sizes = self.sampler.sizes(epoch);
        Arc::new(CustomEpoch {
            sampler: Arc::clone(&self.sampler),
            epoch,
            longest: sizes.longest(),
            num_items: sizes.sum(),
            sizes,
        })
    }

    fn is_trusted(&self) -> bool {
        false
    }

    fn identity(&self) -> Identity {
        Identity {
            name: "batch sampler",
            version: 1,
            digest: self.sampler.digest(),
        }
    }
}

struct CustomEpoch<S> {
    sampler: Arc<S>,
    epoch: usize,
    sizes: BatchSizes,
    longest: usize,
    num_items: usize,
}

impl<S: BatchSampler> EpochBatches for CustomEpoch<S> {
    fn num_batches(&self) -> usize {
        self.sizes.count()
    }

    fn len(&self, number: usize) -> usize {
        self.sizes.of(number)
    }

    fn first_empty(&self, numbers: Range<usize>) -> Option<usize> {
        self.sizes.first_empty(numbers)
    }

    fn longest(&self) -> usize {
        self.longest
    }

    fn num_items(&self) -> usize {
        self.num_items
    }

    fn index(&self, number: usize, place: usize) -> usize {
        self.sampler.at(self.epoch, number, place)
    }
}
