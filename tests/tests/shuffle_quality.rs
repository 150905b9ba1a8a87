//! A shuffle is as good as a perfect one: every pair of items meets, and no place is preferred.
//!
//! Everything here has fixed seeds, so it passes always or never. 40 items in batches of 5.

use burn_prefetch_tests::{Batches, Numbers, flat, for_each_worker_count, loader};

const ITEMS: usize = 40;
const BATCH: usize = 5;

fn epochs(workers: usize, seed: u64, count: usize) -> Vec<Batches> {
    let loader = loader(workers).batch_size(BATCH).shuffle(seed);
    let loader = loader
        .try_build(Numbers(ITEMS))
        .expect("the settings are fine");
    let one = |epoch| loader.iter_epoch(epoch).map(Result::unwrap).collect();
    (0..count).map(one).collect()
}

/// How often each pair of items was in one batch.
fn meetings(epochs: &[Batches]) -> Vec<u32> {
    let mut met = vec![0; ITEMS * ITEMS];
    for batch in epochs.iter().flatten() {
        for (position, &one) in batch.iter().enumerate() {
            for &other in &batch[position + 1..] {
                met[one.min(other) * ITEMS + one.max(other)] += 1;
            }
        }
    }
    let pairs = (0..ITEMS).flat_map(|one| (one + 1..ITEMS).map(move |other| (one, other)));
    pairs.map(|(one, other)| met[one * ITEMS + other]).collect()
}

fn chi_square(seen: &[u32], expected: f64) -> f64 {
    seen.iter()
        .map(|&count| (f64::from(count) - expected).powi(2) / expected)
        .sum()
}

/// Five standard deviations about the mean of a chi-square distribution with so many degrees: about
/// one in a million on either side. Too even would be as wrong as too uneven.
fn plausible(statistic: f64, degrees: f64) -> bool {
    (statistic - degrees).abs() < 5.0 * (2.0 * degrees).sqrt()
}

#[test]
fn every_pair_of_items_meets_within_200_epochs() {
    for_each_worker_count(|workers| {
        for seed in [1, 2, 3, 42, 0xDEAD_BEEF] {
            let met = meetings(&epochs(workers, seed, 200));
            assert_eq!(met.len(), ITEMS * (ITEMS - 1) / 2);
            let strangers = met.iter().filter(|&&count| count == 0).count();
            assert_eq!(strangers, 0, "pairs that never met with seed {seed}");
        }
    });
}

#[test]
fn every_item_is_equally_often_at_every_place() {
    for_each_worker_count(|workers| {
        let mut at = vec![0_u32; ITEMS * ITEMS];
        for epoch in epochs(workers, 11, 2_000) {
            for (place, item) in flat(&epoch).into_iter().enumerate() {
                at[item * ITEMS + place] += 1;
            }
        }
        let statistic = chi_square(&at, 2_000.0 / 40.0);
        // Both the sum over the items of a place and that over the places of an item are fixed.
        assert!(
            plausible(statistic, 39.0 * 39.0),
            "chi-square is {statistic}, about 1521 expected"
        );
    });
}

#[test]
fn every_pair_meets_equally_often() {
    for_each_worker_count(|workers| {
        let met = meetings(&epochs(workers, 12, 2_000));
        // An item meets 4 of the 39 others in every epoch.
        let chance = 4.0 / 39.0;
        let statistic = chi_square(&met, 2_000.0 * chance);
        // The meetings of each item have a fixed sum, which leaves 780 - 40 degrees; the variance
        // of a count, 2,000 p (1 - p), is spread evenly over these.
        let scaled = statistic * 740.0 / (780.0 * (1.0 - chance));
        assert!(
            plausible(scaled, 740.0),
            "scaled chi-square is {scaled}, about 740 expected"
        );
    });
}
