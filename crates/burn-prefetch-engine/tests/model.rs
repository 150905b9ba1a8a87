//! The engine under the model checker: every scenario in many schedules.
//!
//! Run by `scripts/model-check.sh`, which sets `--cfg shuttle`. Each scenario is shown to catch a
//! planted bug by `scripts/planted-bugs.py`.
#![cfg(shuttle)]

mod doubles;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use burn_prefetch_engine::{
    Background, Lifetime, LoadError, MemoryBudget, Patience, Standing, WorkerInit,
};
use doubles::{Declared, Loader, Numbers};
use shuttle::sync::mpsc::channel;
use shuttle::sync::{Condvar, Mutex};
use shuttle::thread::{spawn, yield_now};

/// What the checker's clock reaches at random.
const TIMEOUT: Duration = Duration::from_millis(1);

/// Holds up whoever comes until it is open.
#[derive(Default)]
struct Gate {
    open: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    fn open(&self) {
        *self.open.lock().unwrap() = true;
        self.opened.notify_all();
    }

    fn pass(&self) {
        let open = self.open.lock().unwrap();
        drop(self.opened.wait_while(open, |open| !*open).unwrap());
    }
}

/// The same loader, whose readers wait for ever.
fn patient(loader: &Loader) -> Loader {
    let mut patient = loader.clone();
    patient.config.patience = Patience::default();
    patient
}

/// Waits until no thread is given up any more.
fn all_came_back(loader: &Loader) {
    while loader.pool.disowned() > 0 {
        yield_now();
    }
}

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
        let thread = spawn(move || drained(&other));
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

#[test]
fn a_stuck_worker_is_replaced_and_ends_when_it_comes_back() {
    check(|| {
        let gate = Arc::new(Gate::default());
        let (stuck, first) = (Arc::clone(&gate), AtomicUsize::new(0));
        let source = Numbers::fetching(move |index| {
            if index == 0 && first.fetch_add(1, SeqCst) == 0 {
                stuck.pass();
            }
            Ok(())
        });
        let loader = Loader::new(source, 1, (2, 1)).ahead(1).timeout(TIMEOUT);
        let outcome = loader.iter().next().unwrap();
        assert!(matches!(outcome, Err(LoadError::Timeout { .. })));
        // The clock may not have run long enough at each worker to give it up.
        if loader.pool.disowned() == 0 {
            gate.open();
        }
        drained(&patient(&loader));
        gate.open();
        all_came_back(&loader);
        assert_eq!(loader.pool.live(), 1);
        drained(&patient(&loader));
    });
}

#[test]
fn others_are_served_by_who_takes_the_place_of_a_stuck_worker() {
    check(|| {
        let gate = Arc::new(Gate::default());
        let stuck = Arc::clone(&gate);
        let source = Numbers::fetching(move |_| {
            stuck.pass();
            Ok(())
        });
        let loader = Loader::new(source, 1, (1, 1)).ahead(1).timeout(TIMEOUT);
        let other = patient(&loader).over(Numbers::new());
        let waiting = spawn(move || assert!(other.iter().next().is_some()));
        let outcome = loader.iter().next().unwrap();
        assert!(matches!(outcome, Err(LoadError::Timeout { .. })));
        assert_eq!(loader.pool.live(), 1);
        if loader.pool.disowned() == 0 {
            gate.open();
        }
        waiting.join().unwrap();
        gate.open();
        all_came_back(&loader);
    });
}

#[test]
fn no_more_threads_are_given_up_than_there_are_workers() {
    check(|| {
        let gate = Arc::new(Gate::default());
        let stuck = Arc::clone(&gate);
        let source = Numbers::fetching(move |_| {
            stuck.pass();
            Ok(())
        });
        let loader = Loader::new(source, 1, (2, 1)).ahead(1).timeout(TIMEOUT);
        let (other, told) = (patient(&loader), Arc::new(AtomicUsize::new(0)));
        let tells = Arc::clone(&told);
        let waiting = spawn(move || {
            let outcome = other.iter().next().unwrap();
            tells.fetch_add(usize::from(outcome.is_err()), SeqCst);
        });
        let mut exhausted = false;
        for _ in 0..6 {
            let error = loader.iter().next().unwrap().unwrap_err();
            exhausted |= matches!(error, LoadError::Exhausted { .. });
            assert!(loader.pool.disowned() <= 1);
        }
        if exhausted {
            // Who waits without a timeout is told too: nobody will serve it.
            waiting.join().unwrap();
            assert_eq!(told.load(SeqCst), 1);
            gate.open();
        } else {
            gate.open();
            waiting.join().unwrap();
        }
        all_came_back(&loader);
        drained(&patient(&loader));
    });
}

