//! Never more batches alive than allowed, from the first `get` to `next()`, and as many as allowed.

use std::iter::from_fn;
use std::sync::Arc;
use std::thread;

use burn::data::dataloader::{DataLoader, DataLoaderIterator};
use burn_prefetch::DataLoaderBuilder;
use burn_prefetch_tests::{
    Alive, Batches, Gate, GuardedNumbers, Hooked, Keep, Lead, Tally, chunks, for_each_case,
    for_each_worker_count, loader, pass,
};

/// What a user may say about the window.
#[derive(Clone, Copy, Debug, Default)]
struct Asked {
    factor: Option<usize>,
    total: Option<usize>,
}

impl Asked {
    const fn factor(factor: usize) -> Self {
        Self {
            factor: Some(factor),
            total: None,
        }
    }

    const fn total(total: usize) -> Self {
        Self {
            factor: None,
            total: Some(total),
        }
    }

    fn set<I: Send + 'static, O: Send + 'static>(
        self,
        mut builder: DataLoaderBuilder<I, O>,
    ) -> DataLoaderBuilder<I, O> {
        if let Some(factor) = self.factor {
            builder = builder.prefetch_factor(factor);
        }
        if let Some(total) = self.total {
            builder = builder.prefetch(total);
        }
        builder
    }

    /// The strictest wins; without workers nothing runs ahead, whatever was asked for.
    fn bound(self, workers: usize) -> usize {
        let factor = self.factor.map_or(usize::MAX, |factor| factor * workers);
        if workers == 0 {
            0
        } else {
            factor.min(self.total.unwrap_or(usize::MAX))
        }
    }
}

const SETTINGS: [Asked; 9] = [
    Asked::factor(1),
    Asked::factor(2),
    Asked::total(0),
    Asked::total(1),
    Asked::total(2),
    Asked::total(5),
    Asked {
        factor: Some(2),
        total: Some(3),
    },
    Asked {
        factor: Some(1),
        total: Some(9),
    },
    Asked {
        factor: Some(3),
        total: Some(0),
    },
];

const BATCH: usize = 4;
const WATCHED: usize = 100;

/// Two slices of one family: the first is watched; whoever reads the second gives every free worker
/// the occasion to do more for the first than it may.
struct Pair {
    lead: Arc<Lead>,
    watched: Arc<dyn DataLoader<Vec<usize>>>,
    other: Arc<dyn DataLoader<Vec<usize>>>,
}

impl Pair {
    fn new(builder: DataLoaderBuilder<usize, Vec<usize>>) -> Self {
        let lead = Lead::new(BATCH);
        let seen = Arc::clone(&lead);
        let data = Hooked::new(2 * WATCHED, move |index| {
            if index < WATCHED {
                seen.fetch(index);
            }
        });
        let both = builder.batch_size(BATCH).build(data);
        let (watched, other) = (both.slice(0, WATCHED), both.slice(WATCHED, 2 * WATCHED));
        Self {
            lead,
            watched,
            other,
        }
    }

    /// Reads the watched pass to its end.
    fn rest(&self, iterator: Box<dyn DataLoaderIterator<Vec<usize>> + '_>) -> Batches {
        rest(&self.lead, iterator)
    }

    fn keep_workers_busy(&self) {
        assert_eq!(pass(self.other.as_ref()).len(), WATCHED / BATCH);
    }
}

/// Reads a pass to its end, and notes every call of `next()` before it is made.
fn rest(lead: &Lead, mut iterator: Box<dyn DataLoaderIterator<Vec<usize>> + '_>) -> Batches {
    let next = || {
        lead.ask();
        iterator.next()
    };
    from_fn(next)
        .map(|batch| batch.expect("every batch loads"))
        .collect()
}

#[test]
fn a_stopped_reader_finds_exactly_the_bound_and_a_running_one_never_more() {
    for_each_case(SETTINGS, |workers, asked| {
        let bound = asked.bound(workers);
        let pair = Pair::new(asked.set(loader(workers)));
        let mut iterator = pair.watched.iter();
        let mut found = Vec::new();
        for stop in [1, 3, 10] {
            while found.len() < stop {
                pair.lead.ask();
                found.push(iterator.next().unwrap().unwrap());
            }
            let reached = bound.min(WATCHED / BATCH - stop);
            pair.lead.wait_for(reached);
            pair.keep_workers_busy();
            assert_eq!(pair.lead.now(), reached, "{asked:?}, stopped after {stop}");
        }
        found.extend(pair.rest(iterator));
        assert_eq!(found, chunks(WATCHED, BATCH));
        assert_eq!(pair.lead.most(), bound, "{asked:?}");
    });
}

#[test]
fn the_bound_holds_for_every_part_size_and_for_get_many() {
    for_each_case([1, 2, 4], |workers, parts| {
        let asked = Asked::total(2);
        let each = asked.set(loader(workers)).parts_per_batch(parts);
        let many = asked.set(loader(workers)).parts_per_batch(parts).batched();
        for pair in [Pair::new(each), Pair::new(many)] {
            let mut iterator = pair.watched.iter();
            pair.lead.ask();
            iterator.next().unwrap().unwrap();
            pair.lead.wait_for(asked.bound(workers));
            pair.keep_workers_busy();
            assert_eq!(pair.rest(iterator).len(), WATCHED / BATCH - 1);
            assert_eq!(pair.lead.most(), asked.bound(workers), "{parts} parts");
        }
    });
}

