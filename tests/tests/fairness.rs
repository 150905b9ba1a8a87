//! Whoever waits is served first: a queue of slow work for one reader does not stand before another.

use std::thread;

use burn_prefetch_tests::{
    Hooked, Turns, chunks, for_each_worker_count, loader, once_it_waits, pass,
};

const SLOW_BATCHES: usize = 16;
const BATCH: usize = 8;
const SLOW: usize = SLOW_BATCHES * BATCH;

/// The first reader is not read, and has 16 slow batches queued, of which the workers are inside the
/// first: each has a part of it. When the second reader asks, they may finish that batch, and one
/// more item each: by then the second reader must have its first batch.
#[test]
fn a_waiting_reader_comes_before_the_queue_of_another() {
    for_each_worker_count(|workers| {
        let turns = Turns::none();
        let slow = turns.clone();
        let data = Hooked::new(SLOW + 4 * BATCH, move |index| {
            if index < SLOW {
                slow.take();
            }
        });
        let builder = loader(workers)
            .batch_size(BATCH)
            .prefetch(SLOW_BATCHES)
            .parts_per_batch(8);
        let both = builder.build(data);
        let (slow, quick) = (both.slice(0, SLOW), both.slice(SLOW, SLOW + 4 * BATCH));
        let unread = slow.iter();
        turns.wait_for(workers);
        thread::scope(|scope| {
            let second = once_it_waits(scope, || {
                let batch = quick.iter().next().unwrap().unwrap();
                assert_eq!(batch, (SLOW..SLOW + BATCH).collect::<Vec<_>>());
            });
            turns.permit(BATCH + workers);
            second.join().expect("the quick reader is served");
        });
        assert!(turns.done() <= BATCH + workers);
        turns.permit(usize::MAX);
        assert_eq!(
            unread.map(Result::unwrap).collect::<Vec<_>>(),
            chunks(SLOW, BATCH)
        );
        assert_eq!(pass(quick.as_ref()).len(), 4);
    });
}
