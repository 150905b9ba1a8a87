//! Threads that run iterators ahead of their readers, so far and no further.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use crate::error::{LoadError, Place, Stage};
use crate::sync::{Condvar, Mutex, spawn};
use crate::unwind::{dispose, guard};

/// Threads for any number of iterators, one for each that runs; they are kept for the next.
///
/// Dropping it lets each thread end after the item it is in; nobody waits for that.
#[derive(Debug, Default)]
pub struct Background {
    hall: Arc<Hall>,
}

#[derive(Debug, Default)]
struct Hall {
    state: Mutex<HallState>,
    work: Condvar,
}

#[derive(Default)]
struct HallState {
    jobs: VecDeque<Box<dyn FnOnce() + Send>>,
    /// Threads that wait for a job.
    idle: usize,
    closing: bool,
}

impl fmt::Debug for HallState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HallState")
            .field("idle", &self.idle)
            .finish_non_exhaustive()
    }
}

/// Where a background thread puts what it makes.
#[derive(Debug)]
pub struct Outlet<T: Send + 'static>(Arc<Belt<T>>);

/// What a background thread makes, in its order: one item more than the reader has asked for, or
/// as many as it may run ahead.
///
/// A panic is the last item. Dropping it ends the iterator behind it, after the item it is in.
#[derive(Debug)]
pub struct RunAhead<T: Send + 'static> {
    belt: Arc<Belt<T>>,
    epoch: usize,
    taken: usize,
    over: bool,
}

#[derive(Debug)]
struct Belt<T> {
    limit: usize,
    state: Mutex<BeltState<T>>,
    room: Condvar,
    ready: Condvar,
}

/// Invariant: `made - taken <= max(limit, asked)`, the item being made included.
struct BeltState<T> {
    items: VecDeque<T>,
    /// Items begun.
    made: usize,
    taken: usize,
    asking: bool,
    /// The thread is done; with the text of its panic, or of why there is no thread.
    ended: Option<Result<(), LoadFailure>>,
    closed: bool,
}

#[derive(Debug)]
enum LoadFailure {
    Panic(String),
    NoThread(std::io::Error),
}

impl<T> fmt::Debug for BeltState<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BeltState")
            .field("made", &self.made)
            .field("taken", &self.taken)
            .finish_non_exhaustive()
    }
}

impl Background {
    /// No thread yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Runs `body` on a thread, at most `limit` items ahead of the reader; with 0 an item is begun
    /// when it is asked for. `epoch` is what errors say.
    pub fn run<T: Send + 'static>(
        &self,
        (epoch, limit): (usize, usize),
        body: impl FnOnce(&Outlet<T>) + Send + 'static,
    ) -> RunAhead<T> {
        let belt = Arc::new(Belt::new(limit));
        let outlet = Outlet(Arc::clone(&belt));
        let job = move || {
            let outcome = guard(|| body(&outlet));
            outlet.0.end(outcome.map_err(LoadFailure::Panic));
        };
        if let Err(error) = self.hall.take_in(Box::new(job)) {
            belt.end(Err(LoadFailure::NoThread(error)));
        }
        RunAhead {
            belt,
            epoch,
            taken: 0,
            over: false,
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.hall.state.lock().closing = true;
        self.hall.work.notify_all();
    }
}

impl Hall {
    /// Gives a job to a thread that waits, or to a new one.
    fn take_in(self: &Arc<Self>, job: Box<dyn FnOnce() + Send>) -> std::io::Result<()> {
        let mut state = self.state.lock();
        let waiting = state.idle > state.jobs.len();
        state.jobs.push_back(job);
        if waiting {
            drop(state);
            self.work.notify_one();
            return Ok(());
        }
        let own = Arc::clone(self);
        let thread = spawn("prefetch-over".to_owned(), move || own.work_until_closed());
        if thread.is_err() {
            // Under the same lock: it is the last one still.
            let job = state.jobs.pop_back();
            drop(state);
            dispose(job);
        }
        thread.map(drop)
    }

    fn work_until_closed(&self) {
        loop {
            let mut state = self.state.lock();
            state.idle += 1;
            while state.jobs.is_empty() && !state.closing {
                state = self.work.wait(state);
            }
            state.idle -= 1;
            let Some(job) = state.jobs.pop_front() else {
                return;
            };
            drop(state);
            job();
        }
    }
}

