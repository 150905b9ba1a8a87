//! Whoever waits is served first: a queue of slow work for one reader does not stand before another.

use std::fs;
use std::sync::Arc;
use std::thread;

use burn_prefetch_tests::{Hooked, Tally, chunks, eventually, for_each_worker_count, loader, pass};

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

/// The kernel's number of the calling thread.
fn thread_id() -> String {
    let link = fs::read_link("/proc/thread-self").expect("Linux numbers its threads");
    let id = link.file_name().expect("the link ends in the number");
    id.to_string_lossy().into_owned()
}

/// Whether that thread sleeps in the kernel, as it does while it waits in `next()`.
fn sleeps(id: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/self/task/{id}/stat")).unwrap_or_default();
    stat.rsplit_once(") ")
        .is_some_and(|(_, state)| state.starts_with('S'))
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
        let asked = Tally::new(None);
        thread::scope(|scope| {
            let second = scope.spawn(|| {
                let mut iterator = quick.iter();
                asked.update(|asked| *asked = Some(thread_id()));
                let batch = iterator.next().unwrap().unwrap();
                assert_eq!(batch, (SLOW..SLOW + BATCH).collect::<Vec<_>>());
            });
            let id = asked.wait_until(Option::is_some).expect("it is some");
            eventually("the reader waits, or has its batch", || {
                second.is_finished() || sleeps(&id)
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
