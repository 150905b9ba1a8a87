//! Random numbers as a function of position: what is drawn depends on where, never on when.
//!
//! [`derive()`] turns (seed, domain, epoch, position) into one 64-bit key, [`rng`] turns a key into
//! a stream of numbers. Neither has a memory, so any worker, in any order, in this run or in a
//! resumed one, draws the same. The numbers are for statistics, not for secrets.

use std::convert::Infallible;

use rand_core::{Rng, SeedableRng, TryRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// The version of all random numbers: it rises when any of them changes for a seed and position.
///
/// A saved state that names another version cannot be resumed to the same numbers.
pub const VERSION: u32 = 1;

/// What the numbers are for: the same seed, epoch and position give unrelated keys in each domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Domain {
    /// The order of an epoch.
    Shuffle,
    /// Fetching one item; the position is the dataset index.
    Fetch,
    /// Fetching several items in one call; the position is that of the first in the epoch.
    FetchMany,
    /// Assembling one batch; the position is the batch number.
    Assemble,
    /// Uploading one batch; the position is the batch number.
    Upload,
    /// Drawing by weight: which column of the alias table; the position is the epoch's.
    Column,
    /// Drawing by weight: the column's own item or its alias; the position is the epoch's.
    Alias,
    /// Drawing without replacement; the position is the dataset index.
    Exponential,
    /// Windowed shuffles; the position is the layer.
    Window,
    /// Where the data sets of a mixture stand in its blocks.
    Blocks,
    /// The passes over the data sets of a mixture; the epoch is the data set.
    Passes,
    /// The items of a bucket; the position is the bucket.
    Bucket,
    /// The order of batches as wholes.
    Batches,
    /// A shuffle of a family; the position is its number.
    Family,
}

impl Domain {
    /// Eight ASCII characters, passed through the finaliser so that no ordinary seed is near them.
    const fn salt(self) -> u64 {
        mix(u64::from_be_bytes(match self {
            Self::Shuffle => *b"shuffle ",
            Self::Fetch => *b"fetch   ",
            Self::FetchMany => *b"fetchall",
            Self::Assemble => *b"assemble",
            Self::Upload => *b"upload  ",
            Self::Column => *b"column  ",
            Self::Alias => *b"alias   ",
            Self::Exponential => *b"exponent",
            Self::Window => *b"window  ",
            Self::Blocks => *b"blocks  ",
            Self::Passes => *b"passes  ",
            Self::Bucket => *b"bucket  ",
            Self::Batches => *b"batches ",
            Self::Family => *b"family  ",
        }))
    }
}

/// The key of one position: a pure function of its four arguments, the same for ever (see
/// [`VERSION`]).
///
/// The state starts as the domain's salt and takes in seed, epoch and position one after another:
/// `state = mix((state ^ word) + GOLDEN)`, where `mix` is the finaliser of `SplitMix64` (G. Steele,
/// D. Lea, C. Flood, *Fast Splittable Pseudorandom Number Generators*, OOPSLA 2014, with the
/// constants of D. Stafford's `Mix13`). Each step is a bijection of the word, so two positions of
/// one epoch, and one position in two epochs, never share a key; any other two inputs do with
/// probability about 2⁻⁶⁴.
#[must_use]
pub(crate) const fn derive(seed: u64, domain: Domain, epoch: u64, position: u64) -> u64 {
    Keys::new(seed, domain, epoch).at(position)
}

/// The keys of all positions of one epoch, with what they have in common done once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keys(u64);

impl Keys {
    #[inline]
    pub(crate) const fn new(seed: u64, domain: Domain, epoch: u64) -> Self {
        Self(absorb(absorb(domain.salt(), seed), epoch))
    }

    /// What [`derive`] gives for `position`.
    #[inline]
    pub(crate) const fn at(self, position: u64) -> u64 {
        absorb(self.0, position)
    }
}

/// One number for many: another list of words has another, but for a chance of 2⁻⁶⁴.
pub(crate) fn digest(words: impl IntoIterator<Item = u64>) -> u64 {
    words.into_iter().fold(GOLDEN, absorb)
}

/// The stream of numbers that belongs to `key`: xoshiro256++, its state filled by `SplitMix64` as
/// its authors advise (D. Blackman, S. Vigna, *Scrambled Linear Pseudorandom Number Generators*,
/// ACM TOMS 2021). Making one takes less than 20 ns.
#[must_use]
#[inline]
pub(crate) fn rng(key: u64) -> PositionRng {
    // What `seed_from_u64` does, without its way through a generator of bytes: 8 ns instead of 14.
    let mut seed = [0; 32];
    let mut state = key;
    for word in seed.chunks_exact_mut(8) {
        state = state.wrapping_add(GOLDEN);
        word.copy_from_slice(&mix(state).to_le_bytes());
    }
    PositionRng(Xoshiro256PlusPlus::from_seed(seed))
}

/// The numbers of one position, made by [`rng`]; a clone continues from where the original stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PositionRng(Xoshiro256PlusPlus);

impl TryRng for PositionRng {
    type Error = Infallible;

    #[inline]
    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(self.0.next_u32())
    }

    #[inline]
    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(self.0.next_u64())
    }

    #[inline]
    fn try_fill_bytes(&mut self, target: &mut [u8]) -> Result<(), Infallible> {
        self.0.fill_bytes(target);
        Ok(())
    }
}

/// The increment of `SplitMix64`: 2⁶⁴ divided by the golden ratio, made odd.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

const fn absorb(state: u64, word: u64) -> u64 {
    mix((state ^ word).wrapping_add(GOLDEN))
}