#[test]
fn nothing_starts_before_next_without_prefetching() {
    for_each_worker_count(|workers| {
        let pair = Pair::new(loader(workers).prefetch(0));
        let mut iterator = pair.watched.iter();
        for called in 0..5 {
            pair.keep_workers_busy();
            assert_eq!(pair.lead.begun(), called);
            pair.lead.ask();
            iterator.next().unwrap().unwrap();
        }
    });
}

#[test]
fn without_settings_work_runs_ahead_but_not_by_more_than_twice_the_workers() {
    for_each_worker_count(|workers| {
        let pair = Pair::new(loader(workers));
        let mut iterator = pair.watched.iter();
        pair.lead.ask();
        iterator.next().unwrap().unwrap();
        if workers > 0 {
            pair.lead.wait_for_any();
        }
        pair.keep_workers_busy();
        assert_eq!(pair.rest(iterator).len(), WATCHED / BATCH - 1);
        assert!(
            pair.lead.most() <= 2 * workers,
            "{} ahead",
            pair.lead.most()
        );
    });
}

/// The first batch has a slow item; the window is this one batch, in a part for every worker, and a
/// reader waits for it.
#[test]
fn a_slow_item_does_not_let_anything_past_the_bound() {
    const SIZE: usize = 8;
    // The last item of its part, whether a batch is cut into 2, 4 or 8.
    const SLOW: usize = 3;
    for_each_worker_count(|workers| {
        let (gate, lead, done) = (Gate::closed(), Lead::new(SIZE), Tally::new(0));
        let (blocked, seen, finished) = (Arc::clone(&gate), Arc::clone(&lead), Arc::clone(&done));
        let data = Hooked::new(20 * SIZE, move |index| {
            if index >= 10 * SIZE {
                return;
            }
            seen.fetch(index);
            if index == SLOW {
                blocked.wait();
            }
            finished.update(|done| *done += 1);
        });
        let both = loader(workers)
            .batch_size(SIZE)
            .prefetch(1)
            .parts_per_batch(8)
            .build(data);
        let (watched, other) = (both.slice(0, 10 * SIZE), both.slice(10 * SIZE, 20 * SIZE));
        thread::scope(|scope| {
            let reader = scope.spawn(|| rest(&lead, watched.iter()));
            gate.wait_for_waiting(1);
            // One thread cannot pass itself.
            if workers > 1 {
                // All of the batch but the one slow item: its part holds nobody else up.
                done.wait_until(|&done| done == SIZE - 1);
                assert_eq!(pass(other.as_ref()).len(), 10);
                assert_eq!(done.now(), SIZE - 1);
            }
            assert_eq!(
                lead.begun(),
                1,
                "batch 1 began while batch 0 filled the window"
            );
            gate.open();
            let found = reader.join().expect("the pass is whole");
            assert_eq!(found, chunks(10 * SIZE, SIZE));
        });
        assert!(lead.most() <= 1, "{} ahead", lead.most());
    });
}

#[test]
fn items_and_batches_alive_stay_within_the_bound_and_the_one_in_hand() {
    for_each_worker_count(|workers| {
        for asked in SETTINGS {
            let (items, batches) = (Alive::none(), Alive::none());
            let data = GuardedNumbers {
                len: 120,
                alive: Arc::clone(&items),
            };
            let builder = DataLoaderBuilder::new(Keep(Arc::clone(&batches))).num_workers(workers);
            let loader = asked.set(builder.batch_size(BATCH)).build(data);
            for batch in loader.iter() {
                assert_eq!(batch.unwrap().0.len(), BATCH);
            }
            let allowed = asked.bound(workers) + 1;
            assert!(
                batches.peak() <= allowed,
                "{} of {allowed} batches",
                batches.peak()
            );
            assert!(
                items.peak() <= allowed * BATCH,
                "{} items, {asked:?}",
                items.peak()
            );
            items.wait_for_none();
            batches.wait_for_none();
        }
    });
}

#[test]
fn each_reader_has_a_window_of_its_own() {
    for_each_worker_count(|workers| {
        let one = Pair::new(loader(workers).prefetch(2));
        let bound = Asked::total(2).bound(workers);
        // The slice is read from its start twice; only the first iterator is noted as asking.
        let (mut first, mut second) = (one.watched.iter(), one.watched.iter());
        one.lead.ask();
        first.next().unwrap().unwrap();
        one.lead.wait_for(bound);
        second.next().unwrap().unwrap();
        one.keep_workers_busy();
        assert_eq!(
            one.lead.now(),
            bound,
            "a second reader widened the first one's window"
        );
        let rest = |iterator: &mut dyn Iterator<Item = _>| iterator.map(Result::unwrap).count();
        assert_eq!(rest(&mut first), WATCHED / BATCH - 1);
        assert_eq!(rest(&mut second), WATCHED / BATCH - 1);
    });
}
