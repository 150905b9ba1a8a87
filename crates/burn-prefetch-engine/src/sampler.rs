//! An order of the user's own, and how the engine follows it.

use std::fmt;
use std::sync::Arc;

use crate::recipe::{Identity, Prepared, Recipe};

/// An order of your own: which index stands at which position of an epoch.
///
/// Both methods are pure functions: the same arguments give the same result, in any thread and in a
/// resumed run, or else order depends on the number of workers. Workers call them at the same time.
///
/// ```
/// use burn_prefetch_engine::{Order, Sampler};
///
/// /// Every other item, from the back; one item less in every epoch.
/// struct Shrinking(usize);
///
/// impl Sampler for Shrinking {
///     fn len(&self, epoch: usize) -> usize {
///         (self.0 / 2).saturating_sub(epoch)
///     }
///
///     fn at(&self, _epoch: usize, position: usize) -> usize {
///         self.0 - 1 - 2 * position
///     }
/// }
///
/// let order = Order::sampled(Shrinking(10), 10);
/// let epoch = order.at(1);
/// let indices: Vec<_> = (0..epoch.len()).map(|position| epoch.index(position)).collect();
/// assert_eq!(indices, [9, 7, 5, 3]);
/// ```
pub trait Sampler: Send + Sync + 'static {
    /// How many items `epoch` has. Asked for when a pass begins, on the thread that begins it.
    fn len(&self, epoch: usize) -> usize;

    /// Whether `epoch` has no items.
    fn is_empty(&self, epoch: usize) -> bool {
        self.len(epoch) == 0
    }

    /// The dataset index at `position` of `epoch`, which is below [`len`](Self::len).
    ///
    /// A panic, or an index beyond the data, is an error at the batch that it belongs to.
    fn at(&self, epoch: usize, position: usize) -> usize;

    /// A number that is another for another order, so that a state saved under one sampler is
    /// refused under another.
    fn digest(&self) -> u64 {
        0
    }
}

/// A user's sampler over data of so many items.
pub(crate) struct Custom<S> {
    sampler: Arc<S>,
    data_len: usize,
}

impl<S: Sampler> Custom<S> {
    pub(crate) fn new(sampler: S, data_len: usize) -> Self {
        Self {
            sampler: Arc::new(sampler),
            data_len,
        }
    }
}

impl<S> fmt::Debug for Custom<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Custom")
            .field("sampler", &std::any::type_name::<S>())
            .field("data_len", &self.data_len)
            .finish()
    }
}

impl<S: Sampler> Recipe for Custom<S> {
    fn data_len(&self) -> usize {
        self.data_len
    }

    fn len(&self, epoch: usize) -> usize {
        self.sampler.len(epoch)
    }

    fn prepare(&self, epoch: usize) -> Box<dyn Prepared> {
        Box::new(CustomEpoch {
            sampler: Arc::clone(&self.sampler),
            epoch,
        })
    }

    fn is_trusted(&self) -> bool {
        false
    }

    fn identity(&self) -> Identity {
        Identity {
            name: "sampler",
            version: 1,
            digest: self.sampler.digest(),
        }
    }
}

struct CustomEpoch<S> {
    sampler: Arc<S>,
    epoch: usize,
}

impl<S: Sampler> Prepared for CustomEpoch<S> {
    fn index(&self, position: usize) -> usize {
        self.sampler.at(self.epoch, position)
    }
}
