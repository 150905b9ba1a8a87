//! Which memory is the driver's own: device memory and page-locked host memory.

use std::collections::BTreeMap;

use crate::code::Code;
use crate::protocol::{Held, Live};

/// Whose memory a block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A device's.
    Device(u64),
    /// The host's, page-locked.
    Pinned,
}

impl Kind {
    /// What the block begins at a multiple of: CUDA's 256 for a device and more; a page for the host.
    pub(crate) fn alignment(self) -> usize {
        match self {
            Self::Device(_) => 512,
            Self::Pinned => 4096,
        }
    }
}

/// One allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) address: u64,
    pub(crate) bytes: u64,
    pub(crate) kind: Kind,
}

/// The allocations that are alive, by address; they never overlap, since each is an allocation of
/// the system's.
#[derive(Debug, Default)]
pub(crate) struct Memory(BTreeMap<u64, Block>);

impl Memory {
    pub(crate) const fn new() -> Self {
        Self(BTreeMap::new())
    }

    pub(crate) fn add(&mut self, block: Block) {
        self.0.insert(block.address, block);
    }

    /// Takes out the block that begins here.
    ///
    /// # Errors
    ///
    /// When none does, or it is of the other kind.
    pub(crate) fn remove(&mut self, address: u64, pinned: bool) -> Result<Block, Code> {
        match self.0.get(&address) {
            Some(block) if (block.kind == Kind::Pinned) == pinned => {
                self.0.remove(&address).ok_or(Code::InvalidValue)
            }
            _ => Err(Code::InvalidValue),
        }
    }

    /// Whose these bytes are, where all of them lie in one block that is alive.
    pub(crate) fn kind(&self, address: u64, bytes: u64) -> Option<Kind> {
        let (_, block) = self.0.range(..=address).next_back()?;
        let end = address.checked_add(bytes)?;
        (end <= block.address + block.bytes).then_some(block.kind)
    }

    /// The bytes of a device that are allocated.
    pub(crate) fn used(&self, device: u64) -> u64 {
        let of_device = self
            .0
            .values()
            .filter(|block| block.kind == Kind::Device(device));
        of_device.map(|block| block.bytes).sum()
    }

    pub(crate) fn count_into(&self, live: &mut Live) {
        for block in self.0.values() {
            let held = match block.kind {
                Kind::Pinned => &mut live.pinned,
                Kind::Device(device) => &mut live.device[usize::try_from(device).unwrap_or(0)],
            };
            *held = Held {
                blocks: held.blocks + 1,
                bytes: held.bytes + block.bytes,
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory() -> Memory {
        let mut memory = Memory::default();
        for (address, bytes, kind) in [(1000, 100, Kind::Device(1)), (2000, 50, Kind::Pinned)] {
            memory.add(Block {
                address,
                bytes,
                kind,
            });
        }
        memory
    }

    #[test]
    fn bytes_are_known_only_inside_one_block() {
        let memory = memory();
        assert_eq!(memory.kind(1000, 100), Some(Kind::Device(1)));
        assert_eq!(memory.kind(1040, 60), Some(Kind::Device(1)));
        assert_eq!(memory.kind(1040, 61), None);
        assert_eq!(memory.kind(999, 1), None);
        assert_eq!(memory.kind(2049, 1), Some(Kind::Pinned));
        assert_eq!(memory.kind(2049, u64::MAX), None);
    }

    #[test]
    fn a_block_is_given_back_once_and_as_what_it_is() {
        let mut memory = memory();
        assert_eq!(memory.remove(1000, true), Err(Code::InvalidValue));
        assert_eq!(memory.remove(1001, false), Err(Code::InvalidValue));
        assert!(memory.remove(1000, false).is_ok());
        assert_eq!(memory.remove(1000, false), Err(Code::InvalidValue));
        assert_eq!(memory.kind(1000, 1), None);
    }

    #[test]
    fn what_is_alive_is_counted_for_each_owner() {
        let mut live = Live::default();
        memory().count_into(&mut live);
        assert_eq!(
            live.device,
            [
                Held::default(),
                Held {
                    blocks: 1,
                    bytes: 100
                }
            ]
        );
        assert_eq!(
            live.pinned,
            Held {
                blocks: 1,
                bytes: 50
            }
        );
        assert_eq!((memory().used(0), memory().used(1)), (0, 100));
    }
}
