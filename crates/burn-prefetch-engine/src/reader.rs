//! The reader's side of an epoch: batches in order, and places in the window given back.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::desk::{Limits, PassConfig};
use crate::error::{LoadError, Place, SharedError, Stage};
use crate::feed::Feed;
use crate::job::Job;
use crate::pool::{Pool, Registration, Serve, current_worker};
use crate::ring::Delivery;
use crate::source::{Made, Source};
use crate::sync::Moment;
use crate::ticket::Tickets;
use crate::unwind::dispose;
use crate::watch::{Patience, Watch};

/// With so many batches at hand, and cheap ones, workers are woken for several places at once.
const MANY: usize = 16;

/// How a pass runs.
#[derive(Clone, Copy, Debug)]
pub struct ReaderConfig {
    /// How far it may run ahead.
    pub limits: Limits,
    /// In which order it delivers.
    pub delivery: Delivery,
    /// How long its reader waits.
    pub patience: Patience,
    /// Whether the next epoch begins, within the same limits, while the last batches of this one
    /// are being used; [`Reader::take_next`] then gives its reader.
    pub warm_next: bool,
}

/// An iterator over one epoch's batches.
///
/// The first error is the last item. Dropping a reader ends its pass and waits for nothing: each
/// worker may still be inside one part of it, whose result is dropped. On a worker's own thread,
/// and with a pool of none, [`next`](Iterator::next) does the work itself, so that a loader
/// inside a dataset cannot starve.
pub struct Reader<S: Source> {
    feed: Arc<Feed<S>>,
    pool: Arc<Pool>,
    config: ReaderConfig,
    registration: Option<Registration>,
    /// Batches taken from the ring and not returned: still alive, still in the window.
    at_hand: VecDeque<(usize, Made<S>)>,
    returned: usize,
    items_returned: usize,
    /// Places freed since a worker was last woken for them.
    freed: usize,
    /// Since when `next()` has been waiting; later looks do not lose the place in line.
    waiting_since: Option<usize>,
    watch: Watch,
    /// The epoch after this one, once this one has no batch left to start.
    next: Option<Box<Self>>,
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
    pub fn new(pool: Arc<Pool>, job: Job<S>, config: ReaderConfig) -> Self {
        let pass = PassConfig {
            limits: config.limits,
            delivery: config.delivery,
        };
        let tickets = Tickets::new(&job.account, pool.bell());
        let feed = Feed::new(job, (pool.size(), tickets), pass);
        Self::of(feed, pool, config)
    }

