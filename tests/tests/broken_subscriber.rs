//! A panic between the steps of a batch, as a subscriber of `tracing` may raise one on a worker, is an error in the
//! batch's place and costs no worker.

use std::sync::atomic::{AtomicUsize, Ordering};

use burn::data::dataloader::DataLoader;
use burn_prefetch::{LoadError, Stage};
use burn_prefetch_tests::{
    Numbers, OnSpan, SpanFields, cause, eventually, for_each_case, loader, outcomes,
};

/// Batches of an epoch,
const BATCHES: usize = 6;

/// the items of each,
const BATCH: usize = 8;

/// and the one at which the subscriber panics.
const BAD: usize = 3;

/// Which span of that batch it does not bear.
static CHOSEN: AtomicUsize = AtomicUsize::new(0);
const SPANS: [&str; 3] = ["fetch", "assemble", "upload"];

fn bear(name: &str, fields: &SpanFields) {
    let chosen = SPANS[CHOSEN.load(Ordering::SeqCst)] == name;
    assert!(!chosen || fields["batch"] != BAD as u64, "no place for it");
}

#[test]
fn a_subscriber_that_panics_ends_the_pass_and_no_worker() {
    let fragile = OnSpan(|name, fields| bear(name, &fields));
    tracing::subscriber::set_global_default(fragile).expect("it is the only one");
    let cases = (0..SPANS.len()).flat_map(|span| [true, false].map(|in_order| (span, in_order)));
    for_each_case(cases, |workers, (span, in_order)| {
        CHOSEN.store(span, Ordering::SeqCst);
        let loader = loader(workers).batch_size(BATCH).in_order(in_order);
        let loader = loader
            .try_build(Numbers(BATCHES * BATCH))
            .expect("the settings are good");
        for _ in 0..3 {
            let mut all = outcomes(loader.iter());
            let error = all.pop().expect("there is one").expect_err("it is last");
            let LoadError::Panic { at, message } = cause(&error) else {
                panic!("{error}");
            };
            assert_eq!(message, "no place for it");
            assert_eq!((at.stage, at.batch), (Stage::HandOver, BAD));
            assert_eq!(at.worker.is_some(), workers > 0);
            assert!(all.iter().all(Result::is_ok), "one error");
            if in_order {
                assert_eq!(all.len(), BAD);
            }
            assert_eq!(loader.workers().alive(), workers);
            eventually("nothing is left of the pass", || {
                loader.stats().batches.now == 0
            });
        }
    });
}
