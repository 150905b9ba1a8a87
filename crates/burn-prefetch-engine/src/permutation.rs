//! A shuffle as a function from position to index: any position, without those before it.
//!
//! # Algorithm, version 1
//!
//! *Up to [`TABLE_LIMIT`] items*: Fisher–Yates (Durstenfeld's form, from the last place down) on a
//! table, every order equally likely. Place `i` swaps with `(number × (i + 1)) >> 64`, one number
//! of [`seed::rng`] a place.
//!
//! *Above*: no table, but a cipher on `0..len`: the generalised Feistel network with cycle walking
//! of J. Black and P. Rogaway, *Ciphers with Arbitrary Finite Domains*, CT-RSA 2002 (methods 3
//! and 2). Its eight round keys are the first numbers of [`seed::rng`].
//!
//! - A position is a cell `(row, column)` of a grid that is nearly square: there are
//!   `2^ceil(floor(log2(len)) / 2)` columns, and just enough rows for `len` cells.
//! - Eight rounds in turn move a cell within its column, by a number that its column draws, and
//!   within its row, by a number that its row draws. A round can be undone: no two cells meet.
//! - A cell that is not below `len` goes through the rounds again. Fewer cells than one row holds
//!   are beyond `len`, so this befalls 1.6 % of positions at most, and fewer the longer `len`.
//!
//! Eight rounds, because after few rounds some pairs stay at their distance too often (J. Patarin,
//! *Generic Attacks on Feistel Schemes*, ASIACRYPT 2001). In 400 shuffles of 5,120 items this was
//! seen at 1,250 standard deviations after four rounds, at 19 after six, and not after eight.

use std::sync::Arc;

use rand_core::Rng;

use crate::seed;

/// The version of the order: it rises whenever [`Permutation::index`] gives another index for any
/// length, key and position.
///
/// A saved state that names another version cannot be resumed to the same order.
pub(crate) const VERSION: u32 = 1;

/// The most items that are shuffled in a table: 256 KiB at most, which the cache of one core holds.
///
/// A look into it takes 3 to 5 ns, the cipher's rounds about 18, or 11 in a [run](RUN); making it costs an epoch about 2 ns
/// an item.
pub(crate) const TABLE_LIMIT: usize = 65_536;

/// So many positions are asked for at once where the cipher is: their rounds do not depend on one
/// another, and the processor works on all of them at a time.
pub const RUN: usize = 8;

/// A bijection on `0..len`, chosen by a key: which index stands at which position of a shuffle.
///
/// Equal lengths and keys give equal permutations, on every machine and in every release with the
/// same [`VERSION`]. Making one takes a tenth of a millisecond at most, and a clone is cheap. The order
/// is for statistics, not for secrets.
#[derive(Clone, Debug)]
pub(crate) struct Permutation {
    len: usize,
    form: Form,
}

#[derive(Clone, Debug)]
enum Form {
    Table(Arc<[u32]>),
    Cipher(Cipher),
}

impl Permutation {
    /// The permutation of `0..len` that belongs to `key`.
    #[must_use]
    pub(crate) fn new(len: usize, key: u64) -> Self {
        let form = if len <= TABLE_LIMIT {
            Form::Table(shuffled_table(len, key))
        } else {
            Form::Cipher(Cipher::new(len as u64, key))
        };
        Self { len, form }
    }

    /// A permutation of `0..len` without a table, whatever its length: another than that of
    /// [`new`](Self::new). As good from some thousand items on.
    #[must_use]
    pub(crate) fn compact(len: usize, key: u64) -> Self {
        let form = Form::Cipher(Cipher::new(len as u64, key));
        Self { len, form }
    }

    /// The index that stands at `position`.
    ///
    /// # Panics
    ///
    /// If `position` is not below `len`.
    #[must_use]
    #[inline]
    pub(crate) fn index(&self, position: usize) -> usize {
        let len = self.len;
        assert!(
            position < len,
            "position {position} is beyond a permutation of {len} items"
        );
        match &self.form {
            Form::Table(table) => table[position] as usize,
            Form::Cipher(cipher) => usize::try_from(cipher.index(position as u64))
                .expect("an index is below `len`, which is a usize"),
        }
    }
}

