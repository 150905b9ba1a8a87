//! Batches of items of like length, for little padding.

use std::fmt;
use std::sync::Arc;

use crate::batches::{Batches, EpochBatches};
use crate::evenly::Remainder;
use crate::layout::{BatchLimit, Layout};
use crate::order::SHUFFLE_VERSION;
use crate::order_error::OrderError;
use crate::permutation::Permutation;
use crate::plan::Plan;
use crate::recipe::Identity;
use crate::seed::{Domain, derive, digest};
use crate::sync::OnceLock;

/// Batches of items of like length: each is made of one bucket, which holds the items whose length
/// lies between two bounds.
///
/// [`shuffled`](Self::shuffled) shuffles the items of each bucket, so that batches differ from
/// epoch to epoch, and then the batches as wholes. The number of batches is the same in every
/// epoch. Any batch can be asked for without those before it. Memory: eight bytes an item, and
/// while an epoch lasts four an item of buckets of up to 65,536, which the first worker that needs
/// one shuffles in about 2 ns an item.
///
/// ```
/// use burn_prefetch_engine::{BatchLimit, Buckets, Plan, Remainder};
///
/// let lengths = [3, 9, 1, 8, 2, 7];
/// let limit = BatchLimit::Budget(18.try_into()?);
/// // Below 5 and from 5 up: six items of up to 3, or two of up to 9.
/// let buckets = Buckets::new(&lengths, &[5], limit, Remainder::Keep)?.shuffled(7);
/// let epoch = Plan::from(buckets).at(0);
/// assert_eq!(epoch.num_batches(), 3);
/// for batch in (0..3).map(|number| epoch.batch(number)) {
///     let lengths: Vec<_> = batch.map(|position| lengths[epoch.index(position)]).collect();
///     assert!(lengths.iter().all(|l| *l < 5) || lengths.iter().all(|l| *l > 5));
///     assert!(lengths.len() * lengths.iter().max().unwrap() <= 18);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Buckets {
    layout: Arc<Layout>,
    shuffle: Option<u64>,
}

impl Buckets {
    /// Buckets of items with `lengths` below the first of `bounds`, from there to below the second,
    /// and so on, and from the last on. What does not fill a bucket's last batch becomes what
    /// `remainder` says; padding repeats items of the bucket.
    ///
    /// # Errors
    ///
    /// When there are no lengths, bounds do not rise, or one item is beyond the budget alone.
    pub fn new(
        lengths: &[usize],
        bounds: &[usize],
        limit: BatchLimit,
        remainder: Remainder,
    ) -> Result<Self, OrderError> {
        Ok(Self {
            layout: Arc::new(Layout::new(lengths, bounds, limit, remainder)?),
            shuffle: None,
        })
    }

    /// Bounds that make about `buckets` buckets of equal numbers of items: none twice, so that
    /// there are fewer where many items have one length.
    #[must_use]
    pub fn even_bounds(lengths: &[usize], buckets: usize) -> Vec<usize> {
        let mut sorted = lengths.to_vec();
        sorted.sort_unstable();
        let buckets = buckets.min(sorted.len());
        let at = |bucket| sorted[bucket * sorted.len() / buckets];
        let mut bounds: Vec<_> = if sorted.is_empty() {
            Vec::new()
        } else {
            (1..buckets).map(at).collect()
        };
        bounds.dedup();
        bounds
    }

    /// Items within their buckets and batches as wholes in another order every epoch, a function of
    /// `seed` and the epoch.
    #[must_use]
    pub fn shuffled(self, seed: u64) -> Self {
        Self {
            shuffle: Some(seed),
            ..self
        }
    }
}

impl fmt::Debug for Buckets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Buckets")
            .field("buckets", &self.layout.buckets)
            .field("shuffle", &self.shuffle)
            .finish_non_exhaustive()
    }
}

impl From<Buckets> for Plan {
    fn from(buckets: Buckets) -> Self {
        Self::made_from(Arc::new(buckets))
    }
}

impl Batches for Buckets {
    fn data_len(&self) -> usize {
        self.layout.indices.len()
    }

