//! A pass may own all it needs and outlive its loader; a look at a pass costs no epoch.

use std::sync::{Arc, Mutex};
use std::thread;

use burn::data::dataloader::{DataLoader, DataLoaderIterator};
use burn_prefetch::{DataLoaderBuilder, PrefetchDataLoader, PrefetchIterator, Workers};
use burn_prefetch_tests::{
    Batches, Broken, Collect, Fault, Gate, Hooked, LiveThreads, Numbers, Tally, Traces, cause,
    chunks, eventually, expect_crew, failure, for_each_worker_count, guarded, indices, loader,
    pass,
};

const LEN: usize = 40;

fn shuffled(workers: usize) -> PrefetchDataLoader<Vec<usize>> {
    let builder = loader(workers).batch_size(3).shuffle(6);
    builder
        .try_build(Numbers(LEN))
        .expect("the settings are good")
}

fn all(pass: PrefetchIterator<'_, Vec<usize>>) -> Batches {
    pass.map(Result::unwrap).collect()
}

#[test]
fn an_owned_pass_is_static_and_may_be_sent() {
    fn sent<T: Send + 'static>(value: T) -> T {
        value
    }
    guarded(|| {
        let loader = shuffled(0);
        assert_eq!(sent(loader.iter_owned()).count(), 14);
        assert_eq!(sent(loader.into_iter_owned()).count(), 14);
    });
}

#[test]
fn an_owned_pass_is_whole_on_another_thread_after_its_loader_is_gone() {
    for_each_worker_count(|workers| {
        let (traces, threads) = (Traces::none(), LiveThreads::default());
        let seen = threads.clone();
        let data = traces.dataset(LEN, move |_| seen.enter());
        let builder = traces.builder().num_workers(workers).batch_size(3);
        let loader = builder.try_build(data).unwrap();
        let kept = loader.iter_owned();
        let last = loader.into_iter_owned();
        for pass in [kept, last] {
            let read = move || -> Batches { pass.map(|batch| indices(&batch.unwrap())).collect() };
            let found = thread::scope(|scope| scope.spawn(read).join().unwrap());
            assert_eq!(found, chunks(LEN, 3));
        }
        assert_eq!(threads.now(), 0, "the last pass joins the workers");
        traces.wait_for_none();
    });
}

#[test]
fn an_owned_pass_that_is_left_early_leaves_nothing() {
    for_each_worker_count(|workers| {
        let traces = Traces::none();
        for round in 0..50 {
            let builder = traces.builder().num_workers(workers).batch_size(3);
            let data = traces.dataset(LEN, |_| {});
            let pass = builder.try_build(data).unwrap().into_iter_owned();
            assert_eq!(pass.take(round % 4).count(), round % 4);
        }
        traces.wait_for_none();
    });
}

#[test]
fn an_owned_pass_counts_as_an_epoch() {
    for_each_worker_count(|workers| {
        let (loader, other) = (shuffled(workers), shuffled(workers));
        let expected: Vec<_> = (0..5).map(|_| pass(&other)).collect();
        for (epoch, expected) in expected[..4].iter().enumerate() {
            let iterator = loader.iter_owned();
            assert_eq!((iterator.epoch(), loader.epoch()), (epoch, epoch + 1));
            assert_eq!(all(iterator), *expected);
        }
        let last = loader.into_iter_owned();
        assert_eq!(last.epoch(), 4);
        assert_eq!(all(last), expected[4]);
    });
}

#[test]
fn an_owned_pass_tells_its_progress_and_its_errors() {
    for_each_worker_count(|workers| {
        let mut iterator = shuffled(workers).into_iter_owned();
        assert_eq!(iterator.size_hint().1, Some(14));
        let mut seen = vec![iterator.progress().items_processed];
        while iterator.next().is_some() {
            seen.push(iterator.progress().items_processed);
        }
        let expected: Vec<_> = (0..=14).map(|batch| LEN.min(3 * batch)).collect();
        assert_eq!(seen, expected);
        let broken = loader(workers).try_build(Broken {
            len: LEN,
            at: 2,
            fault: Fault::Error,
        });
        let error = failure(broken.unwrap().into_iter_owned().skip(2));
        assert_eq!(cause(&error).place().batch, 2);
    });
}