impl Permutation {
    /// What [`index`](Self::index) gives for the positions from `start` on, where that is faster
    /// than one by one.
    #[inline]
    pub(crate) fn run(&self, start: usize) -> Option<[usize; RUN]> {
        let Form::Cipher(cipher) = &self.form else {
            return None;
        };
        let fits = start.checked_add(RUN).is_some_and(|end| end <= self.len);
        fits.then(|| {
            cipher.run(start as u64).map(|index| {
                usize::try_from(index).expect("an index is below `len`, which is a usize")
            })
        })
    }
}

fn shuffled_table(len: usize, key: u64) -> Arc<[u32]> {
    let mut numbers = seed::rng(key);
    let mut table: Vec<u32> = (0_u32..).take(len).collect();
    for last in (1..len).rev() {
        let chosen = below(numbers.next_u64(), last as u64 + 1);
        table.swap(
            last,
            usize::try_from(chosen).expect("a place is below `len`, which is a usize"),
        );
    }
    table.into()
}

/// Eight rounds, in pairs: one moves a cell within its column, one within its row.
const ROUND_PAIRS: usize = 4;

/// The generalised Feistel network on `0..len` that the [module](self) describes.
#[derive(Clone, Debug)]
struct Cipher {
    /// At least 1, so that cycle walking comes to an end.
    len: u64,
    /// `rows << column_bits` is at least `len`, and less than one row more; it may be 2⁶⁴.
    rows: u64,
    /// From 1 to 32: cells are numbered row by row, `row << column_bits | column`.
    column_bits: u32,
    round_keys: [[u64; 2]; ROUND_PAIRS],
}

impl Cipher {
    fn new(len: u64, key: u64) -> Self {
        let len = len.max(1);
        let column_bits = len.ilog2().div_ceil(2).max(1);
        let mut numbers = seed::rng(key);
        Self {
            len,
            rows: ((len - 1) >> column_bits) + 1,
            column_bits,
            round_keys: std::array::from_fn(|_| [numbers.next_u64(), numbers.next_u64()]),
        }
    }

    /// Walks the cycle of `position` to the next cell that is an index; `position` itself is one,
    /// so there is such a cell.
    #[inline]
    fn index(&self, position: u64) -> u64 {
        let mut cell = self.encrypt(position);
        while cell >= self.len {
            cell = self.encrypt(cell);
        }
        cell
    }

    /// The indices of the positions from `start` on.
    #[inline]
    fn run(&self, start: u64) -> [u64; RUN] {
        let mut cells = [0; RUN];
        (start..)
            .zip(&mut cells)
            .for_each(|(position, cell)| *cell = position);
        let mut cells = self.encrypt_all(cells);
        for cell in &mut cells {
            while *cell >= self.len {
                *cell = self.encrypt(*cell);
            }
        }
        cells
    }

    /// As [`encrypt`](Self::encrypt), round by round for all of them.
    #[inline]
    fn encrypt_all(&self, cells: [u64; RUN]) -> [u64; RUN] {
        let mut rows = cells.map(|cell| self.split(cell).0);
        let mut columns = cells.map(|cell| self.split(cell).1);
        for [down, across] in self.round_keys {
            for (row, column) in rows.iter_mut().zip(&columns) {
                *row = self.moved_down(*row, *column, down);
            }
            for (row, column) in rows.iter().zip(&mut columns) {
                *column ^= self.shift_across(*row, across);
            }
        }
        let mut cells = columns;
        for (row, cell) in rows.iter().zip(&mut cells) {
            *cell |= row << self.column_bits;
        }
        cells
    }

    #[inline]
    fn encrypt(&self, cell: u64) -> u64 {
        let (mut row, mut column) = self.split(cell);
        for [down, across] in self.round_keys {
            row = self.moved_down(row, column, down);
            column ^= self.shift_across(row, across);
            debug_assert!(row < self.rows && column >> self.column_bits == 0);
        }
        (row << self.column_bits) | column
    }