    fn at(&self, epoch: usize) -> Arc<dyn EpochBatches> {
        let layout = Arc::clone(&self.layout);
        let shuffle = self.shuffle.map(|seed| Shuffle {
            key: derive(seed, Domain::Bucket, epoch as u64, 0),
            batches: Permutation::new(
                layout.batches,
                derive(seed, Domain::Batches, epoch as u64, 0),
            ),
            buckets: layout.buckets.iter().map(|_| OnceLock::new()).collect(),
        });
        Arc::new(Epoch { layout, shuffle })
    }

    fn identity(&self) -> Identity {
        let numbers = self.layout.numbers().map(|number| number as u64);
        let shuffle = self.shuffle.unwrap_or_default();
        Identity {
            name: self.shuffle.map_or("buckets", |_| "shuffled buckets"),
            version: self.shuffle.map_or(1, |_| SHUFFLE_VERSION),
            digest: digest(numbers.chain([shuffle])),
        }
    }
}

/// The shuffles of one epoch: that of the batches is made at once, that of a bucket by whoever
/// needs it first.
struct Shuffle {
    key: u64,
    batches: Permutation,
    buckets: Box<[OnceLock<Permutation>]>,
}

struct Epoch {
    layout: Arc<Layout>,
    shuffle: Option<Shuffle>,
}

impl Epoch {
    /// The bucket of batch `number`, and which of its batches it is.
    fn find(&self, number: usize) -> (usize, usize) {
        let number = match &self.shuffle {
            Some(shuffle) => shuffle.batches.index(number),
            None => number,
        };
        self.layout.find(number)
    }
}

impl EpochBatches for Epoch {
    fn num_batches(&self) -> usize {
        self.layout.batches
    }

    fn len(&self, number: usize) -> usize {
        let (bucket, batch) = self.find(number);
        self.layout.buckets[bucket].cut().batch(batch).len()
    }

    fn padding(&self, number: usize) -> usize {
        let (bucket, batch) = self.find(number);
        self.layout.buckets[bucket].cut().padding(batch)
    }

    fn longest(&self) -> usize {
        self.layout.longest
    }

    fn num_items(&self) -> usize {
        self.layout.num_items
    }

