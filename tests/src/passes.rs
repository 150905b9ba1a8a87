//! One way to build the usual loader, and to read a pass of it.

use burn::data::dataloader::{DataLoader, DataLoaderIterator};
use burn::data::dataset::DatasetError;
use burn_prefetch::DataLoaderBuilder;

use crate::Collect;

/// The batches of a pass.
pub type Batches = Vec<Vec<usize>>;

/// A builder over numbers whose batches are lists.
#[must_use]
pub fn loader(workers: usize) -> DataLoaderBuilder<usize, Vec<usize>> {
    DataLoaderBuilder::new(Collect).num_workers(workers)
}

/// Reads one pass to its end, and twice beyond it.
///
/// # Panics
///
/// When a batch is an error, or something comes after the end.
#[must_use]
pub fn pass<O>(loader: &dyn DataLoader<O>) -> Vec<O> {
    outcomes(loader.iter())
        .into_iter()
        .map(|batch| batch.expect("every batch loads"))
        .collect()
}

/// Reads an iterator to its end, and twice beyond it; errors stay where they are.
///
/// # Panics
///
/// When something comes after the end.
#[must_use]
pub fn outcomes<O>(
    mut iterator: Box<dyn DataLoaderIterator<O> + '_>,
) -> Vec<Result<O, DatasetError>> {
    let seen = iterator.by_ref().collect();
    assert!(iterator.next().is_none(), "a pass that is over stays over");
    assert!(iterator.next().is_none(), "a pass that is over stays over");
    seen
}

/// All items of a pass, in order.
#[must_use]
pub fn flat(batches: &[Vec<usize>]) -> Vec<usize> {
    batches.concat()
}

/// What an unshuffled pass over `0..len` must be.
#[must_use]
pub fn chunks(len: usize, batch_size: usize) -> Batches {
    (0..len)
        .collect::<Vec<_>>()
        .chunks(batch_size)
        .map(<[usize]>::to_vec)
        .collect()
}