    fn of(feed: Feed<S>, pool: Arc<Pool>, config: ReaderConfig) -> Self {
        let feed = Arc::new(feed);
        let over = feed.plan().num_batches() == 0;
        let works = !over && pool.size() > 0;
        let registration = works.then(|| pool.register(Arc::<Feed<S>>::clone(&feed)));
        let watch = Watch::new(config.patience, feed.job().id());
        Self {
            feed,
            pool,
            config,
            registration,
            at_hand: VecDeque::new(),
            returned: 0,
            items_returned: 0,
            freed: 0,
            waiting_since: None,
            watch,
            next: None,
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
        self.items_returned
    }

    /// The next epoch's reader, whose first batches are being made already; once this one has
    /// returned all of its batches, and if that is [configured](ReaderConfig::warm_next).
    pub fn take_next(&mut self) -> Option<Self> {
        if self.over {
            self.next.take().map(|next| *next)
        } else {
            None
        }
    }

    /// Goes on with a pass that began before this was its turn: whatever has become of the workers
    /// since, they are tried again.
    pub fn take_up(&self) {
        if self.registration.is_some() {
            self.pool.revive();
        }
    }

    /// Lets nothing follow this pass, whatever was configured.
    pub fn let_nothing_follow(&mut self) {
        self.config.warm_next = false;
        self.next = None;
    }

    /// Waits, or works, until a batch is at hand; an error is no batch's own.
    fn fetch(&mut self) -> Result<(), LoadError> {
        let mut begun = None;
        let outcome = self.fetch_since(&mut begun);
        let tally = &self.feed.job().account.tally;
        match begun.map(Moment::elapsed) {
            Some(waited) => tally.waited(waited),
            None if outcome.is_ok() => tally.found(),
            None => {}
        }
        outcome
    }

    /// Notes since when it waits, or works, if it has to.
    fn fetch_since(&mut self, begun: &mut Option<Moment>) -> Result<(), LoadError> {
        loop {
            let version = self.pool.version();
            if let Some(trouble) = self.trouble() {
                return Err(trouble);
            }
            self.feed.take_ready(&mut self.at_hand);
            if !self.at_hand.is_empty() {
                self.wait_no_more();
                return Ok(());
            }
            begun.get_or_insert_with(Moment::now);
            if self.watch.is_over() {
                return Err(self.give_up());
            }
            if self.help()? {
                continue;
            }
            self.freed = 0;
            self.pool.wake_one();
            if !self.feed.comes_soon() {
                self.wait(version);
            }
        }
    }

    /// Does the work itself where nobody else might: without workers, and on a worker's thread.
    fn help(&self) -> Result<bool, LoadError> {
        if self.pool.live() > 0 && current_worker().is_none() {
            return Ok(false);
        }
        match self.pool.hand() {
            Ok(hand) => Ok(self.feed.serve(&hand)),
            Err(source) => Err(self.unprepared(source)),
        }
    }

    /// Sleeps, unless the pool is not what it was at that `version`.
    fn wait(&mut self, version: usize) {
        self.watch.begin(&self.pool);
        let pause = self.watch.pause();
        let pool = &self.pool;
        let since = *self.waiting_since.get_or_insert_with(|| pool.tick());
        let in_time = self.feed.wait(since, pause, || pool.version() != version);
        if !in_time {
            self.watch.look(&self.pool);
        }
    }

    fn wait_no_more(&mut self) {
        if self.waiting_since.take().is_some() {
            self.feed.waits_no_more();
        }
        self.watch.end();
    }

    fn trouble(&self) -> Option<LoadError> {
        self.pool.trouble(|stage, worker| self.place(stage, worker))
    }

    fn unprepared(&self, source: SharedError) -> LoadError {
        let at = self.place(Stage::Start, None);
        LoadError::Init { at, source }
    }

    fn give_up(&mut self) -> LoadError {
        // First of all: who takes the place of a stuck worker begins nothing of this pass.
        self.feed.close();
        LoadError::Timeout {
            at: self.place(Stage::Wait, None),
            after: self.watch.limit(),
            crew: Box::new(self.watch.give_up(&self.pool)),
        }
    }

    /// The batch that is waited for.
    fn place(&self, stage: Stage, worker: Option<usize>) -> Place {
        self.feed.job().place(stage, self.returned, worker)
    }

    /// Tells the workers about places that have become free, if they are worth waking for.
    fn invite(&mut self) {
        self.freed += 1;
        let wanted = match &self.next {
            // A hand that is there already does not look at this reader's places.
            Some(next) => !next.feed.is_exhausted(),
            None => self.feed.wants_hands(),
        };
        if !wanted {
            return;
        }
        let at_hand = self.at_hand.len();
        let enough = at_hand < MANY || !self.feed.is_cheap() || self.freed >= at_hand / 2;
        if enough {
            self.freed = 0;
            self.pool.wake_one();
        }
    }

    /// Begins the next epoch, if it is to be warm and this one has nothing left to start.
    fn warm_next(&mut self) {
        let wanted = self.config.warm_next && self.registration.is_some();
        if wanted && self.next.is_none() && self.feed.is_exhausted() {
            let next = Self::of(self.feed.following(), Arc::clone(&self.pool), self.config);
            self.next = Some(Box::new(next));
        }
    }

    /// Ends the pass: nothing of it is made any more, what was made is dropped.
    fn end(&mut self) {
        self.over = true;
        self.feed.close();
        if let Some(registration) = self.registration.take() {
            self.pool.unregister(&registration);
        }
        let at_hand = self.at_hand.drain(..);
        at_hand.for_each(|(_, made)| dispose(made));
    }

    /// Ends the pass with its last item.
    fn fail(&mut self, error: LoadError) -> LoadError {
        self.feed.job().account.tally.failed();
        self.end();
        self.next = None;
        error
    }
}

impl<S: Source> Iterator for Reader<S> {
    type Item = Result<S::Batch, LoadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.over {
            return None;
        }
        let at_hand = !self.at_hand.is_empty() && !self.pool.is_troubled();
        if at_hand {
            self.feed.job().account.tally.found();
        } else if let Err(error) = self.fetch() {
            return Some(Err(self.fail(error)));
        }
        let (number, Made { outcome, ticket }) = self.at_hand.pop_front()?;
        // Before the place is free: who takes that finds the bytes free too.
        drop(ticket);
        let batch = match outcome {
            Ok(batch) => batch,
            Err(error) => return Some(Err(self.fail(error))),
        };
        self.returned += 1;
        self.items_returned += self.feed.plan().batch(number).len();
        self.feed.returned_one(self.returned);
        self.warm_next();
        let is_last = self.returned == self.feed.plan().num_batches();
        if !is_last || self.next.is_some() {
            self.invite();
        }
        if is_last {
            self.end();
        }
        Some(Ok(batch))
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
