//! The contest of `cifar_in_memory` with mimalloc as the allocator of the whole program.

use std::io;

use burn_prefetch_benches::{Allocator, Effort, contest};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> io::Result<()> {
    contest(Allocator::Mimalloc, Effort::from_args())
}
