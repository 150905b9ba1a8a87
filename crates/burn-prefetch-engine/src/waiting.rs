//! What `next()` does while no batch is there: it works itself, wakes others, sleeps, gives up.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::error::{LoadError, Place, SharedError, Stage};
use crate::feed::Feed;
use crate::pool::Pool;
use crate::source::{Outcome, Source};
use crate::spans;
use crate::staff::{Serve, current_worker};
use crate::sync::Moment;
use crate::watch::{Patience, Pools, Watch};

/// While batches are cheap and made here, the clock is read for one in so many.
const SELDOM: usize = 16;

/// Batches taken from the ring and not returned, by their numbers.
pub(crate) type AtHand<S> = VecDeque<(usize, Outcome<S>)>;

/// Where a reader stands when it begins to wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct At {
    /// How many batches it has returned.
    pub(crate) turn: usize,
    /// The batch that it waits for.
    pub(crate) missing: usize,
}

/// Since when a batch is waited for.
enum Begun {
    At(Moment),
    Unseen,
}

/// The waiting side of one reader.
pub(crate) struct Waiting<S: Source> {
    feed: Arc<Feed<S>>,
    pool: Arc<Pool>,
    watch: Watch,
    /// When the pass was last seen to go on; `None` before its first wait.
    seen: Option<Moment>,
    /// Since when `next()` has been waiting; later looks do not lose the place in line.
    since: Option<usize>,
}

impl<S: Source> Waiting<S> {
    pub(crate) fn new(feed: &Arc<Feed<S>>, pool: &Arc<Pool>, patience: Patience) -> Self {
        Self {
            feed: Arc::clone(feed),
            pool: Arc::clone(pool),
            watch: Watch::new(patience, feed.job().id()),
            seen: None,
            since: None,
        }
    }

    /// Waits, or works, until there is something to move to `out`; an error is no batch's own. Says
    /// whether workers were woken for the places that are free.
    pub(crate) fn fetch(&mut self, out: &mut AtHand<S>, at: At) -> Result<bool, LoadError> {
        let mut begun = None;
        let outcome = self.fetch_since(&mut begun, out, at);
        let tally = &self.feed.job().account.tally;
        match begun {
            Some(Begun::At(begun)) => {
                tally.waited(begun.elapsed(), at.turn == 0);
                self.goes_on(begun);
            }
            Some(Begun::Unseen) => tally.not_measured(),
            None if outcome.is_ok() => tally.found(),
            None => {}
        }
        outcome
    }

    /// The pass is over.
    pub(crate) fn ends(&mut self) {
        if let Some(seen) = self.seen.take() {
            self.feed.job().account.tally.went_on(seen.elapsed());
        }
    }

    /// The pass has gone on until now, and waited since it `begun` to.
    fn goes_on(&mut self, begun: Moment) {
        let seen = self.seen.replace(Moment::now()).unwrap_or(begun);
        self.feed.job().account.tally.went_on(seen.elapsed());
    }

    /// Notes since when it waits, or works, if it has to.
    fn fetch_since(
        &mut self,
        begun: &mut Option<Begun>,
        out: &mut AtHand<S>,
        at: At,
    ) -> Result<bool, LoadError> {
        let (mut span, mut woke) = (None, false);
        loop {
            let version = self.version();
            if let Some(trouble) = self.trouble(at) {
                return Err(trouble);
            }
            self.feed.take_ready(out);
            if !out.is_empty() {
                self.wait_no_more();
                return Ok(woke);
            }
            begun.get_or_insert_with(|| self.begins(at));
            let epoch = self.feed.plan().epoch();
            span.get_or_insert_with(|| spans::wait(epoch, at.missing));
            if self.watch.is_over() {
                return Err(self.give_up(at));
            }
            if self.help(at)? {
                continue;
            }
            woke = true;
            self.pool.wake_one();
            self.feed.wake_uploader();
            if !self.feed.comes_soon() {
                self.wait(version);
            }
        }
    }

    /// Of cheap batches that are made here one in 16 is measured: the clock would show.
    fn begins(&self, at: At) -> Begun {
        let seldom = self.pool.size() == 0 && self.feed.is_cheap();
        if seldom && !at.turn.is_multiple_of(SELDOM) {
            return Begun::Unseen;
        }
        Begun::At(Moment::now())
    }

    /// Does the work itself where nobody else might: without workers, and on a worker's thread.
    fn help(&self, at: At) -> Result<bool, LoadError> {
        let mut served = false;
        if self.pool.live() == 0 || current_worker().is_some() {
            let hand = self
                .pool
                .hand()
                .map_err(|source| self.unprepared(source, at))?;
            served = self.feed.serve(&hand);
        }
        if let Some(pool) = self.feed.uploader().filter(|_| self.uploads_itself()) {
            let hand = pool.hand().map_err(|source| self.unprepared(source, at))?;
            served |= self.feed.upload(&hand);
        }
        Ok(served)
    }

    /// Whether the calling thread cannot wait for the uploader: it may be that, or be waited for by it.
    fn uploads_itself(&self) -> bool {
        let uploader = self.feed.uploader();
        uploader.is_some_and(|pool| pool.live() == 0 || current_worker().is_some())
    }

    /// Changes with who works for this reader.
    fn version(&self) -> (usize, usize) {
        let uploader = self.feed.uploader().map_or(0, Pool::version);
        (self.pool.version(), uploader)
    }

    /// Runs `what` with the watch and those whom it looks at.
    fn watching<T>(&mut self, what: impl FnOnce(&mut Watch, Pools<'_>) -> T) -> T {
        let pools = Pools {
            workers: &self.pool,
            uploader: self.feed.uploader(),
        };
        what(&mut self.watch, pools)
    }

    /// Sleeps, unless the pool is not what it was at that `version`.
    fn wait(&mut self, version: (usize, usize)) {
        self.watching(Watch::begin);
        let pause = self.watch.pause();
        let own = self.uploads_itself();
        let pool = &self.pool;
        let since = *self.since.get_or_insert_with(|| pool.tick());
        let in_time = self
            .feed
            .wait((since, own), pause, || self.version() != version);
        if !in_time {
            self.watching(Watch::look);
        }
    }

    fn wait_no_more(&mut self) {
        if self.since.take().is_some() {
            self.feed.waits_no_more();
        }
        self.watch.end();
    }

    fn trouble(&self, at: At) -> Option<LoadError> {
        let place = |stage, worker| self.place(at, stage, worker);
        let uploader = || self.feed.uploader()?.trouble(place);
        self.pool.trouble(place).or_else(uploader)
    }

    /// Whether nobody is served at the moment.
    pub(crate) fn is_troubled(&self) -> bool {
        self.pool.is_troubled() || self.feed.uploader().is_some_and(Pool::is_troubled)
    }

    fn unprepared(&self, source: SharedError, at: At) -> LoadError {
        let at = self.place(at, Stage::Start, None);
        LoadError::Init { at, source }
    }

    fn give_up(&mut self, at: At) -> LoadError {
        // First of all: who takes the place of a stuck worker begins nothing of this pass.
        self.feed.close();
        LoadError::Timeout {
            at: self.place(at, Stage::Wait, None),
            after: self.watch.limit(),
            crew: Box::new(self.watching(Watch::give_up)),
        }
    }

    /// The batch that is waited for.
    fn place(&self, at: At, stage: Stage, worker: Option<usize>) -> Place {
        self.feed.job().place(stage, at.missing, worker)
    }
}
