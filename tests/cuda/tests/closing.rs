//! What it takes for page-locked memory to be given back.
#![cfg(feature = "cuda")]

use burn::tensor::StreamId;
use burn_prefetch_cuda_tests::{Shelf, StandIn, device, kick};
use burn_prefetch_tests::guarded;

#[test]
fn pinned_pages_come_back_when_no_bytes_hold_them_and_any_stream_cleans_up() {
    guarded(|| {
        let stand_in = StandIn::alone();
        let device = device(0);
        kick(&device);
        let before = stand_in.live().pinned;
        let bytes = StreamId::allocate().executes(|| Shelf::pin(&device, 3 << 20));
        assert!(stand_in.live().pinned.bytes >= before.bytes + (3 << 20));
        device.memory_cleanup();
        assert!(
            stand_in.live().pinned.bytes > before.bytes,
            "the bytes hold their page"
        );
        drop(bytes);
        assert!(
            stand_in.live().pinned.bytes > before.bytes,
            "the pool holds its page"
        );
        device.memory_cleanup();
        assert_eq!(stand_in.live().pinned, before);
    });
}
