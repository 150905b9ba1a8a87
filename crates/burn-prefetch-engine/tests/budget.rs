//! The bytes of batches alive keep within a budget, whoever shares it and however passes end.
#![cfg(not(shuttle))]

mod doubles;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use burn_prefetch_engine::{LoadError, MemoryBudget};
use doubles::{Declared, Loader, Numbers};
use proptest::prelude::*;

const WORKERS: [usize; 5] = [0, 1, 2, 4, 8];

/// Sizes between 10 and 99, ragged.
fn ragged(first: usize) -> u64 {
    10 + (first as u64 * 7_919) % 90
}

fn hundred(_first: usize) -> u64 {
    100
}

/// Waits for threads that were inside a part to bring it back.
fn all_returned(budget: &MemoryBudget) {
    let begun = std::time::Instant::now();
    while budget.stats().used.now > 0 || budget.stats().readers > 0 {
        assert!(begun.elapsed() < Duration::from_secs(20), "{budget:?}");
        std::thread::yield_now();
    }
}

#[test]
fn a_budget_of_three_batches_is_three_batches() {
    for workers in WORKERS {
        let budget = MemoryBudget::new(350);
        let source = Numbers::new().sized(hundred, Declared::AtMost(100));
        let loader = Loader::new(source, workers, (400, 4))
            .ahead(8)
            .budget(&budget);
        let batches: Vec<_> = loader.iter().map(Result::unwrap).collect();
        assert_eq!(batches, loader.expected());
        all_returned(&budget);
        let (most, stats) = (budget.stats().used.most, loader.account.stats());
        assert!(most <= 300, "{workers} {most}");
        assert_eq!((stats.bytes.most, stats.bytes.now), (most, 0));
        assert_eq!(stats.batches.most * 100, most);
        if workers > 0 {
            assert_eq!(most, 300);
        }
    }
}

#[test]
fn a_budget_below_one_batch_is_one_batch() {
    for workers in WORKERS {
        for bytes in [0, 1, 99] {
            let budget = MemoryBudget::new(bytes);
            let source = Numbers::new().sized(hundred, Declared::AtMost(100));
            let loader = Loader::new(source, workers, (40, 4))
                .ahead(8)
                .budget(&budget);
            assert_eq!(loader.iter().map(Result::unwrap).count(), 10);
            all_returned(&budget);
            assert_eq!(budget.stats().used.most, 100);
        }
    }
}

#[test]
fn two_readers_on_one_thread_with_room_for_one_batch() {
    for workers in WORKERS {
        let budget = MemoryBudget::new(100);
        let source = Numbers::new().sized(hundred, Declared::AtMost(100));
        let loader = Loader::new(source, workers, (40, 4))
            .ahead(4)
            .budget(&budget);
        let _unread = loader.iter();
        assert_eq!(loader.iter().zip(loader.iter()).count(), 10);
        assert!(budget.stats().used.most <= 300);
    }
}

#[test]
fn sizes_that_are_learned_begin_with_one_batch_at_a_time() {
    let begun = Arc::new(AtomicUsize::new(0));
    let (counted, at_first) = (Arc::clone(&begun), Arc::new(AtomicUsize::new(0)));
    let seen = Arc::clone(&at_first);
    let mut source = Numbers::fetching(move |index| {
        counted.fetch_add(1, SeqCst);
        if index == 0 {
            // Time for the other workers to begin what they may.
            (0..1_000).for_each(|_| std::thread::yield_now());
        }
        Ok(())
    })
    .sized(hundred, Declared::Never);
    source.on_assemble = Box::new(move |first| {
        if first == 0 {
            seen.store(begun.load(SeqCst), SeqCst);
        }
        Ok(())
    });
    let budget = MemoryBudget::new(1_000);
    let loader = Loader::new(source, 4, (200, 1)).ahead(8).budget(&budget);
    assert_eq!(loader.iter().count(), 200);
    assert_eq!(
        at_first.load(SeqCst),
        1,
        "begun before the first was measured"
    );
    all_returned(&budget);
    let stats = budget.stats();
    assert!(stats.overshoot == 0 && stats.used.most <= 800, "{stats:?}");
}

