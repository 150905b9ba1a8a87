//! Samples whose bytes follow from their number, so that whoever gets them can tell.

use std::convert::Infallible;

use burn::data::dataset::{Dataset, DatasetError};
use burn::tensor::{Device, Int, Tensor};
use burn_prefetch::{
    BoxError, DataLoaderBuilder, FetchInto, HostBatch, Layout, PrefetchDataLoader, Row, RowBatcher,
    Rowwise, StagedBatcher,
};

const NUMBERS: &str = "numbers";
const BYTES: &str = "bytes";

/// Samples of so many bytes each.
#[derive(Debug, Clone, Copy)]
pub(super) struct Numbered {
    pub(super) samples: usize,
    pub(super) bytes: usize,
    pub(super) written: Written,
}

/// Whether a sample's bytes are written, or left as they are: then an upload alone is timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Written {
    All,
    Nothing,
}

/// A batch on the card, in one row each.
pub(super) struct NumberedBatch {
    pub(super) numbers: Tensor<1, Int>,
    pub(super) bytes: Tensor<1, Int>,
}

pub(super) type Builder =
    DataLoaderBuilder<Infallible, NumberedBatch, StagedBatcher<Numbered, Rowwise>>;

impl Numbered {
    /// A loader of staged batches, as far as `set` does not say otherwise.
    pub(super) fn loader(
        self,
        device: &Device,
        set: impl FnOnce(Builder) -> Builder,
    ) -> anyhow::Result<PrefetchDataLoader<NumberedBatch>> {
        let builder = Builder::staged(self).set_device(device.clone());
        Ok(set(builder).try_build_into(self)?)
    }
}

impl Dataset<Infallible> for Numbered {
    fn get(&self, _index: usize) -> Result<Infallible, DatasetError> {
        unreachable!("it writes its samples itself")
    }

    fn len(&self) -> usize {
        self.samples
    }
}

impl FetchInto<Infallible, DatasetError> for Numbered {
    fn fetch_into(&self, index: usize, row: &mut Row<'_>) -> Result<(), BoxError> {
        row.write(NUMBERS, &[i64::try_from(index)?])?;
        let bytes = row.values_mut::<u8>(BYTES)?;
        if self.written == Written::All {
            fill(index, bytes);
        }
        Ok(())
    }
}

impl RowBatcher<Infallible, NumberedBatch> for Numbered {
    fn layout(&self, len: usize) -> Layout {
        Layout::new()
            .slot_unfilled::<i64>(NUMBERS, [len])
            .slot_unfilled::<u8>(BYTES, [len, self.bytes])
    }

    fn write(&self, item: Infallible, _row: &mut Row<'_>) -> Result<(), BoxError> {
        match item {}
    }

    fn upload(&self, mut batch: HostBatch, device: &Device) -> Result<NumberedBatch, BoxError> {
        let numbers = batch.int(NUMBERS, device)?;
        let bytes = batch.int::<2>(BYTES, device)?;
        let all: usize = bytes.dims().iter().product();
        Ok(NumberedBatch {
            numbers,
            bytes: bytes.reshape([all]),
        })
    }
}

impl NumberedBatch {
    /// Reads it back: the numbers in it, and how many samples are not what their number says.
    pub(super) fn read(self, of: Numbered) -> anyhow::Result<(Vec<i64>, usize)> {
        let failed = |error| anyhow::anyhow!("a batch cannot be read back: {error:?}");
        let numbers = self.numbers.try_into_data().map_err(failed)?;
        let bytes = self.bytes.try_into_data().map_err(failed)?;
        let numbers = numbers
            .try_to_vec::<i64>()
            .map_err(|error| anyhow::anyhow!("{error:?}"))?;
        let mut expected = vec![0; of.bytes];
        let samples = numbers.iter().zip(bytes.as_bytes().chunks_exact(of.bytes));
        let wrong = samples.filter(|(number, found)| {
            fill(
                usize::try_from(**number).unwrap_or(usize::MAX),
                &mut expected,
            );
            **found != expected[..]
        });
        let wrong = wrong.count();
        Ok((numbers, wrong))
    }
}

/// The bytes of a sample: of its number, and of their place.
fn fill(number: usize, bytes: &mut [u8]) {
    let seed = number.wrapping_mul(0x9E37_79B9);
    for (place, byte) in bytes.iter_mut().enumerate() {
        *byte = (seed.wrapping_add(place.wrapping_mul(0x0101_4B5D)) >> 16).to_le_bytes()[0];
    }
}

/// Bytes that are nobody's, of one size.
pub(super) fn filled(bytes: usize) -> Vec<u8> {
    let mut all = vec![0; bytes];
    fill(1, &mut all);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_differ_and_a_sample_is_told_by_its_number() {
        let of = |number| {
            let mut bytes = [0; 64];
            fill(number, &mut bytes);
            bytes
        };
        assert_eq!(of(7), of(7));
        assert!((0..1_000).all(|number| of(number) != of(number + 1)));
    }

    #[test]
    fn a_sample_in_the_wrong_place_is_found() {
        let of = Numbered {
            samples: 3,
            bytes: 16,
            written: Written::All,
        };
        let device = Device::flex();
        let loader = of.loader(&device, |builder| builder.batch_size(3)).unwrap();
        let batch = |loader: &PrefetchDataLoader<NumberedBatch>| {
            loader.iter_owned().next().unwrap().unwrap()
        };
        assert_eq!(batch(&loader).read(of).unwrap(), (vec![0, 1, 2], 0));
        let swapped = NumberedBatch {
            numbers: batch(&loader).numbers.flip([0]),
            ..batch(&loader)
        };
        assert_eq!(swapped.read(of).unwrap(), (vec![2, 1, 0], 2));
    }
}
