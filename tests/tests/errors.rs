//! An error or a panic in the user's code is one `Err`, at its batch's place, and says where and why.

use std::error::Error;
use std::iter::successors;
use std::panic::panic_any;
use std::sync::Arc;

use burn::data::dataloader::DataLoader;
use burn::data::dataset::{Dataset, DatasetError};
use burn_prefetch::{DataLoaderBuilder, LoadError, Stage};
use burn_prefetch_tests::{
    Broken, Collect, Fault, Hooked, LiveThreads, Numbers, PanicOn, Tally, Unreadable, chunks,
    for_each_worker_count, loader, outcomes, pass,
};

/// What came of one pass: the batches before the failure, and the failure, which is the last.
fn failed(loader: &dyn DataLoader<Vec<usize>>) -> (Vec<Vec<usize>>, DatasetError) {
    let mut seen = outcomes(loader.iter());
    let failure = seen
        .pop()
        .expect("the pass is not empty")
        .expect_err("the pass ends in failure");
    (seen.into_iter().map(Result::unwrap).collect(), failure)
}

fn cause(error: &DatasetError) -> &LoadError {
    let direct = error
        .source()
        .and_then(|source| source.downcast_ref::<LoadError>());
    assert!(
        direct.is_some(),
        "Burn's error wraps a LoadError: {error:?}"
    );
    LoadError::of(error).expect("the same, by name")
}

fn broken(fault: Fault) -> Broken {
    Broken {
        len: 10,
        at: 4,
        fault,
    }
}

/// The thread that the error names is one of the loader's, or the caller's where there is none.
fn assert_worker(error: &LoadError, workers: usize) {
    match error.place().worker {
        Some(worker) => assert!(worker < workers, "worker {worker} of {workers}"),
        None => assert_eq!(
            workers, 0,
            "a worker failed, and the error does not say which"
        ),
    }
}

#[test]
fn an_error_of_the_dataset_comes_once_at_its_place_in_every_pass() {
    for_each_worker_count(|workers| {
        let loader = loader(workers).batch_size(2).build(broken(Fault::Error));
        for epoch in 0..3 {
            let (before, failure) = failed(loader.as_ref());
            assert_eq!(before, [[0, 1], [2, 3]]);
            let error = cause(&failure);
            let LoadError::Dataset { at, source } = error else {
                panic!("{error:?}")
            };
            assert_eq!(source.downcast_ref(), Some(&Unreadable { index: 4 }));
            assert_eq!((at.stage, at.epoch, at.batch), (Stage::Fetch, epoch, 2));
            assert_eq!(at.index, Some(4));
            assert_worker(error, workers);
        }
    });
}

