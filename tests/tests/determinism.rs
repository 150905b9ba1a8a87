//! `verify_determinism` tells whether a user's own dataset and batcher depend on who calls them.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use burn::data::dataloader::DataLoader;
use burn::data::dataset::{Dataset, DatasetError};
use burn_prefetch::{
    DataLoaderBuilder, LoadError, Nondeterminism, PrefetchDataLoader, context, rng, rng_at,
};
use burn_prefetch_tests::{
    Broken, Collect, Fault, Gate, Numbers, Rows, for_each_case, for_each_worker_count, pass,
};
use rand_core::Rng;

/// The items of `0..40`, each made by the test.
struct Made<F>(F);

impl<F: Fn(usize) -> u64 + Send + Sync> Dataset<u64> for Made<F> {
    fn get(&self, index: usize) -> Result<u64, DatasetError> {
        Ok((self.0)(index))
    }

    fn len(&self) -> usize {
        40
    }
}

fn over<F>(workers: usize, make: F) -> PrefetchDataLoader<Vec<u64>>
where
    F: Fn(usize) -> u64 + Send + Sync + 'static,
{
    let builder = DataLoaderBuilder::new(Collect).num_workers(workers);
    builder
        .batch_size(4)
        .shuffle(3)
        .try_build(Made(make))
        .expect("it is a loader")
}

#[test]
fn what_is_a_function_of_the_index_passes() {
    for_each_worker_count(|workers| {
        for loader in [
            over(workers, |index| index as u64),
            over(workers, |_| rng().next_u64()),
            over(workers, |index| {
                rng_at(index).next_u64() ^ rng_at(7).next_u64()
            }),
        ] {
            for batches in [0, 1, 10, 1_000] {
                loader.verify_determinism(batches).unwrap();
            }
            assert_eq!(
                (loader.epoch(), loader.state().batch()),
                (0, 0),
                "nothing is counted"
            );
            assert_eq!(pass(&loader).len(), 10);
            loader.verify_determinism(3).unwrap();
        }
    });
}

#[test]
fn a_counter_of_calls_is_found() {
    for_each_worker_count(|workers| {
        let calls = AtomicUsize::new(0);
        let loader = over(workers, move |_| calls.fetch_add(1, SeqCst) as u64);
        let error = loader.verify_determinism(3).unwrap_err();
        let Nondeterminism::Differs {
            batch,
            epoch,
            workers,
            parts,
            ..
        } = &error
        else {
            panic!("{error}")
        };
        assert_eq!([*batch, *epoch, *workers, *parts], [0, 0, 0, 1]);
        let said = error.to_string();
        assert!(
            said.contains("[0, 1, 2, 3] became [12, 13, 14, 15]"),
            "{said}"
        );
        assert!(said.contains("draw random numbers from rng()"), "{said}");
    });
}

#[test]
fn a_generator_that_a_thread_keeps_is_found() {
    thread_local! {
        static OWN: Cell<u64> = const { Cell::new(1) };
    }
    for_each_worker_count(|workers| {
        let loader = over(workers, |_| {
            OWN.with(|own| own.replace(own.get().wrapping_mul(0x5851_f42d_4c95_7f2d)))
        });
        assert!(loader.verify_determinism(2).is_err());
    });
}

/// On the calling thread it is always the same.
#[test]
fn the_number_of_the_worker_is_found_with_the_items_of_its_batch() {
    for_each_worker_count(|workers| {
        let loader = over(workers, |index| {
            let worker = context().and_then(|context| context.worker);
            index as u64
                + if index == 9 && worker.is_some() {
                    1_000
                } else {
                    0
                }
        });
        let order: Vec<Vec<u64>> = loader.iter_epoch(0).map(Result::unwrap).collect();
        let place = order
            .iter()
            .position(|batch| batch.iter().any(|item| item % 1_000 == 9));
        let error = loader.verify_determinism(10).unwrap_err();
        let Nondeterminism::Differs {
            batch,
            indices,
            workers,
            ..
        } = error
        else {
            panic!("{error}")
        };
        assert_eq!((Some(batch), workers), (place, 1));
        assert!(indices.len() == 4 && indices.contains(&9));
    });
}

#[test]
fn tensors_are_compared_by_what_is_in_them() {
    for_each_worker_count(|workers| {
        let builder = DataLoaderBuilder::new(Rows)
            .num_workers(workers)
            .batch_size(3);
        let loader = builder.shuffle(4).try_build(Numbers(20)).unwrap();
        loader
            .verify_determinism_by(5, |rows| rows.into_data())
            .unwrap();
    });
}

#[test]
fn an_error_in_loading_is_returned_as_it_is() {
    for_each_case([Fault::Error, Fault::Panic], |workers, fault| {
        let data = Broken {
            len: 10,
            at: 7,
            fault,
        };
        let loader = burn_prefetch_tests::loader(workers)
            .try_build(data)
            .unwrap();
        loader.verify_determinism(5).unwrap();
        let error = loader.verify_determinism(9).unwrap_err();
        assert!(error.to_string().contains("cannot be loaded"), "{error}");
        let place = LoadError::of(&error).map(|error| error.place().batch);
        assert_eq!(place, Some(7), "{error}");
    });
}

#[test]
fn a_restored_loader_is_tried_from_where_it_stands() {
    for_each_worker_count(|workers| {
        let build = || {
            over(workers, |index| {
                let worker = context().and_then(|context| context.worker);
                index as u64 + worker.map_or(0, |_| 1_000)
            })
        };
        let loader = build();
        let mut batches = loader.iter_owned();
        batches.by_ref().take(6).for_each(drop);
        let state = batches.state();
        let resumed = build();
        resumed.restore(&state).unwrap();
        let Err(Nondeterminism::Differs { batch, .. }) = resumed.verify_determinism(2) else {
            panic!("it depends on the worker")
        };
        assert_eq!(batch, 6);
        assert_eq!(resumed.num_items(), 40);
    });
}

/// What workers make is waited for as long as the loader is told, and counted nowhere.
#[test]
fn who_does_not_come_back_is_an_error_in_time() {
    for_each_worker_count(|workers| {
        if workers == 0 {
            return;
        }
        let gate = Gate::closed();
        let door = Arc::clone(&gate);
        let data = Made(move |index| {
            if context().is_some_and(|context| context.worker.is_some()) {
                door.wait();
            }
            index as u64
        });
        let builder = DataLoaderBuilder::new(Collect).num_workers(workers);
        let builder = builder.batch_size(4).timeout(Duration::from_millis(50));
        let loader = builder.shutdown_grace(Duration::ZERO).try_build(data);
        let loader = loader.expect("it is a loader");
        let error = loader.verify_determinism(2).unwrap_err();
        assert!(
            matches!(error, Nondeterminism::Load(LoadError::Timeout { .. })),
            "{error}"
        );
        gate.open();
        assert_eq!((loader.stats().waits.count, loader.stats().errors), (0, 0));
    });
}

/// Items fetched in one call draw together: a loader that never parts a batch is not tried in parts.
#[test]
fn what_is_never_parted_is_not_tried_in_parts() {
    for_each_worker_count(|workers| {
        let builder = DataLoaderBuilder::new(Collect)
            .num_workers(workers)
            .batched();
        let loader = builder.batch_size(4).try_build(Made(|_| rng().next_u64()));
        let loader = loader.expect("it is a loader");
        loader.verify_determinism(10).unwrap();
    });
}
