//! Staged loaders whose doubles say what they wrote, and where it lay.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};

use burn::data::dataset::{Dataset, DatasetError};
use burn::tensor::{Device, Int, Tensor};
use burn_prefetch::{
    BoxError, CollateBatcher, DataLoaderBuilder, FetchInto, Host, HostBatch, Layout,
    PrefetchDataLoader, Row, RowBatcher, Rowwise, StagedBatcher,
};

use crate::payload;

/// What went through host memory.
#[derive(Debug, Default)]
pub struct Traffic {
    /// Bytes that the dataset and the batcher wrote.
    pub written: AtomicU64,
    /// Address and length of each slot that was handed to the device.
    pub slots: Mutex<Vec<(u64, u64)>>,
}

impl Traffic {
    /// Notes where the values of a slot lie.
    pub fn slot<T>(&self, values: &[T]) {
        let from = values.as_ptr().expose_provenance() as u64;
        let slot = (from, size_of_val(values) as u64);
        self.slots
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(slot);
    }

    /// The slots so far, in no particular order.
    #[must_use]
    pub fn slots(&self) -> Vec<(u64, u64)> {
        let mut slots = self
            .slots
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        slots.sort_unstable();
        slots
    }

    fn wrote(&self, bytes: usize) {
        self.written.fetch_add(bytes as u64, SeqCst);
    }
}

/// What a sample's bytes are.
#[must_use]
pub fn bytes_of(index: usize, width: usize) -> Vec<u8> {
    payload(width, index.to_le_bytes()[0])
}

/// Samples of so many bytes.
#[derive(Clone, Debug)]
pub struct Samples {
    /// How many there are.
    pub len: usize,
    /// The bytes of each.
    pub width: usize,
    /// What they wrote.
    pub traffic: Arc<Traffic>,
}

impl Dataset<(usize, Vec<u8>), DatasetError> for Samples {
    fn get(&self, index: usize) -> Result<(usize, Vec<u8>), DatasetError> {
        self.traffic.wrote(self.width);
        Ok((index, bytes_of(index, self.width)))
    }

    fn len(&self) -> usize {
        self.len
    }
}

impl FetchInto<(usize, Vec<u8>), DatasetError> for Samples {
    fn fetch_into(&self, index: usize, row: &mut Row<'_>) -> Result<(), BoxError> {
        self.traffic.wrote(self.width);
        row.write("bytes", &bytes_of(index, self.width))?;
        numbers(index, row)
    }
}

fn numbers(index: usize, row: &mut Row<'_>) -> Result<(), BoxError> {
    let index = u16::try_from(index)?;
    row.write("float", &[f32::from(index); 3])?;
    row.write("int", &[i64::from(index)])?;
    Ok(())
}

/// Rows of bytes, floats and integers.
#[derive(Clone, Debug)]
pub struct InRows {
    /// The bytes of a sample.
    pub width: usize,
    /// What it wrote.
    pub traffic: Arc<Traffic>,
}

/// A batch on its device.
#[derive(Clone, Debug)]
pub struct Arrived {
    /// The samples' bytes.
    pub bytes: Tensor<2, Int>,
    /// Three times each sample's number.
    pub floats: Tensor<2>,
    /// Each sample's number.
    pub ints: Tensor<1, Int>,
}

impl RowBatcher<(usize, Vec<u8>), Arrived> for InRows {
    fn layout(&self, len: usize) -> Layout {
        Layout::new()
            .slot_unfilled::<u8>("bytes", [len, self.width])
            .slot_unfilled::<f32>("float", [len, 3])
            .slot_unfilled::<i64>("int", [len])
    }

    fn write(&self, item: (usize, Vec<u8>), row: &mut Row<'_>) -> Result<(), BoxError> {
        let (index, bytes) = item;
        self.traffic.wrote(bytes.len());
        row.write("bytes", &bytes)?;
        numbers(index, row)
    }

    fn upload(&self, mut batch: HostBatch, device: &Device) -> Result<Arrived, BoxError> {
        self.traffic.slot(batch.values::<u8>("bytes")?);
        self.traffic.slot(batch.values::<f32>("float")?);
        self.traffic.slot(batch.values::<i64>("int")?);
        let floats = batch.float("float", device)?;
        let ints = batch.int("int", device)?;
        let bytes = batch.int("bytes", device)?;
        Ok(Arrived {
            bytes,
            floats,
            ints,
        })
    }
}

impl Arrived {
    /// The numbers of its samples, once everything in it has been compared with what was sent.
    ///
    /// # Panics
    ///
    /// When something else has arrived.
    #[must_use]
    pub fn check(self) -> Vec<usize> {
        let [_, width] = self.bytes.dims();
        let ints = self.ints.into_data();
        let ints = ints
            .as_slice::<i64>()
            .expect("the slot's own type")
            .to_vec();
        let bytes = self.bytes.into_data();
        let floats = self.floats.into_data();
        let floats = floats.as_slice::<f32>().expect("the slot's own type");
        let mut numbers = Vec::new();
        let rows = bytes.as_bytes().chunks(width).zip(floats.chunks(3));
        for (int, (bytes, floats)) in ints.into_iter().zip(rows) {
            let number = u16::try_from(int).expect("the number of a sample");
            assert_eq!(
                bytes,
                bytes_of(usize::from(number), width),
                "sample {number}"
            );
            assert_eq!(floats, [f32::from(number); 3], "sample {number}");
            numbers.push(usize::from(number));
        }
        numbers
    }
}

/// Samples of so many tokens as their number says, for a batch as wide as the longest.
#[derive(Clone, Copy, Debug)]
pub struct Ragged;

/// What stands where no token is.
pub const NOTHING: i64 = -100;

impl CollateBatcher<usize, Tensor<2, Int>> for Ragged {
    fn collate(&self, items: Vec<usize>, host: &Host) -> Result<HostBatch, BoxError> {
        let longest = items.iter().copied().max().unwrap_or(0).max(1);
        let mut tokens = host.slot_filled("tokens", [items.len(), longest], NOTHING)?;
        for (row, item) in tokens.chunks_mut(longest).zip(&items) {
            row[..*item].fill(i64::try_from(*item)?);
        }
        Ok(HostBatch::new(items.len()).with(tokens))
    }

    fn upload(&self, mut batch: HostBatch, device: &Device) -> Result<Tensor<2, Int>, BoxError> {
        Ok(batch.int("tokens", device)?)
    }
}

/// A builder of a loader in rows.
pub type RowBuilder = DataLoaderBuilder<(usize, Vec<u8>), Arrived, StagedBatcher<InRows, Rowwise>>;

/// Samples of `width` bytes, and a builder of loaders for them.
#[must_use]
pub fn rows(
    device: &Device,
    workers: usize,
    (len, width): (usize, usize),
) -> (Samples, RowBuilder) {
    let traffic = Arc::new(Traffic::default());
    let batcher = InRows {
        width,
        traffic: Arc::clone(&traffic),
    };
    let samples = Samples {
        len,
        width,
        traffic,
    };
    let builder = DataLoaderBuilder::staged(batcher)
        .num_workers(workers)
        .set_device(device.clone());
    (samples, builder)
}

/// Iterates a loader, checks all that arrives, and says which samples came.
///
/// # Panics
///
/// When a batch is an error, or holds something else.
#[must_use]
pub fn drain(loader: &PrefetchDataLoader<Arrived>) -> Vec<usize> {
    let batches = loader.iter_owned();
    batches
        .flat_map(|batch| batch.expect("the device works").check())
        .collect()
}
