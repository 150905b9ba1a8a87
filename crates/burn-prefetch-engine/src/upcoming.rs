//! The batch that is started next, as whoever says what it will take sees it.

use std::ops::Range;

use crate::plan::EpochPlan;

/// A batch of which nothing has been fetched yet.
#[derive(Debug)]
pub struct Upcoming<'a> {
    plan: &'a EpochPlan,
    positions: Range<usize>,
}

impl<'a> Upcoming<'a> {
    pub(crate) fn new(plan: &'a EpochPlan, number: usize) -> Self {
        Self {
            plan,
            positions: plan.batch(number),
        }
    }

    /// How many items it has, with its padding.
    #[must_use]
    pub fn len(&self) -> usize {
        self.positions.len()
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.positions.is_empty()
    }

    /// Their indices in the dataset, where these can be told at once: not of a sampler of the user's
    /// own, which would have to be asked, nor before the epoch's order has been made ready.
    #[must_use]
    pub fn indices(&self) -> Option<impl Iterator<Item = usize>> {
        let told = self.plan.is_prepared() && !self.plan.asks_the_user();
        told.then(|| self.positions.clone().map(|at| self.plan.index(at)))
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use super::*;
    use crate::evenly::Remainder;
    use crate::order::Order;
    use crate::plan::Plan;
    use crate::sampler::Sampler;
    use crate::weighted::Weighted;

    #[derive(Debug)]
    struct Own;

    impl Sampler for Own {
        fn len(&self, _epoch: usize) -> usize {
            4
        }

        fn at(&self, _epoch: usize, _position: usize) -> usize {
            panic!("asked under a lock")
        }
    }

    fn plan(order: Order) -> EpochPlan {
        let batch_size = NonZeroUsize::new(3).unwrap();
        Plan::new(order, batch_size, Remainder::Pad).at(0)
    }

    fn indices(plan: &EpochPlan, number: usize) -> Option<Vec<usize>> {
        let batch = Upcoming::new(plan, number);
        assert_eq!(batch.len(), 3);
        batch.indices().map(Iterator::collect)
    }

    #[test]
    fn indices_are_told_where_nobody_has_to_be_asked() {
        let sequence = plan(Order::sequential(4));
        assert_eq!(indices(&sequence, 1), Some(vec![3, 0, 1]));
        assert_eq!(indices(&plan(Order::sampled(Own, 4)), 0), None);
        let weights = Weighted::new(&[0.0, 1.0, 0.0], 3, 7).unwrap();
        let drawn = plan(Order::from(weights));
        assert_eq!(indices(&drawn, 0), None, "it has not been made ready");
        drawn.prepare();
        assert_eq!(indices(&drawn, 0), Some(vec![1; 3]));
    }
}
