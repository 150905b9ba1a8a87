//! Memory of one's own, handed over as `Bytes`, is copied from directly and comes back behind the copy.
#![cfg(feature = "cuda")]

use burn::tensor::{DType, Int, Tensor, TensorData};
use burn_prefetch_cuda_tests::{KINDS, Kind, Shelf, StandIn, device, kick, payload, thread_name};
use burn_prefetch_tests::guarded;

const ELEMENTS: usize = 3000;

/// A pinned slot with a payload, lent from the shelf, as data of this kind.
fn lent(shelf: &Shelf, kind: Kind, seed: u8) -> TensorData {
    let bytes = ELEMENTS * kind.dtype().size();
    let mut memory = Shelf::pin(&device(0), bytes);
    memory.copy_from_slice(&payload(bytes, seed));
    TensorData::from_bytes(shelf.lend(memory), [ELEMENTS], kind.dtype())
}

#[test]
fn a_slot_is_copied_from_directly_and_arrives_in_its_own_type() {
    guarded(|| {
        let stand_in = StandIn::alone();
        for kind in KINDS {
            let data = lent(&Shelf::new(), kind, 7);
            let sent = payload(data.as_bytes().len(), 7);
            let from = data.as_bytes().as_ptr().expose_provenance() as u64;
            stand_in.clear_log();
            let tensor = kind.upload(data, &device(0));
            let read = tensor.read();
            assert_eq!((read.dtype(), read.as_bytes()), (kind.dtype(), &sent[..]));
            let uploads = stand_in.uploads();
            assert_eq!(uploads.len(), 1, "{kind:?}: {uploads:?}");
            let upload = uploads[0];
            assert_eq!(
                (upload.from, upload.bytes, upload.pinned),
                (from, sent.len() as u64, 1)
            );
        }
    });
}

#[test]
fn a_slot_comes_back_on_the_devices_server_thread_after_the_fence_behind_its_copy() {
    guarded(|| {
        let stand_in = StandIn::alone();
        let (device, shelf) = (device(0), Shelf::new());
        let data = [1, 2, 3].map(|seed| lent(&shelf, Kind::U8, seed));
        stand_in.hold_copies();
        stand_in.clear_log();
        let mut tensors = Vec::new();
        for (flushes, data) in data.into_iter().enumerate() {
            assert_eq!(shelf.len(), flushes.saturating_sub(1));
            tensors.push(Kind::U8.upload(data, &device));
            device.flush().expect("the device works");
        }
        let returned = shelf.take();
        assert_eq!(
            returned.len(),
            2,
            "each with the second flush behind its copy"
        );
        let log = stand_in.log();
        let server = log
            .iter()
            .find(|call| call.is_upload())
            .map(|call| call.thread);
        let server = server.and_then(thread_name).expect("the server lives");
        for mut slot in returned {
            assert_eq!(slot.thread, server);
            // It is the pool's again: whatever is written now must not reach the tensor.
            slot.memory.fill(0xEE);
        }
        for (tensor, seed) in tensors.into_iter().zip(1..) {
            assert_eq!(tensor.read().as_bytes(), payload(ELEMENTS, seed));
        }
        assert_eq!(stand_in.live().hazards, 0);
    });
}

#[test]
fn a_slot_of_integers_that_is_uploaded_in_the_devices_own_type_is_converted_and_staged_again() {
    guarded(|| {
        let stand_in = StandIn::alone();
        let (device, shelf) = (device(0), Shelf::new());
        let memory = Shelf::pin(&device, 8 * ELEMENTS);
        let from = memory.as_ptr().expose_provenance() as u64;
        let data = TensorData::from_bytes(shelf.lend(memory), [ELEMENTS], DType::I64);
        stand_in.clear_log();
        let tensor = Tensor::<1, Int>::from_data(data, &device);
        assert_eq!(tensor.dtype(), DType::I32);
        assert_eq!(
            shelf.len(),
            1,
            "it is done with on the calling thread already"
        );
        kick(&device);
        let uploads = stand_in.uploads();
        assert_eq!(uploads.len(), 1);
        assert_eq!(uploads[0].bytes, 4 * ELEMENTS as u64);
        assert_ne!(uploads[0].from, from);
    });
}

/// The stand-in can tell: this is what reusing a slot too early looks like.
#[test]
fn memory_that_is_written_before_its_copy_is_waited_for_arrives_changed() {
    guarded(|| {
        let stand_in = StandIn::alone();
        let (device, shelf) = (device(0), Shelf::new());
        let data = lent(&shelf, Kind::U8, 1);
        let address = data.as_bytes().as_ptr().cast_mut();
        stand_in.hold_copies();
        let tensor = Kind::U8.upload(data, &device);
        kick(&device);
        #[expect(unsafe_code, reason = "the bug that slots must not have")]
        // SAFETY: the slot is held by the server, which only reads it when the copy is waited for.
        unsafe {
            address.write(0xEE);
        }
        assert_eq!(tensor.read().as_bytes()[0], 0xEE);
    });
}
