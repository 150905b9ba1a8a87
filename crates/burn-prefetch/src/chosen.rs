//! What the builder was given to order the data, until it knows the data's length.

use std::fmt;
use std::num::NonZeroUsize;

use burn_prefetch_engine::{IntoOrder, IntoPlan, Order, OrderError, Plan, Remainder, Windowed};

type Make<T> = Box<dyn FnOnce(usize) -> Result<T, OrderError> + Send>;

/// How indices come into order, and how that is cut into batches.
#[derive(Default)]
pub(crate) enum Chosen {
    /// As the dataset has them.
    #[default]
    Sequence,
    Shuffle {
        seed: u64,
    },
    Windowed {
        distance: usize,
        seed: u64,
    },
    Sampler(Make<Order>),
    Batches(Make<Plan>),
}

impl Chosen {
    pub(crate) fn sampler(sampler: impl IntoOrder + Send + 'static) -> Self {
        Self::Sampler(Box::new(|data_len| sampler.into_order(data_len)))
    }

    pub(crate) fn batches(sampler: impl IntoPlan + Send + 'static) -> Self {
        Self::Batches(Box::new(|data_len| sampler.into_plan(data_len)))
    }

    /// The plan over data of `data_len` items; the `cut` is for what is not in batches already.
    pub(crate) fn plan(
        self,
        data_len: usize,
        cut: (NonZeroUsize, Remainder),
    ) -> Result<Plan, OrderError> {
        let order = match self {
            Self::Sequence => Order::sequential(data_len),
            Self::Shuffle { seed } => Order::shuffled(data_len, seed),
            Self::Windowed { distance, seed } => Windowed::new(data_len, distance, seed).into(),
            Self::Sampler(make) => make(data_len)?,
            Self::Batches(make) => return make(data_len),
        };
        let (batch_size, remainder) = cut;
        Ok(Plan::new(order, batch_size, remainder))
    }
}

impl fmt::Debug for Chosen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sequence => "Sequence",
            Self::Shuffle { .. } => "Shuffle",
            Self::Windowed { .. } => "Windowed",
            Self::Sampler(_) => "Sampler",
            Self::Batches(_) => "Batches",
        })
    }
}
