//! The items of a list.

use std::sync::Arc;

use crate::order::{Order, SHUFFLE_VERSION};
use crate::order_error::OrderError;
use crate::permutation::Permutation;
use crate::recipe::{Identity, Prepared, Recipe};
use crate::seed::{Domain, derive, digest};

/// The items whose indices stand in a list, in its order or shuffled anew every epoch.
///
/// An index may stand there more than once. Memory: eight bytes an index.
///
/// ```
/// use burn_prefetch_engine::{Order, Subset};
///
/// let order = Order::from(Subset::new([3, 1, 4, 1], 5)?.shuffled(7));
/// assert_eq!(order.num_items(0), 4);
/// assert!(Subset::new([3, 5], 5).is_err());
/// # Ok::<(), burn_prefetch_engine::OrderError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Subset {
    data_len: usize,
    indices: Arc<[usize]>,
    start: usize,
    end: usize,
    shuffle: Option<u64>,
}

impl Subset {
    /// The items at `indices` of data of `data_len` items, in the order of the list.
    ///
    /// # Errors
    ///
    /// When an index is beyond the data.
    pub fn new(
        indices: impl IntoIterator<Item = usize>,
        data_len: usize,
    ) -> Result<Self, OrderError> {
        let indices: Arc<[usize]> = indices.into_iter().collect();
        match indices.iter().position(|index| *index >= data_len) {
            Some(entry) => Err(OrderError::Entry {
                entry,
                index: indices[entry],
                len: data_len,
            }),
            None => Ok(Self {
                data_len,
                start: 0,
                end: indices.len(),
                indices,
                shuffle: None,
            }),
        }
    }

    /// In another order every epoch, a function of `seed` and the epoch.
    #[must_use]
    pub fn shuffled(self, seed: u64) -> Self {
        Self {
            shuffle: Some(seed),
            ..self
        }
    }
}

impl From<Subset> for Order {
    fn from(subset: Subset) -> Self {
        Self::made_from(Arc::new(subset))
    }
}

impl Recipe for Subset {
    fn data_len(&self) -> usize {
        self.data_len
    }

    fn len(&self, _epoch: usize) -> usize {
        self.end - self.start
    }

    fn prepare(&self, epoch: usize) -> Box<dyn Prepared> {
        let len = self.len(epoch);
        // The key of a shuffle of the same length: the list takes the place of the data.
        let shuffle = self.shuffle.map(|seed| {
            let bounds = derive(seed, Domain::Shuffle, self.start as u64, len as u64);
            Permutation::new(len, derive(bounds, Domain::Shuffle, epoch as u64, 0))
        });
        Box::new(Epoch {
            indices: Arc::clone(&self.indices),
            start: self.start,
            shuffle,
        })
    }

    fn slice(&self, start: usize, end: usize) -> Option<Arc<dyn Recipe>> {
        assert!(
            end <= self.end - self.start,
            "the caller checks the bounds of a slice"
        );
        Some(Arc::new(Self {
            start: self.start + start,
            end: self.start + end,
            ..self.clone()
        }))
    }

    fn identity(&self) -> Identity {
        let list = self.indices[self.start..self.end].iter();
        let bounds = [self.start as u64, self.shuffle.unwrap_or_default()];
        Identity {
            name: self.shuffle.map_or("subset", |_| "shuffled subset"),
            version: self.shuffle.map_or(1, |_| SHUFFLE_VERSION),
            digest: digest(bounds.into_iter().chain(list.map(|&index| index as u64))),
        }
    }
}

struct Epoch {
    indices: Arc<[usize]>,
    start: usize,
    shuffle: Option<Permutation>,
}

impl Prepared for Epoch {
    fn index(&self, position: usize) -> usize {
        let place = match &self.shuffle {
            Some(shuffle) => shuffle.index(position),
            None => position,
        };
        self.indices[self.start + place]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(order: &Order, epoch: usize) -> Vec<usize> {
        let at = order.at(epoch);
        (0..at.len()).map(|position| at.index(position)).collect()
    }

    #[test]
    fn a_list_is_followed_as_it_stands() {
        let order = Order::from(Subset::new([8, 3, 3, 0], 9).unwrap());
        assert_eq!(all(&order, 5), [8, 3, 3, 0]);
        assert_eq!(all(&order.slice(1, 4, 4).slice(1, 3, 3), 5), [3, 0]);
        assert!(all(&Subset::new([], 0).unwrap().into(), 0).is_empty());
    }

    #[test]
    fn a_shuffled_list_is_the_list_in_the_order_of_a_shuffle() {
        let list: Vec<_> = (0..50).map(|index| index * 3).collect();
        let order = Order::from(Subset::new(list.clone(), 150).unwrap().shuffled(7));
        let shuffle = Order::shuffled(50, 7);
        let expected: Vec<_> = all(&shuffle, 2).into_iter().map(|at| list[at]).collect();
        assert_eq!(all(&order, 2), expected);
        let slice = all(&order.slice(10, 20, 100), 2);
        let expected = all(&shuffle.slice(10, 20, 100), 2);
        assert!(
            slice
                .into_iter()
                .eq(expected.into_iter().map(|at| list[at]))
        );
    }

    #[test]
    fn what_is_beyond_the_data_is_refused_with_its_place() {
        let refused = OrderError::Entry {
            entry: 2,
            index: 9,
            len: 9,
        };
        assert_eq!(Subset::new([8, 3, 9, 10], 9).unwrap_err(), refused);
    }

    #[test]
    fn another_list_is_another_order() {
        let identity = |list: [usize; 3]| Order::from(Subset::new(list, 9).unwrap()).identity();
        assert_ne!(identity([1, 2, 3]), identity([1, 3, 2]));
        assert_eq!(identity([1, 2, 3]), identity([1, 2, 3]));
    }
}
