//! An epoch's order cut into numbered batches.

use std::fmt;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::Arc;

use crate::batch_sampler::{BatchSampler, Custom};
use crate::batches::{Batches, EpochBatches, Slice};
use crate::evenly::{Even, Remainder};
use crate::order::{EpochOrder, Order};
use crate::order_error::OrderError;
use crate::permutation::RUN;
use crate::recipe::Identity;

/// What goes into which batch, for every epoch.
#[derive(Clone, Debug)]
pub struct Plan {
    cut: Cut,
}

#[derive(Clone, Debug)]
enum Cut {
    Even(Ordered),
    Uneven(Arc<dyn Batches>),
}

/// An order and the size of its batches.
#[derive(Clone, Debug)]
struct Ordered {
    order: Order,
    batch_size: NonZeroUsize,
    remainder: Remainder,
}

impl Ordered {
    /// The batches of an epoch of `len` items.
    fn cut(&self, len: usize) -> Even {
        Even::new(len, self.batch_size, self.remainder)
    }

    fn cut_of(&self, epoch: usize) -> Even {
        self.cut(self.order.num_items(epoch))
    }
}

impl Plan {
    /// Cuts `order` into batches of `batch_size` items.
    #[must_use]
    pub fn new(order: Order, batch_size: NonZeroUsize, remainder: Remainder) -> Self {
        let cut = Cut::Even(Ordered {
            order,
            batch_size,
            remainder,
        });
        Self { cut }
    }

    /// The batches of a batch sampler of your own, over data of `data_len` items.
    #[must_use]
    pub fn sampled(sampler: impl BatchSampler, data_len: usize) -> Self {
        let sampler = Arc::new(sampler);
        Self::made_from(Arc::new(Custom { sampler, data_len }))
    }

    pub(crate) fn made_from(batches: Arc<dyn Batches>) -> Self {
        Self {
            cut: Cut::Uneven(batches),
        }
    }

    /// The plan of the part `start..end` of this one's items, where an epoch has `of` items.
    ///
    /// [`Order::slice`] says which items these are. Batches of a batch sampler stay whole: those
    /// whose number, scaled to the number of items, lies within the bounds. Slices that share no
    /// item share no batch, and slices that make up the whole leave none out.
    ///
    /// # Panics
    ///
    /// When `start > end` or `end` is beyond [`num_items`](Self::num_items): the caller checks.
    #[must_use]
    pub fn slice(&self, start: usize, end: usize, of: usize) -> Self {
        assert!(start <= end, "the caller checks the bounds of a slice");
        match &self.cut {
            Cut::Even(even) => Self {
                cut: Cut::Even(Ordered {
                    order: even.order.slice(start, end, of),
                    ..*even
                }),
            },
            Cut::Uneven(batches) => {
                let (of, items) = (Arc::clone(batches), of);
                Self::made_from(Arc::new(Slice {
                    of,
                    start,
                    end,
                    items,
                }))
            }
        }
    }

    /// How many items `epoch` has, with those that it leaves out.
    #[must_use]
    pub fn all_items(&self, epoch: usize) -> usize {
        match &self.cut {
            Cut::Even(even) => even.order.num_items(epoch),
            Cut::Uneven(batches) => batches.at(epoch).num_items(),
        }
    }

    /// How many items `epoch` yields, without padding.
    #[must_use]
    pub fn num_items(&self, epoch: usize) -> usize {
        match &self.cut {
            Cut::Even(even) => even.cut_of(epoch).num_items(),
            Cut::Uneven(batches) => batches.at(epoch).num_items(),
        }
    }

    /// How many batches `epoch` yields.
    #[must_use]
    pub fn num_batches(&self, epoch: usize) -> usize {
        match &self.cut {
            Cut::Even(even) => even.cut_of(epoch).num_batches(),
            Cut::Uneven(batches) => batches.at(epoch).num_batches(),
        }
    }

    /// How many batches all epochs before `epoch` yield together. A sampler of your own is asked for
    /// the length of each.
    #[must_use]
    pub fn batches_before(&self, epoch: usize) -> usize {
        let steady = match &self.cut {
            Cut::Even(even) => even.order.is_steady(),
            Cut::Uneven(batches) => batches.is_trusted(),
        };
        if steady {
            return self.num_batches(0).saturating_mul(epoch);
        }
        let epochs = (0..epoch).map(|epoch| self.num_batches(epoch));
        epochs.fold(0, usize::saturating_add)
    }

