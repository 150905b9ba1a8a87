//! When an upload starts.
#![cfg(feature = "cuda")]

use std::thread::{scope, yield_now};
use std::time::{Duration, Instant};

use burn_prefetch_cuda_tests::{Shelf, StandIn, device, kick, upload};
use burn_prefetch_tests::{eventually, guarded};

const BYTES: usize = 1000;

#[test]
fn an_upload_alone_does_not_start_until_its_device_is_kicked_by_anyone() {
    guarded(|| {
        let stand_in = StandIn::alone();
        let device = device(0);
        for kicked_elsewhere in [false, true] {
            let pinned = Shelf::pin(&device, BYTES);
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
        let pinned = [(); 32].map(|()| Shelf::pin(&device, BYTES));
        stand_in.clear_log();
        let _tensors = pinned.map(|bytes| upload(bytes, &device));
        eventually("the uploads start", || stand_in.uploads().len() == 32);
    });
}
