//! A reader as Burn's `DataLoaderIterator`.

use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::bookmark::{Bookmark, Shelf};
use crate::burn::{DataLoaderIterator, DatasetError, Progress};
use crate::source::Pass;
use crate::state::LoaderState;

/// One epoch's batches, in order; what `iter()` and `iter_epoch()` return.
///
/// An error is the last item: Burn's `DatasetError` around a [`LoadError`](crate::LoadError), which
/// [`LoadError::of`](crate::LoadError::of) finds. After the last item `next()` returns `None` for ever.
/// Dropping it early ends the pass and waits for nothing, unless it is all that is left of its loader:
/// then the workers end with it, as with the loader.
///
/// Its [`progress`](DataLoaderIterator::progress) counts the items of the batches returned; it is
/// complete on the last batch and not before.
pub struct PrefetchIterator<'a, O> {
    pass: Box<dyn Pass<O>>,
    /// Where the next epoch waits for its `iter()`.
    warm: Weak<WarmEpoch<O>>,
    mark: Arc<Bookmark>,
    shelf: Arc<Shelf>,
    _loader: PhantomData<&'a ()>,
}

/// The pass over an epoch that has begun before its `iter()`, if there is one.
pub(crate) type WarmEpoch<O> = Mutex<Option<Box<dyn Pass<O>>>>;

impl<O> PrefetchIterator<'_, O> {
    pub(crate) fn new(pass: Box<dyn Pass<O>>, warm: Weak<WarmEpoch<O>>, shelf: Arc<Shelf>) -> Self {
        let plan = pass.plan();
        let (epoch, batches) = (plan.epoch(), plan.num_batches());
        let mark = Bookmark::new(epoch, pass.standing().clone(), batches);
        Self {
            mark: Arc::new(mark),
            pass,
            warm,
            shelf,
            _loader: PhantomData,
        }
    }

    /// Makes the loader's [`state`](crate::PrefetchDataLoader::state) that of this pass.
    pub(crate) fn counted(self) -> Self {
        self.shelf.put(&self.mark);
        self
    }

    /// The epoch.
    #[must_use]
    pub fn epoch(&self) -> usize {
        self.pass.plan().epoch()
    }

    /// How many batches of the epoch have been returned, with those before a resumption.
    #[must_use]
    pub fn batch(&self) -> usize {
        self.pass.standing().returned()
    }

    /// How many batches have been returned since epoch 0 began, if every epoch before this one was
    /// read to its end: the number of the training step that comes next, for schedules and logs.
    ///
    /// Where a sampler of your own has epochs of different lengths, it is asked for each.
    #[must_use]
    pub fn global_step(&self) -> usize {
        let before = self.pass.plan().batches_before();
        before.saturating_add(self.batch())
    }

    /// How many of the last items of the batch returned last repeat others to fill it up, under
    /// [`pad_last`](crate::DataLoaderBuilder::pad_last): they are not to count in a loss.
    #[must_use]
    pub fn padding(&self) -> usize {
        self.pass.padding()
    }

    /// Where this pass stands, to be [restored](crate::PrefetchDataLoader::restore) later: after
    /// the batches that it has returned, however many are ready.
    ///
    /// A pass that has returned its last batch stands at the start of the next epoch; one that ended
    /// with an error, at the batch that failed.
    #[must_use]
    pub fn state(&self) -> LoaderState {
        self.shelf.state(&self.mark)
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
        match &outcome {
            Ok(_) => self.mark.move_to(self.pass.standing()),
            Err(_) => self.mark.fail(),
        }
        if let Some(next) = self.pass.take_next() {
            self.keep_warm(next);
        }
        Some(outcome.map_err(DatasetError::new))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.pass.size_hint()
    }
}

impl<O> Drop for PrefetchIterator<'_, O> {
    fn drop(&mut self) {
        self.mark.close();
    }
}

impl<O> std::iter::FusedIterator for PrefetchIterator<'_, O> {}

impl<O> DataLoaderIterator<O> for PrefetchIterator<'_, O> {
    fn progress(&self) -> Progress {
        let (returned, total) = self.pass.items();
        Progress::new(returned, total, Some("items".to_owned()))
    }
}
