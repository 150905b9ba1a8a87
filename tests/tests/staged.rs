//! Batches that go through host memory are the same batches: rows, ragged ones, and those of plain batchers.

use burn::data::dataloader::batcher::Batcher;
use burn::data::dataset::{Dataset, DatasetError};
use burn::tensor::{Device, Int, Tensor};
use burn_prefetch::{
    BoxError, CollateBatcher, DataLoaderBuilder, FetchInto, Host, HostBatch, Layout, LoadError,
    PrefetchDataLoader, Row, RowBatcher, Stage, StagedBatch, rng,
};
use burn_prefetch_tests::{Numbers, alone, expect_loader_threads, for_each_worker_count};
use rand_core::Rng;

const LEN: usize = 103;
const SIZE: usize = 8;

/// Each sample is its number, in bytes and as an integer, and a number drawn for it.
#[derive(Clone, Copy, Debug, Default)]
struct InRows {
    /// The sample of this number is refused by `write`.
    refused: Option<usize>,
}

fn integer(item: usize) -> i64 {
    i64::try_from(item).expect("the numbers of a test are small")
}

/// A batch as plain values.
type Values = (Vec<u8>, Vec<i64>, Vec<f32>);

fn write(item: usize, row: &mut Row<'_>) -> Result<(), BoxError> {
    row.write("bytes", &item.to_le_bytes()[..3])?;
    row.values_mut::<i64>("number")?[0] = i64::try_from(item)?;
    row.write("drawn", &[f32::from(rng().next_u32().to_le_bytes()[0])])?;
    Ok(())
}

impl RowBatcher<usize, Values> for InRows {
    fn layout(&self, len: usize) -> Layout {
        Layout::new()
            .slot_filled::<u8>("bytes", [len, 4], 9)
            .slot_unfilled::<i64>("number", [len])
            .slot::<f32>("drawn", [len, 1])
    }

    fn write(&self, item: usize, row: &mut Row<'_>) -> Result<(), BoxError> {
        if self.refused == Some(item) {
            return Err("no room for it".into());
        }
        write(item, row)
    }

    fn upload(&self, mut batch: HostBatch, device: &Device) -> Result<Values, BoxError> {
        let bytes: Tensor<2, Int> = batch.int("bytes", device)?;
        let numbers: Tensor<1, Int> = batch.int("number", device)?;
        let drawn: Tensor<2> = batch.float("drawn", device)?;
        Ok((
            bytes.into_data().as_slice::<u8>()?.to_vec(),
            numbers.into_data().as_slice::<i64>()?.to_vec(),
            drawn.into_data().as_slice::<f32>()?.to_vec(),
        ))
    }
}

/// Numbers that write themselves.
struct Written(Numbers);

impl Dataset<usize, DatasetError> for Written {
    fn get(&self, index: usize) -> Result<usize, DatasetError> {
        self.0.get(index)
    }

    fn len(&self) -> usize {
        self.0.len()
    }
}

impl FetchInto<usize, DatasetError> for Written {
    fn fetch_into(&self, index: usize, row: &mut Row<'_>) -> Result<(), BoxError> {
        write(index, row)
    }
}

fn all(loader: &PrefetchDataLoader<Values>) -> Vec<Values> {
    loader.iter_owned().map(Result::unwrap).collect()
}

macro_rules! with {
    ($builder:expr, $workers:expr) => {
        $builder.batch_size(SIZE).shuffle(3).num_workers($workers)
    };
}

#[test]
fn rows_are_the_same_for_any_workers_parts_and_ways_to_fetch() {
    let reference = with!(DataLoaderBuilder::staged(InRows::default()), 0);
    let expected = all(&reference.try_build(Numbers(LEN)).unwrap());
    let numbers: Vec<_> = expected
        .iter()
        .flat_map(|(_, numbers, _)| numbers)
        .collect();
    assert_eq!(numbers.len(), LEN);
    let (bytes, numbers, _) = &expected[0];
    assert_eq!(i64::from(bytes[0]), numbers[0]);
    assert_eq!(bytes[3], 9, "what was not written reads as the fill value");
    for_each_worker_count(move |workers| {
        for parts in [1, 3, 8] {
            let builder = || with!(DataLoaderBuilder::staged(InRows::default()), workers);
            let each = builder().parts_per_batch(parts);
            assert_eq!(all(&each.try_build(Numbers(LEN)).unwrap()), expected);
            let into = builder().parts_per_batch(parts);
            assert_eq!(
                all(&into.try_build_into(Written(Numbers(LEN))).unwrap()),
                expected
            );
        }
    });
}

