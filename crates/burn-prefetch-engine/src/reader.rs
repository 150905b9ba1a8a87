//! The reader's side of an epoch: batches in order, and places in the window given back.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::desk::Limits;
use crate::error::LoadError;
use crate::feed::Feed;
use crate::job::Job;
use crate::pool::{Pool, Registration, Serve, current_worker};
use crate::source::{Outcome, Source};
use crate::unwind::dispose;

/// With so many batches at hand, and cheap ones, workers are woken for several places at once.
const MANY: usize = 16;

/// An iterator over one epoch's batches.
///
/// The first error is the last item. Dropping a reader ends its pass and waits for nothing: each
/// worker may still be inside one part of it, whose result is dropped. On a worker's own thread,
/// and with a pool of none, [`next`](Iterator::next) does the work itself, so that a loader
/// inside a dataset cannot starve.
pub struct Reader<S: Source> {
    feed: Arc<Feed<S>>,
    pool: Arc<Pool>,
    registration: Option<Registration>,
    /// Batches taken from the ring and not returned: still alive, still in the window.
    at_hand: VecDeque<Outcome<S>>,
    returned: usize,
    /// Places freed since a worker was last woken for them.
    freed: usize,
    over: bool,
}

impl<S: Source> std::fmt::Debug for Reader<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader")
            .field("epoch", &self.feed.plan().epoch())
            .field("returned", &self.returned)
            .field("over", &self.over)
            .finish_non_exhaustive()
    }
}

impl<S: Source> Reader<S> {
    /// Starts a pass. An empty one starts no thread.
    #[must_use]
    pub fn new(pool: Arc<Pool>, job: Job<S>, limits: Limits) -> Self {
        let over = job.plan.num_batches() == 0;
        let feed = Arc::new(Feed::new(job, pool.size(), limits));
        let works = !over && pool.size() > 0;
        let registration = works.then(|| pool.register(Arc::<Feed<S>>::clone(&feed)));
        Self {
            feed,
            pool,
            registration,
            at_hand: VecDeque::new(),
            returned: 0,
            freed: 0,
            over,
        }
    }

    /// The epoch.
    #[must_use]
    pub fn epoch(&self) -> usize {
        self.feed.plan().epoch()
    }

    /// How many items the pass yields in all.
    #[must_use]
    pub fn num_items(&self) -> usize {
        self.feed.plan().num_items()
    }

    /// How many batches have been returned.
    #[must_use]
    pub fn batches_returned(&self) -> usize {
        self.returned
    }

    /// How many items were in the batches returned.
    #[must_use]
    pub fn items_returned(&self) -> usize {
        self.feed.plan().batch(self.returned).start
    }

    /// Waits, or works, until a batch is at hand.
    fn fetch(&mut self) {
        loop {
            self.feed.take_ready(&mut self.at_hand);
            if !self.at_hand.is_empty() {
                return;
            }
            let helps = self.pool.live() == 0 || current_worker().is_some();
            if helps && self.feed.serve(&self.pool.hand()) {
                continue;
            }
            self.freed = 0;
            self.pool.wake_one();
            self.feed.wait(self.pool.tick());
        }
    }

    /// Tells the workers about places that have become free, if they are worth waking for.
    fn invite(&mut self) {
        self.freed += 1;
        if !self.feed.wants_hands() {
            return;
        }
        let at_hand = self.at_hand.len();
        let enough = at_hand < MANY || !self.feed.is_cheap() || self.freed >= at_hand / 2;
        if enough {
            self.freed = 0;
            self.pool.wake_one();
        }
    }

    /// Ends the pass: nothing of it is made any more, what was made is dropped.
    fn end(&mut self) {
        self.over = true;
        self.feed.close();
        if let Some(registration) = self.registration.take() {
            self.pool.unregister(&registration);
        }
        self.at_hand.drain(..).for_each(dispose);
    }
}

impl<S: Source> Iterator for Reader<S> {
    type Item = Result<S::Batch, LoadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.over {
            return None;
        }
        if self.at_hand.is_empty() {
            self.fetch();
        }
        let outcome = self.at_hand.pop_front()?;
        if outcome.is_err() {
            self.end();
            return Some(outcome);
        }
        self.returned += 1;
        self.feed.returned_one(self.returned);
        if self.returned == self.feed.plan().num_batches() {
            self.end();
        } else {
            self.invite();
        }
        Some(outcome)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = if self.over {
            0
        } else {
            self.feed.plan().num_batches() - self.returned
        };
        (usize::from(left > 0), Some(left))
    }
}

impl<S: Source> std::iter::FusedIterator for Reader<S> {}

impl<S: Source> Drop for Reader<S> {
    fn drop(&mut self) {
        if !self.over {
            self.end();
        }
    }
}
