//! What a loader does for one batch: fetch items into pieces, join the pieces into a batch.

use std::ops::Range;

use crate::activity::Activity;
use crate::assembly::Pieces;
use crate::context::Scope;
use crate::error::{BoxError, FetchError, LoadError};
use crate::plan::EpochPlan;
use crate::sync::Moment;
use crate::tally::Tally;
use crate::ticket::{Cost, Ticket};

/// The user's side of a loader, in the two steps that workers run.
///
/// A batch's target is cut into *pieces*, one for each part, which are owned and so need no lock:
/// a `Vec` of items each, or disjoint rows of one buffer.
pub trait Source: Send + Sync + 'static {
    /// What one part writes into.
    type Piece: Send + 'static;
    /// What the loader yields.
    type Batch: Send + 'static;

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

    /// What a batch of `len` items will take, as far as that is known before it is made.
    ///
    /// Runs under the reader's lock: no user code, nothing that blocks.
    fn cost(&self, len: usize) -> Cost {
        let _ = len;
        Cost::Known(0)
    }

    /// How many bytes a batch has that was made; `None` where nobody measures, so that what it was
    /// expected to take stands. Runs as [`assemble`](Self::assemble) does.
    fn size(&self, batch: &Self::Batch) -> Option<u64> {
        let _ = batch;
        None
    }
}

/// A finished batch, or why there is none.
pub(crate) type Outcome<S> = Result<<S as Source>::Batch, LoadError>;

/// The same with what it holds of the budget, which is given back after it is gone.
pub(crate) struct Made<S: Source> {
    pub(crate) outcome: Outcome<S>,
    pub(crate) ticket: Ticket,
}

/// The positions that one part fetches, and which of them is being fetched.
///
/// As an iterator it yields dataset indices one by one, and sets the context of each.
#[derive(Debug)]
pub struct Part<'a> {
    plan: &'a EpochPlan,
    /// The position of the batch's first item.
    batch_start: usize,
    batch_len: usize,
    rest: Range<usize>,
    current: Option<usize>,
    asked: Vec<usize>,
    /// Where the worker writes what it does.
    activity: Option<&'a Activity>,
    watch: Option<StopWatch<'a>>,
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

impl<'a> Part<'a> {
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
            asked: Vec::new(),
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
    pub fn take_all(&mut self) -> Vec<usize> {
        let rest = std::mem::take(&mut self.rest);
        self.asked = rest.map(|position| self.plan.index(position)).collect();
        self.asked.clone()
    }

    /// The index being fetched, where items are fetched one by one.
    pub(crate) fn index(&self) -> Option<usize> {
        self.current.map(|position| self.plan.index(position))
    }

    /// Where in the batch the item being fetched stands; where items are fetched together, or
    /// none has been, the part's start.
    pub(crate) fn offset(&self, within: &Range<usize>) -> usize {
        self.current
            .map_or(within.start, |position| position - self.batch_start)
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
        let position = self.rest.next()?;
        let index = self.plan.index(position);
        self.current = Some(position);
        Scope::set_index(index);
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
