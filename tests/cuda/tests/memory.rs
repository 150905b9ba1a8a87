//! How much page-locked memory there is: no more than is allowed, no more than at first, none at the end.
#![cfg(feature = "cuda")]

use burn_prefetch_cuda_tests::{StandIn, device, drain, kick, rows};
use burn_prefetch_tests::{LIMIT, capture_logs, eventually, guarded, logged, within};

const TOLD: &str = "pinned_budget is 1000 bytes";

/// So far page-locked allocations and streams.
fn made(stand_in: &StandIn) -> (usize, u64) {
    (
        stand_in.calls("cuMemAllocHost_v2").len(),
        stand_in.live().streams,
    )
}

#[test]
fn nothing_is_made_any_more_after_the_first_batches() {
    for workers in [1, 8] {
        guarded(move || {
            let stand_in = StandIn::alone();
            let (samples, builder) = rows(&device(0), workers, (5_000, 64));
            let loader = builder
                .batch_size(1)
                .prefetch(4)
                .try_build(samples)
                .unwrap();
            let mut reader = loader.iter_owned();
            for _ in 0..100 {
                drop(reader.next().unwrap().unwrap());
            }
            let slots = loader.staging().unwrap().pinned_slots;
            stand_in.clear_log();
            for batch in reader {
                drop(batch.unwrap());
            }
            assert_eq!(stand_in.calls("cuMemAllocHost_v2").len(), 0);
            let stats = loader.staging().unwrap();
            assert!(
                stats.pinned_slots <= slots + 3,
                "{slots} and then {stats:?}"
            );
            assert_eq!(stats.pageable_fallbacks, 0);
        });
    }
}

#[test]
fn workers_epochs_and_loaders_make_no_more_streams_or_pages() {
    within(2 * LIMIT, || {
        let stand_in = StandIn::alone();
        let pass = |workers: usize, epochs: usize, loaders: usize| {
            let made_loaders: Vec<_> = (0..loaders)
                .map(|_| {
                    let (samples, builder) = rows(&device(0), workers, (64, 1000));
                    let builder = builder.batch_size(4).prefetch(4);
                    builder.try_build(samples).unwrap()
                })
                .collect();
            for loader in (0..epochs).flat_map(|_| &made_loaders) {
                drop(drain(loader));
            }
        };
        pass(1, 1, 1);
        let first = made(&stand_in);
        for (workers, epochs, loaders) in [(8, 1, 1), (1, 20, 1), (8, 2, 3)] {
            let before = made(&stand_in);
            pass(workers, epochs, loaders);
            let after = made(&stand_in);
            let case = format!("{workers} workers, {epochs} epochs, {loaders} loaders");
            assert_eq!(after.1, first.1, "{case}");
            assert!(
                after.0 - before.0 <= first.0,
                "{case}: {before:?} to {after:?}"
            );
        }
    });
}

#[test]
fn a_budget_is_never_passed_and_nobody_waits_for_it() {
    for (workers, batches) in [(1, 2_000), (8, 10_000)] {
        within(2 * LIMIT, move || {
            let _stand_in = StandIn::alone();
            let (samples, builder) = rows(&device(0), workers, (batches, 1000));
            // Four slots of the smallest size, for three of a batch.
            let builder = builder.batch_size(1).prefetch(16).pinned_budget(4 * 4096);
            let loader = builder.try_build(samples).unwrap();
            for batch in loader.iter_owned() {
                drop(batch.unwrap());
                let stats = loader.staging().unwrap();
                assert!(stats.pinned_bytes <= 4 * 4096, "{stats:?}");
            }
            let stats = loader.staging().unwrap();
            assert_eq!(stats.uploads, batches as u64);
            assert!(stats.pageable_fallbacks > 0, "{stats:?}");
        });
    }
}

/// More slots are allowed than are ever warm: eight threads make them while others come back.
#[test]
fn eight_workers_with_room_for_more_slots_than_are_warm() {
    within(2 * LIMIT, || {
        let _stand_in = StandIn::alone();
        let (samples, builder) = rows(&device(0), 8, (16_000, 100));
        let builder = builder.batch_size(1).prefetch(64).pinned_budget(1 << 30);
        let loader = builder.try_build(samples).unwrap();
        let batches = loader.iter_owned().map(Result::unwrap);
        assert_eq!(batches.count(), 16_000);
    });
}