    /// How many items the data has that indices are of; of data in sequence or shuffled, at least
    /// how many.
    #[must_use]
    pub fn data_len(&self) -> usize {
        match &self.cut {
            Cut::Even(even) => even.order.data_len(),
            Cut::Uneven(batches) => batches.data_len(),
        }
    }

    /// Which order this is; the batch size is not part of it, unless the sampler makes batches.
    #[must_use]
    pub fn identity(&self) -> Identity {
        match &self.cut {
            Cut::Even(even) => even.order.identity(),
            Cut::Uneven(batches) => batches.identity(),
        }
    }

    /// Looks for what can be wrong with a batch sampler and is known before `epoch` begins.
    ///
    /// # Errors
    ///
    /// When a batch has no items.
    pub fn check(&self, epoch: usize) -> Result<(), OrderError> {
        let Cut::Uneven(batches) = &self.cut else {
            return Ok(());
        };
        let batches = batches.at(epoch);
        match batches.first_empty(0..batches.num_batches()) {
            None => Ok(()),
            Some(batch) => Err(OrderError::EmptyBatch { batch }),
        }
    }

    /// The plan of one epoch. Prepares nothing that takes long.
    #[must_use]
    pub fn at(&self, epoch: usize) -> EpochPlan {
        let batches = match &self.cut {
            Cut::Even(even) => {
                let order = even.order.at(epoch);
                EpochCut::Even {
                    cut: even.cut(order.len()),
                    order,
                }
            }
            Cut::Uneven(batches) => {
                let untrusted = (!batches.is_trusted()).then(|| batches.data_len());
                EpochCut::uneven(batches.at(epoch), untrusted)
            }
        };
        EpochPlan {
            epoch,
            batches,
            plan: self.clone(),
        }
    }
}

/// One epoch's batches, by number.
///
/// A *position* names a place in a batch. Where batches are cut from an order it is the order's
/// position, and those of padding follow the last.
#[derive(Clone, Debug)]
pub struct EpochPlan {
    epoch: usize,
    batches: EpochCut,
    plan: Plan,
}

#[derive(Clone)]
enum EpochCut {
    Even {
        order: EpochOrder,
        cut: Even,
    },
    /// The positions of batch k begin at k × `stride`: no table of offsets.
    Uneven {
        batches: Arc<dyn EpochBatches>,
        stride: usize,
        num_items: usize,
        untrusted: Option<usize>,
    },
}

impl fmt::Debug for EpochCut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Even { order, .. } => order.fmt(f),
            Self::Uneven { num_items, .. } => write!(f, "{num_items} items in batches"),
        }
    }
}

impl EpochCut {
    fn uneven(batches: Arc<dyn EpochBatches>, untrusted: Option<usize>) -> Self {
        Self::Uneven {
            stride: batches.longest().max(1),
            num_items: batches.num_items(),
            batches,
            untrusted,
        }
    }
}

impl EpochPlan {
    /// The epoch.
    #[must_use]
    pub fn epoch(&self) -> usize {
        self.epoch
    }

    /// The plan of the epoch after this one.
    #[must_use]
    pub fn following(&self) -> Self {
        self.plan.at(self.epoch.saturating_add(1))
    }

    /// How many batches all epochs before this one yield together, as
    /// [`Plan::batches_before`] says.
    #[must_use]
    pub fn batches_before(&self) -> usize {
        self.plan.batches_before(self.epoch)
    }

    /// How many items the epoch yields, without padding.
    #[must_use]
    pub fn num_items(&self) -> usize {
        match &self.batches {
            EpochCut::Even { cut, .. } => cut.num_items(),
            EpochCut::Uneven { num_items, .. } => *num_items,
        }
    }

    /// How many batches the epoch yields.
    #[must_use]
    pub fn num_batches(&self) -> usize {
        match &self.batches {
            EpochCut::Even { cut, .. } => cut.num_batches(),
            EpochCut::Uneven { batches, .. } => batches.num_batches(),
        }
    }

    /// The positions of batch `number`, with those of its padding.
    #[must_use]
    pub fn batch(&self, number: usize) -> Range<usize> {
        match &self.batches {
            EpochCut::Even { cut, .. } => cut.batch(number),
            EpochCut::Uneven {
                batches, stride, ..
            } => {
                let start = number.saturating_mul(*stride);
                let within = number < batches.num_batches();
                let len = if within { batches.len(number) } else { 0 };
                start..start.saturating_add(len)
            }
        }
    }

