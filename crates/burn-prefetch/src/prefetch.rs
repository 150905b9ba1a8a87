//! Background prefetch for what is no dataset: any loader, any iterator.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;

use burn_prefetch_engine::{Background, LoadError, RunAhead};

use crate::burn::{DataLoader, DataLoaderIterator, DatasetError, Device, Progress};

/// PyTorch's default of two batches for a worker; here there is one.
const PREFETCH: usize = 2;

/// Runs a loader or an iterator ahead on a thread of its own.
///
/// For loaders that make their batches inside `next()`, and for streams that have no index. The
/// order stays as it is; there are never more batches alive than [`prefetch`](Self::prefetch) says.
/// Where no thread can be started, the pass is one error that says so.
///
/// ```
/// use burn_prefetch::Prefetch;
///
/// let slow = (0..5).map(|item| item * item);
/// let items: Result<Vec<_>, _> = Prefetch::over(slow).prefetch(2).into_iter().collect();
/// assert_eq!(items?, [0, 1, 4, 9, 16]);
/// # Ok::<(), burn_prefetch::LoadError>(())
/// ```
#[derive(Debug)]
#[must_use]
pub struct Prefetch<T> {
    over: T,
    prefetch: usize,
}

impl<T> Prefetch<T> {
    /// Over an `Arc<dyn DataLoader<O>>`, which [`build`](Self::build) turns into another, or over an
    /// iterator.
    pub fn over(loader_or_iterator: T) -> Self {
        Self {
            over: loader_or_iterator,
            prefetch: PREFETCH,
        }
    }

    /// How many batches may be alive that `next()` has not returned, the one being made included
    /// (default 2). With 0 a batch is begun when `next()` asks for it.
    pub fn prefetch(mut self, batches: usize) -> Self {
        self.prefetch = batches;
        self
    }
}

impl<O: Send + 'static> Prefetch<Arc<dyn DataLoader<O>>> {
    /// A loader of the same batches. Each `iter()` has a thread, which is kept for the next; it
    /// runs the inner loader's `iter()`, so that one counts as it always does.
    #[must_use]
    pub fn build(self) -> Arc<dyn DataLoader<O>> {
        Arc::new(Prefetched {
            inner: self.over,
            prefetch: self.prefetch,
            threads: Arc::new(Background::new()),
            passes: AtomicUsize::new(0),
        })
    }
}

/// A panic in the iterator is the last item; dropped early, it ends after the item it is in.
impl<I> IntoIterator for Prefetch<I>
where
    I: Iterator + Send + 'static,
    I::Item: Send,
{
    type Item = Result<I::Item, LoadError>;
    type IntoIter = PrefetchIter<I::Item>;

    fn into_iter(self) -> Self::IntoIter {
        let Self { mut over, prefetch } = self;
        let threads = Background::new();
        let ahead = threads.run((0, prefetch), move |outlet| outlet.put_all(|| over.next()));
        PrefetchIter(ahead)
    }
}

/// What [`Prefetch`] over an iterator yields: its items, or how it panicked.
#[derive(Debug)]
pub struct PrefetchIter<T: Send + 'static>(RunAhead<T>);

impl<T: Send> Iterator for PrefetchIter<T> {
    type Item = Result<T, LoadError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next()
    }
}

impl<T: Send> std::iter::FusedIterator for PrefetchIter<T> {}

/// A batch, or the inner loader's error, and how far the pass is after it.
type Step<O> = (Result<O, DatasetError>, Progress);

struct Prefetched<O> {
    inner: Arc<dyn DataLoader<O>>,
    prefetch: usize,
    threads: Arc<Background>,
    /// How many passes there were: the number that errors give as the epoch.
    passes: AtomicUsize,
}

impl<O> Prefetched<O> {
    fn over(&self, inner: Arc<dyn DataLoader<O>>) -> Arc<Self> {
        Arc::new(Self {
            inner,
            prefetch: self.prefetch,
            threads: Arc::clone(&self.threads),
            passes: AtomicUsize::new(0),
        })
    }
}

impl<O: Send + 'static> DataLoader<O> for Prefetched<O> {
    fn iter<'a>(&'a self) -> Box<dyn DataLoaderIterator<O> + 'a> {
        let inner = Arc::clone(&self.inner);
        let pass = self.passes.fetch_add(1, Ordering::Relaxed);
        let (begins, begun) = channel::<()>();
        let ahead = self.threads.run((pass, self.prefetch), move |outlet| {
            let mut batches = inner.iter();
            drop(begins);
            outlet.put_all(|| {
                let batch = batches.next()?;
                Some((batch, batches.progress()))
            });
        });
        // The inner loader counts its epochs in the order of these calls, whichever thread is faster.
        // There is an end also where there is no thread, or a panic: then it was dropped unused.
        let _ = begun.recv();
        let items = Some("items".to_owned());
        Box::new(PrefetchedPass {
            ahead,
            progress: Progress::new(0, self.inner.num_items(), items),
        })
    }

    fn num_items(&self) -> usize {
        self.inner.num_items()
    }

    fn to_device(&self, device: &Device) -> Arc<dyn DataLoader<O>> {
        self.over(self.inner.to_device(device))
    }

    fn slice(&self, start: usize, end: usize) -> Arc<dyn DataLoader<O>> {
        self.over(self.inner.slice(start, end))
    }
}

struct PrefetchedPass<O: Send + 'static> {
    ahead: RunAhead<Step<O>>,
    progress: Progress,
}

impl<O: Send> fmt::Debug for PrefetchedPass<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PrefetchedPass")
            .field("progress", &self.progress)
            .finish_non_exhaustive()
    }
}

impl<O: Send> Iterator for PrefetchedPass<O> {
    type Item = Result<O, DatasetError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.ahead.next()? {
            Ok((batch, progress)) => {
                self.progress = progress;
                Some(batch)
            }
            Err(error) => Some(Err(DatasetError::new(error))),
        }
    }
}

impl<O: Send> DataLoaderIterator<O> for PrefetchedPass<O> {
    fn progress(&self) -> Progress {
        self.progress.clone()
    }
}
