//! A layout, a row or a slot that cannot be is said in one sentence, at the sample's place.

use burn::tensor::{DType, Device};
use burn_prefetch::{
    BoxError, CollateBatcher, DataLoaderBuilder, Host, HostBatch, Layout, LoadError, Row,
    RowBatcher,
};
use burn_prefetch_tests::{Numbers, for_each_worker_count};

/// A batcher of one's choice.
#[derive(Clone, Copy)]
struct Rows {
    layout: fn(usize) -> Layout,
    write: fn(usize, &mut Row<'_>) -> Result<(), BoxError>,
    upload: fn(&mut HostBatch) -> Result<(), BoxError>,
}

impl RowBatcher<usize, usize> for Rows {
    fn layout(&self, len: usize) -> Layout {
        (self.layout)(len)
    }

    fn write(&self, item: usize, row: &mut Row<'_>) -> Result<(), BoxError> {
        (self.write)(item, row)
    }

    fn upload(&self, mut batch: HostBatch, _device: &Device) -> Result<usize, BoxError> {
        (self.upload)(&mut batch)?;
        Ok(batch.len())
    }
}

const GOOD: Rows = Rows {
    layout: |len| Layout::new().slot_unfilled::<i64>("number", [len, 2]),
    write: |item, row| Ok(row.write("number", &[i64::try_from(item)?, 0])?),
    upload: |batch| {
        batch.data("number")?;
        Ok(())
    },
};

fn expect(rows: Rows, words: &'static [&'static str]) {
    for_each_worker_count(move |workers| {
        let builder = DataLoaderBuilder::staged(rows).batch_size(4);
        let loader = builder
            .num_workers(workers)
            .try_build(Numbers(9))
            .expect("good settings");
        let error = loader.iter_owned().find_map(Result::err).expect("it fails");
        let error = LoadError::of(&error).expect("ours").to_string();
        for word in words {
            assert!(error.contains(word), "`{word}` is missing in: {error}");
        }
    });
}

#[test]
fn the_good_one_is_good() {
    for_each_worker_count(|workers| {
        let builder = DataLoaderBuilder::staged(GOOD).batch_size(4);
        let loader = builder
            .num_workers(workers)
            .try_build(Numbers(9))
            .expect("good settings");
        let sizes: Vec<_> = loader.iter_owned().map(Result::unwrap).collect();
        assert_eq!(sizes, [4, 4, 1]);
    });
}

#[test]
fn rows_that_are_not_one_for_each_sample() {
    let layout = |_len| Layout::new().slot::<i64>("number", [7, 2]);
    expect(
        Rows { layout, ..GOOD },
        &["\"number\"", "[7, 2]", "4 samples"],
    );
}

