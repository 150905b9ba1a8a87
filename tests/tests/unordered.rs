//! Batches as they finish: the same ones, under the same bounds, and none waits for a slower one.

use std::sync::Arc;
use std::thread::yield_now;

use burn::data::dataset::{Dataset, DatasetError};
use burn::tensor::Device;
use burn_prefetch::{DataLoaderBuilder, Stage, rng};
use burn_prefetch_tests::{
    Batches, Broken, Collect, Fault, Gate, Hooked, Lead, Numbers, PanicOn, Traces, cause, chunks,
    failure, for_each_case, for_each_crew, for_each_worker_count, guarded, indices, loader,
    outcomes, pass,
};
use rand_core::Rng;

type Builder = DataLoaderBuilder<usize, Vec<usize>>;

fn unordered(workers: usize) -> Builder {
    loader(workers).in_order(false)
}

fn sorted(mut batches: Batches) -> Batches {
    batches.sort_unstable();
    batches
}

/// Items that give up their turn a different number of times each, so that batches finish unevenly.
fn uneven(len: usize) -> Hooked<impl Fn(usize) + Send + Sync> {
    Hooked::new(len, |index| {
        (0..index * 7919 % 13 * 4).for_each(|_| yield_now());
    })
}

/// What may be set beside the order.
fn with(builder: Builder, prefetch: Option<usize>, parts: Option<usize>) -> Builder {
    let builder = match prefetch {
        Some(batches) => builder.prefetch(batches),
        None => builder,
    };
    match parts {
        Some(parts) => builder.parts_per_batch(parts),
        None => builder,
    }
}

#[test]
fn they_are_the_same_batches() {
    let windows = [None, Some(0), Some(1), Some(2), Some(100)];
    for_each_case(windows, |workers, prefetch| {
        for (drop_last, parts) in [(false, None), (true, None), (false, Some(3))] {
            let set = |builder: Builder| {
                with(builder, prefetch, parts)
                    .batch_size(3)
                    .drop_last(drop_last)
            };
            let plain = set(unordered(workers)).build(uneven(40));
            let mut expected = chunks(40, 3);
            expected.truncate(if drop_last { 13 } else { 14 });
            assert_eq!(plain.num_items(), expected.concat().len());
            let shuffled = set(unordered(workers)).shuffle(5).build(uneven(40));
            let reference = set(loader(0)).shuffle(5).build(Numbers(40));
            for _ in 0..3 {
                assert_eq!(sorted(pass(plain.as_ref())), expected);
                let (found, in_order) = (pass(shuffled.as_ref()), pass(reference.as_ref()));
                assert_eq!(sorted(found), sorted(in_order));
            }
        }
    });
}

#[test]
fn slices_and_copies_come_as_they_finish_too() {
    for_each_crew(|workers| {
        let gate = Gate::closed();
        let blocked = Arc::clone(&gate);
        let data = Hooked::new(40, move |index| {
            if index == 10 {
                blocked.wait();
            }
        });
        let whole = unordered(workers).batch_size(2).prefetch(9).build(data);
        let slice = whole.slice(10, 20).to_device(&Device::flex());
        let mut iterator = slice.iter();
        if workers > 1 {
            let first: Batches = iterator.by_ref().take(4).map(Result::unwrap).collect();
            let expected = [[12, 13], [14, 15], [16, 17], [18, 19]];
            assert_eq!(sorted(first), expected);
        }
        gate.open();
        let rest: Batches = iterator.map(Result::unwrap).collect();
        assert_eq!(rest[0], [10, 11]);
    });
}

/// What is drawn for an item is a function of its index, whatever comes first.
#[test]
fn their_items_draw_the_same_numbers() {
    struct Draws;
    impl Dataset<(usize, u64)> for Draws {
        fn get(&self, index: usize) -> Result<(usize, u64), DatasetError> {
            (0..index * 31 % 7).for_each(|_| yield_now());
            Ok((index, rng().next_u64()))
        }
        fn len(&self) -> usize {
            30
        }
    }
    guarded(|| {
        let drawn = |workers, in_order| {
            let builder = DataLoaderBuilder::new(Collect).num_workers(workers);
            let loader = builder.in_order(in_order).batch_size(4).shuffle(3);
            let loader = loader.build(Draws);
            let epochs = (0..3).map(|_| {
                let mut batches: Vec<Vec<(usize, u64)>> = pass(loader.as_ref());
                batches.sort_unstable();
                batches
            });
            epochs.collect::<Vec<_>>()
        };
        let reference = drawn(0, true);
        for workers in [0, 1, 2, 4, 8] {
            assert_eq!(drawn(workers, false), reference, "{workers} workers");
        }
    });
}

