//! The engine alone keeps its promises: order, bound, errors, drops, for any number of workers.
#![cfg(not(shuttle))]

mod doubles;

use std::sync::Arc;
use std::sync::atomic::{AtomicIsize, Ordering};

use burn_prefetch_engine::{LoadError, Stage};
use doubles::{Loader, Numbers};

const WORKERS: [usize; 5] = [0, 1, 2, 4, 8];

#[test]
fn batches_come_in_order_whatever_the_workers_window_and_parts() {
    for workers in WORKERS {
        for ahead in [0, 1, 2, 7] {
            for parts in [1, 3, 8] {
                let loader = Loader::new(Numbers::new(), workers, (101, 4))
                    .ahead(ahead)
                    .parts(parts);
                let batches: Vec<_> = loader.iter().map(Result::unwrap).collect();
                assert_eq!(batches, loader.expected(), "{workers} {ahead} {parts}");
            }
        }
    }
}

#[test]
fn two_readers_in_step_do_not_starve_each_other() {
    for workers in WORKERS {
        for items in [9, 101, 1000] {
            let loader = Loader::new(Numbers::new(), workers, (items, 1)).ahead(2);
            let _unread = loader.iter();
            assert_eq!(loader.iter().zip(loader.iter()).count(), items);
        }
    }
}

#[test]
fn a_reader_inside_a_fetch_does_not_starve() {
    for workers in WORKERS {
        let inner = Loader::new(Numbers::new(), workers, (20, 3));
        let outer = Loader {
            source: Arc::new(Numbers::fetching({
                let inner = inner.clone();
                move |_| {
                    assert_eq!(inner.iter().count(), 7);
                    Ok(())
                }
            })),
            ..inner
        };
        assert_eq!(outer.iter().map(Result::unwrap).count(), 7);
    }
}

#[test]
fn an_error_stands_at_its_place_and_ends_the_pass() {
    for workers in WORKERS {
        let source = Numbers::fetching(|index| match index {
            13 | 14 => Err("bad".into()),
            _ => Ok(()),
        });
        let loader = Loader::new(source, workers, (40, 4)).parts(4);
        for _ in 0..2 {
            let mut pass = loader.iter();
            assert_eq!(pass.by_ref().take(3).filter_map(Result::ok).count(), 3);
            let error = pass.next().unwrap().unwrap_err();
            assert!(matches!(error, LoadError::Dataset { .. }));
            let at = error.place();
            assert_eq!((at.batch, at.index, at.stage), (3, Some(13), Stage::Fetch));
            assert!(pass.next().is_none() && pass.next().is_none());
        }
    }
}

#[test]
fn a_panic_in_the_assembly_is_an_error_with_its_text() {
    for workers in WORKERS {
        let source = Numbers::assembling(|first| {
            assert!(first != 8, "no {first}");
            if first == 12 {
                Err("upload".into())
            } else {
                Ok(())
            }
        });
        let loader = Loader::new(source, workers, (40, 4)).ahead(4);
        let mut pass = loader.iter().skip(2);
        let error = pass.next().unwrap().unwrap_err();
        assert!(error.to_string().contains("no 8"), "{error}");
        assert_eq!(error.place().stage, Stage::Assemble);
        assert!(pass.next().is_none());
    }
}

/// Batches started and `next()` called, in one number, and the most that it ever was.
#[derive(Default)]
struct Alive {
    now: AtomicIsize,
    most: AtomicIsize,
}

impl Alive {
    fn started(&self) {
        let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
    }

    fn asked(&self) {
        self.now.fetch_sub(1, Ordering::SeqCst);
    }
}

#[test]
fn no_more_batches_are_started_than_allowed() {
    for workers in WORKERS {
        for ahead in [1, 2, 5] {
            let alive = Arc::new(Alive::default());
            let count = Arc::clone(&alive);
            let source = Numbers::fetching(move |index| {
                (index % 4 == 0).then(|| count.started());
                Ok(())
            });
            let mut pass = Loader::new(source, workers, (400, 4)).ahead(ahead).iter();
            for _ in 0..100 {
                alive.asked();
                pass.next().unwrap().unwrap();
            }
            let most = alive.most.load(Ordering::SeqCst).unsigned_abs();
            assert!(most <= ahead, "{workers} {ahead} {most}");
        }
    }
}

#[test]
fn a_thousand_early_drops_leave_nothing() {
    for workers in WORKERS {
        let loader = Loader::new(Numbers::new(), workers, (100, 4)).ahead(8);
        for taken in 0..1_000 {
            assert_eq!(loader.iter().take(taken % 4).count(), taken % 4);
        }
        assert_eq!(loader.iter().count(), 25);
        assert_eq!(loader.pool.live(), workers);
    }
}