    fn index(&self, number: usize, place: usize) -> usize {
        let (at, batch) = self.find(number);
        let bucket = &self.layout.buckets[at];
        let cut = bucket.cut();
        let within = cut.unpadded(cut.batch(batch).start + place);
        let within = match &self.shuffle {
            None => within,
            Some(shuffle) => shuffle.buckets[at]
                .get_or_init(|| {
                    let key = derive(shuffle.key, Domain::Bucket, 0, at as u64);
                    Permutation::new(bucket.len, key)
                })
                .index(within),
        };
        self.layout.indices[bucket.start + within]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::NonZeroUsize;

    use crate::plan::EpochPlan;
    use proptest::prelude::*;

    fn items(size: usize) -> BatchLimit {
        BatchLimit::Items(NonZeroUsize::new(size).unwrap())
    }

    fn budget(size: usize) -> BatchLimit {
        BatchLimit::Budget(NonZeroUsize::new(size).unwrap())
    }

    fn batch(plan: &EpochPlan, number: usize) -> Vec<usize> {
        let positions = plan.batch(number);
        positions.map(|position| plan.index(position)).collect()
    }

    fn all(plan: &Plan, epoch: usize) -> Vec<Vec<usize>> {
        let plan = plan.at(epoch);
        (0..plan.num_batches()).map(|k| batch(&plan, k)).collect()
    }

    fn buckets(bounds: &[usize], limit: BatchLimit, remainder: Remainder) -> Buckets {
        let lengths = [1, 9, 1, 9, 1, 9, 1, 4];
        Buckets::new(&lengths, bounds, limit, remainder).unwrap()
    }

    #[test]
    fn batches_are_homogeneous() {
        let plan = Plan::from(buckets(&[2, 5], items(3), Remainder::Keep));
        let expected = [vec![0, 2, 4], vec![6], vec![7], vec![1, 3, 5]];
        assert_eq!(all(&plan, 0), expected);
        let plan = Plan::from(buckets(&[2, 5], items(3), Remainder::Drop));
        assert_eq!(all(&plan, 0), [[0, 2, 4], [1, 3, 5]]);
        assert_eq!(plan.num_items(0), 6);
        let plan = Plan::from(buckets(&[2, 5], items(3), Remainder::Pad)).at(0);
        assert_eq!(batch(&plan, 1), [6, 0, 2]);
        assert_eq!(batch(&plan, 2), [7, 7, 7]);
        assert_eq!([0, 1, 2, 3].map(|k| plan.padding(k)), [0, 2, 2, 0]);
        assert_eq!((plan.num_items(), plan.items_before(3)), (8, 5));
    }

    #[test]
    fn the_order_of_batches_and_what_is_in_them_change_every_epoch() {
        let plan = Plan::from(buckets(&[2, 5], items(2), Remainder::Keep).shuffled(7));
        let epochs: Vec<_> = (0..40).map(|epoch| all(&plan, epoch)).collect();
        for batches in &epochs {
            let mut seen: Vec<_> = batches.iter().flatten().copied().collect();
            seen.sort_unstable();
            assert!(seen.into_iter().eq(0..8));
        }
        let contents: Vec<_> = epochs.iter().map(|batches| sorted(batches)).collect();
        assert!(distinct(epochs) > 30);
        // Three ways to pair the four short ones, three to leave out one of the three long ones.
        assert_eq!(distinct(contents), 9);
    }

    fn sorted(batches: &[Vec<usize>]) -> Vec<Vec<usize>> {
        let mut batches = batches.to_vec();
        for batch in &mut batches {
            batch.sort_unstable();
        }
        batches.sort();
        batches
    }

    fn distinct(mut all: Vec<Vec<Vec<usize>>>) -> usize {
        all.sort();
        all.dedup();
        all.len()
    }

    #[test]
    fn what_cannot_be_cut_is_refused() {
        let refused = |bounds: &[usize], limit| {
            Buckets::new(&[3, 8], bounds, limit, Remainder::Keep).unwrap_err()
        };
        let bounds = OrderError::Bounds { at: 1, bound: 4 };
        assert_eq!(refused(&[4, 4], items(1)), bounds);
        let beyond = OrderError::Budget {
            index: 1,
            cost: 8,
            budget: 7,
        };
        assert_eq!(refused(&[], budget(7)), beyond);
        let none = Buckets::new(&[], &[], items(1), Remainder::Keep).unwrap_err();
        assert_eq!(none, OrderError::Empty { what: "lengths" });
    }

    #[test]
    fn even_bounds_share_the_items_out() {
        let lengths: Vec<_> = (0..100).collect();
        assert_eq!(Buckets::even_bounds(&lengths, 4), [25, 50, 75]);
        assert_eq!(Buckets::even_bounds(&[5; 10], 4), [5]);
        assert!(Buckets::even_bounds(&[], 4).is_empty());
        assert!(Buckets::even_bounds(&lengths, 0).is_empty());
    }

    proptest! {
        #[test]
        fn every_item_once_and_no_batch_beyond_its_budget(
            lengths in proptest::collection::vec(0usize..60, 1..200),
            count in 0usize..7, max in 60usize..400, epoch in 0usize..4,
        ) {
            let bounds = Buckets::even_bounds(&lengths, count);
            let made = Buckets::new(&lengths, &bounds, budget(max), Remainder::Keep).unwrap();
            let plan = Plan::from(made.shuffled(7));
            let batches = all(&plan, epoch);
            let mut seen: Vec<_> = batches.iter().flatten().copied().collect();
            seen.sort_unstable();
            prop_assert!(seen.into_iter().eq(0..lengths.len()));
            prop_assert_eq!(plan.check(epoch), Ok(()));
            for batch in batches {
                let longest = batch.iter().map(|item| lengths[*item]).max().unwrap();
                prop_assert!(longest * batch.len() <= max);
                let mut of = batch.iter().map(|item| bounds.partition_point(|b| *b <= lengths[*item]));
                let first = of.next();
                prop_assert!(of.all(|bucket| Some(bucket) == first));
            }
        }
    }
}
