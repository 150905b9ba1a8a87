//! The uploader runs ahead by itself, waits for nobody's `next()`, and uses no slot too early.
#![cfg(feature = "cuda")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use burn::data::dataset::{Dataset, DatasetError};
use burn::tensor::{Device, Int, Tensor};
use burn_prefetch::{BoxError, DataLoaderBuilder, HostBatch, Layout, Row, RowBatcher};
use burn_prefetch_cuda_tests::{
    Arrived, NOTHING, Ragged, Record, Samples, StandIn, bytes_of, device, drain, rows,
};
use burn_prefetch_tests::{Numbers, eventually, guarded};

#[test]
fn batches_are_copied_without_a_call_to_next() {
    for workers in [1, 8] {
        for ahead in [1, 2] {
            guarded(move || {
                let stand_in = StandIn::alone();
                let (samples, builder) = rows(&device(0), workers, (96, 3000));
                let builder = builder.batch_size(8).prefetch(6).device_prefetch(ahead);
                let loader = builder.try_build(samples).unwrap();
                let _unread = loader.iter_owned();
                let copied = || stand_in.uploads().len() == 3 * ahead;
                eventually("three slots a batch are copied", copied);
                drop(drain(&loader));
            });
        }
    }
}

/// The events that are waited for between the fence behind one batch's copies and the next batch's.
fn waits_between_batches(log: &[Record], copies_a_batch: usize) -> usize {
    let (mut copies, mut fenced, mut waits) = (0, false, 0);
    for call in log {
        match call.name() {
            "cuEventRecord" => fenced = copies > 0 && copies % copies_a_batch == 0,
            "cuEventSynchronize" if fenced => waits += 1,
            _ if call.is_upload() => {
                copies += 1;
                fenced = false;
            }
            _ => {}
        }
    }
    waits
}

#[test]
fn no_copy_waits_for_the_one_before_it() {
    for workers in [1, 8] {
        guarded(move || {
            let stand_in = StandIn::alone();
            let (samples, builder) = rows(&device(0), workers, (96, 3000));
            let loader = builder.batch_size(8).try_build(samples).unwrap();
            let batches: Vec<_> = loader.iter_owned().map(Result::unwrap).collect();
            assert_eq!(batches.len(), 12);
            assert_eq!(waits_between_batches(&stand_in.log(), 3), 0);
        });
    }
}

/// Samples of a megabyte each, none of which is looked at.
struct Large;

const MEGABYTE: usize = 1 << 20;

impl RowBatcher<usize, Tensor<2, Int>> for Large {
    fn layout(&self, len: usize) -> Layout {
        Layout::new().slot_unfilled::<u8>("bytes", [len, MEGABYTE])
    }

    fn write(&self, item: usize, row: &mut Row<'_>) -> Result<(), BoxError> {
        row.values_mut::<u8>("bytes")?.fill(item.to_le_bytes()[0]);
        Ok(())
    }

    fn upload(&self, mut batch: HostBatch, device: &Device) -> Result<Tensor<2, Int>, BoxError> {
        Ok(batch.int("bytes", device)?)
    }
}

/// Behind these `CubeCL` flushes by itself; a flush of ours would wait for the copy.
#[test]
fn no_copy_of_a_large_batch_waits_for_the_one_before_it() {
    for workers in [1, 8] {
        guarded(move || {
            let stand_in = StandIn::alone();
            let loader = DataLoaderBuilder::staged(Large)
                .batch_size(24)
                .num_workers(workers)
                .set_device(device(0))
                .try_build(Numbers(8 * 24))
                .unwrap();
            assert_eq!(loader.iter_owned().flatten().count(), 8);
            assert_eq!(stand_in.uploads().len(), 8);
            assert_eq!(waits_between_batches(&stand_in.log(), 1), 0);
            assert!(loader.staging().unwrap().pinned_slots <= 6, "{loader:?}");
        });
    }
}

