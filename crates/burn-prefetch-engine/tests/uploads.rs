//! Passes whose batches are uploaded by a thread of its own.
#![cfg(not(shuttle))]

mod doubles;

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use burn_prefetch_engine::MemoryBudget;
use burn_prefetch_engine::{Doing, LoadError, Stage};
use doubles::{Declared, Loader, Numbers};

const WORKERS: [usize; 4] = [1, 2, 4, 8];

/// What the loader uploads, as it does, by the name of the thread that does it.
fn watched(workers: usize, ahead: usize) -> (Loader, Receiver<String>) {
    let (told, told_of) = channel();
    let told = Mutex::new(told);
    let source = Numbers::uploading(move |_| {
        let name = thread::current().name().unwrap_or_default().to_owned();
        let told = told.lock().map_err(|_| "a test has panicked")?;
        told.send(name)?;
        Ok(())
    });
    let loader = Loader::new(source, workers, (12, 2))
        .ahead(4)
        .uploads(ahead);
    (loader, told_of)
}

fn pass(loader: &Loader) -> Vec<Vec<usize>> {
    loader.iter().map(Result::unwrap).collect()
}

#[test]
fn batches_are_uploaded_in_order_by_one_thread() {
    for workers in WORKERS {
        for ahead in [0, 1, 2, 9] {
            let (loader, told_of) = watched(workers, ahead);
            for _ in 0..3 {
                assert_eq!(pass(&loader), loader.expected());
            }
            drop(loader);
            let names: Vec<_> = told_of.iter().collect();
            assert_eq!(names.len(), 18);
            assert!(names.iter().all(|name| *name == names[0]), "{names:?}");
        }
    }
}

/// No `next()` has been called: the first uploads come by themselves.
#[test]
fn as_many_are_uploaded_unasked_as_are_allowed() {
    for workers in WORKERS {
        let (loader, told_of) = watched(workers, 2);
        let reader = loader.iter();
        for _ in 0..2 {
            told_of.recv().unwrap();
        }
        drop(reader);
        drop(loader);
        assert_eq!(told_of.iter().count(), 0, "two are allowed before a next()");
    }
}

