//! The order is a function of seed and epoch: never of workers, window, parts or how items are fetched.

use std::thread::yield_now;

use burn::data::dataloader::batcher::Batcher;
use burn::data::dataset::{Dataset, DatasetError};
use burn::tensor::Device;
use burn_prefetch::{DataLoaderBuilder, context, rng, rng_at};
use burn_prefetch_tests::{
    Batches, Collect, Hooked, Numbers, WORKERS, chunks, flat, for_each_worker_count, guarded,
    loader, pass,
};
use rand_core::Rng;

/// Items that give up their turn a different number of times each, so that batches finish unevenly.
fn uneven(len: usize) -> Hooked<impl Fn(usize) + Send + Sync> {
    Hooked::new(len, |index| {
        (0..index * 7919 % 13 * 4).for_each(|_| yield_now());
    })
}

fn epochs(builder: DataLoaderBuilder<usize, Vec<usize>>, count: usize) -> Vec<Batches> {
    let loader = builder.build(uneven(40));
    (0..count).map(|_| pass(loader.as_ref())).collect()
}

#[test]
fn unshuffled_is_the_order_of_the_data() {
    for_each_worker_count(|workers| {
        let loader = loader(workers).batch_size(3).build(uneven(40));
        for _ in 0..3 {
            assert_eq!(pass(loader.as_ref()), chunks(40, 3));
        }
    });
}

#[test]
fn the_same_sequence_for_any_workers_window_parts_and_fetching() {
    guarded(|| {
        let shuffled = |workers| loader(workers).batch_size(3).shuffle(7);
        let reference = epochs(shuffled(0), 3);
        for workers in WORKERS {
            assert_eq!(epochs(shuffled(workers), 3), reference, "{workers} workers");
            for parts in [1, 2, 3, 7] {
                let found = epochs(shuffled(workers).parts_per_batch(parts), 3);
                assert_eq!(found, reference, "{workers} workers, {parts} parts");
            }
            for window in [0, 1, 2, 5, 100] {
                let found = epochs(shuffled(workers).prefetch(window), 3);
                assert_eq!(found, reference, "{workers} workers, prefetch {window}");
                let found = epochs(shuffled(workers).prefetch(window).batched(), 3);
                assert_eq!(
                    found, reference,
                    "{workers} workers, prefetch {window}, batched"
                );
            }
            for factor in [1, 2, 4] {
                let found = epochs(shuffled(workers).prefetch_factor(factor).batched(), 3);
                assert_eq!(
                    found, reference,
                    "{workers} workers, factor {factor}, batched"
                );
            }
            let found = epochs(shuffled(workers).persistent_workers(false), 3);
            assert_eq!(
                found, reference,
                "{workers} workers, new ones for each pass"
            );
        }
    });
}

#[test]
fn an_early_stop_changes_no_later_epoch() {
    for_each_worker_count(|workers| {
        let builder = || loader(workers).batch_size(3).shuffle(7);
        let reference = epochs(builder(), 4);
        let loader = builder().build(uneven(40));
        for taken in 0..3 {
            assert_eq!(loader.iter().take(taken).count(), taken);
        }
        assert_eq!(pass(loader.as_ref()), reference[3]);
    });
}

#[test]
fn epochs_differ_and_a_rebuilt_loader_repeats_them() {
    for_each_worker_count(|workers| {
        let built = |seed| epochs(loader(workers).batch_size(4).shuffle(seed), 5);
        let first = built(42);
        assert_eq!(first, built(42));
        assert_ne!(first, built(43));
        for later in 1..5 {
            assert!(
                !first[..later].contains(&first[later]),
                "epoch {later} came before"
            );
        }
        assert!(
            first
                .iter()
                .all(|epoch| flat(epoch) != (0..40).collect::<Vec<_>>())
        );
    });
}

#[test]
fn an_epoch_can_be_chosen() {
    for_each_worker_count(|workers| {
        let builder = || loader(workers).batch_size(4).shuffle(1);
        let straight = epochs(builder(), 6);
        assert_eq!(epochs(builder().start_epoch(3), 3), straight[3..]);

        let loader = builder().try_build(uneven(40)).unwrap();
        assert_eq!(loader.epoch(), 0);
        assert_eq!(pass(&loader), straight[0]);
        assert_eq!(loader.epoch(), 1);
        let fifth: Batches = loader.iter_epoch(5).map(Result::unwrap).collect();
        assert_eq!(fifth, straight[5]);
        assert_eq!(loader.epoch(), 1, "iter_epoch leaves the counter alone");
        loader.set_epoch(4);
        assert_eq!(pass(&loader), straight[4]);
        assert_eq!(loader.epoch(), 5);
        assert_eq!(pass(&loader), straight[5]);
    });
}

