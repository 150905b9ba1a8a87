//! Samplers: the same order for any workers, window and parts, and a slice of each.

use std::sync::Arc;

use burn::data::dataloader::DataLoader;
use burn::data::dataloader::split::split_dataloader;
use burn::tensor::Device;
use burn_prefetch::{
    BatchLists, BatchSampler, BatchSizes, LoadError, Mixture, PrefetchDataLoader, Sampler, Stage,
    Subset, Weighted, context,
};
use burn_prefetch_tests::{
    Batches, Counting, Numbers, ORDERED, batch_orders, cause, even_orders, for_each_case,
    for_each_worker_count, loader, ordered, ordered_data, orders, outcomes, pass,
};

type Numbered = PrefetchDataLoader<Vec<usize>>;

fn epochs(loader: &Numbered) -> Vec<Batches> {
    (0..3).map(|_| pass(loader)).collect()
}

#[test]
fn every_order_is_the_same_for_any_workers_window_parts_and_fetching() {
    for_each_case(orders(), |workers, order| {
        let built = |builder: burn_prefetch_tests::Builder| builder.try_build(ordered_data());
        let reference = epochs(&built(ordered(order, 0)).unwrap());
        for (window, parts) in [(0, 1), (1, 3), (4, 2)] {
            let other = ordered(order, workers)
                .prefetch(window)
                .parts_per_batch(parts);
            assert_eq!(epochs(&built(other).unwrap()), reference, "{}", order.0);
        }
        let many = ordered(order, workers).batched();
        assert_eq!(
            epochs(&built(many).unwrap()),
            reference,
            "{}, get_many",
            order.0
        );
    });
}

#[test]
fn every_count_is_what_a_pass_yields() {
    for_each_case(orders(), |workers, order| {
        let loader = ordered(order, workers).try_build(ordered_data()).unwrap();
        for _ in 0..3 {
            let (items, batches) = (loader.num_items(), loader.num_batches());
            let mut pass = loader.iter_owned();
            let (mut seen, mut padding) = (Vec::new(), 0);
            while let Some(batch) = pass.next() {
                seen.push(batch.unwrap());
                padding += pass.padding();
            }
            assert_eq!(seen.len(), batches, "{}", order.0);
            assert_eq!(seen.concat().len() - padding, items, "{}", order.0);
        }
    });
}

#[test]
fn a_warm_epoch_changes_nothing() {
    for_each_case(orders(), |workers, order| {
        if workers == 0 {
            return;
        }
        let reference = epochs(&ordered(order, 0).try_build(ordered_data()).unwrap());
        let warm = ordered(order, workers).warm_next_epoch(true).prefetch(3);
        assert_eq!(
            epochs(&warm.try_build(ordered_data()).unwrap()),
            reference,
            "{}",
            order.0
        );
    });
}

#[test]
fn copies_for_other_devices_have_the_same_order() {
    for_each_case(orders(), |workers, order| {
        let loader = ordered(order, workers).try_build(ordered_data()).unwrap();
        let copy = loader.to_device(&Device::flex());
        assert_eq!(pass(copy.as_ref()), pass(&loader), "{}", order.0);
    });
}

/// As burn-train does for several devices: each epoch is shared out whole.
#[test]
fn the_slices_of_two_devices_make_up_every_epoch() {
    for_each_case(orders(), |workers, order| {
        let whole = ordered(order, workers).try_build(ordered_data()).unwrap();
        let split: Arc<dyn DataLoader<_>> =
            Arc::new(ordered(order, workers).try_build(ordered_data()).unwrap());
        let devices = [Device::flex(), Device::flex()];
        let shards = split_dataloader(split, &devices);
        for epoch in 0..4 {
            let mut apart: Vec<_> = shards
                .iter()
                .flat_map(|s| pass(s.as_ref()))
                .flatten()
                .collect();
            let mut all = pass(&whole).concat();
            apart.sort_unstable();
            all.sort_unstable();
            if order.0 == "padded" || order.0 == "dropped" {
                // Each has a last batch of its own.
                let real = |items: &[usize]| (0..ORDERED).filter(|i| items.contains(i)).count();
                assert!(real(&apart) >= ORDERED - 4, "{}", order.0);
                continue;
            }
            assert_eq!(apart, all, "{}, epoch {epoch}", order.0);
        }
    });
}

#[test]
fn a_subset_is_sliced_by_its_entries_and_what_is_drawn_by_its_draws() {
    for_each_worker_count(|workers| {
        let subset = Subset::new([9, 8, 7, 6], 10).unwrap();
        let subset = loader(workers)
            .sampler(subset)
            .try_build(Numbers(10))
            .unwrap();
        assert_eq!(pass(subset.slice(1, 3).as_ref()), [[8], [7]]);
        let drawn = || loader(workers).sampler(Weighted::new(&[1.0; 10], 20, 3).unwrap());
        let drawn = || drawn().try_build(Numbers(10)).unwrap();
        let (whole, slice) = (drawn(), drawn().slice(5, 12));
        for _ in 0..3 {
            assert_eq!(pass(slice.as_ref()), pass(&whole)[5..12]);
        }
        assert!(subset.try_slice(2, 5).is_err(), "there are four");
    });
}

#[test]
fn only_what_the_order_names_is_fetched() {
    for_each_worker_count(|workers| {
        let data = Arc::new(Counting::new(10));
        let subset = Subset::new([7, 2, 7], 10).unwrap();
        let loader = loader(workers).sampler(subset).build(Arc::clone(&data));
        assert_eq!(loader.num_items(), 3);
        assert!(data.untouched());
        assert_eq!(pass(loader.as_ref()), [[7], [2], [7]]);
        let mut gets = data.gets();
        gets.sort_unstable();
        assert_eq!(gets, [2, 7, 7]);
    });
}

