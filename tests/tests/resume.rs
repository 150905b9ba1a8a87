//! A saved state goes on with the next batch: the sequence is the uninterrupted one.

use std::sync::Arc;

use burn::data::dataloader::DataLoader;
use burn::tensor::Device;
use burn_prefetch::{LoaderState, PrefetchDataLoader, PrefetchIterator};
use burn_prefetch_tests::{
    Batches, Builder, Counting, Gate, Hooked, Numbers, ORDERED, batch_orders, even_orders,
    for_each_case, for_each_worker_count, guarded, loader, ordered, ordered_data, orders, pass,
};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

type Numbered = PrefetchDataLoader<Vec<usize>>;

fn built(builder: Builder) -> Numbered {
    builder
        .try_build(ordered_data())
        .expect("the settings make sense")
}

/// As a file would keep it.
fn through_a_file(state: &LoaderState) -> LoaderState {
    let text = serde_json::to_string(state).expect("it is a few numbers");
    serde_json::from_str(&text).expect("it was just written")
}

/// Reads on until so many batches in all have come, over the ends of epochs, then says where it
/// stands, as a process that is killed has saved it.
fn read(loader: &Numbered, seen: &mut Batches, until: usize) -> LoaderState {
    loop {
        let mut pass = loader.iter_owned();
        loop {
            if seen.len() == until {
                let state = loader.state();
                assert_eq!(state, pass.state());
                return state;
            }
            let Some(batch) = pass.next() else { break };
            seen.push(batch.expect("every batch loads"));
        }
    }
}

fn three_epochs(loader: &Numbered) -> Batches {
    (0..3).flat_map(|_| pass(loader)).collect()
}

#[test]
fn stopped_anywhere_the_sequence_is_the_uninterrupted_one() {
    for_each_case(orders(), |workers, order| {
        let whole = built(ordered(order, 0));
        let expected = three_epochs(&whole);
        let first = built(ordered(order, 0)).num_batches();
        let last = expected.len();
        // Stops in one to three processes; the end of an epoch is the start of the next.
        let stops = [
            vec![0],
            vec![1],
            vec![first / 2],
            vec![first - 1],
            vec![first],
            vec![first + 1, last - 1],
            vec![1, 2, first + 2],
            vec![last - 1],
        ];
        for stops in stops {
            let mut seen = Vec::new();
            let mut state = None;
            for (process, stop) in stops.iter().chain([&last]).enumerate() {
                // Each under other workers, windows and parts.
                let other = [workers, 2, 0, 4][process];
                let builder = ordered(order, other)
                    .prefetch(process + 1)
                    .parts_per_batch(process + 1);
                let builder = match state.take() {
                    Some(state) => builder.restore(state),
                    None => builder,
                };
                let loader = built(builder);
                state = Some(through_a_file(&read(&loader, &mut seen, *stop)));
            }
            assert_eq!(seen, expected, "{}, stopped at {stops:?}", order.0);
        }
    });
}

#[test]
fn stops_at_random_places_in_a_row_change_nothing() {
    guarded(|| {
        let kinds = orders();
        let stops = prop::collection::vec((0..45_usize, 0..5_usize, 0..6_usize), 1..4);
        let case = (0..kinds.len(), stops, 0..9_usize);
        let mut runner = TestRunner::new(ProptestConfig::with_cases(64));
        let outcome = runner.run(&case, |(kind, mut stops, window)| {
            let expected = three_epochs(&built(ordered(kinds[kind], 0)));
            stops.sort_unstable();
            let (mut seen, mut state) = (Vec::new(), None);
            for (stop, workers, parts) in stops.into_iter().chain([(usize::MAX, 3, 2)]) {
                let builder = ordered(kinds[kind], workers).parts_per_batch(parts + 1);
                let loader = built(builder.prefetch(window));
                let saved = state.unwrap_or_else(|| loader.state());
                loader.restore(&saved).unwrap();
                prop_assert_eq!(loader.state(), saved);
                state = Some(read(&loader, &mut seen, stop.min(expected.len())));
            }
            prop_assert_eq!(seen, expected);
            Ok(())
        });
        outcome.unwrap();
    });
}