/// As many tokens as the number says.
struct Ragged;

impl CollateBatcher<usize, Vec<Vec<i64>>> for Ragged {
    fn collate(&self, items: Vec<usize>, host: &Host) -> Result<HostBatch, BoxError> {
        let longest = items.iter().copied().max().unwrap_or(0).max(1);
        let mut tokens = host.slot_filled("tokens", [items.len(), longest], -1)?;
        for (row, item) in tokens.chunks_mut(longest).zip(&items) {
            row[..*item].fill(i64::try_from(*item)?);
        }
        let lengths: Vec<i64> = items.iter().copied().map(integer).collect();
        let lengths = host.slot_of("lengths", [items.len()], &lengths)?;
        Ok(HostBatch::new(items.len()).with(tokens).with(lengths))
    }

    fn upload(&self, mut batch: HostBatch, device: &Device) -> Result<Vec<Vec<i64>>, BoxError> {
        let len = batch.len();
        let lengths = batch.values::<i64>("lengths")?.to_vec();
        let tokens: Tensor<2, Int> = batch.int("tokens", device)?;
        let [rows, width] = tokens.dims();
        assert_eq!((rows, lengths.len()), (len, len));
        let tokens = tokens.into_data();
        let rows = tokens.as_slice::<i64>()?.chunks(width);
        Ok(rows.map(<[i64]>::to_vec).collect())
    }
}

#[test]
fn ragged_batches_hold_their_own_and_nothing_of_others() {
    for_each_worker_count(|workers| {
        let builder = with!(DataLoaderBuilder::staged(Ragged), workers);
        let loader = builder.try_build(Numbers(LEN)).unwrap();
        for batch in loader.iter_owned().chain(loader.iter_owned()) {
            for row in batch.unwrap() {
                let own = row[0].max(0);
                let (written, rest) = row.split_at(usize::try_from(own).unwrap());
                assert!(written.iter().all(|token| *token == own), "{row:?}");
                assert!(rest.iter().all(|token| *token == -1), "{row:?}");
            }
        }
    });
}

#[derive(Clone, Debug, StagedBatch)]
struct Pair {
    floats: Tensor<2>,
    labels: (Tensor<1, Int>, Option<Tensor<1>>),
    number: usize,
    #[staged(skip)]
    items: std::ops::Range<usize>,
}

struct PairBatcher;

impl Batcher<usize, Pair> for PairBatcher {
    fn batch(&self, items: Vec<usize>, device: &Device) -> Pair {
        let ints: Vec<i64> = items.iter().copied().map(integer).collect();
        let floats = Tensor::<1>::from_floats([1.0, 2.0], device);
        Pair {
            floats: floats.clone().reshape([1, 2]),
            labels: (Tensor::from_ints(ints.as_slice(), device), Some(floats)),
            number: items.len(),
            items: items[0]..items[items.len() - 1] + 1,
        }
    }
}

/// Where a device has no page-locked memory the batcher is given the device, as ever.
#[test]
fn pin_memory_changes_nothing_on_a_device_that_cannot() {
    for_each_worker_count(|workers| {
        let loader = DataLoaderBuilder::new(PairBatcher)
            .pin_memory(true)
            .batch_size(SIZE)
            .num_workers(workers)
            .try_build(Numbers(LEN))
            .unwrap();
        let mut next = 0;
        for pair in loader.iter_owned() {
            let pair = pair.unwrap();
            assert_eq!(pair.items, next..next + pair.number);
            next = pair.items.end;
            let labels = pair.labels.0.into_data();
            assert!(labels.iter::<i64>().eq(pair.items.map(integer)));
            assert_eq!(pair.floats.dims(), [1, 2]);
        }
        assert_eq!(next, LEN);
        let config = loader.effective_config();
        let ignored = config.ignored.iter().find(|it| it.setting == "pin_memory");
        assert!(
            ignored.is_some_and(|it| it.why.contains("as it is")),
            "{config}"
        );
        assert!(
            config.to_string().contains("staging: in pageable memory"),
            "{config}"
        );
        let stats = loader.staging().unwrap();
        assert_eq!((stats.pinned_bytes, stats.pageable_fallbacks), (0, 0));
    });
}

