//! Batches that are not cut evenly from an order: one recipe for all epochs, and a form for each.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::recipe::Identity;
use crate::seed::digest;

/// Numbered batches of any sizes, for every epoch: a pure function of its fields.
pub(crate) trait Batches: fmt::Debug + Send + Sync {
    /// How many items the data has that indices are of.
    fn data_len(&self) -> usize;

    /// One epoch's batches. Runs on the thread that begins a pass. As many in every epoch where
    /// indices are [trusted](Self::is_trusted).
    fn at(&self, epoch: usize) -> Arc<dyn EpochBatches>;

    /// Whether indices are known to be within the data; not where the user's code returns them.
    fn is_trusted(&self) -> bool {
        true
    }

    fn identity(&self) -> Identity;
}

/// One epoch's batches, by number. Everything but [`index`](Self::index) is asked for under a
/// lock: no user code, nothing that takes long.
pub(crate) trait EpochBatches: Send + Sync {
    fn num_batches(&self) -> usize;

    /// The items of batch `number`, with its padding.
    fn len(&self, number: usize) -> usize;

    /// How many of its last items repeat others to fill the batch up.
    fn padding(&self, number: usize) -> usize {
        let _ = number;
        0
    }

    /// The first of these batches that has no items.
    fn first_empty(&self, mut numbers: Range<usize>) -> Option<usize> {
        numbers.find(|number| self.len(*number) == 0)
    }

    /// At least the largest [`len`](Self::len).
    fn longest(&self) -> usize;

    /// The items of all batches, without padding.
    fn num_items(&self) -> usize;

    /// The dataset index at `place` of batch `number`.
    fn index(&self, number: usize, place: usize) -> usize;
}

/// A part of the batches of every epoch: those whose number, scaled to `items`, lies in
/// `start..end`. Slices that share no item number share no batch, and all of them leave none out.
#[derive(Debug)]
pub(crate) struct Slice {
    pub(crate) of: Arc<dyn Batches>,
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) items: usize,
}

impl Batches for Slice {
    fn data_len(&self) -> usize {
        self.of.data_len()
    }

    fn at(&self, epoch: usize) -> Arc<dyn EpochBatches> {
        let of = self.of.at(epoch);
        let (batches, items) = (of.num_batches(), self.items);
        let number = |item: usize| {
            let scaled = (item as u128 * batches as u128).div_ceil(items.max(1) as u128);
            usize::try_from(scaled).unwrap_or(batches).min(batches)
        };
        let (start, end) = (number(self.start), number(self.end));
        Arc::new(EpochSlice { of, start, end })
    }

    fn is_trusted(&self) -> bool {
        self.of.is_trusted()
    }

    fn identity(&self) -> Identity {
        let whole = self.of.identity();
        Identity {
            digest: digest(
                [self.start, self.end, self.items]
                    .map(|n| n as u64)
                    .into_iter()
                    .chain([whole.digest]),
            ),
            ..whole
        }
    }
}

struct EpochSlice {
    of: Arc<dyn EpochBatches>,
    start: usize,
    end: usize,
}

impl EpochBatches for EpochSlice {
    fn num_batches(&self) -> usize {
        self.end - self.start
    }

    fn len(&self, number: usize) -> usize {
        self.of.len(self.start + number)
    }

    fn padding(&self, number: usize) -> usize {
        self.of.padding(self.start + number)
    }

    fn first_empty(&self, numbers: Range<usize>) -> Option<usize> {
        let of = self.start + numbers.start..self.start + numbers.end;
        self.of.first_empty(of).map(|number| number - self.start)
    }

    fn longest(&self) -> usize {
        self.of.longest()
    }

    /// Adds up: some nanoseconds a batch.
    fn num_items(&self) -> usize {
        let numbers = self.start..self.end;
        numbers
            .map(|number| self.of.len(number) - self.of.padding(number))
            .sum()
    }

    fn index(&self, number: usize, place: usize) -> usize {
        self.of.index(self.start + number, place)
    }
}
