//! A reader as Burn's `DataLoaderIterator`.

use std::fmt;
use std::marker::PhantomData;
use std::sync::{Mutex, PoisonError, Weak};

use crate::burn::{DataLoaderIterator, DatasetError, Progress};
use crate::source::Pass;

/// One epoch's batches, in order; what `iter()` and `iter_epoch()` return.
///
/// An error is the last item: Burn's `DatasetError` around a [`LoadError`](crate::LoadError), which
/// [`LoadError::of`](crate::LoadError::of) finds. After the last item `next()` returns `None` for ever.
/// Dropping it early ends the pass and waits for nothing.
///
/// Its [`progress`](DataLoaderIterator::progress) counts the items of the batches returned; it is
/// complete on the last batch and not before.
pub struct PrefetchIterator<'a, O> {
    pass: Box<dyn Pass<O>>,
    /// Where the next epoch waits for its `iter()`.
    warm: Weak<WarmEpoch<O>>,
    _loader: PhantomData<&'a ()>,
}

/// The pass over an epoch that has begun before its `iter()`, if there is one.
pub(crate) type WarmEpoch<O> = Mutex<Option<Box<dyn Pass<O>>>>;

impl<O> PrefetchIterator<'_, O> {
    pub(crate) fn new(pass: Box<dyn Pass<O>>, warm: Weak<WarmEpoch<O>>) -> Self {
        Self {
            pass,
            warm,
            _loader: PhantomData,
        }
    }

    /// The epoch.
    #[must_use]
    pub fn epoch(&self) -> usize {
        self.pass.epoch()
    }

    /// Leaves the next epoch with the loader, if that is still there.
    fn keep_warm(&self, next: Box<dyn Pass<O>>) {
        let Some(warm) = self.warm.upgrade() else {
            return;
        };
        let older = warm
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .replace(next);
        drop(older);
    }
}

impl<O> fmt::Debug for PrefetchIterator<'_, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (returned, total) = self.pass.items();
        f.debug_struct("PrefetchIterator")
            .field("epoch", &self.epoch())
            .field("items_returned", &returned)
            .field("items_total", &total)
            .finish_non_exhaustive()
    }
}

impl<O> Iterator for PrefetchIterator<'_, O> {
    type Item = Result<O, DatasetError>;

    fn next(&mut self) -> Option<Self::Item> {
        let outcome = self.pass.next()?;
        if let Some(next) = self.pass.take_next() {
            self.keep_warm(next);
        }
        Some(outcome.map_err(DatasetError::new))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.pass.size_hint()
    }
}

impl<O> std::iter::FusedIterator for PrefetchIterator<'_, O> {}

impl<O> DataLoaderIterator<O> for PrefetchIterator<'_, O> {
    fn progress(&self) -> Progress {
        let (returned, total) = self.pass.items();
        Progress::new(returned, total, Some("items".to_owned()))
    }
}
