//! Nothing is fetched and no thread runs before it must, and nothing is fetched twice.

use std::sync::Arc;

use burn::data::dataloader::DataLoader;
use burn::tensor::Device;
use burn_prefetch_tests::{
    Counting, Numbers, alone, expect_loader_threads, flat, for_each_worker_count, loader, pass,
    threads_begun_here,
};

#[test]
fn building_measuring_and_copying_fetch_nothing_and_start_no_thread() {
    for_each_worker_count(|workers| {
        let _alone = alone();
        let before = threads_begun_here();
        let data = Arc::new(Counting::new(20));
        let loader = loader(workers)
            .batch_size(3)
            .shuffle(1)
            .try_build(Arc::clone(&data))
            .unwrap();
        let copies = [loader.to_device(&Device::flex()), loader.slice(2, 9)];
        assert_eq!([loader.num_items(), loader.num_batches()], [20, 7]);
        assert_eq!(copies.each_ref().map(|copy| copy.num_items()), [20, 7]);
        let _config = loader.effective_config().to_string();
        loader.set_epoch(3);
        assert!(data.untouched());
        assert_eq!(threads_begun_here(), before);
        assert_eq!(pass(&loader).len(), 7);
        // The first pass starts them.
        expect_loader_threads(workers);
        drop((loader, copies));
        expect_loader_threads(0);
    });
}

#[test]
fn an_empty_pass_starts_no_thread() {
    for_each_worker_count(|workers| {
        let _alone = alone();
        let before = threads_begun_here();
        let empty = [
            loader(workers).build(Numbers(0)),
            loader(workers)
                .batch_size(3)
                .drop_last(true)
                .build(Numbers(2)),
            loader(workers).build(Numbers(5)).slice(2, 2),
        ];
        for loader in &empty {
            assert!(pass(loader.as_ref()).is_empty());
            assert_eq!(threads_begun_here(), before);
        }
    });
}

#[test]
fn each_index_is_fetched_once_an_epoch_and_only_with_get() {
    for_each_worker_count(|workers| {
        let _alone = alone();
        for seed in [None, Some(3)] {
            let data = Arc::new(Counting::new(50));
            let mut builder = loader(workers).batch_size(4);
            if let Some(seed) = seed {
                builder = builder.shuffle(seed);
            }
            let loader = builder.build(Arc::clone(&data));
            for epoch in 1..=3 {
                assert_eq!(pass(loader.as_ref()).len(), 13);
                let mut fetched = data.gets();
                fetched.sort_unstable();
                let expected: Vec<_> = (0..50 * epoch).map(|call| call / epoch).collect();
                assert_eq!(fetched, expected, "{epoch} passes");
            }
            assert!(data.get_manys().is_empty());
        }
    });
}

#[test]
fn batched_fetches_each_batch_with_one_get_many() {
    for_each_worker_count(|workers| {
        let _alone = alone();
        for seed in [None, Some(3)] {
            let data = Arc::new(Counting::new(10));
            let mut builder = loader(workers).batch_size(4).batched();
            if let Some(seed) = seed {
                builder = builder.shuffle(seed);
            }
            let loader = builder.build(Arc::clone(&data));
            let mut expected = Vec::new();
            for _ in 0..3 {
                expected.extend(pass(loader.as_ref()));
                let (mut calls, mut batches) = (data.get_manys(), expected.clone());
                calls.sort_unstable();
                batches.sort_unstable();
                assert_eq!(calls, batches);
            }
            assert!(data.gets().is_empty(), "get is not called beside it");
        }
    });
}

#[test]
fn items_of_a_dropped_last_batch_are_not_fetched() {
    for_each_worker_count(|workers| {
        let _alone = alone();
        let data = Arc::new(Counting::new(11));
        let loader = loader(workers)
            .batch_size(4)
            .drop_last(true)
            .build(Arc::clone(&data));
        let items = flat(&pass(loader.as_ref()));
        let mut fetched = data.gets();
        fetched.sort_unstable();
        assert_eq!(fetched, items);
        assert_eq!(items, (0..8).collect::<Vec<_>>());
    });
}
