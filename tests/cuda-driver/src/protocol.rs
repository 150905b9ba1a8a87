//! What goes between the stand-in and a test: plain numbers, so that it may cross the library's border.

/// How many devices there are.
pub const DEVICES: usize = 2;

/// The room for the name of a driver function.
pub const NAME: usize = 32;

/// The device of a call that was made without a current context.
pub const NOWHERE: u64 = u64::MAX;

/// A copy from the host to a device.
pub const UP: u64 = 1;

/// A copy from a device to the host.
pub const DOWN: u64 = 2;

/// A copy between devices, or within one.
pub const ACROSS: u64 = 3;

/// One call of a driver function. Fields that a function has no use for are 0.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// The function, as [`Record::name`] reads it.
    pub name: [u8; NAME],
    /// The operating system's number of the calling thread.
    pub thread: u64,
    /// The device of the context that was current, or [`NOWHERE`].
    pub device: u64,
    /// The stream that was named.
    pub stream: u64,
    /// The event that was named.
    pub event: u64,
    /// Where bytes go to, or what was allocated or freed.
    pub to: u64,
    /// Where bytes come from.
    pub from: u64,
    /// How many bytes; for rows apart from each other, without the gaps.
    pub bytes: u64,
    /// Which way a copy goes: [`UP`], [`DOWN`] or [`ACROSS`].
    pub way: u64,
    /// 1 when the host's side of a copy is page-locked.
    pub pinned: u64,
    /// When the call began, in nanoseconds since the first one.
    pub began: u64,
    /// How long it took, in nanoseconds; 0 while it runs.
    pub took: u64,
    /// What it returned, as a number of [`Code`](crate::Code).
    pub code: u64,
}

impl Record {
    /// An empty record of the function `name`.
    #[must_use]
    pub fn of(name: &str) -> Self {
        Self {
            name: encode(name),
            ..Self::default()
        }
    }

    /// The driver function, as `cuMemcpyHtoDAsync_v2`.
    #[must_use]
    pub fn name(&self) -> &str {
        decode(&self.name)
    }

    /// Whether it is a copy from the host to a device.
    #[must_use]
    pub fn is_upload(&self) -> bool {
        self.way == UP
    }
}

/// A failure that was asked for: calls of `name` from the `nth` on, counted from 1, `times` of them.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fault {
    /// The function, encoded as in [`Record`].
    pub name: [u8; NAME],
    /// The first call that fails; 1 is the next one.
    pub nth: u64,
    /// How many fail from there on.
    pub times: u64,
    /// What they return, as a number of [`Code`](crate::Code).
    pub code: u64,
}

impl Fault {
    /// Calls of `name` from the `nth` on, `times` of them, return `code`.
    #[must_use]
    pub fn new(name: &str, nth: u64, times: u64, code: crate::Code) -> Self {
        Self {
            name: encode(name),
            nth,
            times,
            code: u64::from(code as u32),
        }
    }

    /// The driver function.
    #[must_use]
    pub fn name(&self) -> &str {
        decode(&self.name)
    }
}

/// Allocations that were not given back.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// How many.
    pub blocks: u64,
    /// Of how many bytes together.
    pub bytes: u64,
}

/// What is alive in the driver at a moment, and what went wrong so far.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Live {
    /// Device memory, for each device.
    pub device: [Held; DEVICES],
    /// Page-locked host memory.
    pub pinned: Held,
    /// Streams that were created and not destroyed.
    pub streams: u64,
    /// Events that were created and not destroyed.
    pub events: u64,
    /// Copies whose turn came when their memory was given back already: bugs of the caller.
    pub hazards: u64,
    /// Calls that were not recorded, since the log was full.
    pub lost: u64,
}

fn encode(name: &str) -> [u8; NAME] {
    let mut encoded = [0; NAME];
    let length = name.len().min(NAME);
    encoded[..length].copy_from_slice(&name.as_bytes()[..length]);
    encoded
}

fn decode(encoded: &[u8; NAME]) -> &str {
    let length = encoded.iter().position(|&byte| byte == 0).unwrap_or(NAME);
    str::from_utf8(&encoded[..length]).unwrap_or("?")
}