#[test]
fn what_is_ready_and_was_not_returned_is_made_again() {
    for_each_worker_count(|workers| {
        let builder = || loader(workers).shuffle(7).prefetch(32);
        let loader = builder().try_build(Numbers(100)).unwrap();
        let order = pass(&loader).concat();
        loader.set_epoch(0);
        let mut batches = loader.iter_owned();
        let taken: Vec<_> = batches.by_ref().take(5).map(Result::unwrap).collect();
        assert_eq!(taken.concat(), order[..5]);
        let state = loader.state();
        assert_eq!((state.epoch(), state.batch()), (0, 5));
        let data = Arc::new(Counting::new(100));
        let resumed = builder()
            .restore(state)
            .try_build(Arc::clone(&data))
            .unwrap();
        let rest = pass(&resumed).concat();
        assert_eq!(rest, order[5..], "the sixth comes next");
        let mut gets = data.gets();
        gets.sort_unstable();
        let mut expected = order[5..].to_vec();
        expected.sort_unstable();
        assert_eq!(gets, expected, "what was returned is not fetched again");
    });
}

#[test]
fn loading_ahead_does_not_change_the_state() {
    for_each_case([1, 2, 4, 8], |_, workers| {
        let held = Gate::closed();
        let pass_first = Arc::clone(&held);
        let data = Hooked::new(ORDERED, move |index| {
            if index > 20 {
                pass_first.wait();
            }
        });
        let loader = loader(workers).prefetch(30).try_build(data).unwrap();
        let mut batches = loader.iter_owned();
        batches.next().unwrap().unwrap();
        let before = loader.state();
        assert_eq!(before.batch(), 1);
        held.open();
        // All that may be made is made when the last of it comes.
        let ahead: Vec<_> = batches.by_ref().take(29).collect();
        assert_eq!((ahead.len(), loader.state().batch()), (29, 30));
        assert_eq!(
            before.batch(),
            1,
            "a state is what it was when it was taken"
        );
    });
}

#[test]
fn what_finished_or_was_dropped_is_over_and_what_failed_is_not() {
    for_each_worker_count(|workers| {
        let loader = loader(workers)
            .batch_size(4)
            .try_build(Numbers(10))
            .unwrap();
        let stands = || (loader.state().epoch(), loader.state().batch());
        assert_eq!(stands(), (0, 0), "before the first pass");
        let mut finished = loader.iter_owned();
        for batch in 1..3 {
            finished.next().unwrap().unwrap();
            assert_eq!(stands(), (0, batch));
        }
        finished.next().unwrap().unwrap();
        assert_eq!(stands(), (1, 0), "with the last batch");
        drop(finished);
        assert_eq!(stands(), (1, 0), "and not once more with its end");
        let early = loader.iter_owned();
        assert_eq!(stands(), (1, 0));
        drop(early);
        assert_eq!(stands(), (2, 0), "who drops a pass is done with its epoch");
        assert_eq!(loader.peek_epoch().take(2).count(), 2);
        assert_eq!(loader.iter_epoch(7).count(), 3);
        assert_eq!(stands(), (2, 0), "a look does not count");
        loader.set_epoch(9);
        assert_eq!(stands(), (9, 0));
    });
    for_each_worker_count(|workers| {
        let data = Hooked::new(10, |index| assert!(index != 6, "cannot be read"));
        let loader = loader(workers).batch_size(2).try_build(data).unwrap();
        let outcomes: Vec<_> = loader.iter().collect();
        assert!(outcomes.len() == 4 && outcomes[3].is_err());
        let state = loader.state();
        assert_eq!(
            (state.epoch(), state.batch()),
            (0, 3),
            "at the batch that failed"
        );
        drop(loader);
        let mended = burn_prefetch_tests::loader(workers).batch_size(2);
        let mended = mended.restore(state).build(Numbers(10));
        assert_eq!(pass(mended.as_ref()), [[6, 7], [8, 9]]);
    });
}

