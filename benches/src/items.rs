//! Items that cost nothing but, for some, a wait: a stand-in for reading from a disk or a network.

use std::time::Duration;

use burn::data::dataloader::batcher::Batcher;
use burn::data::dataset::{Dataset, DatasetError};
use burn::tensor::Device;

/// Which items wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// None.
    None,
    /// All.
    All,
    /// The first quarter, as in data that is sorted by class or by length.
    FirstQuarter,
    /// Every fourth, as in data that is well mixed.
    EveryFourth,
}

/// The numbers from 0 up, some of which take a while.
#[derive(Clone, Copy, Debug)]
pub struct Items {
    /// How many.
    pub len: usize,
    /// Which of them wait.
    pub which: Which,
    /// How long.
    pub wait: Duration,
}

impl Items {
    fn waits(&self, index: usize) -> bool {
        match self.which {
            Which::None => false,
            Which::All => true,
            Which::FirstQuarter => index < self.len / 4,
            Which::EveryFourth => index.is_multiple_of(4),
        }
    }
}

impl Dataset<usize> for Items {
    fn get(&self, index: usize) -> Result<usize, DatasetError> {
        if self.waits(index) {
            wait(self.wait);
        }
        Ok(index)
    }

    fn len(&self) -> usize {
        self.len
    }
}

/// Collects the numbers, after a wait of its own.
#[derive(Clone, Copy, Debug, Default)]
pub struct Collect {
    /// How long a batch takes to assemble.
    pub assembly: Duration,
}

impl Batcher<usize, Vec<usize>> for Collect {
    fn batch(&self, items: Vec<usize>, _device: &Device) -> Vec<usize> {
        wait(self.assembly);
        items
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the wait is the load that is measured, not a way to order threads"
)]
fn wait(time: Duration) {
    if !time.is_zero() {
        std::thread::sleep(time);
    }
}
