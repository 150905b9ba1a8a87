//! A pass goes on from where it stood, under other settings, as if it had never been interrupted.
#![cfg(not(shuttle))]

mod doubles;

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};

use burn_prefetch_engine::{BatchSampler, BatchSizes, Order, Plan, Remainder, Sampler, Standing};
use doubles::{Loader, Numbers};

const WORKERS: [usize; 5] = [0, 1, 2, 4, 8];
const ITEMS: usize = 103;

fn plan(remainder: Remainder) -> Plan {
    let size = NonZeroUsize::MIN.saturating_add(3);
    Plan::new(Order::shuffled(ITEMS, 7), size, remainder)
}

/// Batch k has 1 + k % 3 items.
struct Ragged;

impl BatchSampler for Ragged {
    fn sizes(&self, _epoch: usize) -> BatchSizes {
        BatchSizes::each((0..26).map(|batch| 1 + batch % 3))
    }

    fn at(&self, epoch: usize, batch: usize, place: usize) -> usize {
        (7 * batch + place + epoch) % ITEMS
    }
}

fn plans() -> [Plan; 4] {
    [
        plan(Remainder::Keep),
        plan(Remainder::Drop),
        plan(Remainder::Pad),
        Plan::sampled(Ragged, ITEMS),
    ]
}

/// A loader that notes which indices it fetches.
fn noting(workers: usize, plan: &Plan) -> (Loader, Arc<Mutex<BTreeSet<usize>>>) {
    let fetched = Arc::new(Mutex::new(BTreeSet::new()));
    let notes = Arc::clone(&fetched);
    let source = Numbers::fetching(move |index| {
        notes.lock().expect("nobody panics").insert(index);
        Ok(())
    });
    let loader = Loader::new(source, workers, (ITEMS, 4)).plan(plan.clone());
    (loader, fetched)
}

#[test]
fn the_rest_of_an_epoch_is_the_same_from_any_batch() {
    for (workers, plan) in WORKERS
        .into_iter()
        .flat_map(|w| plans().map(|plan| (w, plan)))
    {
        let batches = plan.num_batches(3);
        for begin in [0, 1, batches / 2, batches - 1, batches] {
            for (ahead, parts) in [(0, 1), (1, 3), (5, 2)] {
                let (loader, fetched) = noting(workers, &plan);
                let loader = loader.ahead(ahead).parts(parts);
                let mut pass = loader.resume(3, Standing::before(begin));
                assert_eq!(pass.size_hint().1, Some(batches - begin));
                assert_eq!(pass.items_returned(), plan.at(3).items_before(begin));
                let rest: Vec<_> = pass.by_ref().map(Result::unwrap).collect();
                let expected = loader.expected_of(3).split_off(begin);
                assert_eq!(rest, expected, "{workers} {begin} {ahead} {parts}");
                assert_eq!(pass.batches_returned(), batches);
                assert_eq!(pass.items_returned(), plan.num_items(3));
                let wanted: BTreeSet<_> = expected.into_iter().flatten().collect();
                assert_eq!(*fetched.lock().unwrap(), wanted, "nothing else is fetched");
            }
        }
    }
}

#[test]
fn an_interrupted_pass_stands_at_what_it_returned() {
    for workers in WORKERS {
        let plan = plan(Remainder::Keep);
        let mut seen = Vec::new();
        let mut standing = Standing::default();
        // Three interruptions, each under other settings.
        for (taken, ahead) in [(5, 32), (1, 0), (7, 2), (usize::MAX, 9)] {
            let loader = noting(workers, &plan).0.ahead(ahead);
            let mut pass = loader.resume(1, standing);
            seen.extend(pass.by_ref().take(taken).map(Result::unwrap));
            assert_eq!(pass.batches_returned(), seen.len());
            standing = pass.standing().clone();
            assert!(standing.missing().is_empty());
        }
        assert_eq!(seen, noting(workers, &plan).0.expected_of(1));
        assert_eq!(standing, Standing::before(plan.num_batches(1)));
    }
}

#[test]
fn batches_as_they_finish_leave_none_out_and_repeat_none() {
    for workers in WORKERS {
        for plan in plans() {
            let (loader, _) = noting(workers, &plan);
            let loader = loader.ahead(6).unordered();
            let mut pass = loader.iter();
            let mut seen: Vec<_> = pass.by_ref().take(9).map(Result::unwrap).collect();
            let standing = pass.standing().clone();
            assert!(standing.missing().len() <= 6);
            drop(pass);
            // A state written down by hand, in case the workers were in order this time.
            let (next, missing) = (standing.next(), standing.missing().to_vec());
            let standing = Standing::new(next, missing).unwrap();
            seen.extend(loader.resume(0, standing).map(Result::unwrap));
            seen.sort();
            let mut expected = loader.expected();
            expected.sort();
            assert_eq!(seen, expected);
        }
    }
}