#[test]
fn loaders_three_deep_on_one_worker_under_a_lock() {
    check(|| {
        let innermost = Loader::new(Numbers::new(), 1, (2, 1)).ahead(1);
        let nested = innermost.clone();
        let middle = innermost.over(Numbers::fetching(move |_| {
            drained(&nested);
            Ok(())
        }));
        let (nested, lock) = (middle.clone(), Mutex::new(()));
        let outer = middle.over(Numbers::fetching(move |_| {
            let _held = lock.lock().unwrap();
            drained(&nested);
            Ok(())
        }));
        drained(&outer);
    });
}

#[test]
fn a_reader_that_asks_comes_before_the_queue_of_another() {
    check(|| {
        let fetched = Arc::new(AtomicUsize::new(0));
        let (counted, counts) = (Arc::clone(&fetched), Arc::clone(&fetched));
        let busy = Loader::new(
            Numbers::fetching(move |_| {
                counted.fetch_add(1, SeqCst);
                Ok(())
            }),
            1,
            (8, 1),
        )
        .ahead(8);
        let (before, at_fetch) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let seen = Arc::clone(&at_fetch);
        let mut asks = busy.over(Numbers::fetching(move |index| {
            if index == 0 {
                seen.store(counts.load(SeqCst), SeqCst);
            }
            Ok(())
        }));
        asks.config.limits.ahead = burn_prefetch_engine::Ahead::Fixed(1);
        let unread = busy.iter();
        let mut asking = asks.iter();
        before.store(fetched.load(SeqCst), SeqCst);
        assert!(asking.next().is_some());
        // The one that the worker may have claimed already, and one in its turn.
        let waited = at_fetch.load(SeqCst).saturating_sub(before.load(SeqCst));
        assert!(waited <= 2, "{waited} batches came first");
        drop(unread);
    });
}

#[test]
fn batches_as_they_finish_are_the_same_batches() {
    check(|| {
        let loader = Loader::new(Numbers::new(), 2, (4, 1)).ahead(2).unordered();
        let mut batches: Vec<_> = loader.iter().map(Result::unwrap).collect();
        batches.sort_unstable();
        assert_eq!(batches, loader.expected());
    });
}

#[test]
fn a_resumed_pass_returns_what_was_missing_and_then_the_rest() {
    check(|| {
        let standing = || Standing::new(3, vec![1]).unwrap();
        let loader = Loader::new(Numbers::new(), 2, (5, 1)).ahead(2);
        let batches: Vec<_> = loader.resume(0, standing()).map(Result::unwrap).collect();
        assert_eq!(batches, [[1], [3], [4]]);
        let mut pass = loader.unordered().resume(0, standing());
        assert!(pass.next().is_some());
        let stands = pass.standing().clone();
        let mut left: Vec<_> = pass.map(Result::unwrap).collect();
        left.sort_unstable();
        assert_eq!(left[0], [stands.first_missing()]);
        assert_eq!((left.len(), stands.returned()), (2, 3));
    });
}

#[test]
fn a_warm_epoch_is_whole_and_within_the_window() {
    check(|| {
        let begun = Arc::new((Mutex::new(0), Condvar::new()));
        let count = Arc::clone(&begun);
        let source = Numbers::fetching(move |_| {
            *count.0.lock().unwrap() += 1;
            count.1.notify_one();
            Ok(())
        });
        let loader = Loader::new(source, 2, (3, 1)).ahead(2).warm();
        let mut pass = loader.iter();
        for epoch in 0..2 {
            for batch in 0..3 {
                let asked = 3 * epoch + batch + 1;
                assert_eq!(pass.next().unwrap().unwrap(), [batch]);
                assert!(*begun.0.lock().unwrap() <= asked + 2);
            }
            assert!(pass.next().is_none());
            // As many as may be, and nobody has asked for them.
            let all = begun.0.lock().unwrap();
            let full = |all: &mut usize| *all < 3 * (epoch + 1) + 2;
            drop(begun.1.wait_while(all, full).unwrap());
            let next = pass.take_next().unwrap();
            assert_eq!(next.epoch(), epoch + 1);
            pass = next;
        }
        // The third is never read, and nothing of it stays.
        drop(pass);
        while Arc::strong_count(&loader.source) > 1 {
            yield_now();
        }
        drained(&loader);
    });
}

#[test]
fn a_thread_that_cannot_be_prepared_is_told_of_and_tried_again() {
    check(|| {
        let tries = AtomicUsize::new(0);
        let init = WorkerInit::new(move |_| match tries.fetch_add(1, SeqCst) {
            0 => Err("no".into()),
            _ => Ok(()),
        });
        let loader = Loader::new(Numbers::new(), 1, (2, 1)).ahead(1).init(init);
        let outcomes: Vec<_> = loader.iter().collect();
        assert_eq!(outcomes.len(), 1);
        assert!(matches!(outcomes[0], Err(LoadError::Init { .. })));
        drained(&loader);
    });
}

