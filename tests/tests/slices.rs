//! Copies and slices: which items, in which order, on which device, in which epoch.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use burn::data::dataloader::DataLoader;
use burn::tensor::Device;
use burn_prefetch::{DataLoaderBuilder, PrefetchDataLoader};
use burn_prefetch_tests::{Numbers, Placed, chunks, flat, for_each_worker_count, loader, pass};

type Numbered = PrefetchDataLoader<Vec<usize>>;

fn plain(workers: usize) -> Numbered {
    loader(workers)
        .batch_size(2)
        .try_build(Numbers(10))
        .expect("the settings are fine")
}

fn shuffled(workers: usize) -> Numbered {
    loader(workers)
        .batch_size(3)
        .shuffle(8)
        .try_build(Numbers(30))
        .expect("the settings are fine")
}

fn sorted(batches: &[Vec<usize>]) -> Vec<usize> {
    let mut items = flat(batches);
    items.sort_unstable();
    items
}

#[test]
fn a_slice_is_a_range_of_the_data_in_batches_of_its_own() {
    for_each_worker_count(|workers| {
        let loader = plain(workers);
        assert_eq!(
            pass(loader.slice(3, 8).as_ref()),
            [vec![3, 4], vec![5, 6], vec![7]]
        );
        assert_eq!(pass(loader.slice(0, 10).as_ref()), pass(&loader));
        assert_eq!(pass(loader.slice(4, 4).as_ref()), Vec::<Vec<usize>>::new());
        assert_eq!(
            pass(loader.slice(2, 9).slice(1, 4).as_ref()).concat(),
            [3, 4, 5]
        );
        for (start, end) in [(0, 10), (3, 8), (4, 4), (9, 10)] {
            let slice = loader.try_slice(start, end).unwrap();
            assert_eq!(slice.num_items(), end - start);
            assert_eq!(slice.num_batches(), (end - start).div_ceil(2));
            assert_eq!(flat(&pass(&slice)), (start..end).collect::<Vec<_>>());
        }
    });
}

#[test]
fn a_slice_is_shuffled_within_itself() {
    for_each_worker_count(|workers| {
        let loader = shuffled(workers);
        let (train, valid) = (loader.slice(0, 24), loader.slice(24, 30));
        let mut orders = Vec::new();
        for _ in 0..5 {
            let order = pass(train.as_ref());
            assert_eq!(
                sorted(&order),
                (0..24).collect::<Vec<_>>(),
                "no item leaks in or out"
            );
            assert_eq!(sorted(&pass(valid.as_ref())), (24..30).collect::<Vec<_>>());
            assert!(
                !orders.contains(&order),
                "each epoch has an order of its own"
            );
            orders.push(order);
        }
    });
}

#[test]
fn the_order_of_a_slice_depends_on_its_range_only() {
    for_each_worker_count(|workers| {
        let loader = shuffled(workers);
        let direct = pass(loader.slice(5, 20).as_ref());
        assert_eq!(pass(loader.slice(5, 20).as_ref()), direct);
        assert_eq!(pass(loader.slice(2, 29).slice(3, 18).as_ref()), direct);
        assert_eq!(
            pass(loader.slice(0, 30).as_ref()),
            pass(&loader),
            "all of it is no slice"
        );
    });
}

#[test]
fn copies_and_slices_in_any_combination_have_the_same_order() {
    for_each_worker_count(|workers| {
        let device = Device::flex();
        let orders = |loader: &dyn DataLoader<Vec<usize>>| [pass(loader), pass(loader)];
        let whole = orders(&shuffled(workers));
        let loader = shuffled(workers);
        let once = loader.to_device(&device);
        assert_eq!(
            orders(once.to_device(&device).as_ref()),
            whole,
            "a copy of a copy"
        );
        assert_eq!(orders(once.as_ref()), whole, "the copy that was copied");
        assert_eq!(orders(&loader), whole, "the loader that was copied");

        let fresh = || shuffled(workers);
        let part = orders(fresh().slice(4, 25).as_ref());
        assert_eq!(
            orders(fresh().slice(4, 25).to_device(&device).as_ref()),
            part
        );
        assert_eq!(
            orders(fresh().to_device(&device).slice(4, 25).as_ref()),
            part
        );
        let both = fresh()
            .to_device(&device)
            .slice(1, 28)
            .to_device(&device)
            .slice(3, 24);
        assert_eq!(orders(both.as_ref()), part);
    });
}