#[test]
fn what_is_missing_comes_first_whatever_the_delivery() {
    for workers in WORKERS {
        let plan = plan(Remainder::Keep);
        let standing = Standing::new(9, vec![2, 3, 7]).unwrap();
        let (loader, _) = noting(workers, &plan);
        let all = loader.expected();
        let mut expected: Vec<_> = [2, 3, 7].map(|number| all[number].clone()).into();
        expected.extend_from_slice(&all[9..]);
        let loader = loader.ahead(4).parts(2);
        let mut pass = loader.resume(0, standing.clone());
        assert_eq!((pass.batches_returned(), pass.items_returned()), (6, 24));
        let rest: Vec<_> = pass.by_ref().map(Result::unwrap).collect();
        assert_eq!(rest, expected);
        assert_eq!(pass.items_returned(), ITEMS);
        let mut unordered: Vec<_> = (loader.unordered().resume(0, standing))
            .map(Result::unwrap)
            .collect();
        unordered.sort();
        expected.sort();
        assert_eq!(unordered, expected);
    }
}

#[test]
fn an_error_after_a_resumption_stands_at_its_own_batch() {
    for workers in WORKERS {
        let plan = plan(Remainder::Keep);
        let bad = plan.at(0).index(17 * 4 + 2);
        let source = Numbers::fetching(move |index| {
            if index == bad {
                Err("bad".into())
            } else {
                Ok(())
            }
        });
        let loader = Loader::new(source, workers, (ITEMS, 4)).plan(plan).ahead(3);
        let standing = Standing::new(12, vec![4]).unwrap();
        let outcomes: Vec<_> = loader.resume(0, standing).collect();
        assert_eq!(outcomes.len(), 1 + 5 + 1);
        let at = outcomes[6].as_ref().unwrap_err().place();
        assert_eq!((at.batch, at.index), (17, Some(bad)));
    }
}

#[test]
fn the_next_epoch_is_warm_and_whole_after_a_resumption() {
    for workers in [1, 2, 4, 8] {
        let loader = noting(workers, &plan(Remainder::Keep)).0.ahead(3).warm();
        let mut pass = loader.resume(4, Standing::new(24, vec![20]).unwrap());
        assert_eq!(pass.by_ref().filter_map(Result::ok).count(), 3);
        let next = pass.take_next().unwrap();
        assert_eq!(next.epoch(), 5);
        assert!(next.standing().returned() == 0);
        assert_eq!(
            next.map(Result::unwrap).collect::<Vec<_>>(),
            loader.expected_of(5)
        );
    }
}

#[test]
fn of_a_pass_that_stood_at_its_end_or_beyond_nothing_is_left() {
    /// Shorter in every epoch.
    struct Shrinking;
    impl Sampler for Shrinking {
        fn len(&self, epoch: usize) -> usize {
            ITEMS - 40 * epoch
        }

        fn at(&self, _epoch: usize, position: usize) -> usize {
            position
        }
    }
    let size = NonZeroUsize::new(4).unwrap();
    let plan = Plan::new(Order::sampled(Shrinking, ITEMS), size, Remainder::Keep);
    for workers in WORKERS {
        let (loader, fetched) = noting(workers, &plan);
        for standing in [6, 7, 26].map(Standing::before) {
            let mut pass = loader.resume(2, standing);
            assert_eq!(
                (pass.size_hint(), pass.next().is_none()),
                ((0, Some(0)), true)
            );
        }
        assert!(fetched.lock().unwrap().is_empty() && loader.pool.live() == 0);
    }
}

#[test]
#[cfg(target_pointer_width = "64")]
fn the_middle_of_a_thousand_million_items_is_there_at_once() {
    let size = NonZeroUsize::new(100).unwrap();
    let plan = Plan::new(Order::shuffled(1_000_000_000, 7), size, Remainder::Keep);
    let (loader, fetched) = noting(2, &plan);
    let pass = loader.ahead(1).resume(5, Standing::before(5_000_000));
    let first = pass.take(1).map(Result::unwrap).next().unwrap();
    assert_eq!(first.len(), 100);
    assert!(fetched.lock().unwrap().len() <= 300);
}