/// Each item is two random numbers; each batch appends one of its own.
#[derive(Clone, Copy, Debug)]
struct Augmented;

type Drawn = (usize, u64, u64);

impl Dataset<Drawn> for Augmented {
    fn get(&self, index: usize) -> Result<Drawn, DatasetError> {
        Ok((index, rng().next_u64(), rng().next_u64()))
    }

    fn get_many(&self, indexes: Vec<usize>) -> Result<Vec<Drawn>, DatasetError> {
        let draw = |index| {
            let mut stream = rng_at(index);
            (index, stream.next_u64(), stream.next_u64())
        };
        Ok(indexes.into_iter().map(draw).collect())
    }

    fn len(&self) -> usize {
        25
    }
}

#[derive(Clone, Copy, Debug)]
struct AppendDraw;

impl Batcher<Drawn, (Vec<Drawn>, u64)> for AppendDraw {
    fn batch(&self, items: Vec<Drawn>, _device: &Device) -> (Vec<Drawn>, u64) {
        (items, rng().next_u64())
    }
}

fn augmented(workers: usize) -> DataLoaderBuilder<Drawn, (Vec<Drawn>, u64)> {
    DataLoaderBuilder::new(AppendDraw)
        .num_workers(workers)
        .batch_size(4)
        .shuffle(9)
}

#[test]
fn random_augmentation_is_the_same_for_any_workers_and_parts() {
    guarded(|| {
        let two = |builder: DataLoaderBuilder<_, _>| {
            let loader = builder.build(Augmented);
            [pass(loader.as_ref()), pass(loader.as_ref())]
        };
        let reference = two(augmented(0));
        for workers in WORKERS {
            assert_eq!(two(augmented(workers)), reference, "{workers} workers");
            assert_eq!(
                two(augmented(workers).parts_per_batch(4)),
                reference,
                "4 parts"
            );
            assert_eq!(
                two(augmented(workers).parts_per_batch(1)),
                reference,
                "1 part"
            );
            assert_eq!(
                two(augmented(workers).batched()),
                reference,
                "{workers}, batched"
            );
        }
    });
}

#[test]
fn random_numbers_differ_between_draws_items_batches_and_epochs() {
    for_each_worker_count(|workers| {
        let loader = augmented(workers).build(Augmented);
        let mut drawn: Vec<u64> = Vec::new();
        for _ in 0..4 {
            for (items, of_batch) in pass(loader.as_ref()) {
                drawn.push(of_batch);
                drawn.extend(items.iter().flat_map(|&(_, first, second)| [first, second]));
            }
        }
        let count = drawn.len();
        assert_eq!(count, 4 * (25 * 2 + 7));
        drawn.sort_unstable();
        drawn.dedup();
        assert_eq!(drawn.len(), count, "a 64-bit number came twice");
    });
}

#[test]
fn outside_a_loader_random_numbers_come_from_the_system() {
    guarded(|| {
        let drawn = [
            rng().next_u64(),
            rng().next_u64(),
            rng_at(3).next_u64(),
            rng_at(3).next_u64(),
        ];
        assert!(drawn.iter().any(|&one| one != drawn[0]));
        assert!(context().is_none());
    });
}

#[test]
fn user_code_can_ask_where_it_is() {
    #[derive(Debug)]
    struct Where;
    impl Dataset<(usize, usize, Option<usize>)> for Where {
        fn get(&self, _: usize) -> Result<(usize, usize, Option<usize>), DatasetError> {
            let here = context().expect("get runs inside a loader");
            Ok((here.epoch, here.batch, here.index))
        }
        fn len(&self) -> usize {
            10
        }
    }
    for_each_worker_count(|workers| {
        let loader = DataLoaderBuilder::new(Collect)
            .num_workers(workers)
            .batch_size(3);
        let loader = loader.try_build(Where).unwrap();
        for epoch in 0..2 {
            let expected: Vec<_> = (0..10)
                .map(|index| (epoch, index / 3, Some(index)))
                .collect();
            assert_eq!(pass(&loader).concat(), expected);
            assert!(context().is_none(), "the context ends with the call");
        }
    });
}

