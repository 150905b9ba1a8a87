//! All workers share the oldest work: nobody owns a share, and a slow item delays only its own part.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use burn_prefetch::context;
use burn_prefetch_tests::{
    Gate, Hooked, Tally, Waits, chunks, for_each_worker_count, loader, pass,
};

#[test]
fn all_workers_fetch_for_one_batch() {
    for_each_worker_count(|workers| {
        let (gate, on) = (Gate::closed(), Tally::new(BTreeSet::new()));
        let (blocked, seen) = (Arc::clone(&gate), Arc::clone(&on));
        let data = Hooked::new(8, move |_| {
            let here = context().expect("get runs inside a loader");
            seen.update(|seen| seen.insert(here.worker));
            blocked.wait();
        });
        let loader = loader(workers)
            .batch_size(8)
            .prefetch(1)
            .parts_per_batch(8)
            .build(data);
        thread::scope(|scope| {
            scope.spawn(|| assert_eq!(pass(loader.as_ref()), chunks(8, 8)));
            // Each of them holds one item of the one batch there is.
            gate.wait_for_waiting(workers.max(1));
            gate.open();
        });
        assert_eq!(on.now().len(), workers.max(1));
    });
}

#[test]
fn before_a_cost_is_known_a_batch_has_a_part_for_every_worker() {
    for_each_worker_count(|workers| {
        let gate = Gate::closed();
        let blocked = Arc::clone(&gate);
        let data = Hooked::new(64, move |_| blocked.wait());
        let loader = loader(workers).batch_size(64).build(data);
        thread::scope(|scope| {
            scope.spawn(|| assert_eq!(pass(loader.as_ref()), chunks(64, 64)));
            gate.wait_for_waiting(workers.max(1));
            gate.open();
        });
    });
}

#[test]
fn a_worker_that_is_stuck_holds_only_its_own_part() {
    for_each_worker_count(|workers| {
        if workers < 2 {
            // One thread cannot pass itself; that it ends at all is held elsewhere.
            return;
        }
        let (gate, done) = (Gate::closed(), Tally::new(0));
        let (blocked, counted) = (Arc::clone(&gate), Arc::clone(&done));
        let data = Hooked::new(64, move |index| {
            if index == 3 {
                blocked.wait();
            }
            counted.update(|done| *done += 1);
        });
        let loader = loader(workers)
            .batch_size(8)
            .prefetch(4)
            .parts_per_batch(8)
            .build(data);
        thread::scope(|scope| {
            scope.spawn(|| assert_eq!(pass(loader.as_ref()), chunks(64, 8)));
            gate.wait_for_waiting(1);
            // All of the window, that is four batches, but the one item.
            done.wait_until(|&done| done == 4 * 8 - 1);
            gate.open();
        });
        assert_eq!(done.now(), 64);
    });
}

/// The items in the first quarter are the slow ones; Burn's loader gives all of them to one worker.
#[test]
fn slow_items_that_lie_together_are_shared_by_all() {
    for_each_worker_count(|workers| {
        let (gate, on) = (Gate::closed(), Tally::new(BTreeSet::new()));
        let (blocked, seen) = (Arc::clone(&gate), Arc::clone(&on));
        let data = Hooked::new(100, move |index| {
            if index < 25 {
                let here = context().expect("get runs inside a loader");
                seen.update(|seen| seen.insert(here.worker));
                blocked.wait();
            }
        });
        let loader = loader(workers).prefetch_factor(1).build(data);
        thread::scope(|scope| {
            scope.spawn(|| assert_eq!(pass(loader.as_ref()), chunks(100, 1)));
            gate.wait_for_waiting(workers.max(1));
            gate.open();
        });
        assert_eq!(on.now().len(), workers.max(1));
    });
}

/// Only a clock shows this one: 24 waits of 20 ms take 480 ms alone, and 240 ms or less shared.
#[test]
fn waiting_items_are_waited_for_at_the_same_time() {
    for_each_worker_count(|workers| {
        let wait = Duration::from_millis(20);
        let loader = loader(workers).batch_size(2).build(Waits {
            len: 96,
            slow: 24,
            wait,
        });
        let begun = Instant::now();
        assert_eq!(pass(loader.as_ref()), chunks(96, 2));
        let (took, alone) = (begun.elapsed(), wait * 24);
        if workers < 2 {
            assert!(took >= alone, "one thread cannot wait twice at once");
        } else {
            assert!(
                took < alone,
                "{workers} workers took {took:?}, one takes {alone:?}"
            );
        }
    });
}
