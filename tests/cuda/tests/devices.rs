//! Work for one device touches no other.
#![cfg(feature = "cuda")]

use burn::tensor::{Device, DeviceType, TensorData};
use burn_prefetch_cuda_tests::{KINDS, Shelf, StandIn, device};
use burn_prefetch_tests::guarded;

#[test]
fn what_goes_to_device_1_touches_nothing_of_device_0() {
    guarded(|| {
        let stand_in = StandIn::alone();
        let device = device(1);
        for kind in KINDS {
            let bytes = Shelf::pin(&device, 800);
            let data = TensorData::from_bytes(bytes, [800 / kind.dtype().size()], kind.dtype());
            assert_eq!(kind.upload(data, &device).read().as_bytes(), [0; 800]);
        }
        device.sync().expect("the device works");
        let live = stand_in.live();
        assert!(live.device[1].bytes > 0);
        assert_eq!(live.device[0].bytes, 0);
        let log = stand_in.log();
        assert!(log.iter().any(|call| call.device == 1));
        assert!(log.iter().all(|call| call.device != 0), "{log:?}");
    });
}

#[test]
fn both_devices_are_listed() {
    guarded(|| {
        let _stand_in = StandIn::alone();
        assert_eq!(Device::enumerate(DeviceType::Cuda).len(), 2);
    });
}
