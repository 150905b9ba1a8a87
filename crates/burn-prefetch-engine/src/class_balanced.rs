//! Every class as often as every other.

use std::fmt;
use std::sync::Arc;

use crate::mixture::{Mixture, MixtureEpoch, VERSION};
use crate::order::Order;
use crate::order_error::OrderError;
use crate::recipe::{Identity, Prepared, Recipe};
use crate::seed::digest;

/// Items of every class equally often, whatever their numbers: with k classes each stretch of k
/// positions has one item of each.
///
/// It is a [`Mixture`] of the classes at equal weights: within a class no item comes again before
/// all have come, also from one epoch to the next. Memory: eight bytes an item, and at most 128 KiB
/// a class while an epoch lasts.
///
/// ```
/// use burn_prefetch_engine::{ClassBalanced, Order};
///
/// let labels = ["cat", "cat", "dog", "cat", "cat"];
/// let epoch = Order::from(ClassBalanced::new(&labels, 8, 7)?).at(0);
/// let dogs = (0..8).filter(|&position| labels[epoch.index(position)] == "dog").count();
/// assert_eq!(dogs, 4);
/// # Ok::<(), burn_prefetch_engine::OrderError>(())
/// ```
#[derive(Clone)]
pub struct ClassBalanced {
    classes: Mixture,
    /// The items, class by class.
    items: Arc<[usize]>,
}

impl ClassBalanced {
    /// So many `draws` an epoch among as many items as there are `labels`. Classes are the labels
    /// that occur.
    ///
    /// # Errors
    ///
    /// When there are no labels.
    pub fn new<L: Ord>(labels: &[L], draws: usize, seed: u64) -> Result<Self, OrderError> {
        if labels.is_empty() {
            return Err(OrderError::Empty { what: "labels" });
        }
        let mut items: Vec<_> = (0..labels.len()).collect();
        items.sort_by_key(|item| &labels[*item]);
        let classes = items.chunk_by(|a, b| labels[*a] == labels[*b]);
        let lens: Vec<_> = classes.map(<[usize]>::len).collect();
        let weights = vec![1.0; lens.len()];
        Ok(Self {
            classes: Mixture::new(&lens, &weights, draws, seed)?,
            items: items.into(),
        })
    }
}

impl fmt::Debug for ClassBalanced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClassBalanced")
            .field("classes", &self.classes)
            .finish_non_exhaustive()
    }
}

impl From<ClassBalanced> for Order {
    fn from(balanced: ClassBalanced) -> Self {
        Self::made_from(Arc::new(balanced))
    }
}

impl Recipe for ClassBalanced {
    fn data_len(&self) -> usize {
        self.items.len()
    }

    fn len(&self, _epoch: usize) -> usize {
        self.classes.draws()
    }

    fn prepare(&self, epoch: usize) -> Box<dyn Prepared> {
        Box::new(Epoch {
            classes: self.classes.epoch(epoch),
            items: Arc::clone(&self.items),
        })
    }

    fn identity(&self) -> Identity {
        let items = self.items.iter().map(|&item| item as u64);
        Identity {
            name: "class-balanced",
            version: VERSION,
            digest: digest(items.chain([self.classes.digest()])),
        }
    }
}

struct Epoch {
    classes: MixtureEpoch,
    items: Arc<[usize]>,
}

impl Prepared for Epoch {
    fn index(&self, position: usize) -> usize {
        self.items[self.classes.index(position)]
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
    fn every_stretch_has_one_item_of_each_class() {
        // Class c has c + 1 items of every ten, mixed up.
        let labels: Vec<_> = (0..1_000)
            .map(|item| [0, 3, 1, 2, 3, 2, 1, 3, 2, 3][item % 10])
            .collect();
        let order = Order::from(ClassBalanced::new(&labels, 4_000, 7).unwrap());
        let indices = all(&order, 2);
        for stretch in indices.chunks(4) {
            let mut classes: Vec<_> = stretch.iter().map(|item| labels[*item]).collect();
            classes.sort_unstable();
            assert_eq!(classes, [0, 1, 2, 3]);
        }
        // 1,000 draws from each class, whose items come equally often but for one time.
        for class in 0..4 {
            let mut seen = vec![0; 1_000];
            for &item in &indices {
                seen[item] += usize::from(labels[item] == class);
            }
            let of_class = || {
                (0..1_000)
                    .filter(|item| labels[*item] == class)
                    .map(|item| seen[item])
            };
            assert_eq!(of_class().sum::<usize>(), 1_000);
            assert!(of_class().max().unwrap() - of_class().min().unwrap() <= 2);
        }
    }

    #[test]
    fn labels_of_any_kind_and_a_single_class_do() {
        let order = Order::from(ClassBalanced::new(&["a"; 5], 10, 7).unwrap());
        let mut twice = all(&order, 0);
        twice.sort_unstable();
        assert_eq!(twice, [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]);
        let none = ClassBalanced::new::<u8>(&[], 10, 7).unwrap_err();
        assert_eq!(none, OrderError::Empty { what: "labels" });
    }

    #[test]
    fn other_labels_are_another_order() {
        let identity = |labels| Order::from(ClassBalanced::new(labels, 9, 7).unwrap()).identity();
        assert_ne!(identity(&[0, 1, 1]), identity(&[0, 0, 1]));
        assert_ne!(identity(&[0, 1, 0]), identity(&[0, 0, 1]));
    }
}
