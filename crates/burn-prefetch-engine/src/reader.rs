//! The reader's side of an epoch: batches in order, and places in the window given back.

use std::sync::Arc;

use crate::claim::{Limits, PassConfig};
use crate::error::LoadError;
use crate::feed::Feed;
use crate::job::Job;
use crate::plan::EpochPlan;
use crate::pool::{Pool, Registration};
use crate::ring::Delivery;
use crate::source::{Made, Source};
use crate::standing::Standing;
use crate::ticket::Tickets;
use crate::unwind::{dispose, guard};
use crate::uploads::Uploads;
use crate::waiting::{At, AtHand, Waiting};
use crate::watch::Patience;

/// With so many batches at hand, and cheap ones, workers are woken for several places at once.
const MANY: usize = 16;

/// While batches are at hand the tuner is asked after so many.
const SELDOM: usize = 16;

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
    /// Its place in the line of the uploader.
    upload_registration: Option<Registration>,
    /// Batches taken from the ring and not returned: still alive, still in the window.
    at_hand: AtHand<S>,
    /// How many batches this reader has returned.
    turn: usize,
    /// Which batches of the epoch have been returned, by this reader or before it.
    standing: Standing,
    items_returned: usize,
    /// Of the batch returned last.
    padding: usize,
    /// Places freed since a worker was last woken for them.
    freed: usize,
    waiting: Waiting<S>,
    /// The epoch after this one, once this one has no batch left to start.
    next: Option<Box<Self>>,
    over: bool,
}

impl<S: Source> std::fmt::Debug for Reader<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader")
            .field("epoch", &self.feed.plan().epoch())
            .field("standing", &self.standing)
            .field("over", &self.over)
            .finish_non_exhaustive()
    }
}

impl<S: Source> Reader<S> {
    /// Starts a pass. An empty one starts no thread.
    #[must_use]
    pub fn new(pool: Arc<Pool>, job: Job<S>, config: ReaderConfig) -> Self {
        Self::resume(pool, job, config, Standing::default())
    }

    /// Goes on with a pass from where it stood: what was returned is not fetched again, and what
    /// comes is as if the pass had never been interrupted.
    ///
    /// Workers, window, parts and delivery may be others than before. It takes no time, but for
    /// batches of sizes of their own, whose lengths are added up. Of a pass that stood at its end,
    /// or beyond, nothing is left.
    #[must_use]
    pub fn resume(pool: Arc<Pool>, job: Job<S>, config: ReaderConfig, standing: Standing) -> Self {
        let pass = PassConfig {
            limits: config.limits,
            delivery: config.delivery,
            begins: standing.clone(),
        };
        let items_returned = items_of(&standing, &job.plan);
        let tickets = Tickets::new(&job.account, (pool.size(), &pool.bell()));
        let feed = Feed::new(job, (pool.size(), tickets), pass);
        let mut reader = Self::of(feed, pool, config);
        (reader.standing, reader.items_returned) = (standing, items_returned);
        reader
    }

    fn of(feed: Feed<S>, pool: Arc<Pool>, config: ReaderConfig) -> Self {
        let feed = Arc::new(feed);
        feed.job().account.tally.pass();
        let over = feed.turns() == 0;
        let works = !over && pool.size() > 0;
        let registration = works.then(|| pool.register(Arc::<Feed<S>>::clone(&feed)));
        let uploader = feed.job().uploader.as_ref().filter(|_| !over);
        let uploads = Uploads(Arc::clone(&feed));
        let upload_registration = uploader.map(|it| it.pool.register(Arc::new(uploads)));
        let waiting = Waiting::new(&feed, &pool, config.patience);
        Self {
            feed,
            pool,
            config,
            registration,
            upload_registration,
            at_hand: AtHand::<S>::new(),
            turn: 0,
            standing: Standing::default(),
            items_returned: 0,
            padding: 0,
            freed: 0,
            waiting,
            next: None,
            over,
        }
    }

