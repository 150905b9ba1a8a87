//! Whoever waits is served first: a queue of slow work for one reader does not stand before another.

use std::sync::Arc;
use std::thread;

use burn_prefetch_tests::{
    Hooked, Tally, chunks, for_each_worker_count, loader, once_it_waits, pass,
};

const SLOW_BATCHES: usize = 16;
const BATCH: usize = 8;
const SLOW: usize = SLOW_BATCHES * BATCH;

/// What the slow items' `get`s may do and have done.
#[derive(Clone, Copy, Debug, Default)]
struct Turns {
    waiting: usize,
    permitted: usize,
    done: usize,
}

fn take_a_turn(turns: &Tally<Turns>) {
    turns.update(|turns| turns.waiting += 1);
    let permitted = |turns: &Turns| turns.permitted > turns.done;
    turns.update_when(permitted, |turns| {
        turns.waiting -= 1;
        turns.done += 1;
    });
}

/// The first reader is not read, and has 16 slow batches queued, of which the workers are inside the
/// first: each has a part of it. When the second reader asks, they may finish that batch, and one
/// more item each: by then the second reader must have its first batch.
#[test]
fn a_waiting_reader_comes_before_the_queue_of_another() {
    for_each_worker_count(|workers| {
        let turns = Tally::new(Turns::default());
        let slow = Arc::clone(&turns);
        let data = Hooked::new(SLOW + 4 * BATCH, move |index| {
            if index < SLOW {
                take_a_turn(&slow);
            }
        });
        let builder = loader(workers)
            .batch_size(BATCH)
            .prefetch(SLOW_BATCHES)
            .parts_per_batch(8);
        let both = builder.build(data);
        let (slow, quick) = (both.slice(0, SLOW), both.slice(SLOW, SLOW + 4 * BATCH));
        let unread = slow.iter();
        turns.wait_until(|turns| turns.waiting >= workers);
        thread::scope(|scope| {
            let second = once_it_waits(scope, || {
                let batch = quick.iter().next().unwrap().unwrap();
                assert_eq!(batch, (SLOW..SLOW + BATCH).collect::<Vec<_>>());
            });
            turns.update(|turns| turns.permitted = BATCH + workers);
            second.join().expect("the quick reader is served");
        });
        assert!(turns.now().done <= BATCH + workers);
        turns.update(|turns| turns.permitted = usize::MAX);
        assert_eq!(
            unread.map(Result::unwrap).collect::<Vec<_>>(),
            chunks(SLOW, BATCH)
        );
        assert_eq!(pass(quick.as_ref()).len(), 4);
    });
}
