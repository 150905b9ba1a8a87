//! What the stand-in does not do, and what is asked to fail, comes to light where it is read.
#![cfg(feature = "cuda")]

use burn::tensor::{Tensor, TensorData};
use burn_prefetch_cuda_tests::{Code, Kind, StandIn, device};
use burn_prefetch_tests::guarded;

#[test]
fn a_kernel_is_refused_with_the_stand_ins_own_words() {
    guarded(|| {
        let _stand_in = StandIn::alone();
        let tensor = Tensor::<1>::from_data([1.0_f32, 2.0], &device(0));
        let why = (tensor + 1).try_into_data().expect_err("no kernel runs");
        assert!(format!("{why:?}").contains("runs no kernels"), "{why:?}");
    });
}

#[test]
fn a_copy_that_fails_makes_the_read_of_its_tensor_fail_and_no_other() {
    guarded(|| {
        let stand_in = StandIn::alone();
        let data = || TensorData::from([1_u8, 2, 3]);
        stand_in.fail("cuMemcpyHtoDAsync_v2", 2, Code::InvalidValue);
        let [first, second, third] = [(); 3].map(|()| Kind::U8.upload(data(), &device(0)));
        assert_eq!(third.read(), data());
        assert_eq!(first.read(), data());
        assert!(second.try_read().is_err());
    });
}