#[test]
fn batches_of_the_users_own_are_whole_and_come_once() {
    for_each_worker_count(|workers| {
        let lists = vec![vec![1, 2, 3], vec![9], vec![4, 5]];
        let sampler = BatchLists::new(&lists, 10).unwrap().shuffled(3);
        let loader = loader(workers).batch_sampler(sampler).build(Numbers(10));
        let mut orders = Vec::new();
        for _ in 0..12 {
            let epoch = pass(loader.as_ref());
            let mut sorted = epoch.clone();
            sorted.sort_by_key(|batch| lists.iter().position(|list| list == batch));
            assert_eq!(sorted, lists);
            orders.push(epoch);
        }
        assert!(
            orders.iter().any(|order| *order != orders[0]),
            "they are shuffled as wholes"
        );
    });
}

/// Fails where `bad` says so, in epoch 1.
struct Faulty<F>(F);

impl<F: Fn(usize) -> usize + Send + Sync + 'static> Sampler for Faulty<F> {
    fn len(&self, _epoch: usize) -> usize {
        8
    }

    fn at(&self, epoch: usize, position: usize) -> usize {
        if epoch == 1 {
            (self.0)(position)
        } else {
            position
        }
    }
}

#[test]
fn an_index_beyond_the_data_is_an_error_at_its_batch() {
    for_each_worker_count(|workers| {
        let sampler = Faulty(|position| if position == 5 { 99 } else { position });
        let builder = loader(workers).batch_size(2).sampler(sampler);
        let loader = builder.try_build(Numbers(8)).unwrap();
        assert_eq!(pass(&loader).len(), 4);
        let seen = outcomes(loader.iter());
        assert_eq!(seen.len(), 3, "two batches and the error");
        let error = cause(seen[2].as_ref().unwrap_err());
        assert!(matches!(error, LoadError::Order { .. }), "{error}");
        let at = error.place();
        assert_eq!((at.stage, at.epoch, at.batch), (Stage::Order, 1, 2));
        assert!(error.to_string().contains("99"), "{error}");
        assert_eq!(pass(&loader).len(), 4, "the next epoch is as it should be");
    });
}

#[test]
fn a_panic_in_a_sampler_is_an_error_at_its_batch() {
    for_each_worker_count(|workers| {
        let sampler = Faulty(|position| {
            assert!(position != 2, "no idea what comes third");
            position
        });
        let loader = loader(workers)
            .sampler(sampler)
            .try_build(Numbers(8))
            .unwrap();
        assert_eq!(pass(&loader).len(), 8);
        let seen = outcomes(loader.iter());
        assert_eq!(seen.len(), 3);
        let error = cause(seen[2].as_ref().unwrap_err());
        assert!(
            error.to_string().contains("no idea what comes third"),
            "{error}"
        );
        assert_eq!(pass(&loader).len(), 8);
    });
}

/// A batch of no items, in epoch 1.
struct Hollow;

impl BatchSampler for Hollow {
    fn sizes(&self, epoch: usize) -> BatchSizes {
        BatchSizes::each([1, if epoch == 1 { 0 } else { 2 }, 3])
    }

    fn at(&self, _epoch: usize, batch: usize, place: usize) -> usize {
        batch + place
    }
}

#[test]
fn a_batch_of_no_items_is_an_error_at_its_place() {
    for_each_worker_count(|workers| {
        let loader = loader(workers)
            .batch_sampler(Hollow)
            .try_build(Numbers(8))
            .unwrap();
        assert_eq!(pass(&loader).len(), 3);
        let seen = outcomes(loader.iter());
        assert_eq!(seen.len(), 2);
        let said = cause(seen[1].as_ref().unwrap_err()).to_string();
        assert!(said.contains("batch 1 has no items"), "{said}");
    });
}

#[test]
fn shares_of_a_mixture_are_exact_in_every_block() {
    for_each_worker_count(|workers| {
        let mixture = Mixture::new(&[100, 1_000], &[0.2, 0.8], 500, 5).unwrap();
        let loader = loader(workers)
            .batch_size(5)
            .sampler(mixture)
            .build(Numbers(1_100));
        for _ in 0..2 {
            for batch in pass(loader.as_ref()) {
                assert_eq!(batch.iter().filter(|item| **item < 100).count(), 1);
            }
        }
    });
}

#[test]
fn the_kinds_of_order_have_names_of_their_own() {
    let kind = |order| {
        let loader = ordered(order, 0).try_build(ordered_data()).unwrap();
        loader.effective_config().order
    };
    let names: Vec<_> = batch_orders().into_iter().map(kind).collect();
    assert_eq!(
        names,
        [
            "shuffled batch lists",
            "shuffled buckets",
            "buckets",
            "batch sampler"
        ]
    );
    let names: Vec<_> = even_orders().into_iter().map(kind).collect();
    assert_eq!(names[..3], ["sequential", "shuffled", "windowed shuffle"]);
}

/// While it is asked for an index there is none: not that of the item before.
#[test]
fn a_sampler_is_asked_in_no_items_context() {
    struct Asked;

    impl Sampler for Asked {
        fn len(&self, _epoch: usize) -> usize {
            20
        }

        fn at(&self, _epoch: usize, position: usize) -> usize {
            let index = context().and_then(|context| context.index);
            assert_eq!(index, None, "at position {position}");
            position
        }
    }

    for_each_worker_count(|workers| {
        let loader = loader(workers).batch_size(6).sampler(Asked);
        let loader = loader.try_build(Numbers(20)).expect("it is a loader");
        assert_eq!(pass(&loader).concat(), (0..20).collect::<Vec<_>>());
    });
}