#[test]
fn the_users_error_is_at_the_end_of_the_chain_and_in_the_text() {
    for_each_worker_count(|workers| {
        let loader = loader(workers)
            .batch_size(2)
            .start_epoch(6)
            .build(broken(Fault::Error));
        let (_, failure) = failed(loader.as_ref());
        let first: &(dyn Error + 'static) = &failure;
        let chain: Vec<_> = successors(Some(first), |&error| error.source()).collect();
        let own = chain
            .iter()
            .find_map(|error| error.downcast_ref::<Unreadable>());
        assert_eq!(own, Some(&Unreadable { index: 4 }));
        let text = chain
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(": ");
        for words in ["item 4 cannot be read", "epoch 6", "batch 2", "index 4"] {
            assert!(text.contains(words), "`{words}` is missing in: {text}");
        }
    });
}

#[test]
fn a_panic_in_get_is_an_error_with_its_text() {
    for_each_worker_count(|workers| {
        let loader = loader(workers).batch_size(2).build(broken(Fault::Panic));
        for epoch in 0..3 {
            let (before, failure) = failed(loader.as_ref());
            assert_eq!(before, [[0, 1], [2, 3]]);
            let error = cause(&failure);
            let LoadError::Panic { at, message } = error else {
                panic!("{error:?}")
            };
            assert_eq!(message, "item 4 cannot be read");
            assert!(
                failure.to_string().contains("item 4 cannot be read"),
                "{failure}"
            );
            assert_eq!(
                (at.stage, at.epoch, at.batch, at.index),
                (Stage::Fetch, epoch, 2, Some(4))
            );
            assert_worker(error, workers);
        }
    });
}

#[test]
fn a_panic_that_is_no_text_is_an_error_too() {
    for_each_worker_count(|workers| {
        let data = Hooked::new(6, |index| {
            if index == 3 {
                panic_any(index);
            }
        });
        let (before, failure) = failed(loader(workers).build(data).as_ref());
        assert_eq!(before, [[0], [1], [2]]);
        assert!(
            matches!(cause(&failure), LoadError::Panic { .. }),
            "{failure:?}"
        );
    });
}

#[test]
fn a_panic_in_the_batcher_is_an_error_of_its_batch() {
    for_each_worker_count(|workers| {
        let loader = DataLoaderBuilder::new(PanicOn(7))
            .num_workers(workers)
            .build(Numbers(10));
        for epoch in 0..3 {
            let (before, failure) = failed(loader.as_ref());
            assert_eq!(before, chunks(7, 1));
            let error = cause(&failure);
            let LoadError::Panic { at, message } = error else {
                panic!("{error:?}")
            };
            assert_eq!(message, "item 7 cannot be stacked");
            assert_eq!((at.stage, at.epoch, at.batch), (Stage::Assemble, epoch, 7));
            assert_eq!(at.index, None, "the whole batch failed");
            assert_worker(error, workers);
        }
    });
}

#[test]
fn an_error_or_panic_of_get_many_names_the_indices() {
    for_each_worker_count(|workers| {
        for fault in [Fault::Error, Fault::Panic] {
            let loader = loader(workers).batch_size(2).batched().build(broken(fault));
            for epoch in 0..2 {
                let (before, failure) = failed(loader.as_ref());
                assert_eq!(before, [[0, 1], [2, 3]]);
                let error = cause(&failure);
                assert!(
                    failure.to_string().contains("item 4 cannot be read") || fault != Fault::Panic
                );
                let at = error.place();
                assert_eq!((at.stage, at.epoch, at.batch), (Stage::Fetch, epoch, 2));
                assert_eq!(at.indices, [4, 5]);
                assert_worker(error, workers);
            }
        }
    });
}

#[test]
fn get_many_must_return_as_many_as_asked_for() {
    for_each_worker_count(|workers| {
        for (fault, count) in [(Fault::TooFew, 1), (Fault::TooMany, 3)] {
            let loader = loader(workers).batch_size(2).batched().build(broken(fault));
            let (before, failure) = failed(loader.as_ref());
            assert_eq!(before, [[0, 1], [2, 3]]);
            let error = cause(&failure);
            let LoadError::Count { at, expected, got } = error else {
                panic!("{error:?}")
            };
            assert_eq!((*expected, *got), (2, count));
            assert_eq!((at.stage, at.batch), (Stage::Fetch, 2));
            for number in ['2', if count == 1 { '1' } else { '3' }] {
                assert!(
                    failure.to_string().contains(number),
                    "{number} is missing: {failure}"
                );
            }
        }
    });
}

#[test]
fn the_first_and_the_last_batch_can_fail() {
    for_each_worker_count(|workers| {
        for (at, good) in [(0, 0), (9, 4)] {
            let data = Broken {
                len: 10,
                at,
                fault: Fault::Error,
            };
            let (before, failure) = failed(loader(workers).batch_size(2).build(data).as_ref());
            assert_eq!(before, chunks(2 * good, 2));
            assert_eq!(cause(&failure).place().batch, good);
        }
    });
}

/// Of two items that fail in one batch the earlier is named, also where the later fails first: before
/// a cost is known each worker has a part, and with two workers or more these are in two of them.
#[test]
fn the_lowest_failing_position_of_the_batch_is_named() {
    #[derive(Debug)]
    struct TwoFail {
        later_failed: Arc<Tally<bool>>,
        workers: usize,
    }
    impl Dataset<usize, Unreadable> for TwoFail {
        fn get(&self, index: usize) -> Result<usize, Unreadable> {
            match index {
                3 if self.workers > 1 => drop(self.later_failed.wait_until(|&failed| failed)),
                6 => self.later_failed.update(|failed| *failed = true),
                _ => {}
            }
            if [3, 6].contains(&index) {
                Err(Unreadable { index })
            } else {
                Ok(index)
            }
        }
        fn len(&self) -> usize {
            24
        }
    }
    for_each_worker_count(|workers| {
        for _ in 0..20 {
            let data = TwoFail {
                later_failed: Tally::new(false),
                workers,
            };
            let loader = loader(workers).batch_size(8).parts_per_batch(8).build(data);
            let (before, failure) = failed(loader.as_ref());
            assert_eq!(before, Vec::<Vec<usize>>::new());
            assert_eq!(cause(&failure).place().index, Some(3));
        }
    });
}

#[test]
fn in_a_shuffled_pass_the_error_names_the_datasets_index() {
    for_each_worker_count(|workers| {
        let whole = loader(workers).batch_size(3).shuffle(5).build(Numbers(30));
        let order = pass(whole.as_ref());
        let batch = order.iter().position(|batch| batch.contains(&17)).unwrap();
        let data = Broken {
            len: 30,
            at: 17,
            fault: Fault::Error,
        };
        let loader = loader(workers).batch_size(3).shuffle(5).build(data);
        let (before, failure) = failed(loader.as_ref());
        assert_eq!(before, order[..batch]);
        let at = cause(&failure).place();
        assert_eq!((at.batch, at.index), (batch, Some(17)));
    });
}

#[test]
fn workers_survive_and_a_fault_that_is_mended_is_forgotten() {
    for_each_worker_count(|workers| {
        let (threads, broken) = (LiveThreads::default(), Tally::new(true));
        let (present, still) = (threads.clone(), Arc::clone(&broken));
        let data = Hooked::new(30, move |index| {
            present.enter();
            assert!(index != 13 || !still.now(), "not yet mended");
        });
        let loader = loader(workers).batch_size(2).build(data);
        for _ in 0..20 {
            assert_eq!(failed(loader.as_ref()).0, chunks(12, 2));
        }
        // Without workers it is this very thread.
        assert!(
            threads.now() <= workers.max(1),
            "{} threads for {workers}",
            threads.now()
        );
        broken.update(|broken| *broken = false);
        assert_eq!(pass(loader.as_ref()), chunks(30, 2));
    });
}

#[test]
fn other_readers_do_not_notice() {
    for_each_worker_count(|workers| {
        let data = Broken {
            len: 40,
            at: 3,
            fault: Fault::Panic,
        };
        let loader = loader(workers).batch_size(2).build(data);
        let good = loader.slice(10, 40);
        let mut found = Vec::new();
        for batch in good.iter() {
            found.extend(batch.unwrap());
            assert_eq!(failed(loader.as_ref()).0, [[0, 1]]);
        }
        assert_eq!(found, (10..40).collect::<Vec<_>>());
    });
}

#[test]
fn a_panic_of_len_reaches_whoever_builds() {
    #[derive(Debug)]
    struct Unmeasurable;
    impl Dataset<usize> for Unmeasurable {
        fn get(&self, index: usize) -> Result<usize, DatasetError> {
            Ok(index)
        }
        fn len(&self) -> usize {
            panic!("the index is not written yet")
        }
    }
    for_each_worker_count(|workers| {
        let built = std::panic::catch_unwind(|| {
            let builder = DataLoaderBuilder::<usize, Vec<usize>>::new(Collect);
            let loader = builder.num_workers(workers).build(Unmeasurable);
            let _first = loader.iter();
        });
        let text = built.expect_err("the panic is not swallowed");
        assert_eq!(text.downcast_ref(), Some(&"the index is not written yet"));
    });
}

/// Throws the next one when it is dropped.
struct ThrowsAgain(u32);

impl Drop for ThrowsAgain {
    fn drop(&mut self) {
        if self.0 > 0 {
            panic_any(ThrowsAgain(self.0 - 1));
        }
    }
}

#[test]
fn what_a_panic_throws_may_throw_again() {
    for_each_worker_count(|workers| {
        let data = Hooked::new(6, |index| {
            if index == 2 {
                panic_any(ThrowsAgain(3));
            }
        });
        let loader = loader(workers).batch_size(2).build(data);
        for _ in 0..2 {
            let (before, error) = failed(loader.as_ref());
            assert_eq!(before, [[0, 1]]);
            assert!(matches!(cause(&error), LoadError::Panic { .. }));
            assert_eq!(cause(&error).place().index, Some(2));
        }
    });
}
