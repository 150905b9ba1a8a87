//! Counts batches that are made row by row, where no item is there to carry a guard.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::gauge::{BatchGuard, Gauge, ItemGuard};

/// The batches whose rows are being written, each with one guard for all of its rows.
///
/// What an early end leaves unfinished is let go with the loader, which has this.
#[derive(Debug)]
pub(crate) struct Rows {
    gauge: Arc<Gauge>,
    making: Mutex<Vec<ItemGuard>>,
}

impl Rows {
    pub(crate) fn new(gauge: &Arc<Gauge>) -> Arc<Self> {
        Arc::new(Self {
            gauge: Arc::clone(gauge),
            making: Mutex::default(),
        })
    }

    /// A row of `bytes` bytes is about to be written on this thread.
    pub(crate) fn start(&self, bytes: usize) {
        let mut making = self.lock();
        match making.iter_mut().find(|guard| guard.is_of_here()) {
            Some(guard) => guard.grow(bytes),
            None => making.push(self.gauge.start_item(bytes)),
        }
    }

    /// The rows of this thread's batch are all written: they are a batch now.
    pub(crate) fn finish(&self) -> BatchGuard {
        let mut making = self.lock();
        let at = making.iter().position(ItemGuard::is_of_here);
        let rows = at.map(|at| making.swap_remove(at));
        drop(making);
        match rows {
            Some(rows) => rows.into_batch(),
            None => self.gauge.start_batch(std::iter::empty(), 0),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<ItemGuard>> {
        self.making.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use crate::gauge::Peak;

    use super::*;

    #[test]
    fn rows_are_one_batch_from_the_first_on_with_the_bytes_written_so_far() {
        let gauge = Gauge::new(3);
        let rows = Rows::new(&gauge);
        for written in 1..=3 {
            rows.start(10);
            assert_eq!((gauge.alive(), gauge.bytes()), (1, 10 * written));
        }
        let batch = rows.finish();
        assert_eq!((gauge.alive(), gauge.bytes()), (1, 30));
        drop(batch);
        assert_eq!((gauge.alive(), gauge.bytes()), (0, 0));
        let (batches, bytes) = (1, 30);
        assert_eq!(gauge.peak(), Peak { batches, bytes });
    }

    #[test]
    fn what_is_left_unfinished_goes_with_the_loader() {
        let gauge = Gauge::new(3);
        let rows = Rows::new(&gauge);
        rows.start(10);
        rows.start(10);
        drop(rows);
        assert_eq!((gauge.alive(), gauge.bytes()), (0, 0));
    }
}
