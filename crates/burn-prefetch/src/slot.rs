//! A host buffer that is used again: lent as bytes, or written row by row by several threads at once.
#![expect(
    unsafe_code,
    reason = "Burn takes memory of ours through an unsafe door, and threads share one buffer's rows"
)]

use std::fmt;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::{Arc, OnceLock};

use burn_prefetch_engine::cut;
use burn_std::{AccessError, AccessPolicy, AllocationController};

use crate::burn::{AllocationProperty, Bytes};

/// Where slots come from and go back to.
pub(crate) trait Home: Send + Sync {
    /// Takes the memory of a slot back. May run on a device's server thread: nothing but one push under
    /// a lock that nobody holds while calling Burn.
    fn take_back(&self, memory: Bytes);
}

/// A buffer out of its home. Dropping it, also as [`Bytes`], brings it back.
pub(crate) struct Slot {
    /// Initialised, and there until the drop.
    memory: Option<Bytes>,
    home: Arc<dyn Home>,
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slot")
            .field("bytes", &self.bytes().len())
            .field("pinned", &self.is_pinned())
            .finish_non_exhaustive()
    }
}

impl Slot {
    pub(crate) fn new(memory: Bytes, home: Arc<dyn Home>) -> Self {
        Self {
            memory: Some(memory),
            home,
        }
    }

    pub(crate) fn is_pinned(&self) -> bool {
        AllocationController::property(self) == AllocationProperty::Pinned
    }

    /// All of its bytes, which may be more than were asked for.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.memory.as_deref().unwrap_or_default()
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        self.memory.as_deref_mut().unwrap_or_default()
    }

    /// Its first `len` bytes as Burn takes them, without a copy.
    ///
    /// # Panics
    ///
    /// When it has fewer: whoever took it asked for as many.
    pub(crate) fn lend(self, len: usize) -> Bytes {
        assert!(len <= self.bytes().len(), "a slot has what was asked for");
        // SAFETY: `memory` gives at least `len` bytes; all of them are initialised, since they are those
        // of a `Bytes` and are only ever written as `u8`.
        unsafe { Bytes::from_controller(Box::new(self), len) }
    }
}

impl AllocationController for Slot {
    fn alloc_align(&self) -> usize {
        self.memory.as_ref().map_or(1, Bytes::align)
    }

    fn property(&self) -> AllocationProperty {
        let native = AllocationProperty::Native;
        self.memory.as_ref().map_or(native, Bytes::property)
    }

    unsafe fn memory_mut(
        &mut self,
        _policy: AccessPolicy,
    ) -> Result<&mut [MaybeUninit<u8>], AccessError> {
        let memory = self.bytes_mut();
        let (pointer, len) = (memory.as_mut_ptr().cast(), memory.len());
        // SAFETY: the same memory, borrowed as long; the caller writes initialised bytes only, which the
        // trait demands.
        Ok(unsafe { std::slice::from_raw_parts_mut(pointer, len) })
    }

    fn memory(&self, _policy: AccessPolicy) -> Result<&[MaybeUninit<u8>], AccessError> {
        let memory = self.bytes();
        // SAFETY: the same memory, borrowed as long, and read only.
        Ok(unsafe { std::slice::from_raw_parts(memory.as_ptr().cast(), memory.len()) })
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if let Some(memory) = self.memory.take() {
            self.home.take_back(memory);
        }
    }
}

/// The slots of one batch while its rows are written, by as many threads as it has parts.
///
/// Invariants: the [`Rows`] of one target have disjoint ranges, which [`Target::cut`] alone makes; while
/// one of them is there the slots are reached through them only.
pub(crate) struct Target {
    len: usize,
    /// `None`: there was no memory for them.
    open: OnceLock<Option<Vec<Buffer>>>,
}

/// A slot whose rows are being written.
struct Buffer {
    slot: Slot,
    /// The start of the slot's memory, which does not move.
    start: NonNull<u8>,
    row_bytes: usize,
}

// SAFETY: the slot is only touched by who owns the target alone; through `start` each `Rows` reaches its
// own bytes only, and needs to be borrowed mutably for that.
unsafe impl Send for Buffer {}
// SAFETY: as above; a shared reference gives nothing but the addresses of rows.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// # Panics
    ///
    /// When the slot has not got `rows` rows of so many bytes.
    fn new((mut slot, row_bytes): (Slot, usize), rows: usize) -> Self {
        let memory = slot.bytes_mut();
        let needed = rows.checked_mul(row_bytes);
        assert!(
            needed.is_some_and(|needed| needed <= memory.len()),
            "a slot has a row for every sample"
        );
        let start = NonNull::from(memory).cast();
        Self {
            slot,
            start,
            row_bytes,
        }
    }
}

/// A run of rows of a target, in all of its slots; its owner alone reaches them.
pub(crate) struct Rows {
    target: Arc<Target>,
    range: Range<usize>,
}

impl Target {
    /// The rows of a batch of `len` samples, cut into parts as the engine cuts it. Nothing is allocated
    /// for them yet.
    pub(crate) fn cut(len: usize, parts: usize) -> impl FnMut(usize) -> Rows {
        let target = Arc::new(Self {
            len,
            open: OnceLock::new(),
        });
        let mut end = 0;
        move |part| {
            let range = cut(len, parts, part);
            assert!(
                end <= range.start && range.end <= len,
                "parts come in order and do not overlap"
            );
            end = range.end;
            Rows {
                target: Arc::clone(&target),
                range,
            }
        }
    }
}