#[test]
fn a_slow_batch_holds_no_other_up() {
    for_each_crew(|workers| {
        let gate = Gate::closed();
        let blocked = Arc::clone(&gate);
        let data = Hooked::new(60, move |index| {
            if index == 0 {
                blocked.wait();
            }
        });
        let loader = unordered(workers).batch_size(2).prefetch(2);
        let loader = loader.parts_per_batch(1).build(data);
        let mut iterator = loader.iter();
        // With one worker nobody is left to make the others.
        let others = if workers == 1 { 0 } else { 29 };
        let found: Batches = iterator.by_ref().take(others).map(Result::unwrap).collect();
        assert_eq!(sorted(found), chunks(60, 2)[1..=others]);
        gate.open();
        let rest: Batches = iterator.map(Result::unwrap).collect();
        assert_eq!(rest.len(), 30 - others);
        assert_eq!(rest[0], [0, 1]);
    });
}

#[test]
fn as_many_are_alive_as_may_be_and_never_more() {
    let windows = [0, 1, 2, 5];
    for_each_case(windows, |workers, prefetch| {
        const SIZE: usize = 4;
        const BATCHES: usize = 25;
        let lead = Lead::new(SIZE);
        let seen = Arc::clone(&lead);
        let data = Hooked::new(SIZE * BATCHES, move |index| seen.fetch(index));
        let loader = unordered(workers).batch_size(SIZE).prefetch(prefetch);
        let loader = loader.build(data);
        let bound = if workers == 0 { 0 } else { prefetch };
        let mut iterator = loader.iter();
        let mut found = Vec::new();
        for taken in 1..=BATCHES {
            lead.ask();
            found.push(iterator.next().unwrap().unwrap());
            if [1, 3, 10, 24].contains(&taken) {
                lead.wait_for(bound.min(BATCHES - taken));
            }
        }
        assert!(iterator.next().is_none());
        assert_eq!(sorted(found), chunks(SIZE * BATCHES, SIZE));
        assert_eq!(lead.most(), bound.min(BATCHES));
    });
}

/// One of the places is a slow batch's; it is counted as long as it is not there.
#[test]
fn a_slow_batch_keeps_its_place_in_the_window() {
    for_each_crew(|workers| {
        const WINDOW: usize = 3;
        let (gate, traces) = (Gate::closed(), Traces::none());
        let blocked = Arc::clone(&gate);
        let data = traces.dataset(60, move |index| {
            if index == 0 {
                blocked.wait();
            }
        });
        let builder = traces.builder().num_workers(workers).in_order(false);
        let loader = builder.prefetch(WINDOW).build(data);
        let mut iterator = loader.iter();
        let others = if workers == 1 { 0 } else { 40 };
        for batch in iterator.by_ref().take(others) {
            assert_eq!(batch.unwrap().0.len(), 1);
        }
        gate.open();
        assert_eq!(iterator.map(Result::unwrap).count(), 60 - others);
        // Those in the window, the one in hand.
        assert!(traces.items.peak() <= WINDOW + 1, "{}", traces.items.peak());
        traces.wait_for_no_items();
    });
}

#[test]
fn an_error_says_which_batch_it_was_and_is_the_last_item() {
    for fault in [Fault::Error, Fault::Panic] {
        for_each_worker_count(move |workers| {
            let data = Broken {
                len: 40,
                at: 13,
                fault,
            };
            let loader = unordered(workers).batch_size(2).build(data);
            for epoch in 0..10 {
                let mut seen = outcomes(loader.iter());
                let error = seen.pop().unwrap().unwrap_err();
                let at = cause(&error).place();
                assert_eq!((at.stage, at.epoch, at.batch), (Stage::Fetch, epoch, 6));
                assert_eq!(at.index, Some(13));
                let before = sorted(seen.into_iter().map(Result::unwrap).collect());
                let good = chunks(40, 2);
                assert!(
                    before
                        .iter()
                        .all(|batch| good.contains(batch) && *batch != [12, 13])
                );
                assert!(before.windows(2).all(|two| two[0] != two[1]), "{before:?}");
            }
            assert_eq!(pass(loader.slice(14, 40).as_ref()).len(), 13);
        });
    }
}

/// The error does not wait for a batch before it.
#[test]
fn an_error_behind_a_slow_batch_comes_before_it() {
    for_each_crew(|workers| {
        if workers == 1 {
            return;
        }
        let gate = Gate::closed();
        let blocked = Arc::clone(&gate);
        let data = Hooked::new(20, move |index| {
            if index == 0 {
                blocked.wait();
            }
            assert!(index != 1, "cannot be read");
        });
        let loader = unordered(workers).prefetch(2).build(data);
        let error = failure(loader.iter());
        assert_eq!(cause(&error).place().batch, 1);
        gate.open();
    });
}

