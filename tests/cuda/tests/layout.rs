//! The shape in which data is uploaded decides how it is copied.
#![cfg(feature = "cuda")]

use burn::tensor::{DType, Int, Tensor, TensorData};
use burn_prefetch_cuda_tests::{Shelf, StandIn, device, kick, payload};
use burn_prefetch_tests::guarded;

const SHAPE: [usize; 4] = [8, 3, 30, 30];
const BYTES: usize = 8 * 3 * 30 * 30;

fn pictures() -> TensorData {
    let mut memory = Shelf::pin(&device(0), BYTES);
    memory.copy_from_slice(&payload(BYTES, 5));
    TensorData::from_bytes(memory, SHAPE, DType::U8)
}

#[test]
fn rows_of_an_odd_width_are_laid_apart_on_the_device_and_copied_one_by_one() {
    guarded(|| {
        let stand_in = StandIn::alone();
        let data = pictures();
        stand_in.clear_log();
        let tensor = Tensor::<4, Int>::from_data(data, (&device(0), DType::U8));
        kick(&device(0));
        let uploads = stand_in.uploads();
        assert!(matches!(uploads[..], [rows] if rows.name() == "cuMemcpy2DAsync_v2"));
        assert_eq!(tensor.into_data(), pictures());
    });
}

#[test]
fn flat_data_is_copied_in_one_piece_and_takes_its_shape_without_a_kernel() {
    guarded(|| {
        let stand_in = StandIn::alone();
        let (bytes, _, dtype) = pictures().into_parts();
        let flat = TensorData::from_bytes(bytes, [BYTES], dtype);
        stand_in.clear_log();
        let tensor = Tensor::<1, Int>::from_data(flat, (&device(0), dtype));
        let tensor: Tensor<4, Int> = tensor.reshape(SHAPE);
        assert_eq!(tensor.into_data(), pictures());
        let uploads = stand_in.uploads();
        assert_eq!(uploads[0].name(), "cuMemcpyHtoDAsync_v2");
        assert_eq!(stand_in.calls("cuModuleLoadData"), []);
    });
}