const fn mix(mut word: u64) -> u64 {
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

#[cfg(test)]
mod tests {
    use rand_xoshiro::SplitMix64;

    use super::*;

    const DOMAINS: [Domain; 13] = [
        Domain::Shuffle,
        Domain::Fetch,
        Domain::FetchMany,
        Domain::Assemble,
        Domain::Column,
        Domain::Alias,
        Domain::Exponential,
        Domain::Window,
        Domain::Blocks,
        Domain::Passes,
        Domain::Bucket,
        Domain::Batches,
        Domain::Family,
    ];

    /// `key`'s arguments as words, so that a test can flip any bit of any of them.
    fn derive_words([seed, epoch, position]: [u64; 3]) -> u64 {
        derive(seed, Domain::Fetch, epoch, position)
    }

    fn first_number(key: u64) -> u64 {
        rng(key).next_u64()
    }

    fn duplicates(mut numbers: Vec<u64>) -> usize {
        let all = numbers.len();
        numbers.sort_unstable();
        numbers.dedup();
        all - numbers.len()
    }

    #[test]
    fn keys_and_numbers_are_those_of_version_1() {
        assert_eq!(VERSION, 1, "new numbers need new constants below");
        assert_eq!(derive(0, Domain::Shuffle, 0, 0), 0x5a4c_da5c_b739_f358);
        assert_eq!(derive(42, Domain::Shuffle, 3, 0), 0xb70d_8df3_9f2b_7dc9);
        assert_eq!(derive(42, Domain::Fetch, 3, 17), 0x3401_abbc_a7e2_c00f);
        assert_eq!(
            derive(u64::MAX, Domain::Assemble, u64::MAX, u64::MAX),
            0x55b6_66bd_b781_7238
        );
        let mut numbers = rng(0);
        assert_eq!(
            [(); 3].map(|()| numbers.next_u64()),
            [
                0x5317_5d61_490b_23df,
                0x61da_6f3d_c380_d507,
                0x5c0f_df91_ec9a_7bfc
            ]
        );
        assert_eq!(numbers.next_u32(), 0x02ee_bf8c);
        let mut bytes = [0; 5];
        numbers.fill_bytes(&mut bytes);
        assert_eq!(bytes, [234, 94, 74, 175, 235]);
    }

    #[test]
    fn mix_is_the_finaliser_of_split_mix_64() {
        for state in [0, 1, 42, GOLDEN, u64::MAX] {
            let mut reference = SplitMix64::seed_from_u64(state);
            assert_eq!(mix(state.wrapping_add(GOLDEN)), reference.next_u64());
        }
    }

    #[test]
    fn a_million_positions_and_the_next_epoch_have_streams_of_their_own() {
        let key = |epoch, position| derive(42, Domain::Fetch, epoch, position);
        let two_epochs = (0..2).flat_map(|e| (0..1_000_000).map(move |p| first_number(key(e, p))));
        assert_eq!(duplicates(two_epochs.collect()), 0);
    }

    #[test]
    fn small_seeds_domains_epochs_and_positions_never_share_a_stream() {
        let mut numbers = Vec::new();
        for (seed, domain) in (0..20).flat_map(|seed| DOMAINS.map(|domain| (seed, domain))) {
            for (epoch, position) in (0..100).flat_map(|e| (0..100).map(move |p| (e, p))) {
                numbers.push(first_number(derive(seed, domain, epoch, position)));
            }
        }
        assert_eq!(duplicates(numbers), 0);
    }

    #[test]
    fn each_bit_of_each_argument_flips_each_bit_of_the_key_half_the_time() {
        const SAMPLES: u32 = 2_000;
        for (argument, bit) in (0..3).flat_map(|argument| (0..64).map(move |bit| (argument, bit))) {
            let mut flips = [0_u32; 64];
            for sample in 0..u64::from(SAMPLES) {
                let words = [sample % 7, sample % 11, sample];
                let mut flipped = words;
                flipped[argument] ^= 1 << bit;
                let changed = derive_words(words) ^ derive_words(flipped);
                (0..64).for_each(|i| flips[i] += u32::from(changed >> i & 1 == 1));
            }
            let mean = f64::from(flips.iter().sum::<u32>()) / f64::from(SAMPLES);
            assert!(
                (mean - 32.0).abs() < 0.6,
                "argument {argument}, bit {bit}: {mean} bits of 64"
            );
            // Six standard deviations of a fair coin.
            let off = flips.map(|n| (f64::from(n) / f64::from(SAMPLES) - 0.5).abs());
            assert!(
                off.iter().all(|off| *off < 0.068),
                "argument {argument}, bit {bit}: {off:?}"
            );
        }
    }

    #[test]
    fn streams_of_neighbouring_positions_are_unrelated() {
        let numbers: Vec<_> = (0..100_000_u64)
            .map(|position| first_number(derive(1, Domain::Assemble, 0, position)))
            .collect();
        for distance in [1, 2, 64] {
            let pairs = numbers.iter().zip(&numbers[distance..]);
            let (differing, count) = pairs.fold((0, 0), |(differing, count), (a, b)| {
                (differing + (a ^ b).count_ones(), count + 1)
            });
            let mean = f64::from(differing) / f64::from(count);
            // Five standard deviations: 5 x 4 / sqrt(100,000).
            assert!(
                (mean - 32.0).abs() < 0.064,
                "distance {distance}: {mean} bits of 64"
            );
        }
    }

    #[test]
    fn a_clone_goes_on_from_where_the_original_stands() {
        let mut original = rng(7);
        let first = original.next_u64();
        let mut clone = original.clone();
        assert_eq!(clone, original);
        assert_eq!(clone.next_u64(), original.next_u64());
        assert_ne!(first, original.next_u64());
    }
}