#[test]
fn a_sample_that_is_refused_is_an_error_with_its_index() {
    for_each_worker_count(|workers| {
        let batcher = InRows { refused: Some(21) };
        let builder = DataLoaderBuilder::staged(batcher).batch_size(SIZE);
        let loader = builder
            .num_workers(workers)
            .try_build(Numbers(LEN))
            .unwrap();
        let mut reader = loader.iter_owned();
        assert_eq!(reader.by_ref().take(2).flatten().count(), 2);
        let error = reader.next().unwrap().unwrap_err();
        let error = LoadError::of(&error).unwrap();
        assert_eq!((error.place().batch, error.place().index), (2, Some(21)));
        assert!(error.to_string().contains("no room for it"), "{error}");
        assert!(matches!(error, LoadError::Assemble { .. }));
        assert!(reader.next().is_none());
    });
}

/// Uploads go wrong here; without a stream of its own a device is uploaded to by the workers.
struct Broken;

impl RowBatcher<usize, Values> for Broken {
    fn layout(&self, len: usize) -> Layout {
        Layout::new().slot::<i64>("number", [len])
    }

    fn write(&self, item: usize, row: &mut Row<'_>) -> Result<(), BoxError> {
        Ok(row.write("number", &[integer(item)])?)
    }

    fn upload(&self, batch: HostBatch, _device: &Device) -> Result<Values, BoxError> {
        let first = batch.values::<i64>("number")?[0];
        assert_ne!(first, 24, "it hangs together");
        if first == 16 {
            return Err("the device is full".into());
        }
        Ok((Vec::new(), vec![first], Vec::new()))
    }
}

#[test]
fn an_upload_that_fails_is_an_error_at_its_place() {
    for_each_worker_count(|workers| {
        for (start, text) in [(0, "the device is full"), (8, "it hangs together")] {
            let builder = DataLoaderBuilder::staged(Broken).batch_size(SIZE);
            let loader = builder
                .num_workers(workers)
                .try_build(Numbers(LEN))
                .unwrap();
            let loader = match start {
                0 => loader,
                _ => loader.try_slice(24, LEN).unwrap(),
            };
            let failed = loader.iter_owned().find_map(Result::err).unwrap();
            let error = LoadError::of(&failed).unwrap();
            assert_eq!(error.place().stage, Stage::Upload);
            assert!(error.to_string().contains(text), "{error}");
        }
    });
}

#[test]
fn without_workers_there_is_no_thread() {
    let _alone = alone();
    let builder = with!(DataLoaderBuilder::staged(InRows::default()), 0);
    let loader = builder.device_prefetch(3).try_build(Numbers(LEN)).unwrap();
    let mut reader = loader.iter_owned();
    assert!(reader.next().is_some());
    expect_loader_threads(0);
}

/// Fetched in one call, each item is still written in its own context.
#[test]
fn a_row_is_written_in_its_samples_context() {
    struct Draws;

    impl RowBatcher<usize, Vec<i64>> for Draws {
        fn layout(&self, len: usize) -> Layout {
            Layout::new().slot_unfilled::<i64>("drawn", [len])
        }

        fn write(&self, item: usize, row: &mut Row<'_>) -> Result<(), BoxError> {
            let index = burn_prefetch::context().and_then(|context| context.index);
            assert_eq!(index, Some(item));
            row.write("drawn", &[i64::from(rng().next_u32())])?;
            Ok(())
        }

        fn upload(&self, batch: HostBatch, _device: &Device) -> Result<Vec<i64>, BoxError> {
            Ok(batch.values::<i64>("drawn")?.to_vec())
        }
    }

    for_each_worker_count(|workers| {
        let drawn = |batched: bool, parts: usize| {
            let builder = DataLoaderBuilder::staged(Draws).batch_size(SIZE).shuffle(5);
            let builder = builder.num_workers(workers).parts_per_batch(parts);
            let builder = if batched { builder.batched() } else { builder };
            let loader = builder.try_build(Numbers(LEN)).expect("good settings");
            let batches = loader.iter_owned().map(|batch| batch.expect("it loads"));
            batches.collect::<Vec<_>>()
        };
        let expected = drawn(false, 1);
        for (batched, parts) in [(false, 3), (true, 1), (true, 4)] {
            assert_eq!(drawn(batched, parts), expected, "{batched} {parts}");
        }
    });
}

#[test]
fn a_batch_size_beyond_the_data_is_all_of_it() {
    for_each_worker_count(|workers| {
        let builder = DataLoaderBuilder::staged(InRows::default()).batch_size(usize::MAX);
        let loader = builder.num_workers(workers).try_build(Numbers(LEN));
        let loader = loader.expect("good settings");
        assert_eq!(all(&loader).len(), 1);
        assert!(loader.explain().contains("batches were ready"));
    });
}
