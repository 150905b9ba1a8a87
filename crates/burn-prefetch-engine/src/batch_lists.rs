//! Batches that are written down, one list of indices each.

use std::fmt;
use std::sync::Arc;

use crate::batches::{Batches, EpochBatches};
use crate::order::SHUFFLE_VERSION;
use crate::order_error::OrderError;
use crate::permutation::Permutation;
use crate::plan::Plan;
use crate::recipe::Identity;
use crate::seed::{Domain, derive, digest};

/// Batches that you list, as they stand or shuffled as wholes.
///
/// Memory: eight bytes an index and eight a batch.
///
/// ```
/// use burn_prefetch_engine::{BatchLists, Plan};
///
/// let plan = Plan::from(BatchLists::new([vec![0, 1], vec![4], vec![2, 3, 5]], 6)?.shuffled(7));
/// assert_eq!((plan.num_batches(0), plan.num_items(0)), (3, 6));
/// assert!(BatchLists::new([vec![0], vec![]], 6).is_err());
/// # Ok::<(), burn_prefetch_engine::OrderError>(())
/// ```
#[derive(Clone)]
pub struct BatchLists {
    lists: Arc<Lists>,
    shuffle: Option<u64>,
}

/// One list behind the other, and where each ends.
struct Lists {
    indices: Vec<usize>,
    ends: Vec<usize>,
    longest: usize,
    data_len: usize,
}

impl Lists {
    fn start(&self, list: usize) -> usize {
        list.checked_sub(1).map_or(0, |before| self.ends[before])
    }
}

impl BatchLists {
    /// A batch for each list, over data of `data_len` items.
    ///
    /// # Errors
    ///
    /// When a list is empty, or has an index beyond the data.
    pub fn new<L: AsRef<[usize]>>(
        batches: impl IntoIterator<Item = L>,
        data_len: usize,
    ) -> Result<Self, OrderError> {
        let mut lists = Lists {
            indices: Vec::new(),
            ends: Vec::new(),
            longest: 0,
            data_len,
        };
        for (batch, list) in batches.into_iter().enumerate() {
            let list = list.as_ref();
            if list.is_empty() {
                return Err(OrderError::EmptyBatch { batch });
            }
            if let Some(place) = list.iter().position(|index| *index >= data_len) {
                return Err(OrderError::BeyondInBatch {
                    batch,
                    place,
                    index: list[place],
                    len: data_len,
                });
            }
            lists.indices.extend_from_slice(list);
            lists.ends.push(lists.indices.len());
            lists.longest = lists.longest.max(list.len());
        }
        Ok(Self {
            lists: Arc::new(lists),
            shuffle: None,
        })
    }

    /// The batches in another order every epoch, a function of `seed` and the epoch; what is in
    /// them stays.
    #[must_use]
    pub fn shuffled(self, seed: u64) -> Self {
        Self {
            shuffle: Some(seed),
            ..self
        }
    }
}

impl fmt::Debug for BatchLists {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BatchLists")
            .field("batches", &self.lists.ends.len())
            .field("items", &self.lists.indices.len())
            .field("shuffle", &self.shuffle)
            .finish()
    }
}

impl From<BatchLists> for Plan {
    fn from(lists: BatchLists) -> Self {
        Self::made_from(Arc::new(lists))
    }
}

impl Batches for BatchLists {
    fn data_len(&self) -> usize {
        self.lists.data_len
    }

    fn at(&self, epoch: usize) -> Arc<dyn EpochBatches> {
        let batches = self.lists.ends.len();
        let key = |seed| derive(seed, Domain::Batches, epoch as u64, 0);
        let shuffle = |seed| Permutation::new(batches, key(seed));
        Arc::new(Epoch {
            lists: Arc::clone(&self.lists),
            shuffle: self.shuffle.map(shuffle),
        })
    }

    fn identity(&self) -> Identity {
        let Lists { indices, ends, .. } = &*self.lists;
        let numbers = ends.iter().chain(indices).map(|&number| number as u64);
        let shuffle = self.shuffle.unwrap_or_default();
        Identity {
            name: self
                .shuffle
                .map_or("batch lists", |_| "shuffled batch lists"),
            version: self.shuffle.map_or(1, |_| SHUFFLE_VERSION),
            digest: digest(numbers.chain([shuffle])),
        }
    }
}

struct Epoch {
    lists: Arc<Lists>,
    shuffle: Option<Permutation>,
}

impl Epoch {
    fn list(&self, number: usize) -> usize {
        match &self.shuffle {
            Some(shuffle) => shuffle.index(number),
            None => number,
        }
    }
}

impl EpochBatches for Epoch {
    fn num_batches(&self) -> usize {
        self.lists.ends.len()
    }

    fn len(&self, number: usize) -> usize {
        let list = self.list(number);
        self.lists.ends[list] - self.lists.start(list)
    }

    fn longest(&self) -> usize {
        self.lists.longest
    }

    fn num_items(&self) -> usize {
        self.lists.indices.len()
    }

    fn index(&self, number: usize, place: usize) -> usize {
        let start = self.lists.start(self.list(number));
        self.lists.indices[start + place]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTS: [&[usize]; 5] = [&[3], &[0, 1], &[2, 2, 2], &[1], &[4, 0]];

    fn all(plan: &Plan, epoch: usize) -> Vec<Vec<usize>> {
        let plan = plan.at(epoch);
        let indices = |k| plan.batch(k).map(|position| plan.index(position)).collect();
        (0..plan.num_batches()).map(indices).collect()
    }

    #[test]
    fn lists_are_followed_as_they_stand() {
        let plan = Plan::from(BatchLists::new(LISTS, 5).unwrap());
        assert_eq!(all(&plan, 3), LISTS);
        assert_eq!(plan.check(3), Ok(()));
        let none = Plan::from(BatchLists::new([[0; 0]; 0], 5).unwrap());
        assert_eq!((none.num_batches(0), none.at(0).batch(0)), (0, 0..0));
    }

    #[test]
    fn shuffled_batches_are_the_same_batches() {
        let plan = Plan::from(BatchLists::new(LISTS, 5).unwrap().shuffled(7));
        let mut orders: Vec<_> = (0..50).map(|epoch| all(&plan, epoch)).collect();
        for order in &orders {
            let mut sorted = order.clone();
            sorted.sort();
            let mut expected = LISTS.map(<[usize]>::to_vec);
            expected.sort();
            assert_eq!(sorted, expected);
        }
        orders.sort();
        orders.dedup();
        assert!(orders.len() > 30);
    }

    #[test]
    fn what_is_wrong_with_a_list_is_refused() {
        let refused = |lists: &[&[usize]]| BatchLists::new(lists, 5).unwrap_err();
        let empty = OrderError::EmptyBatch { batch: 1 };
        assert_eq!(refused(&[&[1], &[], &[7]]), empty);
        let beyond = OrderError::BeyondInBatch {
            batch: 0,
            place: 1,
            index: 5,
            len: 5,
        };
        assert_eq!(refused(&[&[1, 5]]), beyond);
    }

    #[test]
    fn another_cut_is_another_plan() {
        let identity =
            |lists: &[&[usize]]| Plan::from(BatchLists::new(lists, 5).unwrap()).identity();
        assert_ne!(identity(&[&[1, 2], &[3]]), identity(&[&[1], &[2, 3]]));
    }
}