impl<T> Belt<T> {
    fn new(limit: usize) -> Self {
        Self {
            limit,
            state: Mutex::new(BeltState {
                items: VecDeque::new(),
                made: 0,
                taken: 0,
                asking: false,
                ended: None,
                closed: false,
            }),
            room: Condvar::default(),
            ready: Condvar::default(),
        }
    }

    fn end(&self, outcome: Result<(), LoadFailure>) {
        self.state.lock().ended = Some(outcome);
        self.ready.notify_one();
    }
}

impl<T: Send> Outlet<T> {
    /// Makes and hands over items, each when there is room for it, until there is none left or
    /// nobody wants more.
    pub fn put_all(&self, mut next: impl FnMut() -> Option<T>) {
        while self.has_room() {
            let Some(item) = next() else { return };
            self.put(item);
        }
    }

    /// Waits until one more item may be made; `false` when nobody wants any.
    fn has_room(&self) -> bool {
        let Belt { limit, room, .. } = &*self.0;
        let mut state = self.0.state.lock();
        while !state.closed {
            let limit = (*limit).max(usize::from(state.asking));
            if state.made - state.taken < limit {
                state.made += 1;
                return true;
            }
            state = room.wait(state);
        }
        false
    }

    fn put(&self, item: T) {
        let mut state = self.0.state.lock();
        if state.closed {
            drop(state);
            dispose(item);
            return;
        }
        state.items.push_back(item);
        drop(state);
        self.0.ready.notify_one();
    }
}

impl<T: Send> Iterator for RunAhead<T> {
    type Item = Result<T, LoadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.over {
            return None;
        }
        let mut state = self.belt.state.lock();
        state.asking = true;
        self.belt.room.notify_one();
        let item = loop {
            if let Some(item) = state.items.pop_front() {
                break Ok(item);
            }
            if let Some(ended) = state.ended.take() {
                break Err(ended);
            }
            state = self.belt.ready.wait(state);
        };
        state.asking = false;
        state.taken += usize::from(item.is_ok());
        drop(state);
        self.belt.room.notify_one();
        match item {
            Ok(item) => {
                self.taken += 1;
                Some(Ok(item))
            }
            Err(ended) => {
                self.over = true;
                ended.err().map(|failure| Err(self.error(failure)))
            }
        }
    }
}

impl<T: Send> RunAhead<T> {
    fn error(&self, failure: LoadFailure) -> LoadError {
        let at = Place {
            stage: Stage::Fetch,
            epoch: self.epoch,
            batch: self.taken,
            index: None,
            indices: Vec::new(),
            worker: Some(0),
        };
        match failure {
            LoadFailure::Panic(message) => LoadError::Panic { at, message },
            LoadFailure::NoThread(error) => LoadError::Dataset {
                at,
                source: Box::new(error),
            },
        }
    }
}

impl<T: Send> std::iter::FusedIterator for RunAhead<T> {}

impl<T: Send> Drop for RunAhead<T> {
    fn drop(&mut self) {
        let mut state = self.belt.state.lock();
        state.closed = true;
        let items = std::mem::take(&mut state.items);
        drop(state);
        self.belt.room.notify_one();
        items.into_iter().for_each(dispose);
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    fn count(outlet: &Outlet<usize>, to: usize) {
        let mut items = 0..to;
        outlet.put_all(|| items.next());
    }

    #[test]
    fn all_items_come_in_order_whatever_the_limit() {
        let background = Background::new();
        for limit in [0, 1, 2, 100] {
            let ahead = background.run((0, limit), |outlet| count(outlet, 50));
            let items: Vec<_> = ahead.map(Result::unwrap).collect();
            assert_eq!(items, (0..50).collect::<Vec<_>>());
        }
        assert!(background.hall.state.lock().idle <= 4);
    }

    #[test]
    fn a_panic_is_the_last_item() {
        let background = Background::new();
        let mut ahead = background.run((3, 2), |outlet| {
            count(outlet, 2);
            panic!("no third");
        });
        assert!(ahead.by_ref().take(2).all(|item| item.is_ok()));
        let error = ahead.next().unwrap().unwrap_err();
        assert_eq!((error.place().epoch, error.place().batch), (3, 2));
        assert!(error.to_string().contains("no third"), "{error}");
        assert!(ahead.next().is_none());
    }

    #[test]
    fn a_reader_may_go_before_the_end() {
        let background = Background::new();
        for _ in 0..100 {
            let ahead = background.run((0, 3), |outlet| count(outlet, usize::MAX));
            assert_eq!(ahead.take(5).count(), 5);
        }
    }
}
