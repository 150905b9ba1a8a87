//! When an upload starts, and whom it waits for.
#![cfg(feature = "cuda")]

use std::collections::BTreeMap;
use std::thread::{scope, yield_now};
use std::time::{Duration, Instant};

use burn::tensor::{Bytes, DType, Device, TensorData};
use burn_prefetch_cuda_tests::{Kind, Record, Shelf, StandIn, Uploaded, device, kick, payload};
use burn_prefetch_tests::{eventually, guarded};

/// A batch of the size at which `CubeCL` flushes by itself, and more.
const LARGE: usize = 24 << 20;
const SMALL: usize = 1000;
const HOUR: u64 = 3_600_000;

fn upload(bytes: Bytes, device: &Device) -> Uploaded {
    let elements = bytes.len();
    Kind::U8.upload(TensorData::from_bytes(bytes, [elements], DType::U8), device)
}

fn upload_kick(bytes: Bytes, device: &Device) -> Uploaded {
    let tensor = upload(bytes, device);
    kick(device);
    tensor
}

/// A flush is a kick as well: the server answers it.
fn upload_flush(bytes: Bytes, device: &Device) -> Uploaded {
    let tensor = upload(bytes, device);
    device.flush().expect("the device works");
    tensor
}

fn flush_upload_kick(bytes: Bytes, device: &Device) -> Uploaded {
    device.flush().expect("the device works");
    let tensor = upload(bytes, device);
    kick(device);
    tensor
}

/// A slot from the shelf, or a new one; filled.
fn slot(shelf: &Shelf, bytes: usize, seed: u8) -> (Bytes, bool) {
    let returned = shelf.take_one();
    let is_new = returned.is_none();
    let mut memory = returned.unwrap_or_else(|| Shelf::pin(&device(0), bytes));
    memory.copy_from_slice(&payload(bytes, seed));
    (shelf.lend(memory), is_new)
}

#[test]
fn an_upload_alone_does_not_start_until_its_device_is_kicked_by_anyone() {
    guarded(|| {
        let stand_in = StandIn::alone();
        let device = device(0);
        for kicked_elsewhere in [false, true] {
            let pinned = Shelf::pin(&device, SMALL);
            stand_in.clear_log();
            let _tensor = upload(pinned, &device);
            // A wait for what must not come: long for a server that looks every 150 µs.
            let asked = Instant::now();
            while asked.elapsed() < Duration::from_millis(50) {
                assert_eq!(stand_in.uploads(), []);
                yield_now();
            }
            if kicked_elsewhere {
                let kicked = scope(|threads| threads.spawn(|| kick(&device)).join());
                kicked.expect("it is answered");
            } else {
                kick(&device);
            }
            assert_eq!(stand_in.uploads().len(), 1);
        }
    });
}

#[test]
fn thirty_two_tasks_start_without_a_kick() {
    guarded(|| {
        let stand_in = StandIn::alone();
        let device = device(0);
        let pinned = [(); 32].map(|()| Shelf::pin(&device, SMALL));
        stand_in.clear_log();
        let _tensors = pinned.map(|bytes| upload(bytes, &device));
        eventually("the uploads start", || stand_in.uploads().len() == 32);
    });
}

#[test]
fn a_large_upload_in_this_order_never_waits_for_its_own_copy() {
    guarded(|| {
        let stand_in = StandIn::alone();
        let (device, shelf) = (device(0), Shelf::new());
        for seed in 0..3 {
            let (bytes, _) = slot(&shelf, LARGE, seed);
            // The copies before are done; this one takes longer than any test may.
            let last = seed == 2;
            stand_in.delay_events(if last { HOUR } else { 0 });
            let _tensor = flush_upload_kick(bytes, &device);
        }
        assert_eq!(stand_in.uploads().len(), 3);
    });
}

#[test]
fn a_flush_behind_a_large_upload_waits_for_its_copy() {
    guarded(|| {
        let stand_in = StandIn::alone();
        let device = device(0);
        let pinned = Shelf::pin(&device, LARGE);
        stand_in.delay_events(300);
        let before = Instant::now();
        let _tensor = upload(pinned, &device);
        device.flush().expect("the device works");
        assert!(before.elapsed() >= Duration::from_millis(300));
    });
}

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

/// What is waited for while eight batches of this size are uploaded.
fn waits_of(bytes: usize, upload: impl Fn(Bytes, &Device) -> Uploaded) -> Vec<(usize, usize)> {
    let stand_in = StandIn::alone();
    let (device, shelf) = (device(0), Shelf::new());
    for seed in 0..8 {
        let _tensor = upload(slot(&shelf, bytes, seed).0, &device);
    }
    waits(&stand_in.log())
}

#[test]
fn in_this_order_small_batches_never_wait_for_the_newest_copy() {
    guarded(|| {
        let waits = waits_of(SMALL, flush_upload_kick);
        assert!(waits.len() >= 6, "slots come back by events: {waits:?}");
        assert!(
            waits.iter().all(|(behind, started)| behind < started),
            "{waits:?}"
        );
    });
}

#[test]
fn in_this_order_a_large_batch_waits_for_the_copy_before_it_and_then_starts() {
    guarded(|| {
        let waits = waits_of(LARGE, flush_upload_kick);
        for batch in 1..8 {
            assert!(waits.contains(&(batch, batch)), "{waits:?}");
        }
    });
}

#[test]
fn without_the_flush_a_large_batch_starts_and_then_waits_for_the_copy_before_it() {
    guarded(|| {
        let waits = waits_of(LARGE, upload_kick);
        assert_eq!(
            waits,
            (1..8).map(|batch| (batch, batch + 1)).collect::<Vec<_>>()
        );
    });
}

#[test]
fn with_the_flush_behind_it_a_small_batch_starts_and_then_waits_for_the_copy_before_it() {
    guarded(|| {
        let waits = waits_of(SMALL, upload_flush);
        assert_eq!(
            waits,
            (1..8).map(|batch| (batch, batch + 1)).collect::<Vec<_>>()
        );
    });
}

/// How many slots it takes to upload this many batches one after the other.
fn slots_for(batches: u32, bytes: usize, upload: impl Fn(Bytes, &Device) -> Uploaded) -> usize {
    let _stand_in = StandIn::alone();
    let (device, shelf) = (device(0), Shelf::new());
    let needs_a_new_one = |batch: &u32| {
        let (bytes, is_new) = slot(&shelf, bytes, batch.to_le_bytes()[0]);
        let _tensor = upload(bytes, &device);
        is_new
    };
    (0..batches).filter(needs_a_new_one).count()
}

#[test]
fn large_batches_need_two_slots_with_the_flush_before_them_or_none() {
    guarded(|| {
        assert_eq!(slots_for(20, LARGE, flush_upload_kick), 2);
        assert_eq!(slots_for(20, LARGE, upload_kick), 2);
    });
}

#[test]
fn small_batches_need_three_slots_with_the_flush_before_and_two_with_the_flush_behind_them() {
    guarded(|| {
        assert_eq!(slots_for(1000, SMALL, flush_upload_kick), 3);
        assert_eq!(slots_for(1000, SMALL, upload_flush), 2);
    });
}

#[test]
fn small_batches_need_128_slots_without_a_flush() {
    guarded(|| assert_eq!(slots_for(1000, SMALL, upload_kick), 128));
}