    #[inline]
    fn moved_down(&self, row: u64, column: u64, key: u64) -> u64 {
        // Both are below `rows`, which is at most 2^32: no overflow.
        let row = row + self.shift_down(column, key);
        row - if row >= self.rows { self.rows } else { 0 }
    }

    #[inline]
    fn split(&self, cell: u64) -> (u64, u64) {
        (
            cell >> self.column_bits,
            cell & ((1 << self.column_bits) - 1),
        )
    }

    /// How far the cells of `column` move down, round and round; below `rows`.
    #[inline]
    fn shift_down(&self, column: u64, key: u64) -> u64 {
        below(scramble(column, key), self.rows)
    }

    /// What the columns of the cells of `row` are crossed with; below the number of columns.
    #[inline]
    fn shift_across(&self, row: u64, key: u64) -> u64 {
        scramble(row, key) >> (64 - self.column_bits)
    }
}

/// The round function: two multiplications (constants of D. Stafford's `Mix13`) carry every bit of
/// `half` and `key` into the high bits, the only ones that are used.
#[inline]
const fn scramble(half: u64, key: u64) -> u64 {
    let product = (half ^ key).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (product ^ (product >> 32)).wrapping_mul(0x94d0_49bb_1331_11eb)
}

/// A 64-bit number scaled to `0..limit`; at the limits met here (2³² at most) even to within 2⁻³².
#[inline]
pub(crate) const fn below(number: u64, limit: u64) -> u64 {
    ((number as u128 * limit as u128) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::chance::{assert_chance, assert_near, real};
    use crate::seed::{Domain, derive};

    const SEED: u64 = 42;

    /// The key of one epoch, as the loader makes it.
    fn key(epoch: u64) -> u64 {
        derive(SEED, Domain::Shuffle, epoch, 0)
    }

    /// The form that serves large lengths, at any length.
    /// The table for some thousand items, the cipher for more: so the cipher is tested at lengths
    /// that take little time.
    fn either(len: usize, key: u64) -> Permutation {
        if len <= 4_096 {
            table(len, key)
        } else {
            cipher(len, key)
        }
    }

    fn cipher(len: usize, key: u64) -> Permutation {
        Permutation {
            len,
            form: Form::Cipher(Cipher::new(len as u64, key)),
        }
    }

    /// The form that serves small lengths, at any length.
    fn table(len: usize, key: u64) -> Permutation {
        Permutation {
            len,
            form: Form::Table(shuffled_table(len, key)),
        }
    }

    fn indices(permutation: &Permutation) -> impl Iterator<Item = usize> {
        (0..permutation.len).map(|position| permutation.index(position))
    }

    /// Undoes the rounds one by one, which nothing but a bijection allows.
    fn decrypt(cipher: &Cipher, cell: u64) -> u64 {
        let (mut row, mut column) = cipher.split(cell);
        for [down, across] in cipher.round_keys.into_iter().rev() {
            column ^= cipher.shift_across(row, across);
            row = (row + cipher.rows - cipher.shift_down(column, down)) % cipher.rows;
        }
        (row << cipher.column_bits) | column
    }

    fn position_of(cipher: &Cipher, index: u64) -> u64 {
        let mut cell = decrypt(cipher, index);
        while cell >= cipher.len {
            cell = decrypt(cipher, cell);
        }
        cell
    }

    /// `0..len` in `count` nearly equal bins: the bin of an index.
    fn bin(index: usize, count: usize, len: usize) -> usize {
        index * count / len
    }

    fn bin_sizes(count: usize, len: usize) -> Vec<usize> {
        let mut sizes = vec![0; count];
        (0..len).for_each(|index| sizes[bin(index, count, len)] += 1);
        sizes
    }

    /// The chance of each pair of bins, for two different indices of a perfect shuffle.
    fn pair_chances(count: usize, len: usize) -> Vec<f64> {
        let sizes = bin_sizes(count, len);
        let pairs = real(len) * real(len - 1);
        (0..count * count)
            .map(|cell| (cell / count, cell % count))
            .map(|(a, b)| real(sizes[a] * (sizes[b] - usize::from(a == b))) / pairs)
            .collect()
    }

    fn scaled(chances: &[f64], samples: usize) -> Vec<f64> {
        chances
            .iter()
            .map(|chance| chance * real(samples))
            .collect()
    }

    #[test]
    fn a_run_is_the_positions_one_by_one() {
        let assert_run = |permutation: &Permutation, start: usize| {
            let fits = start
                .checked_add(RUN)
                .is_some_and(|end| end <= permutation.len);
            let is_cipher = matches!(permutation.form, Form::Cipher(_));
            let run = permutation.run(start);
            assert_eq!(
                run.is_some(),
                fits && is_cipher,
                "{start} of {permutation:?}"
            );
            let one_by_one = (start..).map(|position| permutation.index(position));
            assert!(
                run.into_iter()
                    .flatten()
                    .eq(one_by_one.take(if run.is_some() { RUN } else { 0 }))
            );
        };
        for len in [5, 100, 65_536, 65_537, 100_003, 1_000_000] {
            let both = [Permutation::new(len, 9), Permutation::compact(len, 9)];
            let starts = (0..len).step_by(len / 50 + 1);
            let ends = [len.saturating_sub(RUN), len, usize::MAX];
            for start in starts.chain(ends) {
                assert_run(&both[0], start);
                assert_run(&both[1], start);
            }
        }
    }

    #[test]
    fn indices_are_those_of_version_1() {
        assert_eq!(VERSION, 1, "another order needs new constants below");
        assert_eq!(
            indices(&Permutation::new(10, 7)).collect::<Vec<_>>(),
            [3, 8, 9, 4, 6, 7, 2, 5, 1, 0]
        );
        let start = |len, key| [0, 1, 2, 3].map(|p| Permutation::new(len, key).index(p));
        assert_eq!(start(4096, 7), [2_102, 1_626, 134, 2_658]);
        assert_eq!(start(65_536, 7), [59_414, 39_926, 27_369, 53_889]);
        assert_eq!(start(65_537, 7), [15_092, 61_128, 34_739, 34_386]);
        assert_eq!(start(1_000_000, 0), [644_861, 201_102, 636_832, 518_794]);
        assert_eq!(
            start(1_000_000, u64::MAX),
            [243_378, 618_578, 581_296, 238_593]
        );
    }

    #[test]
    #[cfg(target_pointer_width = "64")]
    fn indices_of_huge_lengths_are_those_of_version_1() {
        let start = |len| [0, 1, len - 1].map(|p| Permutation::new(len, 7).index(p));
        assert_eq!(
            start(1_000_000_000_000),
            [446_081_230_673, 851_206_588_419, 455_883_657_937]
        );
        assert_eq!(
            start(usize::MAX),
            [
                8_054_447_262_680_982_749,
                14_006_081_302_918_786_143,
                14_208_361_194_551_762_292
            ]
        );
    }

    #[test]
    fn every_index_stands_at_exactly_one_position() {
        let small = (0..=300).flat_map(|len| [table(len, key(1)), cipher(len, key(1))]);
        let large =
            [4096, 4097, 65_536, 65_537, 1_000_003].map(|len| Permutation::new(len, key(2)));
        for permutation in small.chain(large) {
            let mut seen = vec![false; permutation.len];
            for index in indices(&permutation) {
                assert!(!seen[index], "{index} twice in {} items", permutation.len);
                seen[index] = true;
            }
        }
    }

    proptest! {
        #[test]
        fn any_position_of_any_length_can_be_found_again(
            bits in 0_u32..64, len: u64, key: u64, position: u64,
        ) {
            let len = (len >> bits).max(1);
            let cipher = Cipher::new(len, key);
            let index = cipher.index(position % len);
            prop_assert!(index < len);
            prop_assert_eq!(position_of(&cipher, index), position % len);
        }
    }

    #[test]
    #[cfg(target_pointer_width = "64")]
    fn huge_lengths_neither_overflow_nor_repeat() {
        let middle = 1_usize << 63;
        for len in [middle - 1, middle, middle + 1, usize::MAX - 1, usize::MAX] {
            let permutation = Permutation::new(len, key(3));
            let positions = [0, len / 2, len - 10_000].map(|start| start..start + 10_000);
            let mut seen: Vec<_> = positions
                .into_iter()
                .flatten()
                .map(|p| permutation.index(p))
                .collect();
            let mut bins = [0; 64];
            for index in &seen {
                bins[index / (len / 64 + 1)] += 1;
            }
            assert_chance(&bins, &[30_000.0 / 64.0; 64], &format!("bins of {len}"));
            seen.sort_unstable();
            seen.dedup();
            assert_eq!(seen.len(), 30_000, "an index came twice among {len}");
        }
    }

    /// The rank of an order among all: one digit an item, in the factorial base.
    fn rank(order: &[usize]) -> usize {
        (0..order.len()).fold(0, |rank, place| {
            let rest = &order[place..];
            let smaller = rest.iter().filter(|index| **index < rest[0]).count();
            rank * rest.len() + smaller
        })
    }

    #[test]
    fn a_handful_of_items_takes_every_order_equally_often() {
        for len in 2..=6 {
            let orders: usize = (2..=len).product();
            let mut seen = vec![0; orders];
            for epoch in 0..100 * orders {
                let permutation = either(len, key(epoch as u64));
                seen[rank(&indices(&permutation).collect::<Vec<_>>())] += 1;
            }
            assert_chance(
                &seen,
                &vec![100.0; orders],
                &format!("orders of {len} items"),
            );
        }
    }

    #[test]
    fn an_item_goes_anywhere_with_the_same_chance() {
        const KEYS: u64 = 20_000;
        for (len, count) in [(40, 40), (5_000, 64), (8_191, 64)] {
            let shuffles: Vec<_> = (0..KEYS).map(|epoch| either(len, key(epoch))).collect();
            let chances: Vec<_> = bin_sizes(count, len)
                .into_iter()
                .map(|size| real(size) / real(len))
                .collect();
            for position in [0, 1, 31, len / 2, len - 1] {
                let mut seen = vec![0; count];
                shuffles
                    .iter()
                    .map(|shuffle| bin(shuffle.index(position), count, len))
                    .for_each(|bin| seen[bin] += 1);
                let expected = scaled(&chances, shuffles.len());
                assert_chance(&seen, &expected, &format!("position {position} of {len}"));
            }
        }
    }

    #[test]
    fn two_positions_know_nothing_of_each_other_over_many_keys() {
        const KEYS: usize = 20_000;
        // In the grid of 5,000 items, 1 is the next column and 64 the next row.
        for (len, count, distance) in [(40, 10, 1), (5_000, 16, 1), (5_000, 16, 64)] {
            let mut seen = vec![0; count * count];
            for epoch in 0..KEYS as u64 {
                let permutation = either(len, key(epoch));
                let [a, b] = [7, 7 + distance].map(|p| bin(permutation.index(p), count, len));
                seen[a * count + b] += 1;
            }
            let expected = scaled(&pair_chances(count, len), KEYS);
            assert_chance(
                &seen,
                &expected,
                &format!("{len} items, distance {distance}"),
            );
        }
    }

    #[test]
    fn two_positions_know_nothing_of_each_other_within_one_shuffle() {
        const LEN: usize = 1_000_003;
        let order: Vec<_> = indices(&either(LEN, key(4))).collect();
        let expected = pair_chances(32, LEN);
        for distance in [1, 2, 128, 1_024] {
            let mut seen = vec![0; 32 * 32];
            for (a, b) in order.iter().zip(&order[distance..]) {
                seen[bin(*a, 32, LEN) * 32 + bin(*b, 32, LEN)] += 1;
            }
            let expected = scaled(&expected, LEN - distance);
            assert_chance(&seen, &expected, &format!("distance {distance}"));
        }
    }

    #[test]
    fn rises_and_falls_are_as_long_as_chance_makes_them() {
        for permutation in [4_096, 5_000, 1_000_003].map(|len| either(len, key(5))) {
            let order: Vec<_> = indices(&permutation).collect();
            let turns = order
                .windows(3)
                .filter(|w| (w[0] < w[1]) != (w[1] < w[2]))
                .count();
            // The runs test (W. A. Wallis and G. H. Moore, 1941), in turning points.
            let len = real(order.len());
            let deviation = ((16.0 * len - 29.0) / 90.0).sqrt();
            assert_near(
                real(turns),
                2.0 * (len - 2.0) / 3.0,
                deviation,
                &format!("turns of {len}"),
            );
        }
    }

    /// Of all pairs in a column, how many stand equally many rows apart after the shuffle, and how
    /// many pairs there are.
    fn pairs_that_keep_their_distance(rows_now: &[usize]) -> (usize, usize) {
        let rows = rows_now.len();
        let pairs = (1..rows).flat_map(|apart| (0..rows - apart).map(move |row| (apart, row)));
        pairs.fold((0, 0), |(kept, all), (apart, row)| {
            let apart_now = (rows_now[row + apart] + rows - rows_now[row]) % rows;
            (kept + usize::from(apart_now == apart), all + 1)
        })
    }

    /// The test that decides the number of rounds: see the module.
    #[test]
    fn pairs_keep_their_distance_as_seldom_as_chance_has_it() {
        const ROWS: usize = 80;
        const COLUMNS: usize = 64;
        let (mut kept, mut all) = (0, 0);
        for epoch in 0..100 {
            let shuffle = either(ROWS * COLUMNS, key(epoch));
            for column in 0..COLUMNS {
                let cells = (0..ROWS).map(|row| shuffle.index(row * COLUMNS + column));
                let rows_now: Vec<_> = cells.map(|index| index / COLUMNS).collect();
                let (kept_here, here) = pairs_that_keep_their_distance(&rows_now);
                (kept, all) = (kept + kept_here, all + here);
            }
        }
        // Of the other cells, one a column is at the same distance.
        let expected = real(all) * real(COLUMNS) / real(ROWS * COLUMNS - 1);
        assert_near(real(kept), expected, expected.sqrt(), "pairs in a column");
    }

    #[test]
    fn one_bit_of_the_key_changes_the_whole_order() {
        for len in [1_000, 5_000] {
            let (mut seen, mut stayed) = (vec![0; 64], 0);
            let flips = (0..4).flat_map(|epoch| (0..64).map(move |bit| (key(epoch), 1 << bit)));
            let pairs = flips.flat_map(|(key, flip)| {
                let [a, b] = [key, key ^ flip].map(|key| either(len, key));
                (0..len).map(move |position| (a.index(position), b.index(position)))
            });
            for (a, b) in pairs {
                seen[bin(a, 8, len) * 8 + bin(b, 8, len)] += 1;
                stayed += usize::from(a == b);
            }
            let expected = [real(4 * 64 * len) / 64.0; 64];
            assert_chance(
                &seen,
                &expected,
                &format!("indices of two keys, {len} items"),
            );
            // Two unrelated orders agree at one position on average, spread as Poisson has it.
            assert_near(
                real(stayed),
                256.0,
                16.0,
                &format!("indices that stayed, {len} items"),
            );
        }
    }

    #[test]
    fn a_permutation_may_be_shared_and_cloned() {
        fn shareable<T: Send + Sync + Clone + std::fmt::Debug>(value: &T) -> T {
            value.clone()
        }
        for original in [either(100, key(6)), either(10_000, key(6))] {
            assert!(indices(&shareable(&original)).eq(indices(&original)));
        }
    }

    #[test]
    #[should_panic(expected = "position 10 is beyond a permutation of 10 items")]
    fn a_position_beyond_a_table_is_refused() {
        let _ = table(10, 1).index(10);
    }

    #[test]
    #[should_panic(expected = "position 5000 is beyond a permutation of 5000 items")]
    fn a_position_beyond_a_cipher_is_refused() {
        let _ = cipher(5_000, 1).index(5_000);
    }
}
