//! Guards in batches, an allocator that counts, and `stats()` tell the same about memory.
#![expect(unsafe_code, reason = "an allocator that counts")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use burn::data::dataloader::{DataLoader, batcher::Batcher};
use burn::tensor::Device;
use burn_prefetch::DataLoaderBuilder;
use burn_prefetch_tests::{Alive, Numbers, Token, WORKERS, eventually, guarded};

/// What is large enough to be the memory of a batch: nothing else here allocates as much at once.
const LARGE: usize = 1 << 20;

static NOW: AtomicU64 = AtomicU64::new(0);
static MOST: AtomicU64 = AtomicU64::new(0);

struct Counting;

// SAFETY: all it does is done by the system's allocator, whose promises are kept as they are.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, block: Layout) -> *mut u8 {
        if block.size() >= LARGE {
            let now = NOW.fetch_add(block.size() as u64, SeqCst) + block.size() as u64;
            MOST.fetch_max(now, SeqCst);
        }
        // SAFETY: the caller's promises are the same.
        unsafe { System.alloc(block) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, block: Layout) {
        if block.size() >= LARGE {
            NOW.fetch_sub(block.size() as u64, SeqCst);
        }
        // SAFETY: the caller's promises are the same.
        unsafe { System.dealloc(memory, block) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// A batch of 1 to 4 MiB, by its first item.
struct Ragged(Arc<Alive>);

struct Batch {
    memory: Vec<u8>,
    _token: Token,
}

fn bytes(first: usize) -> usize {
    (first / 4 % 4 + 1) * LARGE
}

impl Batcher<usize, Batch> for Ragged {
    fn batch(&self, items: Vec<usize>, _device: &Device) -> Batch {
        let memory = vec![0; bytes(items[0])];
        Batch {
            memory,
            _token: self.0.token(),
        }
    }
}

#[test]
fn guards_the_allocator_and_stats_agree() {
    guarded(|| {
        for workers in WORKERS {
            for limit in [4, 9, 64] {
                agree(workers, limit * LARGE as u64);
            }
        }
    });
}

fn agree(workers: usize, limit: u64) {
    let alive = Alive::none();
    let loader = DataLoaderBuilder::new(Ragged(Arc::clone(&alive)))
        .batch_size(4)
        .num_workers(workers)
        .prefetch(8)
        .batch_bytes(|batch: &Batch| batch.memory.capacity())
        .memory_budget(limit)
        .try_build(Numbers(160))
        .expect("the settings are good");
    MOST.store(0, SeqCst);
    let mut batches = loader.iter();
    let mut read = 0;
    for stop in [0, 1, 5, 17] {
        while read < stop {
            let batch = batches.next().expect("there is one").expect("it loads");
            assert_eq!(batch.memory.len(), bytes(read * 4));
            read += 1;
        }
        // A batch is weighed a moment after it is made.
        eventually("they agree", || {
            let stats = loader.stats();
            let guards = alive.now() as u64;
            let allocated = NOW.load(SeqCst);
            let reserved = stats.budget.map(|budget| budget.used.now);
            (stats.batches.now, stats.bytes.now) == (guards, allocated)
                && reserved == Some(allocated)
                && (allocated > 0 || workers == 0)
        });
    }
    drop(batches);
    eventually("every byte comes back", || loader.stats().bytes.now == 0);
    alive.wait_for_none();
    assert_eq!(NOW.load(SeqCst), 0);
    let stats = loader.stats();
    let budget = stats.budget.expect("it has one");
    // The batch in the hands of the reader is its own, and is dropped at once.
    let in_use = 4 * LARGE as u64;
    assert!(MOST.load(SeqCst) <= stats.bytes.most + in_use);
    assert!(stats.bytes.most <= limit + budget.overshoot, "{stats:?}");
}
