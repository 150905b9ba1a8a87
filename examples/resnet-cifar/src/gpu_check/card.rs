//! The card that is checked.

use std::time::{Duration, Instant};

use burn::tensor::{Device as BurnDevice, Tensor};

use crate::device::Device;

/// A card, and what it can do.
pub(super) struct Card {
    pub(super) name: Device,
    pub(super) device: BurnDevice,
    /// Whether it computes, or only moves bytes, as a stand-in for its driver does.
    pub(super) computes: bool,
}

/// What is said where kernels are needed and none run.
pub(super) const NO_KERNELS: &str = "this driver runs no kernels";

impl Card {
    pub(super) fn open(name: Device) -> anyhow::Result<Self> {
        let device = name.open()?.inner();
        let one = Tensor::<1>::from_data([1.0_f32], &device);
        let computes = (one + 1.0).try_into_data().is_ok();
        Ok(Self {
            name,
            device,
            computes,
        })
    }

    /// Waits until the card has done all that was asked of it, and tells the time since.
    pub(super) fn took(&self, since: Instant) -> anyhow::Result<Duration> {
        let done = self.device.sync();
        done.map_err(|error| anyhow::anyhow!("the card failed: {error}"))?;
        Ok(since.elapsed())
    }
}