#[test]
fn a_budget_below_one_slot_is_told_of_once() {
    guarded(|| {
        let _stand_in = StandIn::alone();
        capture_logs();
        let before = logged(TOLD).len();
        let (samples, builder) = rows(&device(0), 2, (40, 1000));
        let loader = builder.batch_size(4).pinned_budget(1000);
        let loader = loader.try_build(samples).unwrap();
        assert_eq!(drain(&loader).len(), 40);
        assert_eq!(logged(TOLD).len() - before, 1);
        assert_eq!(loader.staging().unwrap().pinned_bytes, 0);
    });
}

#[test]
fn without_pin_memory_nothing_is_page_locked_by_us() {
    guarded(|| {
        let _stand_in = StandIn::alone();
        let (samples, builder) = rows(&device(0), 2, (40, 1000));
        let loader = builder.batch_size(4).pin_memory(false);
        let loader = loader.try_build(samples).unwrap();
        assert_eq!(drain(&loader).len(), 40);
        let stats = loader.staging().unwrap();
        assert_eq!((stats.pinned_bytes, stats.pageable_fallbacks), (0, 0));
    });
}

#[test]
fn all_of_it_is_given_back_when_the_last_loader_is_dropped_in_mid_epoch() {
    for workers in [0, 1, 8] {
        guarded(move || {
            let stand_in = StandIn::alone();
            let here = device(0);
            kick(&here);
            here.memory_cleanup();
            let before = stand_in.live();
            let (samples, builder) = rows(&here, workers, (400, 3000));
            let loader = builder.batch_size(8).try_build(samples).unwrap();
            let mut reader = loader.iter_owned();
            drop(
                reader
                    .by_ref()
                    .take(7)
                    .map(Result::unwrap)
                    .collect::<Vec<_>>(),
            );
            assert!(stand_in.live().pinned.bytes > before.pinned.bytes);
            drop(reader);
            drop(loader);
            let after = stand_in.live();
            assert_eq!(after.pinned, before.pinned, "{workers} workers");
            assert_eq!(after.device, before.device, "{workers} workers");
            assert_eq!(after.hazards, 0);
        });
    }
}

/// What has been uploaded is on the device alone, and is bounded in bytes there.
#[test]
fn what_is_ahead_on_the_device_is_counted_and_bounded_apart() {
    for workers in [1, 8] {
        guarded(move || {
            let _stand_in = StandIn::alone();
            for (budget, ahead) in [(10 * BATCH, 3), (2 * BATCH, 2), (1, 1)] {
                upload_ahead(workers, budget, ahead * BATCH);
            }
        });
    }
}

/// The bytes of four samples: 1,000 bytes each, three floats and an integer.
const BATCH: u64 = 4 * (1_000 + 12 + 8);

/// So many bytes are uploaded ahead within this budget, of six batches that may be alive.
fn upload_ahead(workers: usize, budget: u64, ahead: u64) {
    let (samples, builder) = rows(&device(0), workers, (64, 1_000));
    let builder = builder.batch_size(4).prefetch(6).device_prefetch(3);
    let loader = builder
        .device_budget(budget)
        .try_build(samples)
        .expect("good settings");
    let batches = loader.iter_owned();
    eventually("all that may be is uploaded", || {
        let stats = loader.stats();
        (stats.bytes.now, stats.uploads.ahead.now) == (6 * BATCH - ahead, ahead)
    });
    drop(
        batches
            .map(|batch| batch.expect("it loads"))
            .collect::<Vec<_>>(),
    );
    let uploads = loader.stats().uploads;
    assert_eq!((uploads.batches, uploads.bytes), (16, 16 * BATCH));
    assert_eq!((uploads.ahead.most, uploads.ahead.now), (ahead, 0));
    let config = loader.effective_config().staging.expect("it is staged");
    assert_eq!(config.device_budget, Some(budget));
    kick(&device(0));
}
