//! What is wrong with an order, in one sentence.

/// Why a sampler or a batch sampler cannot be used.
///
/// All that can be known beforehand is found when it is made; what a sampler of the user's own
/// returns in the middle of an epoch stands as
/// [`LoadError::Order`](crate::LoadError::Order) at its place.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum OrderError {
    /// There is nothing to draw from.
    #[error("there are no {what}: give one for each item of the data")]
    Empty {
        /// `weights`, `labels`, `lengths` or `data sets`.
        what: &'static str,
    },
    /// Data sets that have more items together than can be counted.
    #[error("the data sets have more items together than can be counted: give shorter ones")]
    TooMuchData,
    /// A weight is negative, infinite or not a number.
    #[error("weight {index} is {weight}: a weight is a number from 0 up, and finite")]
    Weight {
        /// Which weight.
        index: usize,
        /// Its value.
        weight: f64,
    },
    /// No item can be drawn.
    #[error("all {count} weights are 0: at least one has to be above")]
    AllZero {
        /// How many weights there are.
        count: usize,
    },
    /// Weights, each finite, whose sum is not.
    #[error("the {count} weights add up to infinity: divide them all by one number")]
    Overflow {
        /// How many weights there are.
        count: usize,
    },
    /// More entries than a table can number.
    #[error("{count} {what} are more than the {most} that can be numbered here")]
    TooMany {
        /// What is counted.
        what: &'static str,
        /// How many there are.
        count: usize,
        /// How many there may be.
        most: usize,
    },
    /// More items are to be drawn without replacement than there are.
    #[error(
        "{draws} items are to be drawn without replacement, and {positive} have a weight above 0: \
         draw at most {positive}"
    )]
    TooManyDraws {
        /// How many are to be drawn.
        draws: usize,
        /// How many can be drawn.
        positive: usize,
    },
    /// An entry of a list of indices is beyond the data.
    #[error("entry {entry} of the list is index {index}, and the data has {len} items")]
    Entry {
        /// Which entry, from 0.
        entry: usize,
        /// Its value.
        index: usize,
        /// How many items the data has.
        len: usize,
    },
    /// A sampler returned an index beyond the data.
    #[error(
        "the sampler returned index {index} at position {position}, and the data has {len} items"
    )]
    Beyond {
        /// The position that was asked for.
        position: usize,
        /// What came back.
        index: usize,
        /// How many items the data has.
        len: usize,
    },
    /// A batch has an index beyond the data.
    #[error("place {place} of batch {batch} is index {index}, and the data has {len} items")]
    BeyondInBatch {
        /// Which batch.
        batch: usize,
        /// Which place in it, from 0.
        place: usize,
        /// The index.
        index: usize,
        /// How many items the data has.
        len: usize,
    },
    /// The order was made for data of another length.
    #[error(
        "the {what} order is of data of {made_for} items, and the dataset has {len}: make it for \
         this dataset"
    )]
    OtherData {
        /// The kind of order.
        what: &'static str,
        /// How many items it was made for.
        made_for: usize,
        /// How many items the dataset has.
        len: usize,
    },
    /// A batch without items.
    #[error("batch {batch} has no items: leave it out, or give it at least one")]
    EmptyBatch {
        /// Which batch.
        batch: usize,
    },
    /// There are not as many weights as data sets.
    #[error("{weights} weights are given for {sets} data sets: give one for each")]
    Unmatched {
        /// How many weights.
        weights: usize,
        /// How many data sets.
        sets: usize,
    },
    /// A data set without items has a weight above 0.
    #[error("data set {set} has no items and weight {weight}: give it weight 0, or leave it out")]
    EmptySet {
        /// Which data set.
        set: usize,
        /// Its weight.
        weight: f64,
    },
    /// A data set's weight is too small beside the others'.
    #[error(
        "data set {set} has a share of {share}: less than one position in a block of {block}; \
         give it a larger weight, or 0"
    )]
    SmallShare {
        /// Which data set.
        set: usize,
        /// Its weight divided by the sum of all.
        share: f64,
        /// How many positions a block has.
        block: usize,
    },
    /// The bounds of buckets do not rise.
    #[error("bound {at} of the buckets is {bound}, not above the one before: bounds have to rise")]
    Bounds {
        /// Which bound, from 0.
        at: usize,
        /// Its value.
        bound: usize,
    },
    /// One item alone is beyond a batch's budget.
    #[error(
        "item {index} counts {cost}, more than the budget of {budget} of a whole batch: raise it, \
         or leave the item out"
    )]
    Budget {
        /// Which item.
        index: usize,
        /// What it counts.
        cost: usize,
        /// What a batch may count.
        budget: usize,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sentences_name_what_and_where() {
        let weight = OrderError::Weight {
            index: 3,
            weight: f64::NAN,
        };
        assert_eq!(
            weight.to_string(),
            "weight 3 is NaN: a weight is a number from 0 up, and finite"
        );
        let entry = OrderError::Entry {
            entry: 1,
            index: 12,
            len: 10,
        };
        assert_eq!(
            entry.to_string(),
            "entry 1 of the list is index 12, and the data has 10 items"
        );
    }
}