#[test]
fn more_values_than_a_row_has() {
    let write: fn(usize, &mut Row<'_>) -> _ = |_, row| Ok(row.write("number", &[1_i64; 3])?);
    expect(
        Rows { write, ..GOOD },
        &["has 2 values", "3 were given", "index 0"],
    );
}

#[test]
fn fewer_values_than_a_row_has_and_nothing_to_fill_in() {
    let write: fn(usize, &mut Row<'_>) -> _ = |_, row| Ok(row.write("number", &[1_i64])?);
    expect(Rows { write, ..GOOD }, &["has 2 values", "1 were given"]);
}

#[test]
fn a_row_that_nobody_wrote() {
    let write: fn(usize, &mut Row<'_>) -> _ = |item, row| match item {
        5 => Ok(()),
        _ => (GOOD.write)(item, row),
    };
    expect(
        Rows { write, ..GOOD },
        &[
            "row 1 of \"number\" was not written",
            "index 5",
            "slot_filled",
        ],
    );
}

#[test]
fn another_type_and_another_slot() {
    let write: fn(usize, &mut Row<'_>) -> _ = |_, row| Ok(row.write("number", &[1.0_f32; 2])?);
    expect(Rows { write, ..GOOD }, &["\"number\" holds I64", "F32"]);
    let write: fn(usize, &mut Row<'_>) -> _ = |_, row| Ok(row.write("numbers", &[1_i64; 2])?);
    expect(
        Rows { write, ..GOOD },
        &["no slot \"numbers\"", "[\"number\"]"],
    );
}

#[test]
fn a_slot_that_is_taken_twice() {
    let upload: fn(&mut HostBatch) -> _ = |batch| {
        batch.data("number")?;
        batch.data("number")?;
        Ok(())
    };
    expect(Rows { upload, ..GOOD }, &["\"number\" has been taken"]);
}

#[test]
fn other_dimensions_than_the_slot_has() {
    let upload: fn(&mut HostBatch) -> _ = |batch| {
        batch.int::<3>("number", &Device::default())?;
        Ok(())
    };
    expect(Rows { upload, ..GOOD }, &["[4, 2]", "3 dimensions"]);
}

/// Burn would make an integer tensor of floats, or panic in the middle of the upload.
#[test]
fn a_tensor_of_another_kind_than_the_slot() {
    let floats = Rows {
        layout: |len| Layout::new().slot::<f32>("weight", [len]),
        write: |_, row| Ok(row.write("weight", &[0.5_f32])?),
        upload: |batch| {
            let device = Device::default();
            let refused = batch.int::<1>("weight", &device).map(|_| ());
            // It is still there.
            assert_eq!(batch.float::<1>("weight", &device)?.dtype(), DType::F32);
            Ok(refused?)
        },
    };
    expect(
        floats,
        &[
            "\"weight\" holds F32",
            "an integer tensor was asked for",
            "float(..)",
        ],
    );
    let bytes = Rows {
        layout: |len| Layout::new().slot::<u8>("image", [len, 2]),
        write: |_, row| Ok(row.write("image", &[1_u8, 2])?),
        upload: |batch| {
            let device = Device::default();
            let refused = batch.float::<2>("image", &device).map(|_| ());
            let pixels = batch.int::<2>("image", &device)?;
            assert_eq!(pixels.dtype(), DType::U8);
            Ok(refused?)
        },
    };
    expect(
        bytes,
        &[
            "\"image\" holds U8",
            "a float tensor was asked for",
            "int(..)",
            ".float()",
        ],
    );
}

/// Every type that a slot can have is taken by one of the two.
#[test]
fn each_type_of_slot_is_of_one_kind() {
    macro_rules! kinds {
        ($($kind:ty),*) => {
            Rows {
                layout: |len| Layout::new()$(.slot::<$kind>(stringify!($kind), [len]))*,
                write: |_, _| Ok(()),
                upload: |batch| {
                    let device = Device::default();
                    $(
                        let name = stringify!($kind);
                        if name.starts_with('f') {
                            assert!(batch.int::<1>(name, &device).is_err(), "{name}");
                            batch.float::<1>(name, &device)?;
                        } else {
                            assert!(batch.float::<1>(name, &device).is_err(), "{name}");
                            batch.int::<1>(name, &device)?;
                        }
                    )*
                    Ok(())
                },
            }
        };
    }
    let all = kinds!(u8, u16, u32, u64, i8, i16, i32, i64, f32, f64);
    for_each_worker_count(move |workers| {
        let builder = DataLoaderBuilder::staged(all).batch_size(4);
        let loader = builder.num_workers(workers).try_build(Numbers(9));
        let batches = loader.expect("good settings").iter_owned();
        let lens: Vec<_> = batches.map(|batch| batch.expect("it loads")).collect();
        assert_eq!(lens, [4, 4, 1]);
    });
}

/// The way that is told to those who want a `bool` slot.
#[test]
fn a_mask_is_made_of_bytes() {
    let mask = Rows {
        layout: |len| Layout::new().slot::<u8>("mask", [len]),
        write: |item, row| Ok(row.write("mask", &[u8::from(item % 2 == 1)])?),
        upload: |batch| {
            let expected: Vec<_> = batch
                .values::<u8>("mask")?
                .iter()
                .map(|b| *b == 1)
                .collect();
            let mask = batch.int::<1>("mask", &Device::default())?.bool();
            assert_eq!(
                mask.into_data().iter::<bool>().collect::<Vec<_>>(),
                expected
            );
            Ok(())
        },
    };
    for_each_worker_count(move |workers| {
        let builder = DataLoaderBuilder::staged(mask).batch_size(4);
        let loader = builder.num_workers(workers).try_build(Numbers(9));
        let batches = loader.expect("good settings").iter_owned();
        assert_eq!(
            batches.map(|batch| batch.expect("it loads")).sum::<usize>(),
            9
        );
    });
}

struct Slots(Vec<i64>);

impl CollateBatcher<usize, usize> for Slots {
    fn collate(&self, items: Vec<usize>, host: &Host) -> Result<HostBatch, BoxError> {
        let slot = host.slot_of("number", [items.len(), 2], &self.0)?;
        Ok(HostBatch::new(items.len()).with(slot))
    }

    fn upload(&self, batch: HostBatch, _device: &Device) -> Result<usize, BoxError> {
        Ok(batch.len())
    }
}

#[test]
fn a_shape_and_values_that_do_not_belong_together() {
    for_each_worker_count(|workers| {
        let builder = DataLoaderBuilder::staged(Slots(vec![1; 5])).batch_size(4);
        let loader = builder.num_workers(workers).try_build(Numbers(4)).unwrap();
        let error = loader.iter_owned().find_map(Result::err).expect("it fails");
        let error = LoadError::of(&error).expect("ours").to_string();
        assert!(
            error.contains("shape [4, 2]") && error.contains("has 8"),
            "{error}"
        );
        assert!(error.contains("5 were given"), "{error}");
    });
}

#[test]
fn two_slots_of_one_name_and_memory_that_there_is_not() {
    let twice = Rows {
        layout: |len| Layout::new().slot::<u8>("x", [len]).slot::<i64>("x", [len]),
        ..GOOD
    };
    expect(twice, &["two slots are named \"x\""]);
    let huge = Rows {
        layout: |len| Layout::new().slot_unfilled::<f32>("x", [len, 1 << 45]),
        ..GOOD
    };
    expect(
        huge,
        &[
            "no memory for a slot of 562949953421312 bytes",
            "smaller batch_size",
        ],
    );
}

/// Neither is there anything to write nor to copy.
#[test]
fn a_slot_without_width_is_a_tensor_without_values() {
    let empty = Rows {
        layout: |len| Layout::new().slot::<i64>("x", [len, 5, 0]),
        write: |_, _| Ok(()),
        upload: |batch| {
            let tensor = batch.int::<3>("x", &Device::default())?;
            assert_eq!(tensor.dims()[1..], [5, 0]);
            Ok(())
        },
    };
    for_each_worker_count(move |workers| {
        let builder = DataLoaderBuilder::staged(empty).batch_size(4);
        let loader = builder.num_workers(workers).try_build(Numbers(9));
        let batches = loader.expect("good settings").iter_owned();
        let lens: Vec<_> = batches.map(|batch| batch.expect("it loads")).collect();
        assert_eq!(lens, [4, 4, 1]);
    });
}

struct Miscounts;

impl CollateBatcher<usize, ()> for Miscounts {
    fn collate(&self, _items: Vec<usize>, _host: &Host) -> Result<HostBatch, BoxError> {
        Ok(HostBatch::new(99))
    }

    fn upload(&self, _batch: HostBatch, _device: &Device) -> Result<(), BoxError> {
        Ok(())
    }
}

#[test]
fn a_batch_of_another_number_of_samples() {
    for_each_worker_count(|workers| {
        let builder = DataLoaderBuilder::staged(Miscounts).batch_size(4);
        let loader = builder.num_workers(workers).try_build(Numbers(9));
        let mut batches = loader.expect("good settings").iter_owned();
        let error = batches.next().expect("an error").unwrap_err().to_string();
        assert!(
            error.contains("99 samples") && error.contains("of 4 items"),
            "{error}"
        );
    });
}
