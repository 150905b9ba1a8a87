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

    /// What a batch of `len` items counts for in a limit on bytes.
    fn cost(&self, len: usize) -> u64 {
        let _ = len;
        0
    }
}

/// A finished batch, or why there is none.
pub(crate) type Outcome<S> = Result<<S as Source>::Batch, LoadError>;

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
}

impl<'a> Part<'a> {
    pub(crate) fn new(
        plan: &'a EpochPlan,
        batch: &Range<usize>,
        within: &Range<usize>,
        activity: Option<&'a Activity>,
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

    /// The indices that were asked for in one call.
    pub(crate) fn into_asked(self) -> Vec<usize> {
        self.asked
    }
}

impl Iterator for Part<'_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        let index = self.choose().ok()??;
        Scope::set_index(index);
        if let Some(activity) = self.activity {
            activity.item(index);
        }
        Some(index)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.rest.size_hint()
    }
}

impl ExactSizeIterator for Part<'_> {}
