//! The workers' life: as many as asked for, for all epochs, and gone with the last handle.

use std::sync::{Arc, Mutex};
use std::thread::{self, Builder};

use burn::data::dataloader::DataLoader;
use burn::tensor::Device;
use burn_prefetch_tests::{
    Gate, Hooked, LiveThreads, Numbers, Record, Tally, alone, capture_logs, expect_loader_threads,
    flat, for_each_worker_count, guarded, loader, loader_threads, logged, pass,
};

type Loader = Arc<dyn DataLoader<Vec<usize>>>;

/// Numbers whose `get` notes on which threads it ran.
fn noted(len: usize) -> (LiveThreads, Hooked<impl Fn(usize) + Send + Sync + Clone>) {
    let threads = LiveThreads::default();
    let seen = threads.clone();
    (threads, Hooked::new(len, move |_| seen.enter()))
}

#[test]
fn fifty_epochs_of_two_alternating_loaders_run_on_the_same_threads() {
    for_each_worker_count(|workers| {
        let _alone = alone();
        let train = loader(workers).batch_size(4).shuffle(1).build(Numbers(16));
        let valid = loader(workers).batch_size(4).build(Numbers(16));
        let ids = || {
            let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
            let named = tasks.filter(|task| {
                let name = std::fs::read_to_string(task.path().join("comm")).unwrap_or_default();
                name.starts_with("prefetch-")
            });
            let mut ids: Vec<_> = named.map(|task| task.file_name()).collect();
            ids.sort_unstable();
            ids
        };
        let mut first = None;
        for epoch in 0..50 {
            assert_eq!(pass(train.as_ref()).len() + pass(valid.as_ref()).len(), 8);
            expect_loader_threads(2 * workers);
            let now = ids();
            assert_eq!(
                *first.get_or_insert(now.clone()),
                now,
                "new threads in epoch {epoch}"
            );
        }
        drop((train, valid));
        expect_loader_threads(0);
    });
}

#[test]
fn dropping_the_last_handle_joins_the_workers() {
    for_each_worker_count(|workers| {
        let _alone = alone();
        let (threads, data) = noted(200);
        let loader = loader(workers).build(data);
        let copies: Vec<_> = (0..3).map(|_| loader.slice(0, 200)).collect();
        // On a thread of its own: without workers it is the reader that fetches.
        let read = |loader: &Loader| {
            thread::scope(|scope| {
                let reader = scope.spawn(|| assert_eq!(pass(loader.as_ref()).len(), 200));
                // The scope alone would not wait for the thread to end, only for its work.
                reader.join().expect("every pass is whole");
            });
        };
        read(&loader);
        copies.iter().for_each(read);
        assert!(threads.now() <= workers);
        drop(loader);
        read(&copies[0]);
        drop(copies);
        assert_eq!(threads.now(), 0, "a joined thread has ended");
    });
}

#[test]
fn a_reader_in_the_middle_of_a_pass_keeps_nothing_alive_after_its_loader() {
    for_each_worker_count(|workers| {
        let _alone = alone();
        let (threads, data) = noted(200);
        thread::scope(|scope| {
            let reader = scope.spawn(|| {
                let loader = loader(workers).build(data);
                assert_eq!(loader.iter().take(7).count(), 7);
            });
            reader.join().expect("seven batches are there");
        });
        assert_eq!(threads.now(), 0);
    });
}

#[test]
fn without_persistence_the_threads_end_with_the_last_reader() {
    for_each_worker_count(|workers| {
        let _alone = alone();
        let loader = loader(workers)
            .batch_size(2)
            .persistent_workers(false)
            .build(Numbers(40));
        for _ in 0..20 {
            let (mut one, mut two) = (loader.iter(), loader.iter());
            assert!(one.next().is_some() && two.next().is_some());
            // Two readers share them.
            expect_loader_threads(workers);
            drop(one);
            assert_eq!(two.by_ref().count(), 19);
            drop(two);
            expect_loader_threads(0);
        }
    });
}

#[test]
fn with_persistence_they_stay_between_passes() {
    for_each_worker_count(|workers| {
        let _alone = alone();
        let loader = loader(workers)
            .batch_size(2)
            .persistent_workers(true)
            .build(Numbers(40));
        for _ in 0..5 {
            assert_eq!(pass(loader.as_ref()).len(), 20);
            expect_loader_threads(workers);
        }
        drop(loader);
        expect_loader_threads(0);
    });
}