#[test]
fn batches_as_they_finish_leave_none_out_and_repeat_none() {
    let kinds = even_orders().into_iter().chain(batch_orders());
    for_each_case(kinds, |workers, order| {
        let unordered = |workers| ordered(order, workers).in_order(false).prefetch(6);
        let mut expected = pass(&built(ordered(order, 0)));
        for stop in [0, 1, expected.len() / 2, expected.len() - 1] {
            let first = built(unordered(workers));
            let mut pass_on = first.iter_owned();
            let mut seen: Vec<_> = pass_on.by_ref().take(stop).map(Result::unwrap).collect();
            let state = through_a_file(&pass_on.state());
            assert_eq!(state.batch(), stop);
            let second = built(unordered(4 - workers.min(4)).restore(state));
            seen.extend(pass(&second));
            seen.sort();
            expected.sort();
            assert_eq!(seen, expected, "{}, stopped at {stop}", order.0);
        }
    });
}

/// Batch 0 waits until two others have been returned: one is missing below the next.
#[test]
fn a_missing_batch_comes_first_in_order_or_not() {
    for_each_case(
        [(1, 2), (2, 2), (4, 4), (8, 8), (2, 0)],
        |_, (resumed, workers)| {
            let held = Gate::closed();
            let first = Arc::clone(&held);
            let data = Hooked::new(12, move |index| {
                if index == 0 {
                    first.wait();
                }
            });
            let unordered = loader(2)
                .batch_size(2)
                .prefetch(4)
                .parts_per_batch(1)
                .in_order(false);
            let unordered = unordered.try_build(data).unwrap();
            let mut batches = unordered.iter_owned();
            let seen: Vec<_> = batches.by_ref().take(2).map(Result::unwrap).collect();
            assert_eq!(seen, [[2, 3], [4, 5]]);
            let state = batches.state();
            held.open();
            let resumed = loader(resumed.min(workers)).batch_size(2).restore(state);
            let resumed = resumed.build(Numbers(12));
            assert_eq!(pass(resumed.as_ref()), [[0, 1], [6, 7], [8, 9], [10, 11]]);
        },
    );
}

#[test]
fn an_iterator_knows_its_epoch_batch_and_step() {
    for_each_case(orders(), |workers, order| {
        let loader = built(ordered(order, workers));
        let mut step = 0;
        for epoch in 0..3 {
            let all = loader.num_batches();
            let mut batches = loader.iter_owned();
            let here = |batches: &PrefetchIterator<'_, _>, batch| {
                let here = (batches.epoch(), batches.batch(), batches.global_step());
                assert_eq!(here, (epoch, batch, step + batch), "{}", order.0);
            };
            here(&batches, 0);
            for batch in 1..=all {
                batches.next().unwrap().unwrap();
                here(&batches, batch);
            }
            step += all;
        }
        let mut third = loader.iter_epoch(2);
        third.next().unwrap().unwrap();
        let resumed = built(ordered(order, workers).restore(third.state()));
        let resumed = resumed.iter_owned();
        assert_eq!(resumed.global_step(), third.global_step());
        assert_eq!((resumed.epoch(), resumed.batch()), (2, 1));
    });
}

#[test]
fn progress_goes_on_and_totals_stay() {
    for_each_worker_count(|workers| {
        let builder = || loader(workers).batch_size(3);
        let first = builder().try_build(Numbers(10)).unwrap();
        let mut batches = first.iter_owned();
        batches.by_ref().take(2).for_each(drop);
        let resumed = builder().restore(batches.state()).build(Numbers(10));
        assert_eq!(resumed.num_items(), 10);
        let mut rest = resumed.iter();
        for processed in [6, 9, 10] {
            let progress = rest.progress();
            assert_eq!(
                (progress.items_processed, progress.items_total),
                (processed, 10)
            );
            assert_eq!(progress.is_completed(), processed == 10);
            rest.next();
        }
        assert!(rest.next().is_none());
    });
}

