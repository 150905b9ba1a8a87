//! What goes wrong on the way to a device is told at its place, or survived.
#![cfg(feature = "cuda")]

use burn::tensor::{Device, Int, Tensor};
use burn_prefetch::{
    BoxError, DataLoaderBuilder, HostBatch, Layout, LoadError, PrefetchDataLoader, Row, RowBatcher,
    Stage,
};
use burn_prefetch_cuda_tests::{Code, StandIn, device, drain, rows};
use burn_prefetch_tests::{Numbers, capture_logs, guarded, logged};

const TOLD: &str = "no page-locked memory could be had";

#[test]
fn where_memory_cannot_be_page_locked_training_goes_on() {
    for workers in [0, 1, 8] {
        guarded(move || {
            let stand_in = StandIn::alone();
            capture_logs();
            let before = logged(TOLD).len();
            stand_in.fail_always("cuMemAllocHost_v2", Code::OutOfMemory);
            let (samples, builder) = rows(&device(0), workers, (200, 3000));
            let loader = builder.batch_size(8).try_build(samples).unwrap();
            for _ in 0..2 {
                assert_eq!(drain(&loader), (0..200).collect::<Vec<_>>());
            }
            assert_eq!(logged(TOLD).len() - before, 1);
            let stats = loader.staging().unwrap();
            assert_eq!((stats.pinned_bytes, stats.pageable_fallbacks), (0, 150));
        });
    }
}

/// The upload of the batch that begins with this sample goes wrong.
struct Unlucky {
    first: i64,
    panics: bool,
}

impl RowBatcher<usize, Tensor<1, Int>> for Unlucky {
    fn layout(&self, len: usize) -> Layout {
        Layout::new().slot::<i64>("number", [len])
    }

    fn write(&self, item: usize, row: &mut Row<'_>) -> Result<(), BoxError> {
        Ok(row.write("number", &[i64::try_from(item)?])?)
    }

    fn upload(&self, mut batch: HostBatch, device: &Device) -> Result<Tensor<1, Int>, BoxError> {
        let unlucky = batch.values::<i64>("number")?[0] == self.first;
        assert!(!(unlucky && self.panics), "no luck");
        if unlucky {
            return Err("no luck".into());
        }
        Ok(batch.int("number", device)?)
    }
}

fn fails_in_batch_three(loader: &PrefetchDataLoader<Tensor<1, Int>>, panics: bool) {
    let mut reader = loader.iter_owned();
    assert_eq!(reader.by_ref().take(3).flatten().count(), 3);
    let error = reader.next().and_then(Result::err).expect("it fails");
    let error = LoadError::of(&error).expect("ours");
    assert_eq!(matches!(error, LoadError::Panic { .. }), panics);
    let place = error.place();
    assert_eq!((place.stage, place.batch), (Stage::Upload, 3));
    assert!(error.to_string().contains("no luck"), "{error}");
    assert!(reader.next().is_none());
}

#[test]
fn an_upload_that_fails_or_panics_is_one_error_at_its_place() {
    for workers in [0, 1, 8] {
        for panics in [false, true] {
            guarded(move || {
                let _stand_in = StandIn::alone();
                let loader = DataLoaderBuilder::staged(Unlucky { first: 12, panics })
                    .batch_size(4)
                    .num_workers(workers)
                    .set_device(device(0))
                    .try_build(Numbers(40))
                    .unwrap();
                fails_in_batch_three(&loader, panics);
                fails_in_batch_three(&loader, panics);
            });
        }
    }
}

#[test]
fn a_device_that_is_not_there_is_said_in_a_sentence() {
    for workers in [0, 1, 8] {
        guarded(move || {
            let _stand_in = StandIn::alone();
            let (samples, builder) = rows(&device(7), workers, (40, 10));
            let loader = builder.batch_size(4).try_build(samples).unwrap();
            let mut reader = loader.iter_owned();
            let error = reader.next().unwrap().unwrap_err();
            let error = LoadError::of(&error).expect("ours").to_string();
            assert!(
                error.contains("CUDA device 7 was asked for, but this machine has 2"),
                "{error}"
            );
            assert!(reader.next().is_none());
        });
    }
}

#[test]
fn early_drops_leave_no_slot_behind() {
    for workers in [0, 1, 8] {
        guarded(move || {
            let stand_in = StandIn::alone();
            let (samples, builder) = rows(&device(0), workers, (80, 3000));
            let builder = builder.batch_size(8).prefetch(4).device_prefetch(2);
            let loader = builder.try_build(samples).unwrap();
            for taken in 0..10 {
                drop(
                    loader
                        .iter_owned()
                        .take(taken)
                        .map(Result::unwrap)
                        .collect::<Vec<_>>(),
                );
            }
            assert_eq!(drain(&loader), (0..80).collect::<Vec<_>>());
            assert_eq!(stand_in.live().hazards, 0);
        });
    }
}
