//! What Burn's own loader yields, ours yields too: the same batches, in a fixed order.

use std::sync::Arc;

use burn::data::dataloader::{DataLoader, DataLoaderBuilder as BurnBuilder, Progress};
use burn_prefetch::DataLoaderBuilder;
use burn_prefetch_tests::{Collect, Numbers, Rows, flat, for_each_worker_count, loader, pass};

const SHAPES: [(usize, usize); 6] = [(10, 3), (10, 5), (1, 4), (0, 2), (101, 7), (16, 1)];

fn burns(workers: usize, len: usize, batch_size: usize) -> Arc<dyn DataLoader<Vec<usize>>> {
    let builder = BurnBuilder::<usize, Vec<usize>>::new(Collect);
    builder
        .num_workers(workers)
        .batch_size(batch_size)
        .build(Numbers(len))
}

fn sorted<T: Ord>(mut list: Vec<T>) -> Vec<T> {
    list.sort_unstable();
    list
}

#[test]
fn unshuffled_the_same_sequence_as_burns_sequential_loader() {
    for_each_worker_count(|workers| {
        for (len, batch_size) in SHAPES {
            let ours = loader(workers).batch_size(batch_size).build(Numbers(len));
            let theirs = burns(0, len, batch_size);
            assert_eq!(
                pass(ours.as_ref()),
                pass(theirs.as_ref()),
                "{len} by {batch_size}"
            );
            assert_eq!(ours.num_items(), theirs.num_items());
        }
    });
}

#[test]
fn unshuffled_the_same_multiset_as_burns_parallel_loader() {
    for_each_worker_count(|workers| {
        let ours = pass(loader(workers).batch_size(5).build(Numbers(100)).as_ref());
        // Whole batches go to Burn's workers where the items divide so, as these do.
        let theirs = pass(burns(workers.min(4), 100, 5).as_ref());
        assert_eq!(sorted(ours), sorted(theirs));
    });
}

#[test]
fn shuffled_the_same_items_in_batches_of_the_same_sizes() {
    for_each_worker_count(|workers| {
        for (len, batch_size) in SHAPES {
            let ours = loader(workers)
                .batch_size(batch_size)
                .shuffle(3)
                .build(Numbers(len));
            let theirs = BurnBuilder::<usize, Vec<usize>>::new(Collect).batch_size(batch_size);
            let theirs = theirs.shuffle(3).build(Numbers(len));
            let (ours, theirs) = (pass(ours.as_ref()), pass(theirs.as_ref()));
            let sizes = |batches: &[Vec<usize>]| batches.iter().map(Vec::len).collect::<Vec<_>>();
            assert_eq!(sizes(&ours), sizes(&theirs));
            assert_eq!(sorted(flat(&ours)), sorted(flat(&theirs)));
        }
    });
}

#[test]
fn the_same_slices() {
    for_each_worker_count(|workers| {
        for (start, end) in [(0, 20), (3, 11), (5, 5), (19, 20)] {
            let ours = loader(workers)
                .batch_size(3)
                .build(Numbers(20))
                .slice(start, end);
            let theirs = burns(0, 20, 3).slice(start, end);
            assert_eq!(pass(ours.as_ref()), pass(theirs.as_ref()));
            assert_eq!(ours.num_items(), theirs.num_items());
        }
    });
}

#[test]
fn the_same_progress() {
    fn steps(loader: &dyn DataLoader<Vec<usize>>) -> Vec<(usize, usize, Option<String>)> {
        let plain = |progress: Progress| {
            (
                progress.items_processed,
                progress.items_total,
                progress.unit,
            )
        };
        let mut iterator = loader.iter();
        let mut seen = vec![plain(iterator.progress())];
        while let Some(batch) = iterator.next() {
            batch.unwrap();
            seen.push(plain(iterator.progress()));
        }
        seen
    }
    for_each_worker_count(|workers| {
        for (len, batch_size) in SHAPES {
            let ours = loader(workers).batch_size(batch_size).build(Numbers(len));
            let theirs = burns(0, len, batch_size);
            assert_eq!(
                steps(ours.as_ref()),
                steps(theirs.as_ref()),
                "{len} by {batch_size}"
            );
        }
    });
}

#[test]
fn the_same_tensors() {
    for_each_worker_count(|workers| {
        let ours = DataLoaderBuilder::new(Rows)
            .num_workers(workers)
            .batch_size(4);
        let ours = ours.build(Numbers(30));
        let theirs = BurnBuilder::<usize, _>::new(Rows)
            .batch_size(4)
            .build(Numbers(30));
        let (ours, theirs) = (pass(ours.as_ref()), pass(theirs.as_ref()));
        assert_eq!(ours.len(), theirs.len());
        for (ours, theirs) in ours.into_iter().zip(theirs) {
            ours.into_data().assert_eq(&theirs.into_data(), true);
        }
    });
}
