//! What is uploaded is copied from where it was written, once, and by one stream.
#![cfg(feature = "cuda")]

use std::sync::Arc;

use burn::data::dataloader::batcher::Batcher;
use burn::data::dataset::{Dataset, DatasetError};
use burn::tensor::{DType, Device, Int, Tensor, TensorData};
use burn_prefetch::{DataLoaderBuilder, PrefetchDataLoader, StagedBatch};
use burn_prefetch_cuda_tests::{Arrived, Samples, StandIn, Traffic, device, drain, rows};
use burn_prefetch_tests::guarded;

const SIZE: (usize, usize) = (96, 3000);

/// No copy of more than this is anything but payload.
const SMALL: u64 = 256;

/// Whether every slot was copied from where it lay, and nothing else was.
fn copied_from_slots(stand_in: &StandIn, traffic: &Traffic) -> Result<(), String> {
    let mut copies: Vec<_> = stand_in
        .uploads()
        .iter()
        .filter(|copy| copy.bytes > SMALL || copy.pinned == 1)
        .map(|copy| (copy.from, copy.bytes))
        .collect();
    copies.sort_unstable();
    let slots = traffic.slots();
    if slots.is_empty() {
        return Err("no slot was seen".to_owned());
    }
    if copies == slots {
        return Ok(());
    }
    Err(format!("slots {slots:?}, copies {copies:?}"))
}

fn loader(workers: usize) -> (Samples, PrefetchDataLoader<Arrived>) {
    let (samples, builder) = rows(&device(0), workers, SIZE);
    let loader = builder.batch_size(8).try_build(samples.clone());
    (samples, loader.expect("good settings"))
}

#[test]
fn every_slot_is_copied_from_where_it_was_written() {
    for workers in [0, 1, 8] {
        guarded(move || {
            let stand_in = StandIn::alone();
            let (samples, loader) = loader(workers);
            for _ in 0..2 {
                assert_eq!(drain(&loader), (0..96).collect::<Vec<_>>());
            }
            copied_from_slots(&stand_in, &samples.traffic).unwrap();
            let copies = stand_in.uploads();
            assert!(copies.iter().all(|copy| copy.pinned == 1), "{copies:?}");
            let stats = loader.staging().expect("it is staged");
            assert_eq!((stats.uploads, stats.pageable_fallbacks), (24, 0));
        });
    }
}

/// What Burn's way does: the batcher makes tensors of memory of its own.
struct Plain(Arc<Traffic>);

impl Batcher<(usize, Vec<u8>), Tensor<1, Int>> for Plain {
    fn batch(&self, items: Vec<(usize, Vec<u8>)>, device: &Device) -> Tensor<1, Int> {
        let bytes: Vec<u8> = items.into_iter().flat_map(|(_, bytes)| bytes).collect();
        self.0.slot(&bytes);
        let len = bytes.len();
        let data = TensorData::from_bytes_vec(bytes, [len], DType::U8);
        Tensor::from_data(data, (device, DType::U8))
    }
}

/// So the check can fail.
#[test]
fn the_same_is_not_true_of_a_plain_batcher() {
    guarded(|| {
        let stand_in = StandIn::alone();
        let (samples, _) = rows(&device(0), 1, SIZE);
        let loader = DataLoaderBuilder::new(Plain(Arc::clone(&samples.traffic)))
            .batch_size(8)
            .num_workers(1)
            .set_device(device(0))
            .try_build(samples.clone())
            .unwrap();
        for batch in loader.iter_owned() {
            batch.unwrap().into_data();
        }
        copied_from_slots(&stand_in, &samples.traffic).unwrap_err();
    });
}

#[test]
fn each_byte_is_written_once_by_who_writes_rows_and_twice_through_items() {
    use std::sync::atomic::Ordering::SeqCst;
    for workers in [0, 1, 8] {
        guarded(move || {
            let _stand_in = StandIn::alone();
            let payload = (SIZE.0 * SIZE.1) as u64;
            let (samples, through_items) = loader(workers);
            drop(drain(&through_items));
            assert_eq!(samples.traffic.written.load(SeqCst), 2 * payload);
            let (samples, builder) = rows(&device(0), workers, SIZE);
            let into = builder.batch_size(8).try_build_into(samples.clone());
            assert_eq!(drain(&into.unwrap()), (0..96).collect::<Vec<_>>());
            assert_eq!(samples.traffic.written.load(SeqCst), payload);
        });
    }
}

#[test]
fn one_thread_and_one_stream_upload_for_all_loaders_of_a_device() {
    guarded(|| {
        let stand_in = StandIn::alone();
        let loaders: Vec<_> = (0..3).map(|_| loader(4).1).collect();
        for (_, loader) in [(0, &loaders[0]), (1, &loaders[1]), (2, &loaders[2])] {
            drop(drain(loader));
        }
        let copies = stand_in.uploads();
        assert!(copies.iter().all(|copy| copy.stream == copies[0].stream));
    });
}

