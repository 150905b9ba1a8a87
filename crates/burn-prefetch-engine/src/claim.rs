//! What passes between a desk and those who work for it.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use crossbeam_utils::CachePadded;

use crate::assembly::Finished;
use crate::cost::{Ahead, Parts};
use crate::ring::Delivery;
use crate::source::{Assembled, Outcome, Source};
use crate::standing::Standing;
use crate::sync::atomic::AtomicUsize;
use crate::ticket::Ticket;

/// How far a pass may run ahead, and how its batches are cut.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Batches alive.
    pub ahead: Ahead,
    /// The parts of a batch.
    pub parts: Parts,
}

/// How far a pass may run ahead, in which order it delivers, and where it begins.
#[derive(Clone, Debug)]
pub(crate) struct PassConfig {
    pub(crate) limits: Limits,
    pub(crate) delivery: Delivery,
    pub(crate) begins: Standing,
}

/// The pass whose last batches are being used while this one begins: the window is one.
#[derive(Debug)]
pub(crate) struct Before {
    /// How many batches its reader returns in all.
    pub(crate) batches: usize,
    /// How many its reader has returned.
    pub(crate) returned: Counted,
}

/// A count of batches that one thread writes and others read.
pub(crate) type Counted = Arc<CachePadded<AtomicUsize>>;

/// Permission to fetch one part of one batch.
pub(crate) struct Claim<P> {
    pub(crate) number: usize,
    pub(crate) which: Which,
    pub(crate) piece: P,
    /// The offsets within the batch.
    pub(crate) within: Range<usize>,
    /// Whether reading the clock is worth it, and for how many batches this one then stands.
    pub(crate) measured: Option<u32>,
    /// Whether that is so for each item.
    pub(crate) slow_items: bool,
    /// Whether there is work left that is worth waking another worker for.
    pub(crate) more: bool,
}

/// Which part of a batch was claimed.
pub(crate) enum Which {
    /// The only one, which need not be given back.
    Whole(Ticket),
    /// One of several.
    Nth(usize),
}

/// How long the steps of a batch took, where that was measured.
#[derive(Debug, Default)]
pub(crate) struct Took {
    /// Fetching so many items.
    pub(crate) fetch: Option<(usize, Duration)>,
    /// Assembling the batch, and uploading it where nobody else does.
    pub(crate) assembly: Option<Duration>,
    /// What of that was the upload.
    pub(crate) upload: Option<Duration>,
}

/// What giving a part back leads to.
pub(crate) enum Returned<P> {
    /// Other parts are still out.
    Waiting,
    /// The batch is complete: whoever gets this assembles it.
    Complete(Finished<P>, Ticket),
    /// Nobody wants the batch any more: whoever gets this drops it, outside the lock. With the ticket
    /// where it is the last of its batch.
    Unwanted(P, Option<Ticket>),
}

/// What is left of a batch that was lost: pieces and ticket are to be dropped outside the lock.
pub(crate) struct Lost<P> {
    pub(crate) pieces: Vec<P>,
    pub(crate) unwanted: Option<Ticket>,
    /// The ticket of the error that takes the batch's place; where nobody comes to that any more, or
    /// one is there already, none.
    pub(crate) error: Option<Ticket>,
}

/// What is left of a pass that ends, to be dropped outside the lock.
pub(crate) struct Leftover<S: Source> {
    pub(crate) pieces: Vec<S::Piece>,
    pub(crate) assembled: Vec<Assembled<S>>,
    pub(crate) finished: Vec<Outcome<S>>,
    pub(crate) tickets: Vec<Ticket>,
}
