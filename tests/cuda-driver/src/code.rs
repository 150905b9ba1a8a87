//! The driver's result codes that the stand-in returns, and those that a test may ask for.

use std::ffi::CStr;

/// A result of a driver function, with the driver's own numbers.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// All went well.
    Success = 0,
    /// An argument is out of range.
    InvalidValue = 1,
    /// No memory is left.
    OutOfMemory = 2,
    /// The device is unknown.
    InvalidDevice = 101,
    /// No context is current, or an unknown one was named.
    InvalidContext = 201,
    /// A stream or an event is unknown.
    InvalidHandle = 400,
    /// The work is not done yet.
    NotReady = 600,
    /// Memory was touched that is not there; a device does not recover from it.
    IllegalAddress = 700,
    /// A kernel failed; a device does not recover from it.
    LaunchFailed = 719,
    /// This device cannot do that: here, all that has to do with kernels.
    NotSupported = 801,
    /// Something else.
    Unknown = 999,
}

impl Code {
    const ALL: [Self; 11] = [
        Self::Success,
        Self::InvalidValue,
        Self::OutOfMemory,
        Self::InvalidDevice,
        Self::InvalidContext,
        Self::InvalidHandle,
        Self::NotReady,
        Self::IllegalAddress,
        Self::LaunchFailed,
        Self::NotSupported,
        Self::Unknown,
    ];

    /// The code with this number, where it is one of these.
    #[must_use]
    pub fn of(number: u64) -> Option<Self> {
        let is = |code: &Self| u64::from(*code as u32) == number;
        Self::ALL.into_iter().find(is)
    }

    /// The driver's name and words for it.
    pub(crate) fn words(self) -> (&'static CStr, &'static CStr) {
        match self {
            Self::Success => (c"CUDA_SUCCESS", c"no error"),
            Self::InvalidValue => (c"CUDA_ERROR_INVALID_VALUE", c"invalid argument"),
            Self::OutOfMemory => (c"CUDA_ERROR_OUT_OF_MEMORY", c"out of memory"),
            Self::InvalidDevice => (c"CUDA_ERROR_INVALID_DEVICE", c"invalid device ordinal"),
            Self::InvalidContext => (c"CUDA_ERROR_INVALID_CONTEXT", c"invalid device context"),
            Self::InvalidHandle => (c"CUDA_ERROR_INVALID_HANDLE", c"invalid resource handle"),
            Self::NotReady => (c"CUDA_ERROR_NOT_READY", c"device not ready"),
            Self::IllegalAddress => (
                c"CUDA_ERROR_ILLEGAL_ADDRESS",
                c"an illegal memory access was encountered",
            ),
            Self::LaunchFailed => (c"CUDA_ERROR_LAUNCH_FAILED", c"unspecified launch failure"),
            Self::NotSupported => (
                c"CUDA_ERROR_NOT_SUPPORTED",
                c"the stand-in for the CUDA driver runs no kernels",
            ),
            Self::Unknown => (c"CUDA_ERROR_UNKNOWN", c"unknown error"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_found_by_its_number_and_others_are_not() {
        for code in Code::ALL {
            assert_eq!(Code::of(u64::from(code as u32)), Some(code));
        }
        assert_eq!(Code::of(77), None);
    }
}