#[test]
fn an_error_of_the_batcher_says_which_batch_it_was() {
    for_each_worker_count(|workers| {
        let builder = DataLoaderBuilder::new(PanicOn(9)).num_workers(workers);
        let loader = builder.in_order(false).batch_size(2).build(Numbers(20));
        let error = outcomes(loader.iter()).pop().unwrap().unwrap_err();
        let at = cause(&error).place();
        assert_eq!((at.stage, at.batch), (Stage::Assemble, 4));
    });
}

#[test]
fn progress_rises_and_is_complete_on_the_last_batch_only() {
    for_each_case([false, true], |workers, drop_last| {
        let builder = unordered(workers).batch_size(3).drop_last(drop_last);
        let loader = builder.build(uneven(40));
        for _ in 0..3 {
            let mut iterator = loader.iter();
            let (mut done, total) = (0, loader.num_items());
            assert_eq!(iterator.progress().items_processed, 0);
            while let Some(batch) = iterator.next() {
                assert!(done < total, "complete before the last batch");
                done += batch.unwrap().len();
                let progress = iterator.progress();
                assert_eq!(
                    (progress.items_processed, progress.items_total),
                    (done, total)
                );
            }
            assert_eq!(done, total);
        }
    });
}

/// The last batch has one item and comes before the others, which wait for that.
#[test]
fn progress_counts_the_items_of_a_short_batch_that_comes_first() {
    for_each_crew(|workers| {
        let gate = Gate::closed();
        let blocked = Arc::clone(&gate);
        let data = Hooked::new(10, move |index| {
            if index < 9 {
                blocked.wait();
            }
        });
        let builder = unordered(workers).batch_size(3).prefetch(4);
        let loader = builder.parts_per_batch(1).build(data);
        let mut iterator = loader.iter();
        let mut expected = vec![3, 6, 9, 10];
        if workers >= 4 {
            assert_eq!(iterator.next().unwrap().unwrap(), [9]);
            let progress = iterator.progress();
            assert_eq!((progress.items_processed, progress.items_total), (1, 10));
            expected = vec![4, 7, 10];
        }
        gate.open();
        let mut found = Vec::new();
        while iterator.next().is_some() {
            let progress = iterator.progress();
            found.push(progress.items_processed);
            assert_eq!(progress.is_completed(), found.len() == expected.len());
        }
        if workers == 1 || workers >= 4 {
            assert_eq!(found, expected);
        }
    });
}

#[test]
fn a_pass_that_is_left_early_leaves_nothing() {
    for_each_worker_count(|workers| {
        let traces = Traces::none();
        let builder = traces.builder().num_workers(workers).in_order(false);
        let loader = builder.batch_size(3).build(traces.dataset(60, |_| {}));
        for round in 0..300 {
            assert_eq!(loader.iter().take(round % 4).count(), round % 4);
        }
        traces.wait_for_no_items();
        let mut found: Vec<_> = pass(loader.as_ref()).iter().flat_map(indices).collect();
        found.sort_unstable();
        assert_eq!(found, (0..60).collect::<Vec<_>>());
        drop(loader);
        traces.wait_for_none();
    });
}

#[test]
fn several_readers_each_get_all() {
    for_each_worker_count(|workers| {
        let loader = unordered(workers).batch_size(2).build(uneven(40));
        let unread = loader.iter();
        let (mut left, mut right) = (Vec::new(), Vec::new());
        for (one, two) in loader.iter().zip(loader.iter()) {
            left.push(one.unwrap());
            right.push(two.unwrap());
        }
        for found in [left, right, unread.map(Result::unwrap).collect()] {
            assert_eq!(sorted(found), chunks(40, 2));
        }
    });
}

#[test]
fn without_workers_they_come_in_order_and_the_setting_is_reported() {
    guarded(|| {
        let none = unordered(0).batch_size(3).try_build(Numbers(40)).unwrap();
        assert_eq!(pass(&none), chunks(40, 3));
        let config = none.effective_config();
        assert_eq!(config.ignored[0].setting, "in_order");
        let some = unordered(2).try_build(Numbers(40)).unwrap();
        let config = some.effective_config();
        assert!(!config.in_order && config.ignored.is_empty(), "{config}");
        assert!(config.to_string().contains("in_order: false"), "{config}");
    });
}
