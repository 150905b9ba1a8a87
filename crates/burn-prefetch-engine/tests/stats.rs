//! What is counted is what happened.
#![cfg(not(shuttle))]

mod doubles;

use std::time::{Duration, Instant};

use doubles::{Loader, Numbers};

const WORKERS: [usize; 5] = [0, 1, 2, 4, 8];

#[test]
fn every_next_is_counted_and_nothing_is_alive_at_the_end() {
    for workers in WORKERS {
        let loader = Loader::new(Numbers::new(), workers, (101, 4)).ahead(3);
        for _ in 0..3 {
            assert_eq!(loader.iter().count(), 26);
        }
        let stats = loader.account.stats();
        assert_eq!((stats.waits.count, stats.errors), (78, 0), "{workers}");
        assert_eq!(stats.batches.now, 0);
        assert!((1..=3).contains(&stats.batches.most), "{stats:?}");
        if workers == 0 {
            assert_eq!((stats.waits.ready, stats.workers.len()), (0, 0));
            assert!(stats.waits.sum > Duration::ZERO && stats.callers.fetch > Duration::ZERO);
        }
    }
}

#[test]
fn what_was_waited_is_part_of_the_time_that_passed() {
    for workers in WORKERS {
        let loader = Loader::new(Numbers::new(), workers, (101, 4)).ahead(3);
        for early in [26, 1, 2] {
            let mut passed = loader.account.stats().waits.elapsed;
            for _ in loader.iter().take(early) {
                let waits = loader.account.stats().waits;
                assert!(waits.elapsed >= passed, "time does not run backwards");
                passed = waits.elapsed;
            }
            let waits = loader.account.stats().waits;
            assert!(waits.first > Duration::ZERO && waits.first <= waits.sum);
            assert!(waits.p50 <= waits.p95 && waits.p95 <= waits.p99 && waits.p99 <= waits.max);
            assert!(waits.max <= waits.sum, "{waits:?}");
            // With 0 workers one wait in 16 stands for the others.
            assert!(workers == 0 || waits.sum <= waits.elapsed, "{waits:?}");
            assert!((0.0..=1.0).contains(&waits.share()), "{waits:?}");
        }
    }
}

#[test]
fn the_time_of_slow_items_and_of_workers_is_known() {
    fn spin(micros: u64) {
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_micros(micros) {}
    }
    let mut source = Numbers::fetching(|index| {
        spin(if index == 17 { 20_000 } else { 10 });
        Ok(())
    });
    source.on_assemble = Box::new(|first| {
        spin(if first == 8 { 2_000 } else { 1 });
        Ok(())
    });
    let loader = Loader::new(source, 2, (40, 4)).ahead(2);
    assert_eq!(loader.iter().count(), 10);
    let stats = loader.account.stats();
    assert_eq!(stats.slowest[0].index, 17, "{stats:?}");
    assert!(stats.slowest[0].took >= Duration::from_millis(20));
    let sum = |of: fn(&burn_prefetch_engine::Work) -> Duration| -> Duration {
        stats.workers.iter().map(|worker| of(&worker.work)).sum()
    };
    assert!(
        sum(|work| work.fetch) >= Duration::from_millis(20),
        "{stats:?}"
    );
    assert!(
        sum(|work| work.assemble) >= Duration::from_millis(2),
        "{stats:?}"
    );
    assert!(stats.waits.max > Duration::ZERO);
}

#[test]
fn finished_batches_behind_a_slow_one_are_counted() {
    let (go, gone) = std::sync::mpsc::channel();
    let (go, gone) = (std::sync::Mutex::new(go), std::sync::Mutex::new(gone));
    let source = Numbers::fetching(move |index| {
        match index {
            // Comes back when the third has been assembled.
            0 => gone.lock().unwrap().recv().unwrap(),
            3 => go.lock().unwrap().send(()).unwrap(),
            _ => {}
        }
        Ok(())
    });
    let loader = Loader::new(source, 2, (4, 1)).ahead(4);
    assert_eq!(loader.iter().map(Result::unwrap).count(), 4);
    let stats = loader.account.stats();
    assert!(stats.reorder_depth >= 2, "{stats:?}");
}

#[test]
fn errors_are_counted_and_drops_are_not() {
    let source = Numbers::fetching(|index| match index {
        9 => Err("bad".into()),
        _ => Ok(()),
    });
    let loader = Loader::new(source, 2, (40, 4)).ahead(2);
    for _ in 0..3 {
        assert_eq!(loader.iter().filter(Result::is_err).count(), 1);
    }
    assert_eq!(loader.iter().take(1).count(), 1);
    assert_eq!(loader.account.stats().errors, 3);
}

#[test]
fn workers_that_have_nothing_to_do_are_idle() {
    let loader = Loader::new(Numbers::new(), 2, (8, 1)).ahead(1);
    let mut pass = loader.iter();
    assert!(pass.next().is_some());
    let begun = Instant::now();
    let idle = || loader.pool.idle().into_iter().max().unwrap_or_default();
    while idle() < Duration::from_millis(1) {
        assert!(begun.elapsed() < Duration::from_secs(20));
        std::thread::yield_now();
    }
}
