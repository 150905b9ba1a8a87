//! What computes: the one place that knows the names of devices.

use std::fmt;
use std::str::FromStr;

use burn::tensor::Device as BurnDevice;

/// A device by its name on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Device {
    /// Burn's backend for CPUs.
    Flex,
    /// An NVIDIA card, by its number.
    #[cfg(feature = "cuda")]
    Cuda(usize),
}

#[cfg(feature = "cuda")]
const OTHERS: &str = "choose flex, Burn's backend for CPUs, or cuda or cuda:N, an NVIDIA card";
#[cfg(not(feature = "cuda"))]
const OTHERS: &str = "choose flex, Burn's backend for CPUs";

/// More cards than any machine has.
const MOST_CARDS: usize = 64;

impl Device {
    /// The device, ready for training.
    ///
    /// # Errors
    ///
    /// As [`check`](Self::check).
    pub(crate) fn open(self) -> anyhow::Result<BurnDevice> {
        self.check()?;
        Ok(match self {
            Self::Flex => BurnDevice::flex().autodiff(),
            #[cfg(feature = "cuda")]
            Self::Cuda(index) => BurnDevice::cuda(index).autodiff(),
        })
    }

    /// Whether the device is there.
    ///
    /// # Errors
    ///
    /// One sentence that says what is missing and what would do.
    #[cfg_attr(
        not(feature = "cuda"),
        expect(clippy::unnecessary_wraps, reason = "only a card can be missing")
    )]
    pub(crate) fn check(self) -> anyhow::Result<()> {
        match self {
            Self::Flex => Ok(()),
            #[cfg(feature = "cuda")]
            Self::Cuda(index) => check_cuda(index),
        }
    }

    /// Whether it has memory of its own, to which pages can be locked for it.
    pub(crate) fn is_a_card(self) -> bool {
        match self {
            Self::Flex => false,
            #[cfg(feature = "cuda")]
            Self::Cuda(_) => true,
        }
    }
}

#[cfg(feature = "cuda")]
fn check_cuda(index: usize) -> anyhow::Result<()> {
    use anyhow::{Context as _, ensure};
    use burn::tensor::DeviceType;
    use burn_prefetch::ConfigError;

    let cards = BurnDevice::enumerate(DeviceType::Cuda).into_vec().len();
    let asked = || format!("--device cuda:{index} cannot be used; --device flex can");
    if cards == 0 {
        return Err(ConfigError::NoCuda).with_context(asked);
    }
    ensure!(
        index < cards,
        "{}: {}",
        asked(),
        ConfigError::NoSuchDevice {
            index,
            devices: cards
        }
    );
    Ok(())
}

impl FromStr for Device {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, index) = match text.split_once(':') {
            Some((kind, index)) => (kind, index.parse().ok()),
            None => (text, Some(0)),
        };
        let index = index.filter(|index| *index < MOST_CARDS);
        match (kind, index) {
            ("flex", Some(0)) if kind == text => Ok(Self::Flex),
            #[cfg(feature = "cuda")]
            ("cuda", Some(index)) => Ok(Self::Cuda(index)),
            #[cfg(not(feature = "cuda"))]
            ("cuda", Some(_)) => Err(format!(
                "this build has no CUDA: build it with --features cuda, or {OTHERS}"
            )),
            _ => Err(OTHERS.to_owned()),
        }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flex => f.write_str("flex"),
            #[cfg(feature = "cuda")]
            Self::Cuda(index) => write!(f, "cuda:{index}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_read_as_it_is_written() {
        let all = [
            Device::Flex,
            #[cfg(feature = "cuda")]
            Device::Cuda(3),
        ];
        for device in all {
            assert_eq!(device.to_string().parse(), Ok(device));
        }
    }

    #[test]
    fn an_unknown_device_is_refused_with_the_one_that_works() {
        for text in ["", "Flex", "flex:0", "cuda:", "cuda:-1", "cuda:64", "gpu"] {
            let said = text.parse::<Device>().unwrap_err();
            assert!(said.starts_with("choose flex"), "{said}");
        }
    }

    #[cfg(not(feature = "cuda"))]
    #[test]
    fn without_cuda_in_the_build_it_is_said_how_to_get_it() {
        for text in ["cuda", "cuda:1"] {
            let said = text.parse::<Device>().unwrap_err();
            assert!(said.contains("--features cuda"), "{said}");
            assert!(said.contains("choose flex"), "{said}");
        }
    }

    #[cfg(feature = "cuda")]
    #[test]
    fn a_card_without_a_number_is_the_first() {
        assert_eq!("cuda".parse(), Ok(Device::Cuda(0)));
    }
}