#[test]
fn owned_passes_of_several_loaders_are_read_in_step() {
    for_each_worker_count(|workers| {
        let crew = Workers::new(workers);
        let pass = |seed| {
            let builder = DataLoaderBuilder::new(Collect);
            let loader = builder.workers(&crew).shuffle(seed).try_build(Numbers(LEN));
            loader.unwrap().into_iter_owned()
        };
        let mut passes: Vec<_> = (0..5).map(pass).collect();
        let mut found = vec![Vec::new(); passes.len()];
        for _ in 0..LEN {
            for (pass, found) in passes.iter_mut().zip(&mut found) {
                found.extend(pass.next().unwrap().unwrap());
            }
        }
        for mut found in found {
            found.sort_unstable();
            assert_eq!(found, (0..LEN).collect::<Vec<_>>());
        }
        drop(passes);
        expect_crew(&crew, workers, 0);
    });
}

/// The last thing that holds the workers is a pass that one of them drops.
#[test]
fn an_owned_pass_may_be_dropped_on_one_of_its_own_workers() {
    for_each_worker_count(|workers| {
        let (traces, threads) = (Traces::none(), LiveThreads::default());
        let kept: Arc<Mutex<Option<PrefetchIterator<'static, _>>>> = Arc::default();
        let (gate, inside, seen) = (Gate::closed(), Arc::clone(&kept), threads.clone());
        let blocked = Arc::clone(&gate);
        let data = traces.dataset(30, move |index| {
            seen.enter();
            if index == 5 {
                blocked.wait();
                drop(inside.lock().unwrap().take());
            }
        });
        let builder = traces.builder().num_workers(workers).prefetch(8);
        let mut pass = builder.try_build(data).unwrap().into_iter_owned();
        if workers == 0 {
            gate.open();
            assert_eq!(pass.by_ref().count(), 30);
            drop(pass);
        } else {
            assert!(pass.next().is_some());
            gate.wait_for_waiting(1);
            *kept.lock().unwrap() = Some(pass);
            gate.open();
            eventually("the workers end", || threads.now() == 0);
        }
        traces.wait_for_none();
    });
}

#[test]
fn a_look_shows_what_the_next_iter_brings_and_counts_nothing() {
    for_each_worker_count(|workers| {
        let loader = shuffled(workers);
        for epoch in 0..4 {
            let looks = [loader.peek_epoch(), loader.peek_epoch()];
            let first = looks.map(|mut look| {
                assert_eq!(look.epoch(), epoch);
                look.next().unwrap().unwrap()
            });
            assert_eq!(loader.epoch(), epoch);
            let whole = all(loader.peek_epoch());
            assert_eq!(loader.epoch(), epoch);
            let found = pass(&loader);
            assert_eq!(found, whole);
            assert_eq!(first, [found[0].clone(), found[0].clone()]);
        }
        loader.set_epoch(9);
        assert_eq!(all(loader.peek_epoch()), all(loader.iter_epoch(9)));
        assert_eq!((loader.epoch(), loader.iter_owned().epoch()), (9, 9));
    });
}

#[test]
fn a_look_costs_the_window_and_leaves_nothing() {
    for_each_worker_count(|workers| {
        let (traces, begun) = (Traces::none(), Tally::new(0));
        let counted = Arc::clone(&begun);
        let data = traces.dataset(LEN, move |_| counted.update(|begun| *begun += 1));
        let builder = traces.builder().num_workers(workers).prefetch(2);
        let loader = builder.try_build(data).unwrap();
        for _ in 0..10 {
            let first = loader.peek_epoch().next().unwrap().unwrap();
            assert_eq!(indices(&first), [0]);
            drop(first);
        }
        traces.wait_for_no_items();
        // The one that was returned, and two ahead.
        assert!(begun.now() <= 10 * 3, "{}", begun.now());
        assert_eq!(pass(&loader).len(), LEN);
    });
}

#[test]
fn a_look_does_not_disturb_an_open_pass() {
    for_each_worker_count(|workers| {
        let loader = loader(workers).try_build(Hooked::new(LEN, |_| {})).unwrap();
        let mut found = Vec::new();
        for batch in loader.iter() {
            found.push(batch.unwrap());
            assert_eq!(loader.peek_epoch().next().unwrap().unwrap(), [0]);
        }
        assert_eq!(found, chunks(LEN, 1));
        assert_eq!(loader.epoch(), 1);
    });
}
