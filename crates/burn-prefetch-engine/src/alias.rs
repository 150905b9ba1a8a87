//! A table from which an item is drawn by its weight in two looks, however many there are.

use crate::order_error::OrderError;
use crate::permutation::below;
use crate::weights::sum_of;

/// The alias table of A. J. Walker (*An Efficient Method for Generating Discrete Random Variables
/// with General Distributions*, ACM TOMS 1977), filled as M. D. Vose has it (*A Linear Algorithm
/// for Generating Random Numbers with a Given Distribution*, IEEE TSE 1991): twelve bytes a weight,
/// and four more while it is made.
///
/// All columns are equally likely; one has an item of its own, which it keeps with some chance, and
/// another item, its alias, for the rest. An item of weight 0 is never drawn.
#[derive(Debug)]
pub(crate) struct AliasTable {
    keep: Vec<f64>,
    alias: Vec<u32>,
}

impl AliasTable {
    /// How many weights there are.
    pub(crate) fn len(&self) -> usize {
        self.keep.len()
    }

    /// # Errors
    ///
    /// When `weights` cannot be used.
    pub(crate) fn new(weights: &[f64]) -> Result<Self, OrderError> {
        let sum = sum_of(weights)?;
        let columns = real(weights.len());
        let keep = weights
            .iter()
            .map(|weight| weight / sum * columns)
            .collect();
        let alias = (0_u32..).take(weights.len()).collect();
        let mut table = Self { keep, alias };
        table.fill();
        Ok(table)
    }

    /// Gives what is too much in one column to those with too little, until each is full.
    fn fill(&mut self) {
        // Columns with too little stand at the front, from the back those with enough.
        let mut columns = vec![0_u32; self.keep.len()];
        let (mut poor, mut rich) = (0, columns.len());
        for (column, keep) in (0_u32..).zip(&self.keep) {
            if *keep < 1.0 {
                columns[poor] = column;
                poor += 1;
            } else {
                rich -= 1;
                columns[rich] = column;
            }
        }
        while poor > 0 && rich < columns.len() {
            let (taker, giver) = (columns[poor - 1], columns[rich]);
            let [t, g] = [taker, giver].map(|column| column as usize);
            self.alias[t] = giver;
            self.keep[g] = (self.keep[g] + self.keep[t]) - 1.0;
            poor -= 1;
            if self.keep[g] < 1.0 {
                columns[poor] = giver;
                (poor, rich) = (poor + 1, rich + 1);
            }
        }
        // What is left over is full but for rounding; an item of weight 0 still gets nothing.
        let full = self.keep.iter().position(|keep| *keep > 0.0).unwrap_or(0);
        for &column in columns[..poor].iter().chain(&columns[rich..]) {
            let c = column as usize;
            if self.keep[c] > 0.0 {
                self.keep[c] = 1.0;
            } else {
                self.alias[c] = self.alias[full];
            }
        }
    }

    /// The item that two random numbers draw.
    #[inline]
    pub(crate) fn draw(&self, column: u64, coin: u64) -> usize {
        let column = below(column, self.keep.len() as u64);
        let column = usize::try_from(column).expect("a column is in memory");
        if fraction(coin) < self.keep[column] {
            column
        } else {
            self.alias[column] as usize
        }
    }
}

/// The high 53 bits as a number from 0 up to 1.
#[expect(clippy::cast_precision_loss, reason = "53 bits are exact")]
fn fraction(number: u64) -> f64 {
    (number >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
}

#[expect(clippy::cast_precision_loss, reason = "counts here are below 2^32")]
fn real(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The chance of each item, from the table itself.
    fn chances(table: &AliasTable) -> Vec<f64> {
        let mut chances = vec![0.0; table.keep.len()];
        for (column, (keep, alias)) in table.keep.iter().zip(&table.alias).enumerate() {
            let keep = keep.min(1.0);
            chances[column] += keep;
            chances[*alias as usize] += 1.0 - keep;
        }
        let columns = real(chances.len());
        chances.into_iter().map(|chance| chance / columns).collect()
    }

    proptest! {
        #[test]
        fn each_item_has_its_share(
            weights in proptest::collection::vec(
                prop_oneof![Just(0.0), Just(1.0), 0.0..1.0, 0.0..1e-9, 0.0..1e9], 1..200),
        ) {
            prop_assume!(weights.iter().any(|weight| *weight > 0.0));
            let table = AliasTable::new(&weights).unwrap();
            let sum: f64 = weights.iter().sum();
            for (chance, weight) in chances(&table).into_iter().zip(&weights) {
                prop_assert!((chance - weight / sum).abs() < 1e-12, "{chance} {weight} {sum}");
                prop_assert!(*weight > 0.0 || chance == 0.0);
            }
        }
    }

    #[test]
    fn extreme_weights_are_drawn_as_they_should() {
        let table = AliasTable::new(&[0.0, 5e-324, 0.0, f64::MAX]).unwrap();
        assert!((0..64).all(|bit| table.draw(1 << bit, u64::MAX) == 3));
        let one = AliasTable::new(&[5e-324]).unwrap();
        assert_eq!([0, u64::MAX].map(|number| one.draw(number, number)), [0, 0]);
        let table = AliasTable::new(&[0.0, 0.3, 0.0, 0.7, 0.0]).unwrap();
        for coin in [0, 1 << 60, u64::MAX] {
            for column in 0..100 {
                assert!([1, 3].contains(&table.draw(column * (u64::MAX / 99), coin)));
            }
        }
    }
}
