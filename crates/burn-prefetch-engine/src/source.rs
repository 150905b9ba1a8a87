//! What a loader does for one batch: fetch items into pieces, join the pieces into a batch.

use std::array;
use std::ops::Range;

use crate::activity::Activity;
use crate::assembly::Pieces;
use crate::context::Scope;
use crate::error::{BoxError, FetchError, LoadError};
use crate::order_error::OrderError;
use crate::permutation::RUN;
use crate::plan::EpochPlan;
use crate::sync::Moment;
use crate::tally::Tally;
use crate::ticket::{Cost, Ticket};
use crate::upcoming::Upcoming;

/// The user's side of a loader, in the two steps that workers run.
///
/// A batch's target is cut into *pieces*, one for each part, which are owned and so need no lock:
/// a `Vec` of items each, or disjoint rows of one buffer.
pub trait Source: Send + Sync + 'static {
    /// What one part writes into.
    type Piece: Send + 'static;
    /// An assembled batch.
    type Batch: Send + 'static;
    /// What the loader yields.
    type Output: Send + 'static;

    /// Opens the target of a batch of `len` items as `parts` pieces.
    ///
    /// Runs under the reader's lock: no user code, nothing that blocks. A buffer that is costly to
    /// get is gotten by the first [`fetch`](Self::fetch) that needs it.
    fn open(&self, len: usize, parts: usize) -> Pieces<Self::Piece>;

    /// Fetches one part's items into its piece.
    ///
    /// # Errors
    ///
    /// What the user's code returned. A panic is caught by the engine.
    fn fetch(&self, piece: &mut Self::Piece, part: &mut Part<'_>) -> Result<(), FetchError>;

    /// Joins the pieces, in order, into a batch.
    ///
    /// # Errors
    ///
    /// What the user's code returned. A panic is caught by the engine.
    fn assemble(&self, pieces: Pieces<Self::Piece>) -> Result<Self::Batch, BoxError>;

    /// Makes what the loader yields of an assembled batch: most often by moving it to a device.
    ///
    /// With an [`Uploader`](crate::Uploader) this runs on its thread, one batch after the other; without
    /// one, on the thread that assembled the batch.
    ///
    /// # Errors
    ///
    /// What the user's code returned. A panic is caught by the engine.
    fn upload(&self, batch: Self::Batch) -> Result<Self::Output, BoxError>;

    /// What a batch will take, as far as that is known before it is made.
    ///
    /// Runs under the reader's lock: no user code, nothing that blocks.
    fn cost(&self, batch: &Upcoming<'_>) -> Cost {
        let _ = batch;
        Cost::Known(0)
    }

    /// How many bytes an assembled batch has; `None` where nobody measures, so that what it was
    /// expected to take stands. Runs as [`assemble`](Self::assemble) does.
    fn size(&self, batch: &Self::Batch) -> Option<u64> {
        let _ = batch;
        None
    }
}

/// An assembled batch, or why there is none.
pub(crate) type Assembled<S> = Made<<S as Source>::Batch>;

/// A finished batch, or why there is none.
pub(crate) type Outcome<S> = Made<<S as Source>::Output>;

/// What has been made of a batch so far, and what it holds of the budget, which is given back after
/// it is gone.
pub(crate) struct Made<T> {
    /// An error is large and rare: in a box it does not make every batch heavy to move.
    pub(crate) outcome: Result<T, Box<LoadError>>,
    pub(crate) ticket: Ticket,
}

impl<T> Made<T> {
    /// Nothing but why; an error holds no bytes.
    pub(crate) fn failed(error: Box<LoadError>, mut ticket: Ticket) -> Self {
        ticket.weighed(0);
        let outcome = Err(error);
        Self { outcome, ticket }
    }

    pub(crate) fn is_err(&self) -> bool {
        self.outcome.is_err()
    }

    pub(crate) fn is_ok(&self) -> bool {
        self.outcome.is_ok()
    }

    /// The next step, under the same ticket. An error holds no bytes.
    pub(crate) fn and_then<U>(self, step: impl FnOnce(T) -> Result<U, Box<LoadError>>) -> Made<U> {
        let Self {
            outcome,
            mut ticket,
        } = self;
        let outcome = outcome.and_then(step);
        if outcome.is_err() {
            ticket.weighed(0);
        }
        Made { outcome, ticket }
    }
}

/// Takes the time of each item, where that does not show.
#[derive(Debug)]
pub(crate) struct StopWatch<'a> {
    tally: &'a Tally,
    /// The item being fetched, and since when.
    running: Option<(usize, Moment)>,
}

impl<'a> StopWatch<'a> {
    pub(crate) fn new(tally: &'a Tally) -> Self {
        Self {
            tally,
            running: None,
        }
    }

    /// The item before is fetched; the next one begins.
    fn lap(&mut self, next: Option<usize>) {
        if next.is_none() && self.running.is_none() {
            return;
        }
        let now = Moment::now();
        let next = next.map(|index| (index, now));
        if let Some((index, begun)) = std::mem::replace(&mut self.running, next) {
            self.tally.fetched(index, now.since(begun));
        }
    }
}

