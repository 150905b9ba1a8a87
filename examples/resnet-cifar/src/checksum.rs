//! One number for all batches of a run, in the order and with the bytes in which they arrived.

use anyhow::Context as _;
use burn::tensor::{Element, TensorData};

use crate::batch::PictureBatch;

/// FNV-1a over 32-bit words: another order, another bit or another batch size gives another sum.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Checksum(u64);

impl Checksum {
    pub(crate) fn new() -> Self {
        Self(0xCBF2_9CE4_8422_2325)
    }

    pub(crate) fn add(&mut self, batch: &PictureBatch) -> anyhow::Result<()> {
        self.add_classes(batch)?;
        self.floats(&batch.images().into_data())
    }

    /// The classes alone: microseconds, and they tell which batch it is.
    pub(crate) fn add_classes(&mut self, batch: &PictureBatch) -> anyhow::Result<()> {
        self.word(u64::try_from(batch.len()).context("a batch has too many items")?);
        let targets = batch.targets.to_data_as::<i64>();
        for &target in values::<i64>(&targets)? {
            self.word(target.cast_unsigned());
        }
        Ok(())
    }

    /// As it is written in JSON, where a 64-bit number would lose bits.
    pub(crate) fn hex(self) -> String {
        format!("{:016x}", self.0)
    }

    fn floats(&mut self, data: &TensorData) -> anyhow::Result<()> {
        for &value in values::<f32>(data)? {
            self.word(u64::from(value.to_bits()));
        }
        Ok(())
    }

    fn word(&mut self, word: u64) {
        self.0 = (self.0 ^ word).wrapping_mul(0x0100_0000_01B3);
    }
}

fn values<E: Element>(data: &TensorData) -> anyhow::Result<&[E]> {
    data.as_slice()
        .map_err(|error| anyhow::anyhow!("cannot read a batch back: {error:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(words: &[u64]) -> String {
        let mut checksum = Checksum::new();
        for &word in words {
            checksum.word(word);
        }
        checksum.hex()
    }

    #[test]
    fn the_order_and_every_bit_count() {
        assert_ne!(sum(&[1, 2, 3]), sum(&[2, 1, 3]));
        assert_ne!(sum(&[1, 2]), sum(&[1, 2, 0]));
        assert_ne!(sum(&[0x8000_0000]), sum(&[0]));
    }
}
