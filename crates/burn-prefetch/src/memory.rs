//! What may be given as a memory budget.

use burn_prefetch_engine::MemoryBudget;

use crate::config_error::ConfigError;
use crate::machine::usable_memory;

/// A share of what the process may use: the smallest of the machine's memory, the limits of its
/// control groups, and its limits on address space and data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fraction(
    /// More than 0, and at most 1.
    pub f64,
);

/// What [`memory_budget`](crate::DataLoaderBuilder::memory_budget) takes: bytes, a budget that other
/// loaders share, or a [`Fraction`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum MemoryLimit {
    /// So many bytes, for one loader.
    Bytes(u64),
    /// A share of what the process may use, for one loader.
    Fraction(Fraction),
    /// One budget for all loaders that it is given to. One of 0 bytes is refused; it may become 0 while it
    /// is in use.
    Shared(MemoryBudget),
}

impl From<u64> for MemoryLimit {
    fn from(bytes: u64) -> Self {
        Self::Bytes(bytes)
    }
}

impl From<Fraction> for MemoryLimit {
    fn from(fraction: Fraction) -> Self {
        Self::Fraction(fraction)
    }
}

impl From<&MemoryBudget> for MemoryLimit {
    fn from(budget: &MemoryBudget) -> Self {
        Self::Shared(budget.clone())
    }
}

impl From<MemoryBudget> for MemoryLimit {
    fn from(budget: MemoryBudget) -> Self {
        Self::Shared(budget)
    }
}

impl MemoryLimit {
    /// The budget that is meant; a new one, unless it is shared.
    pub(crate) fn budget(&self) -> Result<MemoryBudget, ConfigError> {
        match self {
            Self::Bytes(0) => Err(ConfigError::BudgetZero),
            Self::Bytes(bytes) => Ok(MemoryBudget::new(*bytes)),
            Self::Fraction(Fraction(share)) => {
                let usable = usable_memory().map(|(bytes, _)| bytes);
                fraction_of(usable, *share).map(MemoryBudget::new)
            }
            Self::Shared(budget) if budget.limit() == 0 => Err(ConfigError::BudgetZero),
            Self::Shared(budget) => Ok(budget.clone()),
        }
    }
}

fn fraction_of(usable: Option<u64>, share: f64) -> Result<u64, ConfigError> {
    let is_share = share > 0.0 && share <= 1.0;
    if !is_share {
        return Err(ConfigError::BudgetFraction {
            fraction: share.to_string(),
        });
    }
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of memory need not be exact to the byte"
    )]
    match usable.map(|bytes| (bytes as f64 * share) as u64) {
        None => Err(ConfigError::MemoryUnknown),
        Some(0) => Err(ConfigError::BudgetZero),
        Some(bytes) => Ok(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_share_and_what_is_nothing_is_refused() {
        for share in [0.0, -0.5, 1.01, f64::NAN, f64::INFINITY] {
            let refused = fraction_of(Some(1_000), share);
            assert!(
                matches!(refused, Err(ConfigError::BudgetFraction { .. })),
                "{share}"
            );
        }
        assert_eq!(fraction_of(Some(1_000), 0.1), Ok(100));
        assert_eq!(fraction_of(Some(1_000), 1.0), Ok(1_000));
        assert_eq!(fraction_of(Some(5), 0.1), Err(ConfigError::BudgetZero));
        assert_eq!(fraction_of(None, 0.1), Err(ConfigError::MemoryUnknown));
        assert!(matches!(
            MemoryLimit::from(0).budget(),
            Err(ConfigError::BudgetZero)
        ));
        let shared = MemoryBudget::new(7);
        let given = MemoryLimit::from(&shared).budget().expect("it is one");
        given.set_limit(9);
        assert_eq!(shared.limit(), 9);
    }
}
