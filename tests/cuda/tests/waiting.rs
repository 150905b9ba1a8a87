//! Whom an upload waits for, and how many slots that takes, in each order of flush, upload and kick.
//!
//! `CubeCL` gives a slot back with the second flush behind its copy, and flushes by itself behind a
//! copy of more than 10 MiB.
#![cfg(feature = "cuda")]

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use burn_prefetch_cuda_tests::{Order, Record, Shelf, Slots, StandIn, device};
use burn_prefetch_tests::guarded;

const LARGE: usize = 24 << 20;
const SMALL: usize = 1000;
const HOUR: u64 = 3_600_000;

/// For every event that was waited for: how many copies had been asked for when it was recorded,
/// and how many when it was waited for. Where they are equal the newest copy is waited for.
fn waits(log: &[Record]) -> Vec<(usize, usize)> {
    let (mut copies, mut recorded, mut waits) = (0, BTreeMap::new(), Vec::new());
    for call in log {
        match call.name() {
            "cuEventRecord" => drop(recorded.insert(call.event, copies)),
            "cuEventSynchronize" => waits.push((recorded[&call.event], copies)),
            _ => copies += usize::from(call.is_upload()),
        }
    }
    waits
}

/// What is waited for while eight batches of one tensor of this size are uploaded.
fn waits_of(bytes: usize, order: Order) -> Vec<(usize, usize)> {
    let stand_in = StandIn::alone();
    let mut slots = Slots::of(&device(0), &[bytes]);
    for seed in 0..8 {
        let _tensors = order.upload(slots.batch(seed), &device(0));
    }
    waits(&stand_in.log())
}

/// How many slots it takes, for each tensor, to upload this many batches one after the other.
fn slots_for(batches: u32, sizes: &[usize], order: Order) -> Vec<usize> {
    let _stand_in = StandIn::alone();
    let mut slots = Slots::of(&device(0), sizes);
    for batch in 0..batches {
        let _tensors = order.upload(slots.batch(batch.to_le_bytes()[0]), &device(0));
    }
    slots.made
}

/// Each batch starts, and then waits for the one before it.
fn starts_and_then_waits_for_the_one_before() -> Vec<(usize, usize)> {
    (1..8).map(|batch| (batch, batch + 1)).collect()
}

/// Three large batches on the calling thread's stream: the copies of the first two are done, the last
/// takes longer than any test may.
fn upload_with_a_last_copy_that_never_ends(order: Order) {
    let stand_in = StandIn::alone();
    let mut slots = Slots::of(&device(0), &[LARGE]);
    for (seed, takes) in (0..).zip([0, 0, HOUR]) {
        stand_in.delay_events(takes);
        let _tensors = order.upload(slots.batch(seed), &device(0));
    }
    assert_eq!(stand_in.uploads().len(), 3);
}

#[test]
fn with_the_flush_before_it_a_large_batch_does_not_wait_for_its_own_copy() {
    guarded(|| upload_with_a_last_copy_that_never_ends(Order::FlushUploadKick));
}

#[test]
fn without_a_flush_a_large_batch_does_not_wait_for_its_own_copy() {
    guarded(|| upload_with_a_last_copy_that_never_ends(Order::UploadKick));
}

#[test]
fn a_flush_behind_a_large_upload_waits_for_its_copy() {
    guarded(|| {
        let stand_in = StandIn::alone();
        let pinned = Shelf::pin(&device(0), LARGE);
        stand_in.delay_events(300);
        let before = Instant::now();
        let _tensors = Order::UploadFlush.upload(vec![pinned], &device(0));
        assert!(before.elapsed() >= Duration::from_millis(300));
    });
}

#[test]
fn with_the_flush_before_them_small_batches_never_wait_for_the_newest_copy() {
    guarded(|| {
        let waits = waits_of(SMALL, Order::FlushUploadKick);
        assert!(waits.len() >= 6, "slots come back by events: {waits:?}");
        assert!(
            waits.iter().all(|(behind, started)| behind < started),
            "{waits:?}"
        );
    });
}

#[test]
fn with_the_flush_behind_it_a_small_batch_starts_and_then_waits_for_the_one_before() {
    guarded(|| {
        let waits = waits_of(SMALL, Order::UploadFlush);
        assert_eq!(waits, starts_and_then_waits_for_the_one_before());
    });
}

#[test]
fn with_the_flush_before_it_a_large_batch_waits_for_the_one_before_and_then_starts() {
    guarded(|| {
        let waits = waits_of(LARGE, Order::FlushUploadKick);
        for batch in 1..8 {
            assert!(waits.contains(&(batch, batch)), "{waits:?}");
        }
    });
}

#[test]
fn without_a_flush_a_large_batch_starts_and_then_waits_for_the_one_before() {
    guarded(|| {
        let waits = waits_of(LARGE, Order::UploadKick);
        assert_eq!(waits, starts_and_then_waits_for_the_one_before());
    });
}

#[test]
fn small_batches_take_three_slots_with_the_flush_before_and_two_with_the_flush_behind() {
    guarded(|| {
        assert_eq!(slots_for(1000, &[SMALL], Order::FlushUploadKick), [3]);
        assert_eq!(slots_for(1000, &[SMALL], Order::UploadFlush), [2]);
    });
}

#[test]
fn small_batches_take_128_slots_without_a_flush() {
    guarded(|| assert_eq!(slots_for(1000, &[SMALL], Order::UploadKick), [128]));
}

#[test]
fn large_batches_take_two_slots_without_a_flush_or_with_one_before() {
    guarded(|| {
        assert_eq!(slots_for(20, &[LARGE], Order::FlushUploadKick), [2]);
        assert_eq!(slots_for(20, &[LARGE], Order::UploadKick), [2]);
    });
}

#[test]
fn of_two_tensors_the_small_one_takes_two_slots_when_the_large_one_comes_last() {
    guarded(|| {
        assert_eq!(slots_for(20, &[SMALL, LARGE], Order::UploadKick), [2, 2]);
        assert_eq!(slots_for(20, &[LARGE, SMALL], Order::UploadKick), [2, 3]);
    });
}