#[test]
fn an_iterator_run_ahead_is_whole_and_ends_early() {
    check(|| {
        let background = Background::new();
        for limit in [0, 1, 2] {
            let mut items = 0..3;
            let ahead = background.run((0, limit), move |outlet| outlet.put_all(|| items.next()));
            let items: Vec<_> = ahead.map(Result::unwrap).collect();
            assert_eq!(items, [0, 1, 2]);
        }
        let (begins, begun) = channel();
        let mut ahead = background.run((0, 1), move |outlet| {
            outlet.put_all(|| begins.send(()).ok());
        });
        assert!(ahead.next().is_some());
        // The first, and without being asked for the second.
        assert!(begun.recv().is_ok() && begun.recv().is_ok());
        drop(ahead);
        // The thread lets go of what it had.
        assert!(begun.into_iter().count() <= 1);
    });
}

#[test]
fn batches_uploaded_by_another_thread_come_in_order() {
    check(|| drained(&Loader::new(Numbers::new(), 1, (3, 1)).ahead(2).uploads(0)));
    check(|| drained(&Loader::new(Numbers::new(), 2, (4, 1)).ahead(2).uploads(1)));
}

/// The reader looks at what has been uploaded and does not ask for more.
#[test]
fn a_batch_returned_lets_the_next_be_uploaded() {
    check(|| {
        let uploaded = Arc::new((Mutex::new(0), Condvar::new()));
        let count = Arc::clone(&uploaded);
        let source = Numbers::uploading(move |_| {
            *count.0.lock().unwrap() += 1;
            count.1.notify_one();
            Ok(())
        });
        let loader = Loader::new(source, 1, (4, 1)).ahead(4).uploads(1);
        let mut pass = loader.iter();
        for returned in 1..=3 {
            assert!(pass.next().is_some());
            let all = uploaded.0.lock().unwrap();
            let all = uploaded
                .1
                .wait_while(all, |all| *all < returned + 1)
                .unwrap();
            assert!(*all <= returned + 1, "one ahead and no more");
        }
    });
}

#[test]
fn a_reader_inside_an_upload_uploads_itself() {
    check(|| {
        let inner = Loader::new(Numbers::new(), 1, (2, 1)).ahead(1).uploads(0);
        let inside = inner.clone();
        let source = Numbers::uploading(move |_| {
            drained(&inside);
            Ok(())
        });
        let mut outer = inner.over(source);
        outer.plan = Loader::new(Numbers::new(), 0, (1, 1)).plan;
        drained(&outer);
    });
}

#[test]
fn a_pass_that_is_uploaded_ends_early() {
    check(|| {
        let loader = Loader::new(Numbers::new(), 1, (4, 1))
            .ahead(3)
            .uploads(2)
            .warm();
        assert_eq!(loader.iter().take(1).count(), 1);
        drained(&loader);
    });
}

fn hundred(_first: usize) -> u64 {
    100
}

/// Waits until every byte is back and no reader is left.
fn all_returned(budget: &MemoryBudget) {
    while budget.stats().used.now > 0 || budget.stats().readers > 0 {
        yield_now();
    }
}

#[test]
fn two_readers_share_a_budget_of_one_batch() {
    check(|| {
        let budget = MemoryBudget::new(100);
        let sized = || Numbers::new().sized(hundred, Declared::AtMost(100));
        let loader = Loader::new(sized(), 1, (3, 1)).ahead(2).budget(&budget);
        let other = Loader::new(sized(), 1, (3, 1)).ahead(2).budget(&budget);
        let thread = spawn(move || drained(&other));
        drained(&loader);
        thread.join().unwrap();
        assert!(budget.stats().used.most <= 200);
        drop(loader);
        all_returned(&budget);
    });
}

#[test]
fn two_readers_on_one_thread_with_room_for_one_batch() {
    check(|| {
        let budget = MemoryBudget::new(100);
        let source = Numbers::new().sized(hundred, Declared::AtMost(100));
        let loader = Loader::new(source, 1, (3, 1)).ahead(2).budget(&budget);
        assert_eq!(loader.iter().zip(loader.iter()).count(), 3);
        assert!(budget.stats().used.most <= 200);
    });
}

#[test]
fn a_budget_of_one_batch_is_one_batch_at_every_moment() {
    check(|| {
        let budget = MemoryBudget::new(100);
        let source = Numbers::new().sized(hundred, Declared::AtMost(100));
        let loader = Loader::new(source, 2, (4, 1)).ahead(2).budget(&budget);
        drained(&loader);
        assert_eq!(budget.stats().used.most, 100);
        all_returned(&budget);
    });
}