#[test]
fn a_batcher_knows_its_batch_and_no_index() {
    #[derive(Debug)]
    struct Which;
    impl Batcher<usize, (usize, usize, Option<usize>)> for Which {
        fn batch(&self, _: Vec<usize>, _: &Device) -> (usize, usize, Option<usize>) {
            let here = context().expect("a batcher runs inside a loader");
            (here.epoch, here.batch, here.index)
        }
    }
    for_each_worker_count(|workers| {
        let builder = DataLoaderBuilder::new(Which)
            .num_workers(workers)
            .batch_size(3);
        let loader = builder.start_epoch(4).build(Numbers(10));
        assert_eq!(
            pass(loader.as_ref()),
            [0, 1, 2, 3].map(|batch| (4, batch, None))
        );
    });
}

#[test]
fn the_context_names_the_worker() {
    for_each_worker_count(|workers| {
        let hooked = Hooked::new(60, move |_| {
            let worker = context().expect("get runs inside a loader").worker;
            let thread = std::thread::current();
            match worker {
                Some(worker) => assert_eq!(thread.name(), Some(&*format!("prefetch-{worker}"))),
                None => assert_eq!(workers, 0, "only the calling thread has no number"),
            }
        });
        assert_eq!(
            flat(&pass(loader(workers).batch_size(4).build(hooked).as_ref())).len(),
            60
        );
    });
}

/// Reads another loader between two draws.
#[derive(Debug)]
struct Interrupted<F>(F);

impl<F: Fn() + Send + Sync> Dataset<Drawn> for Interrupted<F> {
    fn get(&self, index: usize) -> Result<Drawn, DatasetError> {
        let first = rng().next_u64();
        (self.0)();
        let here = context().expect("the outer context is back");
        assert_eq!(here.index, Some(index));
        Ok((index, first, rng().next_u64()))
    }

    fn len(&self) -> usize {
        Augmented.len()
    }
}

#[test]
fn a_loader_read_inside_an_item_changes_neither_its_context_nor_its_random_numbers() {
    for_each_worker_count(|workers| {
        let inner = augmented(workers).build(Augmented);
        let nested = Interrupted(move || assert_eq!(pass(inner.as_ref()).len(), 7));
        let outer = augmented(workers).build(nested);
        let plain = augmented(0).build(Augmented);
        assert_eq!(pass(outer.as_ref()), pass(plain.as_ref()));
    });
}

#[test]
fn a_dataset_may_be_shared() {
    for_each_worker_count(|workers| {
        let data = std::sync::Arc::new(Numbers(9));
        let loader = loader(workers).batch_size(2).build(data);
        assert_eq!(pass(loader.as_ref()), chunks(9, 2));
    });
}

/// Items are what a call of `get_many` draws.
struct DrawsForTheCall;

impl Dataset<u64> for DrawsForTheCall {
    fn get(&self, _: usize) -> Result<u64, DatasetError> {
        unreachable!("the loader fetches with get_many")
    }

    fn get_many(&self, indexes: Vec<usize>) -> Result<Vec<u64>, DatasetError> {
        Ok(indexes.iter().map(|_| rng().next_u64()).collect())
    }

    fn len(&self) -> usize {
        64
    }
}

#[test]
fn the_parts_of_a_batch_draw_other_numbers_and_the_same_for_any_workers() {
    guarded(|| {
        let drawn = |workers, parts| {
            let builder = DataLoaderBuilder::new(Collect).batch_size(16).shuffle(4);
            let builder = builder
                .num_workers(workers)
                .batched()
                .parts_per_batch(parts);
            let batches = builder.build(DrawsForTheCall);
            let drawn: Vec<Vec<u64>> = batches.iter().map(Result::unwrap).collect();
            drawn.concat()
        };
        for parts in [1, 4, 16] {
            let inline: Vec<u64> = drawn(0, parts);
            let mut distinct = inline.clone();
            distinct.sort_unstable();
            distinct.dedup();
            assert_eq!(distinct.len(), 64, "{parts} parts");
            for workers in WORKERS {
                assert_eq!(
                    drawn(workers, parts),
                    inline,
                    "{workers} workers, {parts} parts"
                );
            }
        }
    });
}
