//! What weights have to be, and their sum.

use crate::order_error::OrderError;

/// The most weights that one table numbers.
pub(crate) const MOST: usize = u32::MAX as usize;

/// The sum of `weights`, which is above 0, and the same on every machine.
///
/// # Errors
///
/// When there are none or too many of them, one is negative or not finite, or all are 0.
pub(crate) fn sum_of(weights: &[f64]) -> Result<f64, OrderError> {
    let count = weights.len();
    if count == 0 {
        return Err(OrderError::Empty { what: "weights" });
    }
    if count > MOST {
        return Err(OrderError::TooMany {
            what: "weights",
            count,
            most: MOST,
        });
    }
    let wrong = |weight: &f64| !weight.is_finite() || *weight < 0.0;
    if let Some(index) = weights.iter().position(wrong) {
        let weight = weights[index];
        return Err(OrderError::Weight { index, weight });
    }
    let sum = compensated(weights);
    if sum == 0.0 {
        return Err(OrderError::AllZero { count });
    }
    if !sum.is_finite() {
        return Err(OrderError::Overflow { count });
    }
    Ok(sum)
}

/// A. Neumaier's sum (*Rundungsfehleranalyse einiger Verfahren zur Summation endlicher Summen*,
/// ZAMM 1974): as exact for a hundred million weights as for ten.
fn compensated(weights: &[f64]) -> f64 {
    let (mut sum, mut lost) = (0.0_f64, 0.0);
    for &weight in weights {
        let next = sum + weight;
        lost += if sum >= weight {
            (sum - next) + weight
        } else {
            (weight - next) + sum
        };
        sum = next;
    }
    sum + lost
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_that_cannot_be_used_are_refused() {
        assert_eq!(sum_of(&[]), Err(OrderError::Empty { what: "weights" }));
        assert_eq!(sum_of(&[0.0, 0.0]), Err(OrderError::AllZero { count: 2 }));
        assert_eq!(
            sum_of(&[f64::MAX, f64::MAX]),
            Err(OrderError::Overflow { count: 2 })
        );
        for weight in [-1.0, f64::INFINITY, f64::NEG_INFINITY] {
            let refused = OrderError::Weight { index: 1, weight };
            assert_eq!(sum_of(&[1.0, weight, 2.0]), Err(refused));
        }
        let nan = sum_of(&[f64::NAN]);
        assert!(matches!(nan, Err(OrderError::Weight { index: 0, .. })));
    }

    #[test]
    fn the_sum_loses_nothing() {
        let mut weights = vec![0.1; 1_000_000];
        weights.insert(0, 1e16);
        let sum = sum_of(&weights).unwrap();
        assert!((sum - 1e16 - 100_000.0).abs() < 3.0, "{sum}");
        assert_eq!(sum_of(&[0.0, 5e-324]), Ok(5e-324));
    }
}