    /// How many of the last items of batch `number` repeat others to fill it up: the mask of what
    /// is padding.
    #[must_use]
    pub fn padding(&self, number: usize) -> usize {
        match &self.batches {
            EpochCut::Even { cut, .. } => cut.padding(number),
            EpochCut::Uneven { batches, .. } if number < batches.num_batches() => {
                batches.padding(number)
            }
            EpochCut::Uneven { .. } => 0,
        }
    }

    /// How many items of batch `number` are no padding.
    #[must_use]
    pub fn real_items(&self, number: usize) -> usize {
        self.batch(number).len() - self.padding(number)
    }

    /// How many items are in the batches before batch `number`, without padding.
    ///
    /// Where batches are of sizes of their own their lengths are added up: some nanoseconds each.
    #[must_use]
    pub fn items_before(&self, number: usize) -> usize {
        match &self.batches {
            EpochCut::Even { .. } => self.batch(number).start.min(self.num_items()),
            EpochCut::Uneven { batches, .. } => {
                let before = 0..number.min(batches.num_batches());
                before.map(|number| self.real_items(number)).sum()
            }
        }
    }

    /// How many items a batch has that is as large as any.
    #[must_use]
    pub fn largest_batch(&self) -> usize {
        match &self.batches {
            EpochCut::Even { .. } => self.batch(0).len(),
            EpochCut::Uneven { batches, .. } => batches.longest(),
        }
    }

    /// The dataset index at `position`; what a sampler of the user's own returns is not checked.
    ///
    /// # Panics
    ///
    /// When `position` is not one of the epoch's, or the user's sampler does.
    #[must_use]
    #[inline]
    pub fn index(&self, position: usize) -> usize {
        match &self.batches {
            EpochCut::Even { order, cut } => order.index(cut.unpadded(position)),
            EpochCut::Uneven {
                batches, stride, ..
            } => batches.index(position / stride, position % stride),
        }
    }

    /// The indices at [`RUN`] positions from `start` on, where that is faster than one by one and
    /// they are all there.
    #[must_use]
    #[inline]
    pub fn run(&self, start: usize) -> Option<[usize; RUN]> {
        match &self.batches {
            EpochCut::Even { order, .. } => order.run(start),
            EpochCut::Uneven { .. } => None,
        }
    }

    /// As [`index`](Self::index), unless a user's sampler returns an index beyond the data.
    #[inline]
    pub(crate) fn checked_index(&self, position: usize) -> Result<usize, OrderError> {
        match &self.batches {
            EpochCut::Even { order, cut } => order.checked_index(cut.unpadded(position)),
            EpochCut::Uneven {
                stride, untrusted, ..
            } => {
                let index = self.index(position);
                match *untrusted {
                    Some(len) if index >= len => Err(OrderError::BeyondInBatch {
                        batch: position / stride,
                        place: position % stride,
                        index,
                        len,
                    }),
                    _ => Ok(index),
                }
            }
        }
    }

    /// Whether all that takes long has been made ready.
    pub(crate) fn is_prepared(&self) -> bool {
        match &self.batches {
            EpochCut::Even { order, .. } => order.is_prepared(),
            EpochCut::Uneven { .. } => true,
        }
    }

    /// Whether the user's code says what the indices are.
    pub(crate) fn asks_the_user(&self) -> bool {
        match &self.batches {
            EpochCut::Even { order, .. } => order.asks_the_user(),
            EpochCut::Uneven { untrusted, .. } => untrusted.is_some(),
        }
    }