#[test]
fn one_large_picture_among_thumbnails_does_not_raise_the_bytes_for_good() {
    fn sizes(first: usize) -> u64 {
        if first == 50 { 1_000 } else { 10 }
    }
    let source = Numbers::new().sized(sizes, Declared::Never);
    let budget = MemoryBudget::new(100);
    let loader = Loader::new(source, 2, (400, 1)).ahead(8).budget(&budget);
    let mut pass = loader.iter();
    let taken = pass.by_ref().take(300);
    assert_eq!(taken.map(Result::unwrap).count(), 300);
    assert!(budget.stats().overshoot <= 1_000, "{budget:?}");
    assert_eq!(loader.account.sizes.largest(), Some(10));
    drop(pass);
    all_returned(&budget);
}

/// What one reader of the storm does.
#[derive(Clone, Copy, Debug)]
enum End {
    Whole,
    Early(usize),
    Error(usize),
    Panic(usize),
    Timeout(usize),
}

fn end() -> impl Strategy<Value = End> {
    prop_oneof![
        Just(End::Whole),
        (0usize..12).prop_map(End::Early),
        (0usize..12).prop_map(End::Error),
        (0usize..12).prop_map(End::Panic),
        (0usize..12).prop_map(End::Timeout),
    ]
}

/// A loader whose pass ends like this; who is stuck comes back with `go`.
fn storm(base: &Loader, how: End, (declared, go): (Declared, &Arc<AtomicBool>)) -> Loader {
    let go = Arc::clone(go);
    let source = Numbers::fetching(move |index| match how {
        End::Error(at) if index == 2 * at => Err("bad".into()),
        // Not the hook's own text: nothing is printed.
        End::Panic(at) if index == 2 * at => std::panic::resume_unwind(Box::new("bad")),
        End::Timeout(at) if index == 2 * at => {
            while !go.load(SeqCst) {
                std::thread::yield_now();
            }
            Ok(())
        }
        End::Whole | End::Early(_) | End::Error(_) | End::Panic(_) | End::Timeout(_) => Ok(()),
    });
    let mut loader = base.over(source.sized(ragged, declared));
    if matches!(how, End::Timeout(_)) && loader.pool.size() > 0 {
        loader = loader.timeout(Duration::from_millis(20));
    }
    loader
}

fn run(loader: &Loader, how: End) {
    let mut pass = loader.iter();
    let wanted = if let End::Early(batches) = how {
        batches
    } else {
        12
    };
    let mut got = 0;
    let mut error = None;
    for outcome in pass.by_ref().take(wanted) {
        match outcome {
            Ok(_) => got += 1,
            Err(failed) => error = Some(failed),
        }
    }
    match (how, error) {
        (End::Whole | End::Early(_), None) => assert_eq!(got, wanted),
        (End::Error(at), Some(LoadError::Dataset { .. }))
        | (End::Panic(at), Some(LoadError::Panic { .. })) => assert_eq!(got, at),
        (_, Some(LoadError::Timeout { .. } | LoadError::Exhausted { .. })) => assert!(got < 12),
        (how, error) => panic!("{how:?} ended with {error:?}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Several readers of several loaders on one budget, each ending in its own way.
    #[test]
    fn never_beyond_the_bound_and_every_byte_comes_back(
        limit in 0u64..600,
        workers in 1usize..4,
        shape in (0usize..6, 1usize..4),
        ends in proptest::collection::vec(end(), 1..5),
        is_declared in any::<bool>(),
    ) {
        let declared = if is_declared { Declared::AtMost(99) } else { Declared::Never };
        let budget = MemoryBudget::new(limit);
        let (ahead, parts) = shape;
        std::thread::scope(|threads| {
            for how in &ends {
                // A pool each: whoever is stuck is stuck alone.
                let base = Loader::new(Numbers::new(), workers, (24, 2))
                    .ahead(ahead)
                    .parts(parts)
                    .budget(&budget);
                let go = Arc::new(AtomicBool::new(false));
                let loader = storm(&base, *how, (declared, &go));
                threads.spawn(move || {
                    if matches!(how, End::Timeout(_)) {
                        let error = loader.iter().find_map(Result::err);
                        assert!(error.is_some_and(|error| matches!(error, LoadError::Timeout { .. })));
                        go.store(true, SeqCst);
                    } else {
                        run(&loader, *how);
                    }
                });
            }
        });
        all_returned(&budget);
        let stats = budget.stats();
        let bound = limit.max(99) + 99 * (ends.len() as u64 - 1);
        if is_declared {
            prop_assert_eq!(stats.overshoot, 0);
            prop_assert!(stats.used.most <= bound, "{:?} of {}", stats, bound);
        } else {
            prop_assert!(stats.used.most <= bound + stats.overshoot, "{:?} of {}", stats, bound);
        }
    }
}