#[test]
fn what_was_selected_is_what_is_touched() {
    guarded(|| {
        let stand_in = StandIn::alone();
        let (samples, builder) = rows(&device(1), 4, SIZE);
        let loader = builder.batch_size(8).try_build(samples).unwrap();
        // What the first device was touched for by other tests of this process is over.
        stand_in.clear_log();
        drop(drain(&loader));
        let log = stand_in.log();
        let elsewhere = log.iter().filter(|call| call.device == 0).count();
        assert_eq!(elsewhere, 0);
        assert!(log.iter().any(|call| call.device == 1));
    });
}

/// A batch that says which tensors it holds, and a plain batcher of it.
#[derive(Clone, Debug, StagedBatch)]
struct Pair {
    floats: Tensor<2>,
    labels: Tensor<1, Int>,
    numbers: Vec<usize>,
}

#[derive(Clone, Debug, Default)]
struct PairBatcher {
    /// Makes its labels there, whatever it is given.
    elsewhere: Option<Device>,
    /// A tensor of its own, to be added.
    own: Option<Tensor<2>>,
}

impl Batcher<usize, Pair> for PairBatcher {
    fn batch(&self, items: Vec<usize>, device: &Device) -> Pair {
        let floats: Vec<f32> = items
            .iter()
            .map(|item| f32::from(u16::try_from(*item).expect("small")))
            .collect();
        let labels: Vec<i64> = items
            .iter()
            .map(|item| i64::try_from(*item).expect("small"))
            .collect();
        let labels_on = self.elsewhere.as_ref().unwrap_or(device);
        let mut floats = Tensor::<1>::from_floats(floats.as_slice(), device).reshape([-1, 1]);
        if let Some(own) = &self.own {
            floats = floats + own.clone();
        }
        Pair {
            floats,
            labels: Tensor::from_ints(labels.as_slice(), labels_on),
            numbers: items,
        }
    }
}

struct Count(usize);

impl Dataset<usize, DatasetError> for Count {
    fn get(&self, index: usize) -> Result<usize, DatasetError> {
        Ok(index)
    }

    fn len(&self) -> usize {
        self.0
    }
}

fn moved(batcher: PairBatcher, workers: usize) -> PrefetchDataLoader<Pair> {
    DataLoaderBuilder::new(batcher)
        .pin_memory(true)
        .batch_size(100)
        .num_workers(workers)
        .set_device(device(0))
        .try_build(Count(1000))
        .expect("good settings")
}

#[test]
fn a_plain_batchers_tensors_are_moved_from_page_locked_memory() {
    for workers in [0, 1, 8] {
        guarded(move || {
            let stand_in = StandIn::alone();
            let loader = moved(PairBatcher::default(), workers);
            let mut seen = Vec::new();
            for pair in loader.iter_owned() {
                let pair = pair.unwrap();
                assert_eq!(pair.floats.device(), device(0));
                let settings = device(0).settings();
                assert_eq!(pair.labels.dtype(), settings.int_dtype.into());
                assert_eq!(pair.floats.dtype(), settings.float_dtype.into());
                assert_eq!(pair.floats.dims(), [100, 1]);
                let labels = pair.labels.into_data().iter::<i64>().collect::<Vec<_>>();
                let floats = pair.floats.into_data().iter::<f32>().collect::<Vec<_>>();
                let numbers = pair.numbers.iter();
                let numbers = numbers.map(|number| u16::try_from(*number).unwrap());
                let numbers = numbers.collect::<Vec<_>>();
                assert!(
                    labels
                        .into_iter()
                        .eq(numbers.iter().copied().map(i64::from))
                );
                assert!(
                    floats
                        .into_iter()
                        .eq(numbers.iter().copied().map(f32::from))
                );
                seen.extend(pair.numbers);
            }
            assert_eq!(seen, (0..1000).collect::<Vec<_>>());
            let uploads = stand_in.uploads();
            assert_eq!(uploads.len(), 20, "{uploads:?}");
            assert!(uploads.iter().all(|copy| copy.pinned == 1), "{uploads:?}");
        });
    }
}

#[test]
fn a_batcher_that_holds_device_tensors_is_told_so() {
    for workers in [0, 1, 8] {
        guarded(move || {
            let _stand_in = StandIn::alone();
            let elsewhere = PairBatcher {
                elsewhere: Some(device(0)),
                own: None,
            };
            let error = moved(elsewhere, workers).iter_owned().next().unwrap();
            let error = format!("{:?}", error.unwrap_err());
            assert!(
                error.contains("make tensors on the device that is given"),
                "{error}"
            );
            let own = PairBatcher {
                elsewhere: None,
                own: Some(Tensor::from_floats([[1.0]], &device(0))),
            };
            let error = moved(own, workers).iter_owned().next().unwrap();
            let error = format!("{:?}", error.unwrap_err());
            assert!(error.contains("have to be made on the device"), "{error}");
        });
    }
}