#[test]
fn batches_are_made_for_the_device_that_was_asked_for() {
    for_each_worker_count(|workers| {
        // Flex is one device; with automatic differentiation or without can be told apart.
        let (plain, autodiff) = (Device::flex(), Device::flex().autodiff());
        let builder = DataLoaderBuilder::new(Placed)
            .num_workers(workers)
            .batch_size(2);
        let loader = builder.set_device(plain.clone()).build(Numbers(9));
        let all_on = |loader: &dyn DataLoader<(Vec<usize>, Device)>, autodiff: bool| {
            let batches = pass(loader);
            assert!(
                batches
                    .iter()
                    .all(|(_, device)| device.is_autodiff() == autodiff)
            );
            batches
                .into_iter()
                .flat_map(|(items, _)| items)
                .collect::<Vec<_>>()
        };
        let copy = loader.to_device(&autodiff);
        for _ in 0..2 {
            assert_eq!(all_on(copy.as_ref(), true), (0..9).collect::<Vec<_>>());
            assert_eq!(all_on(loader.as_ref(), false), (0..9).collect::<Vec<_>>());
        }
        assert_eq!(
            all_on(loader.slice(2, 7).to_device(&autodiff).as_ref(), true),
            [2, 3, 4, 5, 6]
        );
        assert_eq!(all_on(copy.slice(2, 7).as_ref(), true), [2, 3, 4, 5, 6]);
        assert_eq!(
            all_on(copy.to_device(&plain).as_ref(), false),
            (0..9).collect::<Vec<_>>()
        );
    });
}

fn refusal(slice: impl FnOnce() -> Arc<dyn DataLoader<Vec<usize>>>) -> String {
    let panic = catch_unwind(AssertUnwindSafe(slice))
        .err()
        .expect("such a slice is refused");
    panic
        .downcast_ref::<String>()
        .expect("the panic has a sentence")
        .clone()
}

#[test]
fn a_slice_beyond_the_data_or_reversed_is_refused_with_one_sentence() {
    for_each_worker_count(|workers| {
        let loader = plain(workers);
        for (start, end) in [
            (5, 20),
            (11, 12),
            (8, 3),
            (usize::MAX, usize::MAX),
            (0, usize::MAX),
        ] {
            let error = loader
                .try_slice(start, end)
                .expect_err("refused")
                .to_string();
            for word in ["slice", &start.to_string(), &end.to_string()] {
                assert!(error.contains(word), "`{word}` is missing in: {error}");
            }
            let panic = refusal(|| loader.slice(start, end));
            assert!(panic.contains(&error), "{panic} is not: {error}");
        }
        let inner = loader.slice(2, 9);
        assert!(
            refusal(|| inner.slice(0, 8)).contains('7'),
            "the way out names the length"
        );
        assert_eq!(pass(&loader), chunks(10, 2), "a refusal changes nothing");
    });
}

#[test]
fn under_drop_last_a_slice_takes_bounds_up_to_num_items() {
    for_each_worker_count(|workers| {
        let loader = loader(workers)
            .batch_size(3)
            .drop_last(true)
            .try_build(Numbers(10))
            .unwrap();
        assert_eq!(loader.num_items(), 9);
        assert_eq!(loader.try_slice(0, 9).unwrap().num_items(), 9);
        assert!(loader.try_slice(0, 10).is_err());
        let part = loader.try_slice(1, 6).unwrap();
        assert_eq!(part.num_items(), 3);
        assert_eq!(pass(&part), [[1, 2, 3]]);
    });
}

#[test]
fn every_copy_counts_its_own_epochs_from_the_one_it_was_made_in() {
    for_each_worker_count(|workers| {
        let straight: Vec<_> = {
            let loader = shuffled(workers);
            (0..5).map(|_| pass(&loader)).collect()
        };
        let loader = shuffled(workers);
        assert_eq!(pass(&loader), straight[0]);
        let copy = loader.to_device(&Device::flex());
        assert_eq!(pass(copy.as_ref()), straight[1]);
        assert_eq!(pass(copy.as_ref()), straight[2]);
        assert_eq!(
            pass(&loader),
            straight[1],
            "the copy did not advance the loader"
        );
        let later = copy.to_device(&Device::flex());
        assert_eq!(pass(later.as_ref()), straight[3]);
        assert_eq!(pass(copy.as_ref()), straight[3]);
        loader.set_epoch(4);
        let slice = loader.try_slice(0, 30).unwrap();
        assert_eq!(slice.epoch(), 4);
        assert_eq!(pass(&slice), straight[4]);
        assert_eq!(loader.epoch(), 4);
    });
}
