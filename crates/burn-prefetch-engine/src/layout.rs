//! The items of buckets one behind the other, and the batches that they are cut into.

use std::num::NonZeroUsize;

use crate::evenly::{Even, Remainder};
use crate::order_error::OrderError;

/// How large a batch may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BatchLimit {
    /// So many items.
    Items(NonZeroUsize),
    /// So many tokens, pixels or whatever lengths count, with all items of a batch padded to the
    /// longest of its bucket. So short items make large batches, and long ones small batches.
    Budget(NonZeroUsize),
}

/// The buckets one behind the other, and their batches too.
pub(crate) struct Layout {
    /// Bucket by bucket, in each from the first index up.
    pub(crate) indices: Vec<usize>,
    /// Those that have batches.
    pub(crate) buckets: Vec<Bucket>,
    pub(crate) batches: usize,
    pub(crate) num_items: usize,
    pub(crate) longest: usize,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Bucket {
    /// Where its items begin, and how many there are.
    pub(crate) start: usize,
    pub(crate) len: usize,
    /// The number of its first batch, before the batches are shuffled.
    first_batch: usize,
    batch_size: NonZeroUsize,
    remainder: Remainder,
}

impl Bucket {
    pub(crate) fn cut(&self) -> Even {
        Even::new(self.len, self.batch_size, self.remainder)
    }
}

impl Layout {
    /// As [`Buckets::new`](crate::Buckets::new).
    pub(crate) fn new(
        lengths: &[usize],
        bounds: &[usize],
        limit: BatchLimit,
        remainder: Remainder,
    ) -> Result<Self, OrderError> {
        if lengths.is_empty() {
            return Err(OrderError::Empty { what: "lengths" });
        }
        if let Some(at) = (1..bounds.len()).find(|at| bounds[at - 1] >= bounds[*at]) {
            let bound = bounds[at];
            return Err(OrderError::Bounds { at, bound });
        }
        check_budget(lengths, limit)?;
        let indices = sorted_into(bounds, lengths);
        let bucket = |item: usize| bounds.partition_point(|bound| *bound <= lengths[item]);
        let mut layout = Layout {
            indices: Vec::new(),
            buckets: Vec::new(),
            batches: 0,
            num_items: 0,
            longest: 0,
        };
        let mut start = 0;
        for items in indices.chunk_by(|a, b| bucket(*a) == bucket(*b)) {
            let longest = items.iter().map(|item| lengths[*item]).max().unwrap_or(0);
            layout.add(Bucket {
                start,
                len: items.len(),
                first_batch: layout.batches,
                batch_size: batch_size(limit, longest),
                remainder,
            });
            start += items.len();
        }
        Ok(Self { indices, ..layout })
    }

    /// The bucket of a batch, and which of its batches it is, before the batches are shuffled.
    pub(crate) fn find(&self, batch: usize) -> (usize, usize) {
        let after = |bucket: &Bucket| bucket.first_batch <= batch;
        let bucket = self.buckets.partition_point(after) - 1;
        (bucket, batch - self.buckets[bucket].first_batch)
    }

    /// The numbers that say which layout this is.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = usize> {
        let sizes = self.buckets.iter().flat_map(|bucket| {
            let Bucket {
                start,
                len,
                batch_size,
                remainder,
                ..
            } = *bucket;
            [start, len, batch_size.get(), remainder as usize]
        });
        sizes.chain(self.indices.iter().copied())
    }

    fn add(&mut self, bucket: Bucket) {
        let cut = bucket.cut();
        if cut.num_batches() > 0 {
            self.batches += cut.num_batches();
            self.num_items += cut.num_items();
            self.longest = self.longest.max(cut.batch(0).len());
            self.buckets.push(bucket);
        }
    }
}

/// The items bucket by bucket, in each from the first index up.
fn sorted_into(bounds: &[usize], lengths: &[usize]) -> Vec<usize> {
    let bucket = |length: &usize| bounds.partition_point(|bound| bound <= length);
    let mut ends = vec![0; bounds.len() + 1];
    for length in lengths {
        ends[bucket(length)] += 1;
    }
    let mut sum = 0;
    for end in &mut ends {
        (*end, sum) = (sum, sum + *end);
    }
    // Each is the place of its bucket's next item now, and its end when all are placed.
    let mut items = vec![0; lengths.len()];
    for (item, length) in lengths.iter().enumerate() {
        let place = &mut ends[bucket(length)];
        items[*place] = item;
        *place += 1;
    }
    items
}

fn check_budget(lengths: &[usize], limit: BatchLimit) -> Result<(), OrderError> {
    let BatchLimit::Budget(budget) = limit else {
        return Ok(());
    };
    let budget = budget.get();
    match lengths.iter().position(|length| *length > budget) {
        None => Ok(()),
        Some(index) => Err(OrderError::Budget {
            index,
            cost: lengths[index],
            budget,
        }),
    }
}

/// A budget is at least as large as the longest item.
fn batch_size(limit: BatchLimit, longest: usize) -> NonZeroUsize {
    match limit {
        BatchLimit::Items(items) => items,
        BatchLimit::Budget(budget) => {
            NonZeroUsize::new(budget.get() / longest.max(1)).unwrap_or(NonZeroUsize::MIN)
        }
    }
}