    /// Makes ready what takes long, unless that has been done: on a worker, where there is one.
    pub(crate) fn prepare(&self) {
        if let EpochCut::Even { order, .. } = &self.batches {
            order.prepare();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch_sampler::BatchSizes;
    use crate::sampler::Sampler;

    fn indices(plan: &EpochPlan, number: usize) -> Vec<usize> {
        let positions = plan.batch(number);
        positions.map(|position| plan.index(position)).collect()
    }

    #[test]
    fn padding_of_a_shuffle_is_its_own_start() {
        let size = NonZeroUsize::new(4).unwrap();
        let epoch = Plan::new(Order::shuffled(10, 7), size, Remainder::Pad).at(3);
        assert_eq!(indices(&epoch, 2)[2..], indices(&epoch, 0)[..2]);
        assert_eq!([0, 2].map(|k| epoch.real_items(k)), [4, 2]);
        assert_eq!((epoch.num_items(), epoch.num_batches()), (10, 3));
    }

    /// Epoch e has e batches, batch k has k + 1 items; the first item of batch 7 is not there.
    struct Stairs;

    impl BatchSampler for Stairs {
        fn sizes(&self, epoch: usize) -> BatchSizes {
            BatchSizes::each(1..=epoch)
        }

        fn at(&self, _epoch: usize, batch: usize, place: usize) -> usize {
            if batch == 7 { 100 } else { batch + place }
        }
    }

    #[test]
    fn batches_of_sizes_of_their_own_are_found_by_number() {
        let epoch = Plan::sampled(Stairs, 20).at(4);
        assert_eq!((epoch.num_batches(), epoch.num_items()), (4, 10));
        assert_eq!(epoch.largest_batch(), 4);
        let all: Vec<_> = (0..4).map(|number| indices(&epoch, number)).collect();
        assert_eq!(all, [vec![0], vec![1, 2], vec![2, 3, 4], vec![3, 4, 5, 6]]);
        assert_eq!(
            [0, 1, 3, 4, 9].map(|k| epoch.items_before(k)),
            [0, 1, 6, 10, 10]
        );
        assert!(epoch.batch(4).is_empty());
        assert_eq!(epoch.following().num_batches(), 5);
    }

    #[test]
    fn slices_of_batches_share_none_and_leave_none_out() {
        let plan = Plan::sampled(Stairs, 20);
        let slices = [
            plan.slice(0, 7, 55),
            plan.slice(7, 30, 55),
            plan.slice(30, 55, 55),
        ];
        let of = |plan: &Plan| -> Vec<_> {
            let epoch = plan.at(10);
            (0..epoch.num_batches())
                .map(|k| indices(&epoch, k))
                .collect()
        };
        let apart: Vec<_> = slices.iter().flat_map(of).collect();
        assert_eq!(apart, of(&plan));
        assert!(slices.iter().all(|slice| slice.num_batches(10) > 0));
        let within = plan.slice(0, 30, 55).slice(5, 20, 30);
        assert!(within.num_batches(10) > 0 && of(&plan).starts_with(&of(&plan.slice(0, 30, 55))));
    }

    #[test]
    fn what_is_wrong_with_a_batch_sampler_is_found() {
        struct Empty;
        impl BatchSampler for Empty {
            fn sizes(&self, _epoch: usize) -> BatchSizes {
                BatchSizes::each([2, 0])
            }

            fn at(&self, _epoch: usize, _batch: usize, place: usize) -> usize {
                place
            }
        }
        let empty = OrderError::EmptyBatch { batch: 1 };
        assert_eq!(Plan::sampled(Empty, 20).check(0), Err(empty));
        let plan = Plan::sampled(Stairs, 20);
        assert_eq!(plan.check(9), Ok(()));
        let epoch = plan.at(9);
        let beyond = OrderError::BeyondInBatch {
            batch: 7,
            place: 0,
            index: 100,
            len: 20,
        };
        assert_eq!(epoch.checked_index(epoch.batch(7).start), Err(beyond));
        assert_eq!(epoch.checked_index(epoch.batch(8).start), Ok(8));
    }

    #[test]
    fn epochs_may_differ_in_length() {
        struct Growing;
        impl Sampler for Growing {
            fn len(&self, epoch: usize) -> usize {
                epoch * 10
            }

            fn at(&self, _epoch: usize, position: usize) -> usize {
                position
            }
        }
        let size = NonZeroUsize::new(4).unwrap();
        let plan = Plan::new(Order::sampled(Growing, 100), size, Remainder::Drop);
        assert_eq!([0, 1, 2].map(|epoch| plan.num_batches(epoch)), [0, 2, 5]);
        assert_eq!([0, 1, 2].map(|epoch| plan.all_items(epoch)), [0, 10, 20]);
        assert_eq!(plan.at(1).following().num_items(), 20);
        assert_eq!([0, 1, 2, 3].map(|e| plan.batches_before(e)), [0, 0, 2, 7]);
        let steady = Plan::new(Order::sequential(10), size, Remainder::Keep);
        assert_eq!(steady.batches_before(1_000), 3_000);
    }
}