#[test]
fn never_more_are_uploaded_than_allowed() {
    for workers in WORKERS {
        for ahead in [0, 1, 3] {
            let (uploaded, returned) =
                (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
            let (count, seen) = (Arc::clone(&uploaded), Arc::clone(&returned));
            let source = Numbers::uploading(move |_| {
                let alive = count.fetch_add(1, SeqCst) + 1 - seen.load(SeqCst);
                // A batch leaves the window within `next()`, before the test counts it.
                let allowed = alive <= ahead.max(1) + 1;
                allowed.then_some(()).ok_or("too many are uploaded".into())
            });
            let loader = Loader::new(source, workers, (40, 1))
                .ahead(8)
                .uploads(ahead);
            for batch in loader.iter() {
                batch.unwrap();
                returned.fetch_add(1, SeqCst);
            }
        }
    }
}

#[test]
fn errors_and_panics_stand_at_their_place() {
    for workers in WORKERS {
        for panics in [false, true] {
            let source = Numbers::uploading(move |first| match first {
                6 if panics => panic!("no room"),
                6 => Err("no room".into()),
                _ => Ok(()),
            });
            let loader = Loader::new(source, workers, (20, 2)).ahead(6).uploads(1);
            let mut reader = loader.iter();
            assert_eq!(reader.by_ref().take(3).flatten().count(), 3);
            let error = reader.next().unwrap().unwrap_err();
            let place = error.place();
            assert_eq!((place.stage, place.batch), (Stage::Upload, 3));
            assert_eq!(place.worker, None);
            assert!(error.to_string().contains("no room"), "{error}");
            assert_eq!(matches!(error, LoadError::Panic { .. }), panics);
            assert!(reader.next().is_none());
            assert_eq!(loader.over(Numbers::new()).iter().count(), 10);
        }
    }
}

#[test]
fn what_fails_before_the_upload_stands_behind_what_was_uploaded() {
    for workers in WORKERS {
        let source = Numbers::fetching(|index| match index {
            7 => Err("gone".into()),
            _ => Ok(()),
        });
        let loader = Loader::new(source, workers, (20, 2)).ahead(6).uploads(1);
        let outcomes: Vec<_> = loader.iter().collect();
        assert_eq!(outcomes.len(), 4);
        let error = outcomes[3].as_ref().unwrap_err();
        assert_eq!(error.place().index, Some(7));
    }
}

#[test]
fn batches_as_they_finish_are_uploaded_too() {
    for workers in WORKERS {
        let (loader, _told_of) = watched(workers, 1);
        let mut batches = pass(&loader.clone().unordered());
        batches.sort_unstable();
        assert_eq!(batches, loader.expected());
    }
}

#[test]
fn a_warm_epoch_is_uploaded_within_the_same_bounds() {
    for workers in WORKERS {
        let (loader, _told_of) = watched(workers, 1);
        let loader = loader.warm();
        let mut reader = loader.iter();
        assert_eq!(reader.by_ref().count(), 6);
        let next = reader.take_next().unwrap();
        let batches: Vec<_> = next.map(Result::unwrap).collect();
        assert_eq!(batches, loader.expected());
    }
}

/// Whoever iterates on a worker's or on the uploader's own thread cannot wait for it.
#[test]
fn a_pass_inside_an_upload_and_inside_a_fetch() {
    for workers in WORKERS {
        let (inner, _told_of) = watched(workers, 1);
        let inside = inner.clone();
        let in_fetch = inner.over(Numbers::fetching(move |_| match inside.iter().count() {
            6 => Ok(()),
            other => Err(format!("{other} batches").into()),
        }));
        assert_eq!(pass(&in_fetch), inner.expected());
        let inside = inner.clone();
        let in_upload = inner.over(Numbers::uploading(move |_| match inside.iter().count() {
            6 => Ok(()),
            other => Err(format!("{other} batches").into()),
        }));
        assert_eq!(pass(&in_upload), inner.expected());
    }
}

#[test]
fn two_in_step_and_one_that_is_kept_unread() {
    for workers in WORKERS {
        let (loader, _told_of) = watched(workers, 1);
        let _unread = loader.iter();
        assert_eq!(loader.iter().zip(loader.iter()).count(), 6);
    }
}

#[test]
fn an_early_drop_leaves_nothing_behind() {
    for workers in WORKERS {
        let (loader, _told_of) = watched(workers, 1);
        for taken in 0..6 {
            assert_eq!(loader.iter().take(taken).count(), taken);
        }
        assert_eq!(pass(&loader), loader.expected());
        let source = Arc::downgrade(&loader.source);
        let uploader = loader.uploader.clone().unwrap();
        drop(loader);
        drop(uploader);
        assert!(source.upgrade().is_none());
    }
}

/// The first upload is stuck until the test lets it go.
#[test]
fn a_stuck_uploader_is_reported_given_up_and_replaced() {
    for workers in WORKERS {
        let (go, gone) = channel::<()>();
        let stuck = Mutex::new(Some(gone));
        let source = Numbers::uploading(move |_| {
            let gone = stuck.lock().map_err(|_| "a test has panicked")?.take();
            gone.map(|gone| gone.recv());
            Ok(())
        });
        let loader = Loader::new(source, workers, (12, 2)).ahead(4).uploads(1);
        let hasty = loader.clone().timeout(Duration::from_millis(50));
        let error = hasty.iter().next().unwrap().unwrap_err();
        let LoadError::Timeout { crew, .. } = &error else {
            panic!("{error}")
        };
        let uploader = crew.uploader.unwrap();
        let doing = Doing::Uploading {
            epoch: 0,
            batch: 0,
            here: true,
        };
        assert_eq!(uploader.doing, doing);
        assert!(
            error.to_string().contains("the uploader uploading batch 0"),
            "{error}"
        );
        // It came to its upload while it was waited for: a later wait gives it up.
        while hasty.iter().next().unwrap().is_err() {}
        let uploader = loader.uploader.clone().unwrap().pool;
        assert_eq!(uploader.disowned(), 1);
        assert_eq!(pass(&loader), loader.expected());
        drop(go);
    }
}

/// Whoever has settled holds the last of what the uploader had in its hands.
#[test]
fn nothing_of_a_pass_is_left_once_its_uploader_has_settled() {
    for workers in WORKERS {
        for taken in 0..6 {
            let (loader, _told_of) = watched(workers, 2);
            assert_eq!(loader.iter().take(taken).count(), taken);
            let (source, uploader) = (Arc::downgrade(&loader.source), loader.uploader.clone());
            let Loader {
                source: own, pool, ..
            } = loader;
            drop(own);
            drop(pool);
            let uploader = uploader.unwrap();
            uploader.pool.settle(Duration::from_mins(1));
            assert!(
                source.upgrade().is_none(),
                "{workers} workers, {taken} taken"
            );
        }
    }
}

/// What is on the device is no longer in host memory, and is counted and limited apart.
#[test]
fn what_is_on_the_device_is_counted_and_limited_apart() {
    for workers in WORKERS {
        for (ahead_bytes, most) in [(1_000, 300), (299, 200), (100, 100), (1, 100)] {
            let budget = MemoryBudget::new(1_000);
            let source = Numbers::new().sized(|_| 100, Declared::AtMost(100));
            let loader = Loader::new(source, workers, (40, 2))
                .ahead(6)
                .uploads(3)
                .ahead_bytes(ahead_bytes)
                .budget(&budget);
            let mut reader = loader.iter();
            let stats = || loader.account.stats();
            let begun = std::time::Instant::now();
            let expected = (600 - most, most);
            while (stats().bytes.now, stats().uploads.ahead.now) != expected {
                assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", stats());
                thread::yield_now();
            }
            assert_eq!(budget.stats().used.now, 600 - most);
            assert_eq!(reader.by_ref().count(), 20);
            let uploads = stats().uploads;
            assert_eq!((uploads.batches, uploads.bytes), (20, 2_000));
            assert_eq!((uploads.ahead.most, uploads.ahead.now), (most, 0));
            assert_eq!((stats().bytes.now, budget.stats().used.now), (0, 0));
            assert!(budget.stats().used.most <= 600, "{budget:?}");
        }
    }
}