impl Rows {
    /// Opens the batch's slots, each with the bytes of its row, if no other part has; `false` where
    /// there was no memory for them.
    pub(crate) fn open(&self, slots: impl FnOnce() -> Option<Vec<(Slot, usize)>>) -> bool {
        let rows = self.target.len;
        let open = self.target.open.get_or_init(|| {
            let slots = slots()?.into_iter();
            Some(slots.map(|slot| Buffer::new(slot, rows)).collect())
        });
        open.is_some()
    }

    /// The rows, by their number in the batch.
    pub(crate) fn range(&self) -> Range<usize> {
        self.range.clone()
    }

    /// The bytes of one row in one slot.
    ///
    /// # Panics
    ///
    /// When the slots are not open, or the row is not one of these.
    pub(crate) fn row(&mut self, slot: usize, row: usize) -> &mut [u8] {
        assert!(self.range.contains(&row), "the row is one of these");
        let open = self.target.open.get().and_then(Option::as_ref);
        let buffer = &open.expect("whoever writes rows has opened the slots")[slot];
        // SAFETY: `Buffer::new` has checked that the slot has `target.len` rows of `row_bytes`, and `row`
        // is below that by `Target::cut`: the offset lies in the slot's memory.
        let start = unsafe { buffer.start.add(row * buffer.row_bytes) };
        // SAFETY: the bytes are initialised and in one allocation, which `buffer.slot` keeps as long as
        // the target lives; no other `Rows` has this row, and this one is borrowed mutably as long as
        // the slice lives; nobody else reaches the memory, by the target's invariant.
        unsafe { std::slice::from_raw_parts_mut(start.as_ptr(), buffer.row_bytes) }
    }

    /// The slots, once all parts are together again; `None` where one is missing, or none was opened.
    pub(crate) fn join(parts: impl IntoIterator<Item = Self>) -> Option<Vec<Slot>> {
        let mut targets = parts.into_iter().map(|rows| rows.target);
        let first = targets.next()?;
        targets.for_each(drop);
        let target = Arc::into_inner(first)?;
        let buffers = target.open.into_inner()??.into_iter();
        Some(buffers.map(|buffer| buffer.slot).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[derive(Default)]
    struct Lying(Mutex<Vec<usize>>);

    impl Home for Lying {
        fn take_back(&self, memory: Bytes) {
            self.0.lock().unwrap().push(memory.len());
        }
    }

    fn slot(len: usize) -> (Slot, Arc<Lying>) {
        let home = Arc::new(Lying::default());
        let memory = Bytes::from_bytes_vec(vec![0; len]);
        (Slot::new(memory, Arc::<Lying>::clone(&home)), home)
    }

    #[test]
    fn lent_bytes_are_the_slots_own_and_bring_it_back() {
        let (mut slot, home) = slot(8);
        slot.bytes_mut()[2] = 7;
        let address = slot.bytes().as_ptr();
        let mut bytes = slot.lend(3);
        assert_eq!((&bytes[..], bytes.as_ptr()), (&[0, 0, 7][..], address));
        bytes[0] = 9;
        assert_eq!(bytes[0], 9);
        assert_eq!(bytes.clone()[..], bytes[..], "a copy of its own");
        assert!(home.0.lock().unwrap().is_empty());
        drop(bytes);
        assert_eq!(*home.0.lock().unwrap(), [8], "all of it, once");
    }

    #[test]
    fn rows_are_written_at_the_same_time() {
        let (slot, home) = slot(64);
        let mut slot = Some(slot);
        let pieces: Vec<_> = (0..3).map(Target::cut(10, 3)).collect();
        for piece in &pieces {
            piece.open(|| Some(vec![(slot.take().expect("asked for once"), 6)]));
        }
        let write = |mut rows: Rows| {
            for row in rows.range() {
                rows.row(0, row).fill(u8::try_from(row).unwrap());
            }
            rows
        };
        let pieces: Vec<_> = std::thread::scope(|scope| {
            let start = |rows| scope.spawn(move || write(rows));
            let threads: Vec<_> = pieces.into_iter().map(start).collect();
            let ended = threads.into_iter().map(|thread| thread.join().unwrap());
            ended.collect()
        });
        let slots = Rows::join(pieces).unwrap();
        let expected: Vec<_> = (0..60).map(|byte| byte / 6).collect();
        assert_eq!(slots[0].bytes()[..60], expected);
        drop(slots);
        assert_eq!(*home.0.lock().unwrap(), [64]);
    }

    #[test]
    fn slots_do_not_leave_while_a_part_has_rows() {
        let (slot, _home) = slot(8);
        let mut cut = Target::cut(2, 2);
        let (one, other) = (cut(0), cut(1));
        drop(cut);
        one.open(|| Some(vec![(slot, 4)]));
        assert!(Rows::join([one]).is_none());
        drop(other);
    }

    #[test]
    #[should_panic(expected = "a slot has a row for every sample")]
    fn a_slot_that_is_too_small_is_refused() {
        let (slot, _home) = slot(8);
        Target::cut(3, 1)(0).open(|| Some(vec![(slot, 4)]));
    }

    fn may_travel<T: Send + Sync>() {}

    #[test]
    fn a_slot_may_travel() {
        may_travel::<Slot>();
    }
}
