//! A card as NVML, the NVIDIA driver's library for management, shows it.

use super::watch::Look;
use crate::device::Device;

/// Looks at a card.
pub(super) type Looks = Box<dyn FnMut() -> Look + Send>;

/// How to look at the card that computes, or why that cannot be done; `None` where none does.
#[cfg(not(feature = "cuda"))]
pub(super) fn of(device: Device) -> Option<Result<Looks, String>> {
    match device {
        Device::Flex => None,
    }
}

/// How to look at the card that computes, or why that cannot be done; `None` where none does.
#[cfg(feature = "cuda")]
pub(super) fn of(device: Device) -> Option<Result<Looks, String>> {
    match device {
        Device::Flex => None,
        Device::Cuda(index) => Some(nvml::looks(index)),
    }
}

#[cfg(feature = "cuda")]
mod nvml {
    use std::env;
    use std::ffi::OsStr;

    use nvml_wrapper::error::NvmlError;
    use nvml_wrapper::{Device, Nvml};

    use super::{Look, Looks};

    /// The library's names: without a number it is there only where CUDA's headers are too.
    const NAMES: [&str; 2] = ["libnvidia-ml.so.1", "libnvidia-ml.so"];

    /// Which of the cards, as NVML knows them.
    #[derive(Debug, Clone, PartialEq)]
    enum Which {
        Number(u32),
        Id(String),
    }

    pub(super) fn looks(index: usize) -> Result<Looks, String> {
        let nvml = open().map_err(|error| error.to_string())?;
        let visible = env::var("CUDA_VISIBLE_DEVICES").ok();
        let which = Which::of(index, visible.as_deref());
        let which = which.ok_or("CUDA_VISIBLE_DEVICES names no such card")?;
        which.find(&nvml).map_err(|error| error.to_string())?;
        Ok(Box::new(move || look(&nvml, &which)))
    }

    fn open() -> Result<Nvml, NvmlError> {
        let by_name = |name: &&str| Nvml::builder().lib_path(OsStr::new(name)).init();
        by_name(&NAMES[0])
            .or_else(|_| by_name(&NAMES[1]))
            .or_else(|_| Nvml::init())
    }

    fn look(nvml: &Nvml, which: &Which) -> Look {
        let card = which.find(nvml).ok();
        let memory = card.as_ref().and_then(|card| card.memory_info().ok());
        let work = card.as_ref().and_then(|card| card.utilization_rates().ok());
        Look {
            memory: memory.map(|memory| memory.used),
            busy: work.map(|work| f64::from(work.gpu) / 100.0),
        }
    }

    impl Which {
        /// CUDA counts the cards that `CUDA_VISIBLE_DEVICES` names, NVML all of them.
        fn of(index: usize, visible: Option<&str>) -> Option<Self> {
            let Some(visible) = visible else {
                return u32::try_from(index).ok().map(Self::Number);
            };
            let name = visible.split(',').nth(index)?.trim();
            let number = name.parse().map(Self::Number);
            Some(number.unwrap_or_else(|_| Self::Id(name.to_owned())))
        }

        fn find<'a>(&self, nvml: &'a Nvml) -> Result<Device<'a>, NvmlError> {
            match self {
                Self::Number(number) => nvml.device_by_index(*number),
                Self::Id(id) => nvml.device_by_uuid(id.as_str()),
            }
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_card_is_the_one_that_cuda_sees_under_its_number() {
            let number = |number| Some(Which::Number(number));
            assert_eq!(Which::of(1, None), number(1));
            assert_eq!(Which::of(1, Some("3, 5")), number(5));
            let id = Some(Which::Id("GPU-8f2b".to_owned()));
            assert_eq!(Which::of(0, Some("GPU-8f2b")), id);
            assert_eq!(Which::of(2, Some("3,5")), None);
        }
    }
}
