//! Every index exactly once per epoch, in batches whose number and sizes the workers do not change.

use burn::data::dataloader::DataLoader;
use burn_prefetch_tests::{
    Batches, Numbers, flat, for_each_case, for_each_worker_count, loader, pass,
};

const SHAPES: [(usize, usize); 7] = [(10, 3), (10, 5), (3, 2), (1, 1), (2, 3), (101, 1), (64, 64)];

fn sizes(batches: &Batches) -> Vec<usize> {
    batches.iter().map(Vec::len).collect()
}

#[test]
fn every_index_comes_exactly_once_in_each_epoch() {
    let orders = [None, Some(7)];
    let cases = SHAPES
        .into_iter()
        .flat_map(|shape| orders.map(|seed| (shape, seed)));
    for_each_case(cases, |workers, ((len, batch_size), seed)| {
        let mut builder = loader(workers).batch_size(batch_size);
        if let Some(seed) = seed {
            builder = builder.shuffle(seed);
        }
        let loader = builder.build(Numbers(len));
        for epoch in 0..3 {
            let mut items = flat(&pass(loader.as_ref()));
            items.sort_unstable();
            let all: Vec<_> = (0..len).collect();
            assert_eq!(
                items, all,
                "epoch {epoch} of {len} by {batch_size}, {seed:?}"
            );
        }
    });
}

#[test]
fn the_last_batch_takes_what_is_left() {
    for_each_case(SHAPES, |workers, (len, batch_size)| {
        let builder = loader(workers).batch_size(batch_size).shuffle(1);
        let loader = builder.try_build(Numbers(len)).unwrap();
        let mut expected = vec![batch_size; len / batch_size];
        expected.extend(Some(len % batch_size).filter(|&rest| rest > 0));
        assert_eq!(sizes(&pass(&loader)), expected, "{len} by {batch_size}");
        assert_eq!(loader.num_batches(), expected.len());
        assert_eq!(loader.num_items(), len);
    });
}

#[test]
fn drop_last_yields_only_full_batches_of_different_items() {
    for_each_worker_count(|workers| {
        for (len, batch_size) in SHAPES {
            let loader = loader(workers)
                .batch_size(batch_size)
                .shuffle(3)
                .drop_last(true);
            let loader = loader.try_build(Numbers(len)).unwrap();
            let batches = pass(&loader);
            assert_eq!(sizes(&batches), vec![batch_size; len / batch_size]);
            assert_eq!(loader.num_batches(), len / batch_size);
            assert_eq!(loader.num_items(), len / batch_size * batch_size);
            let mut items = flat(&batches);
            items.sort_unstable();
            items.dedup();
            assert_eq!(
                items.len(),
                len / batch_size * batch_size,
                "an item came twice"
            );
            assert!(items.iter().all(|&item| item < len));
        }
    });
}

#[test]
fn drop_last_does_not_drop_the_same_items_for_ever() {
    for_each_worker_count(|workers| {
        let loader = loader(workers)
            .batch_size(3)
            .shuffle(5)
            .drop_last(true)
            .build(Numbers(10));
        let mut seen: Vec<_> = (0..40).flat_map(|_| flat(&pass(loader.as_ref()))).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen, (0..10).collect::<Vec<_>>());
    });
}

#[test]
fn one_item_a_batch_is_the_default() {
    for_each_worker_count(|workers| {
        let loader = loader(workers).build(Numbers(5));
        assert_eq!(pass(loader.as_ref()), [[0], [1], [2], [3], [4]]);
    });
}

#[test]
fn no_data_is_an_empty_pass() {
    for_each_worker_count(|workers| {
        for drop_last in [false, true] {
            let loader = loader(workers)
                .batch_size(4)
                .shuffle(1)
                .drop_last(drop_last);
            let loader = loader.try_build(Numbers(0)).unwrap();
            assert!(pass(&loader).is_empty());
            assert!(pass(&loader).is_empty());
            assert_eq!((loader.num_items(), loader.num_batches()), (0, 0));
        }
    });
}
