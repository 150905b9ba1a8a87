//! Whatever can be the order of a dataset, or its batches, under one name each.

use crate::batch_lists::BatchLists;
use crate::batch_sampler::BatchSampler;
use crate::buckets::Buckets;
use crate::class_balanced::ClassBalanced;
use crate::mixture::Mixture;
use crate::order::Order;
use crate::order_error::OrderError;
use crate::plan::Plan;
use crate::sampler::Sampler;
use crate::subset::Subset;
use crate::weighted::Weighted;
use crate::windowed::Windowed;
use crate::without_replacement::WeightedWithoutReplacement;

/// What can be the order of a dataset: a [`Sampler`] of your own, or one that is ready-made.
pub trait IntoOrder {
    /// The order over data of `data_len` items.
    ///
    /// # Errors
    ///
    /// When it was made for data of another length.
    fn into_order(self, data_len: usize) -> Result<Order, OrderError>;
}

/// What can make the batches of a dataset: a [`BatchSampler`] of your own, or one that is
/// ready-made.
pub trait IntoPlan {
    /// The batches over data of `data_len` items.
    ///
    /// # Errors
    ///
    /// When it was made for data of another length.
    fn into_plan(self, data_len: usize) -> Result<Plan, OrderError>;
}

impl<S: Sampler> IntoOrder for S {
    fn into_order(self, data_len: usize) -> Result<Order, OrderError> {
        Ok(Order::sampled(self, data_len))
    }
}

impl<S: BatchSampler> IntoPlan for S {
    fn into_plan(self, data_len: usize) -> Result<Plan, OrderError> {
        Ok(Plan::sampled(self, data_len))
    }
}

macro_rules! ready_made {
    ($($sampler:ty),*) => {$(
        impl IntoOrder for $sampler {
            fn into_order(self, data_len: usize) -> Result<Order, OrderError> {
                let order = Order::from(self);
                check(order.identity().name, order.data_len(), data_len)?;
                Ok(order)
            }
        }
    )*};
}

ready_made!(
    Subset,
    Windowed,
    Weighted,
    WeightedWithoutReplacement,
    ClassBalanced,
    Mixture
);

impl IntoPlan for BatchLists {
    fn into_plan(self, data_len: usize) -> Result<Plan, OrderError> {
        fitting(Plan::from(self), data_len)
    }
}

impl IntoPlan for Buckets {
    fn into_plan(self, data_len: usize) -> Result<Plan, OrderError> {
        fitting(Plan::from(self), data_len)
    }
}

fn fitting(plan: Plan, data_len: usize) -> Result<Plan, OrderError> {
    check(plan.identity().name, plan.data_len(), data_len)?;
    Ok(plan)
}

fn check(what: &'static str, made_for: usize, len: usize) -> Result<(), OrderError> {
    if made_for == len {
        Ok(())
    } else {
        Err(OrderError::OtherData {
            what,
            made_for,
            len,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evenly::Remainder;
    use crate::layout::BatchLimit;

    #[test]
    fn what_was_made_for_other_data_is_refused() {
        let error = |made_for| {
            let what = "subset";
            let len = 6;
            Some(OrderError::OtherData {
                what,
                made_for,
                len,
            })
        };
        let subset = |len| Subset::new([1, 3], len).unwrap();
        assert_eq!(subset(5).into_order(6).err(), error(5));
        assert!(subset(6).into_order(6).is_ok());
        assert!(Windowed::new(6, 2, 7).into_order(7).is_err());
        let weights = [1.0, 2.0, 0.0];
        assert!(Weighted::new(&weights, 9, 7).unwrap().into_order(3).is_ok());
        assert!(
            Weighted::new(&weights, 9, 7)
                .unwrap()
                .into_order(4)
                .is_err()
        );
        let without = || WeightedWithoutReplacement::new(weights, 2, 7).unwrap();
        assert!(without().into_order(3).is_ok() && without().into_order(2).is_err());
        let balanced = || ClassBalanced::new(&[0, 1, 1], 9, 7).unwrap();
        assert!(balanced().into_order(3).is_ok() && balanced().into_order(2).is_err());
        let mixture = || Mixture::new(&[3, 4], &[1.0, 1.0], 9, 7).unwrap();
        assert!(mixture().into_order(7).is_ok() && mixture().into_order(4).is_err());
    }

    #[test]
    fn so_are_batches_for_other_data() {
        let lists = || BatchLists::new([[0], [1]], 3).unwrap();
        assert!(lists().into_plan(3).is_ok() && lists().into_plan(2).is_err());
        let limit = BatchLimit::Items(2.try_into().unwrap());
        let buckets = || Buckets::new(&[3, 1, 2], &[2], limit, Remainder::Drop).unwrap();
        assert!(buckets().into_plan(3).is_ok() && buckets().into_plan(2).is_err());
    }
}