/// The dataset holds a handle of its own loader, and lets it go on a worker.
#[test]
fn the_last_handle_may_be_dropped_on_one_of_its_own_workers() {
    for_each_worker_count(|workers| {
        let _alone = alone();
        let handle: Arc<Mutex<Option<Loader>>> = Arc::default();
        let (gate, inside) = (Gate::closed(), Arc::clone(&handle));
        let blocked = Arc::clone(&gate);
        let data = Hooked::new(30, move |index| {
            if index == 5 {
                blocked.wait();
                drop(inside.lock().unwrap().take());
            }
        });
        let built = loader(workers).prefetch(8).build(data);
        *handle.lock().unwrap() = Some(Arc::clone(&built));
        drop(handle);
        let mut iterator = built.iter();
        if workers == 0 {
            gate.open();
            assert_eq!(iterator.by_ref().count(), 30);
        } else {
            assert!(iterator.next().is_some());
            gate.wait_for_waiting(1);
        }
        drop(iterator);
        drop(built);
        gate.open();
        expect_loader_threads(0);
    });
}

#[test]
fn handles_may_be_dropped_on_any_thread() {
    for_each_worker_count(|workers| {
        let _alone = alone();
        let (threads, data) = noted(64);
        let loader = loader(workers).batch_size(2).build(data);
        let readers: Vec<_> = (0..4)
            .map(|part| {
                let copy = loader.slice(part, part + 60);
                let name = format!("reader {part}");
                let read = move || assert_eq!(pass(copy.as_ref()).len(), 30);
                Builder::new().name(name).spawn(read).unwrap()
            })
            .collect();
        drop(loader);
        for reader in readers {
            reader.join().expect("every reader gets its whole pass");
        }
        assert_eq!(threads.now(), 0);
    });
}

#[test]
fn a_family_shares_one_set_of_threads() {
    for_each_worker_count(|workers| {
        let _alone = alone();
        let loader = loader(workers).batch_size(3).shuffle(8).build(Numbers(30));
        let copies: Vec<_> = (0..5)
            .flat_map(|part| {
                let slice = loader.slice(part, part + 20);
                let copy = slice.to_device(&Device::flex());
                [slice, copy]
            })
            .collect();
        let iterators: Vec<_> = copies.iter().map(|copy| copy.iter()).collect();
        for iterator in iterators {
            assert_eq!(iterator.flat_map(Result::unwrap).count(), 20);
        }
        assert_eq!(pass(loader.as_ref()).len(), 10);
        let expected: Vec<_> = (0..workers)
            .map(|worker| format!("prefetch-{worker}"))
            .collect();
        expect_loader_threads(workers);
        assert_eq!(loader_threads(), expected);
        drop(loader);
        assert_eq!(loader_threads(), expected, "copies keep the threads");
        assert_eq!(flat(&pass(copies[3].as_ref())).len(), 20);
        drop(copies);
        expect_loader_threads(0);
    });
}

#[test]
fn nothing_of_a_dropped_reader_is_begun_any_more() {
    for_each_worker_count(|workers| {
        let _alone = alone();
        let (gate, begun) = (Gate::closed(), Tally::new(0));
        let (blocked, counted) = (Arc::clone(&gate), Arc::clone(&begun));
        let data = Hooked::new(100, move |_| {
            counted.update(|begun| *begun += 1);
            blocked.wait();
        });
        let loader = loader(workers).prefetch(100).build(data);
        let iterator = loader.iter();
        gate.wait_for_waiting(workers);
        drop(iterator);
        let inside = begun.now();
        assert_eq!(inside, workers, "each is in its first item");
        gate.open();
        drop(loader);
        assert_eq!(
            begun.now(),
            inside,
            "the loader's end waits for these items and no others"
        );
    });
}

/// Takes the five seconds that a loader's end waits for user code that does not return.
#[test]
fn a_loader_ends_though_an_item_does_not() {
    guarded(|| {
        let _alone = alone();
        capture_logs();
        let gates = [1, 2, 4, 8].map(|workers| (workers, Gate::closed()));
        let end_while_stuck = |(workers, gate): &(usize, Arc<Gate>)| {
            let stuck = Arc::clone(gate);
            let data = Hooked::new(100, move |_| stuck.wait());
            let loader = loader(*workers).prefetch(100).build(data);
            let iterator = loader.iter();
            gate.wait_for_waiting(*workers);
            drop(iterator);
            drop(loader);
        };
        thread::scope(|scope| {
            for one in &gates {
                scope.spawn(move || end_while_stuck(one));
            }
        });
        let warnings = logged("still inside the dataset");
        for (workers, gate) in gates {
            let its_own = |line: &&Record| line.text.contains(&workers.to_string());
            assert!(
                warnings.iter().any(|line| its_own(&line)),
                "{workers} of: {warnings:?}"
            );
            gate.open();
        }
        assert_eq!(warnings.len(), 4);
        expect_loader_threads(0);
    });
}
