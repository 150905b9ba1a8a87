//! The only place where bytes move: memory of the system's, copies, and text for the caller.
#![expect(
    unsafe_code,
    reason = "a driver works on the addresses that its caller names"
)]

use std::alloc::{Layout, alloc, dealloc};
use std::ffi::c_char;
use std::ptr::{with_exposed_provenance, with_exposed_provenance_mut};

use crate::driver::Step;
use crate::memory::{Block, Kind};
use crate::transfer::{Rows, Source, Target, Transfer};

fn layout(bytes: u64, kind: Kind) -> Option<Layout> {
    let bytes = usize::try_from(bytes).ok().filter(|bytes| *bytes > 0)?;
    Layout::from_size_align(bytes, kind.alignment()).ok()
}

/// Memory that nothing was written to yet, where there is some.
pub(crate) fn allocate(bytes: u64, kind: Kind) -> Option<Block> {
    let layout = layout(bytes, kind)?;
    // SAFETY: the layout is not empty, as `layout` says.
    let memory = unsafe { alloc(layout) };
    let address = memory.expose_provenance() as u64;
    (!memory.is_null()).then_some(Block {
        address,
        bytes,
        kind,
    })
}

/// Carries out what the driver decided.
///
/// # Safety
///
/// The steps come from the driver, which knows the blocks that [`allocate`] made, and none was
/// carried out before: so its own memory is alive where it says so. Memory that was lent to it is
/// the caller's and is not touched by anyone else.
pub(crate) unsafe fn perform(steps: Vec<Step>) {
    for step in steps {
        match step {
            // SAFETY: as the caller of this function says.
            Step::Copy(transfer) => unsafe { copy(&transfer) },
            // SAFETY: as the caller of this function says.
            Step::Release(block) => unsafe { release(block) },
        }
    }
}

/// # Safety
///
/// The block was made by [`allocate`] and is used by nobody.
unsafe fn release(block: Block) {
    if let Some(layout) = layout(block.bytes, block.kind) {
        // SAFETY: `allocate` made it with this layout; it is released once, since the driver forgot it.
        unsafe { dealloc(pointer_mut(block.address), layout) };
    }
}

/// # Safety
///
/// All rows lie in memory that is alive, and those that are written are touched by nobody else.
unsafe fn copy(transfer: &Transfer) {
    let (Target::Own(to) | Target::Lent(to)) = transfer.to;
    let from = match &transfer.from {
        Source::Own(from) => *from,
        Source::Taken(bytes) => Rows {
            address: bytes.as_ptr().expose_provenance() as u64,
            pitch: transfer.width,
        },
    };
    for row in 0..transfer.height {
        let (from, to) = (from.address + row * from.pitch, to.address + row * to.pitch);
        // SAFETY: a row of memory that is alive, as the caller says; `copy` allows an overlap.
        unsafe { std::ptr::copy(pointer(from), pointer_mut(to), size(transfer.width)) };
    }
}

/// The bytes of these rows, without gaps.
///
/// # Safety
///
/// The rows lie in the caller's memory, are initialised, and nobody writes to them meanwhile.
pub(crate) unsafe fn take(rows: Rows, width: u64, height: u64) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(size(width * height));
    for row in 0..height {
        let from = pointer(rows.address + row * rows.pitch);
        // SAFETY: as the caller of this function says.
        bytes.extend_from_slice(unsafe { std::slice::from_raw_parts(from, size(width)) });
    }
    bytes
}

/// Writes text with a zero at its end into the caller's buffer, cut to the room there.
///
/// # Safety
///
/// There are `room` bytes at `to` which nobody else touches, or `to` is null.
pub(crate) unsafe fn write_text(to: *mut c_char, room: usize, text: &str) {
    if to.is_null() || room == 0 {
        return;
    }
    let length = text.len().min(room - 1);
    // SAFETY: no more than the room that the caller of this function promises.
    unsafe { std::ptr::copy_nonoverlapping(text.as_ptr(), to.cast(), length) };
    // SAFETY: `length` is less than the room.
    let end = unsafe { to.add(length) };
    // SAFETY: the same.
    unsafe { end.write(0) };
}

fn pointer(address: u64) -> *const u8 {
    with_exposed_provenance(size(address))
}

fn pointer_mut(address: u64) -> *mut u8 {
    with_exposed_provenance_mut(size(address))
}

fn size(bytes: u64) -> usize {
    usize::try_from(bytes).expect("the stand-in is built for 64 bits")
}