    /// The epoch.
    #[must_use]
    pub fn epoch(&self) -> usize {
        self.feed.plan().epoch()
    }

    /// The batches of the epoch.
    #[must_use]
    pub fn plan(&self) -> &EpochPlan {
        self.feed.plan()
    }

    /// How many items the pass yields in all.
    #[must_use]
    pub fn num_items(&self) -> usize {
        self.feed.plan().num_items()
    }

    /// How many batches of the epoch have been returned, with those before a resumption.
    #[must_use]
    pub fn batches_returned(&self) -> usize {
        self.standing.returned()
    }

    /// Which batches of the epoch have been returned: what [`resume`](Self::resume) goes on from.
    #[must_use]
    pub fn standing(&self) -> &Standing {
        &self.standing
    }

    /// How many items were in the batches returned, without padding.
    #[must_use]
    pub fn items_returned(&self) -> usize {
        self.items_returned
    }

    /// How many of the last items of the batch returned last repeat others to fill it up.
    #[must_use]
    pub fn padding(&self) -> usize {
        self.padding
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
        let at = At {
            turn: self.turn,
            missing: self.standing.first_missing(),
        };
        if self.waiting.fetch(&mut self.at_hand, at)? {
            self.freed = 0;
        }
        Ok(())
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

    /// Has the tuner look, if there is one, and not for each batch of many.
    fn tune(&self) {
        let account = &self.feed.job().account;
        if let Some(tuning) = &account.tuning
            && (tuning.replays() || self.at_hand.is_empty() || self.turn.is_multiple_of(SELDOM))
        {
            tuning.look(|| account.totals(), (&account.dial, &self.pool));
        }
    }

    /// Begins the next epoch, if it is to be warm and this one has nothing left to start.
    fn warm_next(&mut self) {
        let wanted = self.config.warm_next && self.registration.is_some();
        if !wanted || self.next.is_some() || !self.feed.is_exhausted() {
            return;
        }
        // A sampler that panics here does so again where the next epoch is asked for.
        let Ok(job) = guard(|| self.feed.job().following()) else {
            self.config.warm_next = false;
            return;
        };
        let feed = self.feed.following(job);
        let next = Self::of(feed, Arc::clone(&self.pool), self.config);
        self.next = Some(Box::new(next));
    }

    /// Ends the pass: nothing of it is made any more, what was made is dropped.
    fn end(&mut self) {
        self.over = true;
        self.waiting.ends();
        self.feed.close();
        if let Some(registration) = self.registration.take() {
            self.pool.unregister(&registration);
        }
        let uploads = self.upload_registration.take();
        if let (Some(registration), Some(pool)) = (uploads, self.feed.uploader()) {
            pool.unregister(&registration);
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
    type Item = Result<S::Output, LoadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.over {
            return None;
        }
        let at_hand = !self.at_hand.is_empty() && !self.waiting.is_troubled();
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
            Err(error) => return Some(Err(self.fail(*error))),
        };
        self.turn += 1;
        self.standing.mark(number);
        self.items_returned += self.feed.plan().real_items(number);
        self.padding = self.feed.plan().padding(number);
        self.feed.returned_one(self.turn);
        self.feed.wake_uploader();
        self.tune();
        self.warm_next();
        let is_last = self.turn == self.feed.turns();
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
            self.feed.turns() - self.turn
        };
        (usize::from(left > 0), Some(left))
    }
}

impl<S: Source> std::iter::FusedIterator for Reader<S> {}

/// How many items are in the batches that have been returned.
fn items_of(standing: &Standing, plan: &EpochPlan) -> usize {
    let missing = standing.missing().iter();
    let missing: usize = missing.map(|&number| plan.real_items(number)).sum();
    plan.items_before(standing.next()) - missing
}

impl<S: Source> Drop for Reader<S> {
    fn drop(&mut self) {
        if !self.over {
            self.end();
        }
    }
}
