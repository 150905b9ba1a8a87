//! After the first batches a batch that goes through host memory allocates nothing of a page or more.
#![expect(unsafe_code, reason = "an allocator that counts")]

use std::alloc::{GlobalAlloc, Layout as Block, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use burn::tensor::{Device, Int, Tensor};
use burn_prefetch::{BoxError, DataLoaderBuilder, HostBatch, Layout, Row, RowBatcher};
use burn_prefetch_tests::{Numbers, WORKERS, guarded};

/// What is large enough to be counted.
const PAGE: usize = 4096;

static LARGE: AtomicUsize = AtomicUsize::new(0);

struct Counting;

// SAFETY: all it does is done by the system's allocator, whose promises are kept as they are.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, block: Block) -> *mut u8 {
        LARGE.fetch_add(usize::from(block.size() >= PAGE), Relaxed);
        // SAFETY: the caller's promises are the same.
        unsafe { System.alloc(block) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, block: Block) {
        // SAFETY: the caller's promises are the same.
        unsafe { System.dealloc(memory, block) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

struct Pictures;

const WIDTH: usize = 3 * 32 * 32;

impl RowBatcher<usize, Tensor<2, Int>> for Pictures {
    fn layout(&self, len: usize) -> Layout {
        Layout::new().slot::<u8>("pixels", [len, WIDTH])
    }

    fn write(&self, item: usize, row: &mut Row<'_>) -> Result<(), BoxError> {
        row.values_mut::<u8>("pixels")?.fill(item.to_le_bytes()[0]);
        Ok(())
    }

    fn upload(&self, mut batch: HostBatch, device: &Device) -> Result<Tensor<2, Int>, BoxError> {
        Ok(batch.int("pixels", device)?)
    }
}

#[test]
fn no_batch_allocates_a_page_once_there_are_slots() {
    for workers in WORKERS {
        guarded(move || {
            let loader = DataLoaderBuilder::staged(Pictures)
                .batch_size(64)
                .num_workers(workers)
                .prefetch(3)
                .try_build(Numbers(64 * 400))
                .unwrap();
            let mut reader = loader.iter_owned();
            for batch in reader.by_ref().take(100) {
                drop(batch.unwrap());
            }
            let before = LARGE.load(Relaxed);
            for batch in reader {
                drop(batch.unwrap());
            }
            // Few batches may be alive at first by chance: a slot may yet be made, and the list of them.
            let made = LARGE.load(Relaxed) - before;
            assert!(made <= 3, "{workers} workers: {made} for 300 batches");
        });
    }
}