/// burn-train keeps the loader that it is given and reads copies.
#[test]
fn copies_for_a_device_share_the_state_and_go_on() {
    for_each_worker_count(|workers| {
        let builder = || loader(workers).batch_size(3).shuffle(5);
        let reference = builder().try_build(Numbers(20)).unwrap();
        let epochs: Vec<_> = (0..3).map(|_| pass(&reference)).collect();
        let loader = Arc::new(builder().try_build(Numbers(20)).unwrap());
        let given: Arc<dyn DataLoader<_>> = Arc::<Numbered>::clone(&loader);
        let copy = given.to_device(&Device::flex());
        assert_eq!(pass(copy.as_ref()), epochs[0]);
        let mut second = copy.iter();
        second.by_ref().take(4).for_each(drop);
        let state = loader.state();
        assert_eq!((state.epoch(), state.batch()), (1, 4));
        drop(second);

        let resumed = builder().try_build(Numbers(20)).unwrap();
        resumed.restore(&state).unwrap();
        let copy = resumed.to_device(&Device::flex());
        assert_eq!(pass(copy.as_ref()), epochs[1][4..]);
        assert_eq!(pass(copy.as_ref()), epochs[2]);
    });
}

#[test]
fn a_slice_has_a_state_of_its_own() {
    for_each_worker_count(|workers| {
        let sliced = || {
            let whole = loader(workers).shuffle(5).try_build(Numbers(20)).unwrap();
            (
                whole.try_slice(0, 15).unwrap(),
                whole.try_slice(15, 20).unwrap(),
            )
        };
        let (train, valid) = sliced();
        let order = pass(&train);
        train.set_epoch(0);
        let mut batches = train.iter_owned();
        batches.by_ref().take(3).for_each(drop);
        assert_eq!(pass(&valid).len(), 5);
        let state = train.state();
        assert_eq!(
            (state.epoch(), state.batch()),
            (0, 3),
            "whatever was validated since"
        );
        let (train, valid) = sliced();
        assert!(valid.restore(&state).is_err(), "it is of other items");
        train.restore(&state).unwrap();
        assert_eq!(pass(&train), order[3..]);
    });
}

#[test]
fn a_warm_epoch_gives_way_to_a_restored_one() {
    for_each_case([1, 2, 4, 8], |_, workers| {
        let loader = loader(workers).shuffle(3).warm_next_epoch(true).prefetch(2);
        let loader = loader.try_build(Numbers(9)).unwrap();
        let first = pass(&loader);
        let mut second = loader.iter_owned();
        second.by_ref().take(4).for_each(drop);
        let state = second.state();
        let rest: Vec<_> = second.map(Result::unwrap).collect();
        loader.restore(&state).unwrap();
        assert_eq!(loader.epoch(), 1);
        assert_eq!(pass(&loader), rest);
        assert_ne!(pass(&loader), first);
        assert_eq!(loader.epoch(), 3);
        // The one that has begun is the same epoch, but from its start.
        loader.set_epoch(0);
        assert_eq!(pass(&loader), first);
        loader.restore(&state).unwrap();
        assert_eq!(pass(&loader), rest);
    });
}

#[test]
fn the_middle_of_a_thousand_million_items_is_there_at_once() {
    for_each_worker_count(|workers| {
        let builder = || loader(workers).batch_size(64).shuffle(3);
        let data = || Numbers(1_000_000_000);
        let loader = builder().try_build(data()).unwrap();
        let json = serde_json::to_string(&loader.state()).unwrap();
        let middle = 7_812_500;
        let state = json.replace("\"batch\":0", &format!("\"batch\":{middle}"));
        let state: LoaderState = serde_json::from_str(&state).unwrap();
        let resumed = builder().restore(state).try_build(data()).unwrap();
        let mut rest = resumed.iter_owned();
        assert_eq!((rest.batch(), rest.size_hint().1), (middle, Some(middle)));
        assert_eq!(rest.next().unwrap().unwrap().len(), 64);
        assert_eq!(rest.state().batch(), middle + 1);
    });
}
