//! Who serves this process's allocations: the system, or mimalloc where the environment says so
//! before the first one.
//!
//! A program has one allocator, chosen when it is built; this one passes every call on. It decides
//! once, so what one allocator gave never comes back to the other.
#![expect(
    unsafe_code,
    reason = "an allocator is an unsafe trait, and only the C library can read the environment \
              without allocating"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::ffi::CStr;
use std::sync::atomic::{AtomicU8, Ordering};

use mimalloc::MiMalloc;

use crate::cli::Allocator;

/// Where a parent process says which allocator it wants.
pub(crate) const VARIABLE: &str = "RESNET_CIFAR_ALLOCATOR";
const VARIABLE_IN_C: &CStr = c"RESNET_CIFAR_ALLOCATOR";

const UNDECIDED: u8 = 0;
const SYSTEM: u8 = 1;
const MIMALLOC: u8 = 2;

#[global_allocator]
static CHOSEN: Chosen = Chosen(AtomicU8::new(UNDECIDED));

/// The allocator in use.
pub(crate) fn in_use() -> Allocator {
    match CHOSEN.decided() {
        MIMALLOC => Allocator::Mimalloc,
        _ => Allocator::System,
    }
}

struct Chosen(AtomicU8);

impl Chosen {
    /// The first call is the program's first allocation, before any thread: nobody changes the
    /// environment then, and nobody does later.
    fn decided(&self) -> u8 {
        match self.0.load(Ordering::Relaxed) {
            UNDECIDED => {
                let choice = ask();
                self.0.store(choice, Ordering::Relaxed);
                choice
            }
            choice => choice,
        }
    }
}

fn ask() -> u8 {
    // SAFETY: the name ends with a zero byte, and no thread changes the environment.
    let value = unsafe { libc::getenv(VARIABLE_IN_C.as_ptr()) };
    if value.is_null() {
        return SYSTEM;
    }
    // SAFETY: what getenv gives is null or ends with a zero byte, and is read at once.
    let value = unsafe { CStr::from_ptr(value) };
    if value == c"mimalloc" {
        MIMALLOC
    } else {
        SYSTEM
    }
}

// SAFETY: every call goes, unchanged, to one of two allocators that keep the contract; which one
// is decided at the first call and never again, so each gets back what it gave.
unsafe impl GlobalAlloc for Chosen {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match self.decided() {
            // SAFETY: the caller keeps the contract of `alloc`.
            MIMALLOC => unsafe { MiMalloc.alloc(layout) },
            // SAFETY: as above.
            _ => unsafe { System.alloc(layout) },
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        match self.decided() {
            // SAFETY: the caller keeps the contract of `alloc_zeroed`.
            MIMALLOC => unsafe { MiMalloc.alloc_zeroed(layout) },
            // SAFETY: as above.
            _ => unsafe { System.alloc_zeroed(layout) },
        }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        match self.decided() {
            // SAFETY: the caller gives back what `alloc` of this allocator gave.
            MIMALLOC => unsafe { MiMalloc.dealloc(place, layout) },
            // SAFETY: as above.
            _ => unsafe { System.dealloc(place, layout) },
        }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        match self.decided() {
            // SAFETY: the caller gives what `alloc` of this allocator gave, and a size above 0.
            MIMALLOC => unsafe { MiMalloc.realloc(place, layout, size) },
            // SAFETY: as above.
            _ => unsafe { System.realloc(place, layout, size) },
        }
    }
}
