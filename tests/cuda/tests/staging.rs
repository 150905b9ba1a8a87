//! `Device::staging` moves bytes into page-locked memory, and Burn copies from there directly.
#![cfg(feature = "cuda")]

use burn::tensor::{AllocationProperty, TensorData};
use burn_prefetch_cuda_tests::{Code, KINDS, Kind, StandIn, device, kick, payload};
use burn_prefetch_tests::guarded;

const ELEMENTS: usize = 3000;

fn data(kind: Kind) -> TensorData {
    let bytes = payload(ELEMENTS * kind.dtype().size(), 1);
    TensorData::from_bytes_vec(bytes, [ELEMENTS], kind.dtype())
}

fn staged(kind: Kind) -> TensorData {
    let mut data = data(kind);
    device(0).staging([&mut data].into_iter());
    data
}

fn address(data: &TensorData) -> u64 {
    data.as_bytes().as_ptr().expose_provenance() as u64
}

#[test]
fn staged_bytes_are_pinned_and_say_the_same() {
    guarded(|| {
        let _stand_in = StandIn::alone();
        for kind in KINDS {
            let staged = staged(kind);
            assert_eq!(staged.bytes().property(), AllocationProperty::Pinned);
            assert_eq!(staged, data(kind));
        }
    });
}

#[test]
fn the_copy_starts_from_the_pinned_memory_and_arrives() {
    guarded(|| {
        let stand_in = StandIn::alone();
        for kind in KINDS {
            let staged = staged(kind);
            let (from, bytes) = (address(&staged), staged.as_bytes().len() as u64);
            stand_in.clear_log();
            let tensor = kind.upload(staged, &device(0));
            kick(&device(0));
            let uploads = stand_in.uploads();
            assert_eq!(uploads.len(), 1, "{kind:?}: {uploads:?}");
            let upload = uploads[0];
            assert_eq!(
                (upload.from, upload.bytes, upload.pinned),
                (from, bytes, 1),
                "{kind:?}"
            );
            assert_eq!(tensor.read(), data(kind));
        }
    });
}

/// What staging is for: this is what happens without it.
#[test]
fn bytes_that_are_not_pinned_are_copied_into_pinned_memory_by_the_server() {
    guarded(|| {
        let stand_in = StandIn::alone();
        for kind in KINDS {
            let plain = data(kind);
            let from = address(&plain);
            stand_in.clear_log();
            let tensor = kind.upload(plain, &device(0));
            assert_eq!(tensor.read(), data(kind));
            let uploads = stand_in.uploads();
            assert_eq!(uploads.len(), 1, "{kind:?}: {uploads:?}");
            assert!(
                uploads[0].from != from && uploads[0].pinned == 1,
                "{uploads:?}"
            );
        }
    });
}

#[test]
fn staging_that_fails_says_nothing_and_pins_nothing() {
    guarded(|| {
        let stand_in = StandIn::alone();
        stand_in.fail_always("cuMemAllocHost_v2", Code::OutOfMemory);
        let staged = staged(Kind::U8);
        assert_eq!(staged.bytes().property(), AllocationProperty::Native);
        assert_eq!(staged, data(Kind::U8));
        assert_ne!(stand_in.calls("cuMemAllocHost_v2"), []);
    });
}
