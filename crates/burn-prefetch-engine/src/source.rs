//! What a loader does for one batch: fetch items into pieces, join the pieces into a batch.

use std::ops::Range;

use crate::activity::Activity;
use crate::assembly::Pieces;
use crate::context::Scope;
use crate::error::{BoxError, FetchError, LoadError};
use crate::plan::EpochPlan;

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

    /// What a batch of `len` items counts for in a limit on bytes.
    fn cost(&self, len: usize) -> u64 {
        let _ = len;
        0
    }
}

/// An assembled batch, or why there is none.
pub(crate) type Assembled<S> = Result<<S as Source>::Batch, LoadError>;

/// A finished batch, or why there is none.
pub(crate) type Outcome<S> = Result<<S as Source>::Output, LoadError>;

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
            asked: Vec::new(),
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
        Some(index)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.rest.size_hint()
    }
}

impl ExactSizeIterator for Part<'_> {}
