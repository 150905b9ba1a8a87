//! What a user writes for a batch that is assembled in host memory and uploaded from there.

use burn_prefetch_engine::BoxError;

use crate::burn::{Dataset, Device};
use crate::host_batch::{Host, HostBatch};
use crate::layout::Layout;
use crate::row::Row;

/// A batcher whose samples all have one shape: each is written into a row of its own, by as many workers
/// as there are parts, and the whole batch is uploaded at once.
///
/// ```
/// use burn::tensor::{Device, Int, Tensor};
/// use burn_prefetch::{BoxError, HostBatch, Layout, Row, RowBatcher};
///
/// struct Picture { pixels: [u8; 3072], label: u8 }
/// struct Batch { images: Tensor<4>, labels: Tensor<1, Int> }
/// struct Pictures;
///
/// impl RowBatcher<Picture, Batch> for Pictures {
///     fn layout(&self, len: usize) -> Layout {
///         Layout::new()
///             .slot_unfilled::<i64>("labels", [len])
///             .slot_unfilled::<u8>("images", [len, 3, 32, 32])
///     }
///
///     fn write(&self, item: Picture, row: &mut Row<'_>) -> Result<(), BoxError> {
///         row.write("images", &item.pixels)?;
///         row.write("labels", &[i64::from(item.label)])?;
///         Ok(())
///     }
///
///     // Bytes go to the device as bytes; it widens and normalises them.
///     fn upload(&self, mut batch: HostBatch, device: &Device) -> Result<Batch, BoxError> {
///         let labels = batch.int("labels", device)?;
///         let images = batch.int::<4>("images", device)?.float() / 255.0;
///         Ok(Batch { images, labels })
///     }
/// }
/// ```
pub trait RowBatcher<I, O>: Send + Sync + 'static {
    /// The slots of a batch of `len` samples; the first dimension of each is `len`.
    ///
    /// A function of `len` alone: it is called for every part of a batch, by several workers at once, and
    /// once with 1 when the loader is built, to know what a sample takes, also where no batch will have one sample.
    /// A panic in that call is caught, although its message is printed as that of any panic, and the sizes
    /// are then learned; in a batch it is that batch's error. `bool` is no type of a slot: use `u8`.
    fn layout(&self, len: usize) -> Layout;

    /// Writes one sample.
    ///
    /// Runs on a worker, in the sample's context: [`rng`](crate::rng) draws for the sample.
    ///
    /// # Errors
    ///
    /// Whatever keeps the sample from being written; it ends the pass at the batch's place.
    fn write(&self, item: I, row: &mut Row<'_>) -> Result<(), BoxError>;

    /// Makes what the loader yields of a batch, most often by moving its slots to `device`.
    ///
    /// On a device with a stream of its own (CUDA) this runs on that device's uploader, one batch after
    /// the other; elsewhere on the worker that brought the last part. [`rng`](crate::rng) draws for the
    /// batch.
    ///
    /// # Errors
    ///
    /// Whatever keeps the batch from being uploaded; it ends the pass at the batch's place.
    fn upload(&self, batch: HostBatch, device: &Device) -> Result<O, BoxError>;
}

/// A batcher whose samples differ in shape: a batch is made of all its items at once.
///
/// ```
/// use burn::tensor::{Device, Int, Tensor};
/// use burn_prefetch::{BoxError, CollateBatcher, Host, HostBatch};
///
/// struct Sentences;
///
/// impl CollateBatcher<Vec<i64>, Tensor<2, Int>> for Sentences {
///     fn collate(&self, items: Vec<Vec<i64>>, host: &Host) -> Result<HostBatch, BoxError> {
///         let longest = items.iter().map(Vec::len).max().unwrap_or(0);
///         let mut tokens = host.slot_filled("tokens", [items.len(), longest], -100)?;
///         for (row, item) in tokens.chunks_mut(longest.max(1)).zip(&items) {
///             row[..item.len()].copy_from_slice(item);
///         }
///         Ok(HostBatch::new(items.len()).with(tokens))
///     }
///
///     fn upload(&self, mut batch: HostBatch, device: &Device) -> Result<Tensor<2, Int>, BoxError> {
///         Ok(batch.int("tokens", device)?)
///     }
/// }
/// ```
pub trait CollateBatcher<I, O>: Send + Sync + 'static {
    /// Makes a batch in host memory of its items.
    ///
    /// # Errors
    ///
    /// Whatever keeps the batch from being made; it ends the pass at the batch's place.
    fn collate(&self, items: Vec<I>, host: &Host) -> Result<HostBatch, BoxError>;

    /// As [`RowBatcher::upload`].
    ///
    /// # Errors
    ///
    /// Whatever keeps the batch from being uploaded; it ends the pass at the batch's place.
    fn upload(&self, batch: HostBatch, device: &Device) -> Result<O, BoxError>;
}

/// A dataset that writes a sample where the batch wants it, instead of making an item that is copied
/// there: one copy in host memory in all.
pub trait FetchInto<I, E>: Dataset<I, E>
where
    I: Send,
    E: std::error::Error + Send + Sync + 'static,
{
    /// Writes the sample `index` into its row, as the batcher's `write` would.
    ///
    /// # Errors
    ///
    /// What `get` would return, or what the row did not take.
    fn fetch_into(&self, index: usize, row: &mut Row<'_>) -> Result<(), BoxError>;
}

/// A batcher in host memory, in either form: [`RowBatcher`] or [`CollateBatcher`], which tells which
/// by `Form`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is neither a `RowBatcher` nor a `CollateBatcher` of these items",
    note = "a plain `Batcher` goes to `DataLoaderBuilder::new`"
)]
pub trait HostBatcher<I, O, Form>: sealed::Sealed<I, O, Form> + Send + Sync + 'static {}

/// The form of a [`RowBatcher`].
#[derive(Debug)]
pub enum Rowwise {}

/// The form of a [`CollateBatcher`].
#[derive(Debug)]
pub enum Collated {}

impl<I, O, B: RowBatcher<I, O>> HostBatcher<I, O, Rowwise> for B {}
impl<I, O, B: CollateBatcher<I, O>> HostBatcher<I, O, Collated> for B {}

mod sealed {
    #[expect(unnameable_types, reason = "nobody else implements it")]
    pub trait Sealed<I, O, Form> {}
    impl<I, O, B: super::RowBatcher<I, O>> Sealed<I, O, super::Rowwise> for B {}
    impl<I, O, B: super::CollateBatcher<I, O>> Sealed<I, O, super::Collated> for B {}
}
