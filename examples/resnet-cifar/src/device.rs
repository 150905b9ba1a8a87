//! What computes: the one place that knows the names of devices.

use std::fmt;
use std::str::FromStr;

use burn::tensor::Device as BurnDevice;

/// A device by its name on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Device {
    /// Burn's backend for CPUs.
    Flex,
}

impl Device {
    /// The device, ready for training.
    pub(crate) fn open(self) -> BurnDevice {
        match self {
            Self::Flex => BurnDevice::flex().autodiff(),
        }
    }
}

impl FromStr for Device {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "flex" => Ok(Self::Flex),
            _ => {
                Err("this build knows one device: choose flex, Burn's backend for CPUs".to_owned())
            }
        }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Flex => "flex",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_read_as_it_is_written() {
        assert_eq!(Device::Flex.to_string().parse(), Ok(Device::Flex));
    }

    #[test]
    fn an_unknown_device_is_refused_with_the_one_that_works() {
        for text in ["cuda", "cuda:0", "", "Flex"] {
            assert!(text.parse::<Device>().unwrap_err().contains("choose flex"));
        }
    }
}