#[test]
fn who_was_refused_is_told_of_the_bytes_of_another() {
    check(|| {
        let begun = Arc::new((Mutex::new(0), Condvar::new()));
        let count = Arc::clone(&begun);
        let source = Numbers::fetching(move |_| {
            *count.0.lock().unwrap() += 1;
            count.1.notify_one();
            Ok(())
        });
        let budget = MemoryBudget::new(200);
        let sized = source.sized(hundred, Declared::AtMost(100));
        let loader = Loader::new(sized, 1, (3, 1)).ahead(2).budget(&budget);
        let source = Numbers::new().sized(hundred, Declared::AtMost(100));
        let other = Loader::new(source, 1, (2, 1)).ahead(2).budget(&budget);
        let mut holds = other.iter();
        let waiting = loader.iter();
        assert!(holds.next().is_some());
        drop(holds);
        // Both of its window, and nobody has asked for any.
        let all = begun.0.lock().unwrap();
        drop(begun.1.wait_while(all, |all| *all < 2).unwrap());
        drop(waiting);
        drop((loader, other));
        all_returned(&budget);
    });
}

#[test]
fn a_batch_has_its_bytes_until_its_last_part_is_back() {
    check(|| {
        let budget = MemoryBudget::new(100);
        let (uncounted, seen) = (Arc::new(AtomicUsize::new(0)), budget.clone());
        let sees = Arc::clone(&uncounted);
        let source = Numbers::fetching(move |_| {
            yield_now();
            sees.fetch_add(usize::from(seen.stats().used.now == 0), SeqCst);
            Ok(())
        });
        let source = source.sized(hundred, Declared::AtMost(100));
        let loader = Loader::new(source, 2, (4, 2)).ahead(2).parts(2);
        let loader = loader.budget(&budget);
        let unread = loader.iter();
        while budget.stats().used.now == 0 {
            yield_now();
        }
        drop(unread);
        all_returned(&budget);
        assert_eq!(uncounted.load(SeqCst), 0);
        drained(&loader);
    });
}

#[test]
fn readers_that_look_at_once_do_not_both_take_what_is_left() {
    check(|| {
        // Room for each reader's oldest batch, and for one more.
        let budget = MemoryBudget::new(300);
        let sized = || Numbers::new().sized(hundred, Declared::AtMost(100));
        let loaders = [(); 2].map(|()| Loader::new(sized(), 1, (3, 1)).ahead(2).budget(&budget));
        let passes = loaders.each_ref().map(Loader::iter);
        for pass in passes {
            assert_eq!(pass.count(), 3);
        }
        assert!(budget.stats().used.most <= 300);
    });
}

/// A source that counts the items that were begun, and who waits for a number of them.
fn counting() -> (Numbers, impl Fn(usize)) {
    let begun = Arc::new((Mutex::new(0), Condvar::new()));
    let count = Arc::clone(&begun);
    let source = Numbers::fetching(move |_| {
        *count.0.lock().unwrap() += 1;
        count.1.notify_one();
        Ok(())
    });
    let wait = move |items: usize| {
        let all = begun.0.lock().unwrap();
        drop(begun.1.wait_while(all, |all| *all < items).unwrap());
    };
    (source, wait)
}

#[test]
fn a_wider_window_is_filled_unasked() {
    check(|| {
        let (source, wait_for) = counting();
        let loader = Loader::new(source, 1, (4, 1)).ahead(1);
        let pass = loader.iter();
        wait_for(1);
        loader.account.dial.set_ahead(3);
        wait_for(3);
        assert_eq!(pass.map(Result::unwrap).count(), 4);
    });
}

#[test]
fn workers_come_and_go_while_a_pass_runs() {
    check(|| {
        let (source, wait_for) = counting();
        let loader = Loader::new(source, 1, (6, 1)).ahead(2);
        let mut pass = loader.iter();
        assert!(pass.next().is_some());
        loader.pool.resize(3);
        assert!(pass.next().is_some());
        loader.pool.resize(1);
        // Nobody asks: who has left was woken for this.
        wait_for(4);
        assert_eq!(pass.map(Result::unwrap).count(), 4);
        while loader.pool.live() > 1 {
            yield_now();
        }
        drained(&loader);
    });
}

#[test]
fn an_uploader_that_has_settled_holds_nothing() {
    check(|| {
        let loader = Loader::new(Numbers::new(), 1, (3, 1)).ahead(2).uploads(1);
        assert_eq!(loader.iter().take(1).count(), 1);
        let source = Arc::downgrade(&loader.source);
        let uploader = loader.uploader.clone().unwrap();
        drop(loader);
        // Under the checker no time passes, or all of it at once: then the wait is over unfinished.
        uploader.pool.settle(Duration::MAX);
        assert!(source.upgrade().is_none());
    });
}
