//! A double of a reusable pinned buffer, the least that one is made of.
#![expect(unsafe_code, reason = "memory of a slot is handed out as `Bytes`")]

use std::mem::MaybeUninit;
use std::sync::{Arc, Mutex, PoisonError};

use burn::tensor::{AllocationProperty, Bytes, DType, Device, TensorData};
use burn_std::{AccessError, AccessPolicy, AllocationController};

/// Where slots lie that nobody uses.
#[derive(Clone, Debug, Default)]
pub struct Shelf(Arc<Mutex<Vec<Returned>>>);

/// A slot that came back.
#[derive(Debug)]
pub struct Returned {
    /// Its memory.
    pub memory: Bytes,
    /// The name of the thread that dropped it.
    pub thread: String,
}

impl Shelf {
    /// An empty shelf.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Page-locked memory of this many bytes, by the device's own means.
    #[must_use]
    pub fn pin(device: &Device, bytes: usize) -> Bytes {
        let mut data = TensorData::from_bytes_vec(vec![0; bytes], [bytes], DType::U8);
        device.staging([&mut data].into_iter());
        data.into_bytes()
    }

    /// These bytes, which come back to the shelf when whoever uses them drops them.
    #[must_use]
    pub fn lend(&self, memory: Bytes) -> Bytes {
        let bytes = memory.len();
        let slot = Slot {
            memory: Some(memory),
            shelf: self.clone(),
        };
        // SAFETY: the slot has exactly these bytes, and `Bytes` has initialised them.
        unsafe { Bytes::from_controller(Box::new(slot), bytes) }
    }

    /// Takes what came back, in the order in which it did.
    #[must_use]
    pub fn take(&self) -> Vec<Returned> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes the memory that came back first.
    #[must_use]
    pub fn take_one(&self) -> Option<Bytes> {
        let mut lying = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (!lying.is_empty()).then(|| lying.remove(0).memory)
    }

    /// How many lie here.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Whether none does.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Lent memory; only its drop takes it out.
struct Slot {
    memory: Option<Bytes>,
    shelf: Shelf,
}

impl Slot {
    fn memory(&self) -> &Bytes {
        self.memory.as_ref().expect("it is there until the drop")
    }
}

impl AllocationController for Slot {
    fn alloc_align(&self) -> usize {
        self.memory().align()
    }

    fn property(&self) -> AllocationProperty {
        self.memory().property()
    }

    unsafe fn memory_mut(
        &mut self,
        _policy: AccessPolicy,
    ) -> Result<&mut [MaybeUninit<u8>], AccessError> {
        let memory: &mut [u8] = self.memory.as_mut().expect("it is there until the drop");
        let (pointer, bytes) = (memory.as_mut_ptr().cast(), memory.len());
        // SAFETY: the same memory, borrowed as long; the caller writes only initialised bytes.
        Ok(unsafe { std::slice::from_raw_parts_mut(pointer, bytes) })
    }

    fn memory(&self, _policy: AccessPolicy) -> Result<&[MaybeUninit<u8>], AccessError> {
        let memory: &[u8] = Self::memory(self);
        // SAFETY: the same memory, borrowed as long, and only read.
        Ok(unsafe { std::slice::from_raw_parts(memory.as_ptr().cast(), memory.len()) })
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let thread = std::fs::read_to_string("/proc/thread-self/comm").unwrap_or_default();
        if let Some(memory) = self.memory.take() {
            let thread = thread.trim_end().to_owned();
            let mut lying = self.shelf.0.lock().unwrap_or_else(PoisonError::into_inner);
            lying.push(Returned { memory, thread });
        }
    }
}
