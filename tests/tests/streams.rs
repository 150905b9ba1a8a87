//! Random augmentation: every sample of every epoch has a stream of its own, whoever draws from it.

use burn::data::dataset::{Dataset, DatasetError};
use burn_prefetch::{DataLoaderBuilder, rng, rng_at};
use burn_prefetch_tests::{Collect, WORKERS, guarded};
use rand_core::Rng;

const SAMPLES: usize = 1_000_000;

/// What each sample draws first, in the order of the data.
struct Draws {
    together: bool,
}

impl Dataset<u64> for Draws {
    fn get(&self, _index: usize) -> Result<u64, DatasetError> {
        Ok(rng().next_u64())
    }

    fn get_many(&self, indexes: Vec<usize>) -> Result<Vec<u64>, DatasetError> {
        assert!(self.together, "not asked for under Each");
        Ok(indexes
            .into_iter()
            .map(|index| rng_at(index).next_u64())
            .collect())
    }

    fn len(&self) -> usize {
        SAMPLES
    }
}

fn drawn(workers: usize, together: bool, epoch: usize) -> Vec<u64> {
    let builder = DataLoaderBuilder::new(Collect)
        .num_workers(workers)
        .batch_size(10_000)
        .seed(11);
    let builder = if together { builder.batched() } else { builder };
    let loader = builder
        .try_build(Draws { together })
        .expect("it is a loader");
    loader.iter_epoch(epoch).flat_map(Result::unwrap).collect()
}

#[test]
fn a_million_samples_have_distinct_streams_and_so_have_epochs() {
    guarded(|| {
        let epochs = [0, 1, 2].map(|epoch| drawn(0, false, epoch));
        // Of three million numbers of 64 bits two are equal once in four million tries.
        let mut distinct = epochs.concat();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), 3 * SAMPLES);
        for workers in WORKERS {
            assert_eq!(drawn(workers, false, 1), epochs[1], "{workers} workers");
            assert_eq!(
                drawn(workers, true, 2),
                epochs[2],
                "{workers} workers, get_many"
            );
        }
    });
}

/// Each bit is one in half of the samples, and so is whether it changes to the next sample and to
/// the next epoch: within five standard deviations, which one such test of 192 misses once in
/// ten thousand runs of another seed.
#[test]
fn neighbours_and_epochs_have_nothing_in_common() {
    guarded(|| {
        let [first, second] = [0, 1].map(|epoch| drawn(2, false, epoch));
        let next = first.iter().zip(first[1..].iter().chain([&first[0]]));
        let assert_even = |what: &str, words: Vec<u64>| {
            for bit in 0..64 {
                let ones = words.iter().filter(|word| *word >> bit & 1 == 1).count();
                // Half a million, give or take five times 500.
                assert!(
                    ones.abs_diff(SAMPLES / 2) < 2_500,
                    "{what}, bit {bit}: {ones}"
                );
            }
        };
        assert_even("neighbours", next.map(|(a, b)| a ^ b).collect());
        let epochs = first.iter().zip(&second);
        assert_even("epochs", epochs.map(|(a, b)| a ^ b).collect());
        assert_even("samples", first);
    });
}