/// The positions that one part fetches, and which of them is being fetched.
///
/// As an iterator it yields dataset indices one by one, and sets the context of each. Where a
/// sampler of the user's own returns an index beyond the data it ends there, and the batch is an
/// error, whatever the fetch returns.
#[derive(Debug)]
pub struct Part<'a> {
    plan: &'a EpochPlan,
    /// The position of the batch's first item.
    batch_start: usize,
    batch_len: usize,
    rest: Range<usize>,
    /// The position being fetched, or that the sampler is being asked for.
    current: Option<usize>,
    /// Its index; `None` while the sampler has not returned it.
    index: Option<usize>,
    /// The indices of the next positions, where they were drawn together.
    drawn: Option<array::IntoIter<usize, RUN>>,
    asked: Vec<usize>,
    failed: Option<OrderError>,
    /// Where the worker writes what it does.
    activity: Option<&'a Activity>,
    watch: Option<StopWatch<'a>>,
}

impl<'a> Part<'a> {
    #[inline]
    pub(crate) fn new(
        plan: &'a EpochPlan,
        batch: &Range<usize>,
        within: &Range<usize>,
        (activity, watch): (Option<&'a Activity>, Option<StopWatch<'a>>),
    ) -> Self {
        Self {
            plan,
            batch_start: batch.start,
            batch_len: batch.len(),
            rest: batch.start + within.start..batch.start + within.end,
            current: None,
            index: None,
            drawn: None,
            asked: Vec::new(),
            failed: None,
            activity,
            watch,
        }
    }

    /// How many items the whole batch has, of which this is a part.
    #[must_use]
    pub fn batch_len(&self) -> usize {
        self.batch_len
    }

    /// Whether this is the batch's first part.
    #[must_use]
    pub fn is_first(&self) -> bool {
        self.rest.start == self.batch_start
    }

    /// All of the part's indices, for one call that fetches them together.
    ///
    /// # Errors
    ///
    /// When a sampler of the user's own returns an index beyond the data: nothing is to be fetched.
    pub fn take_all(&mut self) -> Result<Vec<usize>, FetchError> {
        let mut indices = Vec::with_capacity(self.rest.len());
        while let Some(index) = self.choose()? {
            indices.push(index);
        }
        (self.current, self.index) = (None, None);
        self.asked.clone_from(&indices);
        Ok(indices)
    }

    /// Of the items that were [taken together](Self::take_all) the one at this place is worked on from
    /// now on, in its own context.
    pub fn work_on(&mut self, place: usize) {
        let Some(&index) = self.asked.get(place) else {
            return;
        };
        let start = self.rest.end - self.asked.len();
        (self.current, self.index) = (Some(start + place), Some(index));
        Scope::set_index(Some(index));
        if let Some(activity) = self.activity {
            activity.item(index);
        }
    }

    /// The next index.
    #[inline]
    fn choose(&mut self) -> Result<Option<usize>, FetchError> {
        let Some(position) = self.rest.next() else {
            return Ok(None);
        };
        (self.current, self.index) = (Some(position), None);
        if let Some(index) = self.draw(position) {
            self.index = Some(index);
            return Ok(Some(index));
        }
        if self.plan.asks_the_user() {
            Scope::set_index(None);
        }
        match self.plan.checked_index(position) {
            Ok(index) => {
                self.index = Some(index);
                Ok(Some(index))
            }
            Err(error) => {
                self.rest.start = self.rest.end;
                self.failed = Some(error.clone());
                Err(FetchError::Order(error))
            }
        }
    }

    /// The next index where several are drawn together.
    #[inline]
    fn draw(&mut self, position: usize) -> Option<usize> {
        let next = self.drawn.as_mut().and_then(Iterator::next);
        if next.is_some() || self.rest.len() + 1 < RUN {
            return next;
        }
        let mut drawn = self.plan.run(position)?.into_iter();
        let first = drawn.next();
        self.drawn = Some(drawn);
        first
    }

    /// The index being fetched, where items are fetched one by one.
    pub(crate) fn index(&self) -> Option<usize> {
        self.index
    }

    /// Whether a sampler of the user's own was asked for an index and has not returned one.
    pub(crate) fn is_choosing(&self) -> bool {
        self.current.is_some() && self.index.is_none()
    }

    /// Where in the batch the item being fetched stands; where items are fetched together, or
    /// none has been, the part's start.
    pub(crate) fn offset(&self, within: &Range<usize>) -> usize {
        self.current
            .map_or(within.start, |position| position - self.batch_start)
    }

    /// What the user's sampler did wrong.
    pub(crate) fn take_failed(&mut self) -> Option<OrderError> {
        self.failed.take()
    }

    /// The fetch has ended, and so has that of the last item.
    pub(crate) fn ended(&mut self) {
        if let Some(watch) = &mut self.watch {
            watch.lap(None);
        }
    }

    /// The indices that were asked for in one call.
    pub(crate) fn into_asked(self) -> Vec<usize> {
        self.asked
    }
}

impl Iterator for Part<'_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        let index = self.choose().ok()??;
        Scope::set_index(Some(index));
        if let Some(activity) = self.activity {
            activity.item(index);
        }
        if let Some(watch) = &mut self.watch {
            watch.lap(Some(index));
        }
        Some(index)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.rest.size_hint()
    }
}

impl ExactSizeIterator for Part<'_> {}
