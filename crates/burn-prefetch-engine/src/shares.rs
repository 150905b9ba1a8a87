//! From weights to whole positions of a block.

use crate::order_error::OrderError;
use crate::weights::sum_of;

/// Blocks are no longer than this, or than one position for each weight.
const LONGEST: usize = 4_096;

/// So far from a whole number a share counts as whole.
const WHOLE: f64 = 1e-6;

/// How many of a block's positions each weight has.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Share {
    /// All positions.
    pub(crate) block: usize,
    pub(crate) of_block: Vec<usize>,
}

/// The shortest block in which every share is a whole number, or else the longest that is allowed.
///
/// # Errors
///
/// When the weights cannot be used, or one above 0 is too small for a position.
pub(crate) fn shares(weights: &[f64]) -> Result<Share, OrderError> {
    let sum = sum_of(weights)?;
    let shares: Vec<_> = weights.iter().map(|weight| weight / sum).collect();
    let longest = LONGEST.max(weights.len());
    let exact = (1..=longest).find(|block| {
        shares.iter().all(|share| {
            let positions = share * real(*block);
            (positions - positions.round()).abs() < WHOLE && (*share == 0.0 || positions > 0.5)
        })
    });
    let block = exact.unwrap_or(longest);
    let of_block = apportioned(&shares, block);
    let missing = |set: &usize| of_block[*set] == 0 && weights[*set] > 0.0;
    match (0..weights.len()).find(missing) {
        None => Ok(Share { block, of_block }),
        Some(set) => Err(OrderError::SmallShare {
            set,
            share: shares[set],
            block,
        }),
    }
}

/// Whole positions that add up to `block`, by largest remainders; the first of equal ones comes
/// first.
fn apportioned(shares: &[f64], block: usize) -> Vec<usize> {
    // What is whole but for rounding counts as whole.
    let exact = |set: usize| shares[set] * real(block) + WHOLE;
    let mut positions: Vec<_> = (0..shares.len()).map(|set| whole(exact(set))).collect();
    let given: usize = positions.iter().sum();
    let mut by_remainder: Vec<_> = (0..shares.len()).filter(|set| shares[*set] > 0.0).collect();
    let remainder = |set: usize| exact(set) - exact(set).floor();
    by_remainder.sort_by(|a, b| remainder(*b).total_cmp(&remainder(*a)));
    for &set in by_remainder
        .iter()
        .cycle()
        .take(block.saturating_sub(given))
    {
        positions[set] += 1;
    }
    positions
}

#[expect(clippy::cast_precision_loss, reason = "a block's length is below 2^32")]
fn real(count: usize) -> f64 {
    count as f64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share of a block, from 0 up"
)]
fn whole(positions: f64) -> usize {
    positions as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn exact(weights: &[f64]) -> (usize, Vec<usize>) {
        let Share { block, of_block } = shares(weights).unwrap();
        (block, of_block)
    }

    #[test]
    fn plain_weights_make_short_blocks() {
        assert_eq!(exact(&[1.0, 1.0]), (2, vec![1, 1]));
        assert_eq!(exact(&[0.7, 0.2, 0.1]), (10, vec![7, 2, 1]));
        assert_eq!(exact(&[5.0]), (1, vec![1]));
        assert_eq!(exact(&[0.0, 3.0, 0.0, 1.5]), (3, vec![0, 2, 0, 1]));
        assert_eq!(exact(&vec![1.0; 5_000]), (5_000, vec![1; 5_000]));
        assert_eq!(exact(&[1e300, 1e300, 2e300]).0, 4);
    }

    #[test]
    fn a_weight_too_small_for_a_position_is_refused() {
        let refused = shares(&[1.0, 1e-7]).unwrap_err();
        assert!(matches!(
            refused,
            OrderError::SmallShare {
                set: 1,
                block: 4_096,
                ..
            }
        ));
        assert!(
            refused
                .to_string()
                .starts_with("data set 1 has a share of 0.0000000999")
        );
    }

    proptest! {
        #[test]
        fn shares_add_up_and_are_rounded_by_less_than_one(
            weights in proptest::collection::vec(0.05f64..1.0, 1..40),
        ) {
            let (block, of_block) = exact(&weights);
            prop_assert_eq!(of_block.iter().sum::<usize>(), block);
            let sum: f64 = weights.iter().sum();
            for (positions, weight) in of_block.into_iter().zip(weights) {
                prop_assert!((real(positions) - weight / sum * real(block)).abs() < 1.0);
            }
        }
    }
}