/// The copy of a large batch takes longer than the test may: its upload returns nevertheless, and what
/// is waited for is the copy before it.
#[test]
fn a_large_batch_is_returned_while_it_is_being_copied() {
    guarded(|| {
        let stand_in = StandIn::alone();
        let loader = DataLoaderBuilder::staged(Large)
            .batch_size(24)
            .num_workers(2)
            .device_prefetch(0)
            .set_device(device(0))
            .try_build(Numbers(72))
            .unwrap();
        let mut reader = loader.iter_owned();
        drop(reader.next().unwrap().unwrap());
        drop(reader.next().unwrap().unwrap());
        stand_in.delay_events(5_000);
        let begun = Instant::now();
        let _batch = reader.next().unwrap().unwrap();
        assert!(begun.elapsed() < Duration::from_secs(5));
        stand_in.delay_events(0);
    });
}

/// What arrives is what lies at the source when the copy is done: a slot that was used again too early
/// would show.
#[test]
fn copies_that_come_late_find_what_was_sent() {
    for workers in [1, 8] {
        guarded(move || {
            let stand_in = StandIn::alone();
            stand_in.hold_copies();
            let (samples, builder) = rows(&device(0), workers, (240, 3000));
            let loader = builder.batch_size(8).prefetch(4).device_prefetch(2);
            let loader = loader.try_build(samples).unwrap();
            let batches: Vec<_> = loader.iter_owned().map(Result::unwrap).collect();
            let seen: Vec<_> = batches.into_iter().flat_map(Arrived::check).collect();
            assert_eq!(seen, (0..240).collect::<Vec<_>>());
            assert_eq!(stand_in.live().hazards, 0);
        });
    }
}

/// Every sample has as many tokens as its number says, and nothing behind them.
fn expect_own_tokens(tokens: Tensor<2, Int>) {
    let [samples, width] = tokens.dims();
    let data = tokens.into_data();
    let tokens = data.as_slice::<i64>().expect("the slot's own type");
    assert_eq!(tokens.len(), samples * width);
    for row in tokens.chunks(width) {
        let own = row[0].max(0);
        let written = row.iter().take_while(|token| **token == own).count();
        assert_eq!(i64::try_from(written), Ok(own));
        let rest = &row[written..];
        assert!(rest.iter().all(|token| *token == NOTHING), "{row:?}");
    }
}

#[test]
fn a_ragged_batch_sees_no_token_of_another() {
    for workers in [0, 1, 8] {
        guarded(move || {
            let stand_in = StandIn::alone();
            stand_in.hold_copies();
            let loader = DataLoaderBuilder::staged(Ragged)
                .batch_size(7)
                .shuffle(5)
                .num_workers(workers)
                .set_device(device(0))
                .try_build(Numbers(700))
                .unwrap();
            let batches: Vec<_> = loader.iter_owned().map(Result::unwrap).collect();
            batches.into_iter().for_each(expect_own_tokens);
        });
    }
}

/// The first batch costs far more than the others.
struct Uneven(Samples);

impl Dataset<(usize, Vec<u8>), DatasetError> for Uneven {
    fn get(&self, index: usize) -> Result<(usize, Vec<u8>), DatasetError> {
        let times = if index < 8 { 1_000 } else { 1 };
        for _ in 1..times {
            black_box(bytes_of(index, self.0.width));
        }
        self.0.get(index)
    }

    fn len(&self) -> usize {
        self.0.len
    }
}

#[test]
fn a_slow_batch_a_kept_reader_and_two_in_step_hold_nobody_up_for_good() {
    guarded(|| {
        let _stand_in = StandIn::alone();
        let (samples, builder) = rows(&device(0), 8, (320, 3000));
        let builder = builder.batch_size(8).device_prefetch(1);
        let loader = builder.try_build(Uneven(samples)).unwrap();
        assert_eq!(drain(&loader).len(), 320);
        let _unread = loader.iter_owned();
        let both = loader.iter_owned().zip(loader.iter_owned());
        let both = both.filter(|(one, other)| one.is_ok() && other.is_ok());
        assert_eq!(both.count(), 40);
    });
}
