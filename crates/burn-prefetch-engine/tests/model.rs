//! The engine under the model checker: every scenario in many schedules.
//!
//! Run by `scripts/model-check.sh`, which sets `--cfg shuttle`. Each scenario is shown to catch a
//! planted bug by `scripts/planted-bugs.sh`.
#![cfg(shuttle)]

mod doubles;

use std::sync::Arc;

use burn_prefetch_engine::{Lifetime, LoadError};
use doubles::{Loader, Numbers};
use shuttle::sync::mpsc::channel;
use shuttle::sync::{Condvar, Mutex};

/// How many schedules of each scenario; `MODEL_ITERATIONS` sets another number.
fn iterations() -> usize {
    std::env::var("MODEL_ITERATIONS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(2_000)
}

/// Half of the schedules at random, half with few but adversarial switches.
fn check(scenario: impl Fn() + Send + Sync + Clone + 'static) {
    shuttle::check_random(scenario.clone(), iterations());
    shuttle::check_pct(scenario, iterations(), 3);
}

fn drained(loader: &Loader) {
    let batches: Vec<_> = loader.iter().map(Result::unwrap).collect();
    assert_eq!(batches, loader.expected());
}

#[test]
fn one_reader_gets_every_batch_in_order() {
    check(|| drained(&Loader::new(Numbers::new(), 2, (6, 2)).ahead(2).parts(2)));
}

#[test]
fn a_window_of_none_hands_over_one_by_one() {
    check(|| drained(&Loader::new(Numbers::new(), 2, (3, 1)).ahead(0)));
}

#[test]
fn two_readers_on_one_pool() {
    check(|| {
        let loader = Loader::new(Numbers::new(), 2, (4, 1)).ahead(1);
        let other = loader.clone();
        let thread = shuttle::thread::spawn(move || drained(&other));
        drained(&loader);
        thread.join().unwrap();
    });
}

#[test]
fn two_readers_on_one_thread_in_step() {
    check(|| {
        let loader = Loader::new(Numbers::new(), 1, (3, 1)).ahead(1);
        let _unread = loader.iter();
        assert_eq!(loader.iter().zip(loader.iter()).count(), 3);
    });
}

#[test]
fn a_reader_dropped_early_leaves_the_next_pass_whole() {
    check(|| {
        let loader = Loader::new(Numbers::new(), 2, (6, 2)).ahead(2).parts(2);
        assert_eq!(loader.iter().take(1).count(), 1);
        drained(&loader);
    });
}

#[test]
fn a_reader_that_stops_finds_its_window_full() {
    check(|| {
        let started = Arc::new((Mutex::new(0), Condvar::new()));
        let count = Arc::clone(&started);
        let source = Numbers::fetching(move |_| {
            *count.0.lock().unwrap() += 1;
            count.1.notify_one();
            Ok(())
        });
        let loader = Loader::new(source, 1, (6, 1)).ahead(2);
        let mut pass = loader.iter();
        for returned in 1..=3 {
            assert!(pass.next().is_some());
            let all = started.0.lock().unwrap();
            drop(
                started
                    .1
                    .wait_while(all, |all| *all < returned + 2)
                    .unwrap(),
            );
        }
    });
}

#[test]
fn a_panic_stands_at_its_place_and_the_pool_lives_on() {
    check(|| {
        let source = Numbers::fetching(|index| {
            // Not the hook's own text: the panic hook is the checker's.
            if index == 2 || index == 3 {
                std::panic::resume_unwind(Box::new("bad"))
            } else {
                Ok(())
            }
        });
        let loader = Loader::new(source, 2, (6, 2)).ahead(2).parts(2);
        for _ in 0..2 {
            let outcomes: Vec<_> = loader.iter().collect();
            assert_eq!(outcomes.len(), 2);
            let error = outcomes[1].as_ref().unwrap_err();
            assert!(matches!(error, LoadError::Panic { .. }));
            assert_eq!((error.place().batch, error.place().index), (1, Some(2)));
        }
    });
}

#[test]
fn a_reader_inside_a_fetch_on_the_same_pool() {
    check(|| {
        let inner = Loader::new(Numbers::new(), 1, (2, 1)).ahead(1);
        let nested = inner.clone();
        let source = Numbers::fetching(move |_| {
            drained(&nested);
            Ok(())
        });
        drained(&Loader {
            source: Arc::new(source),
            ..inner
        });
    });
}

#[test]
fn the_last_handle_dropped_on_a_worker() {
    check(|| {
        let handle = Arc::new(Mutex::new(None::<Loader>));
        let (say_begun, begun) = channel();
        let (say_go, go) = channel();
        let (say_dropped, dropped) = channel();
        let talk = Mutex::new((say_begun, go, say_dropped));
        let owned = Arc::clone(&handle);
        let source = Numbers::fetching(move |index| {
            if index == 1 {
                let talk = talk.lock().unwrap();
                talk.0.send(()).unwrap();
                talk.1.recv().unwrap();
                let last = owned.lock().unwrap().take();
                drop(last);
                talk.2.send(()).unwrap();
            }
            Ok(())
        });
        let loader = Loader::new(source, 1, (3, 1)).ahead(2);
        let mut pass = loader.iter();
        *handle.lock().unwrap() = Some(loader);
        assert!(pass.next().is_some());
        begun.recv().unwrap();
        drop(pass);
        say_go.send(()).unwrap();
        dropped.recv().unwrap();
    });
}

#[test]
fn workers_that_end_with_the_last_reader_start_again() {
    check(|| {
        let loader = Loader::new(Numbers::new(), 1, (2, 1))
            .ahead(1)
            .lifetime(Lifetime::Readers);
        drained(&loader);
        let pass = loader.iter();
        assert_eq!(loader.pool.live(), 1);
        assert_eq!(pass.count(), 2);
    });
}

#[test]
fn a_pool_dropped_while_its_workers_are_busy_ends_them() {
    check(|| {
        let loader = Loader::new(Numbers::new(), 2, (6, 1)).ahead(3);
        let mut pass = loader.iter();
        assert!(pass.next().is_some());
        drop(loader);
        drop(pass);
    });
}
