//! The two devices: what they say of themselves.

use crate::code::Code;
use crate::protocol::DEVICES;

/// The version of the driver that it says to be: CUDA 12.8.
pub(crate) const VERSION: i32 = 12080;

/// The memory of a device: enough for tests, and never allocated ahead.
pub(crate) const MEMORY: u64 = 8 << 30;

/// The device with this number.
pub(crate) fn find(number: i64) -> Result<u64, Code> {
    match u64::try_from(number) {
        Ok(device) if device < DEVICES as u64 => Ok(device),
        _ => Err(Code::InvalidDevice),
    }
}

pub(crate) fn name(device: u64) -> String {
    format!("stand-in for CUDA device {device}, no GPU")
}

pub(crate) fn bus(device: u64) -> String {
    format!("0000:{device:02x}:00.0")
}

/// A device attribute by the driver's number for it; those of a small device of compute capability
/// 8.0, and 0 for what nobody asked so far.
pub(crate) fn attribute(number: i32) -> i32 {
    match number {
        1 | 2 | 3 | 39 => 1024, // threads a block, its x and y; threads a multiprocessor
        4 => 64,                // a block's z
        5 => i32::MAX,          // a grid's x
        6 | 7 => 65_535,        // its y and z
        10 => 32,               // a warp
        16 => 4,                // multiprocessors
        75 => 8,                // compute capability, major
        8 | 97 => 48 << 10,     // shared memory a block, and at most
        41 | 115 => 1,          // unified addressing, memory pools
        _ => 0,                 // 76 among them: compute capability, minor
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_two_devices_and_they_say_what_they_are() {
        assert_eq!(find(1), Ok(1));
        assert_eq!(find(2), Err(Code::InvalidDevice));
        assert_eq!(find(-1), Err(Code::InvalidDevice));
        assert!(name(1).contains("stand-in"));
        assert_ne!(bus(0), bus(1));
    }
}
