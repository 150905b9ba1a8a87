//! What a pass is made from, and the one place where its user's code is called.

use std::ops::Range;
use std::sync::Arc;

use crate::activity::Whereabouts;
use crate::assembly::{Failure, Finished};
use crate::context::{FetchContext, Scope};
use crate::cost::CostMemory;
use crate::error::{LoadError, Place, Stage};
use crate::order_error::OrderError;
use crate::plan::EpochPlan;
use crate::pool::Pool;
use crate::seed::Domain;
use crate::source::{Assembled, Made, Outcome, Part, Source, StopWatch};
use crate::spans;
use crate::staff::Hand;
use crate::ticket::{Account, Ticket};
use crate::unwind::{dispose, guard};

/// Who uploads a pass's batches, and how far ahead of its reader.
///
/// One thread for a device: its batches are uploaded one after the other, in one stream of work. The
/// pool may serve any number of passes.
#[derive(Clone, Debug)]
pub struct Uploader {
    /// The thread.
    pub pool: Arc<Pool>,
    /// How many batches may be uploaded and not yet returned; with 0 a batch is uploaded when
    /// `next()` asks for it.
    pub ahead: usize,
    /// How many bytes these may have together, but for the oldest batch, which may have any number.
    pub ahead_bytes: Option<u64>,
}

/// Whose data, in which order, under which seed.
#[derive(Debug)]
pub struct Job<S> {
    /// The user's side.
    pub source: Arc<S>,
    /// The epoch.
    pub plan: EpochPlan,
    /// The seed of the random numbers that user code draws.
    pub seed: u64,
    /// What the passes before this one have learned.
    pub costs: Arc<CostMemory>,
    /// Who uploads; `None`: whoever has assembled a batch.
    pub uploader: Option<Uploader>,
    /// Where its batches are counted.
    pub account: Account,
}

impl<S: Source> Job<S> {
    /// Tells passes apart.
    pub(crate) fn id(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// The same for the epoch after this one.
    pub(crate) fn following(&self) -> Self {
        Self {
            source: Arc::clone(&self.source),
            plan: self.plan.following(),
            seed: self.seed,
            costs: Arc::clone(&self.costs),
            uploader: self.uploader.clone(),
            account: self.account.clone(),
        }
    }

    /// Fetches one part, `within` the offsets of its batch, into its piece; takes the time of each
    /// item if these are `slow`.
    pub(crate) fn fetch(
        &self,
        (number, within, slow): (usize, &Range<usize>, bool),
        piece: &mut S::Piece,
        hand: &Hand<'_>,
    ) -> Option<Failure> {
        let batch = self.plan.batch(number);
        let worker = hand.worker;
        if batch.is_empty() {
            let at = self.place(Stage::Order, number, worker);
            let source = OrderError::EmptyBatch { batch: number };
            let error = Box::new(LoadError::Order { at, source });
            return Some(Failure { offset: 0, error });
        }
        if let Some(activity) = hand.activity {
            activity.fetching(self.whereabouts(number));
        }
        let watch = slow.then(|| StopWatch::new(&self.account.tally));
        let mut part = Part::new(&self.plan, &batch, within, (hand.activity, watch));
        let together = (Domain::FetchMany, batch.start + within.start);
        let scope = Scope::enter(self.context(number, worker), self.seed, together);
        let span = spans::fetch(self.plan.epoch(), number, within.len());
        let outcome = guard(|| self.source.fetch(piece, &mut part));
        drop((span, scope));
        part.ended();
        let failed = part.take_failed();
        if failed.is_none() && matches!(outcome, Ok(Ok(()))) {
            return None;
        }
        let offset = part.offset(within);
        let stage = if part.is_choosing() {
            Stage::Order
        } else {
            Stage::Fetch
        };
        let at = Place {
            index: part.index(),
            indices: part.into_asked(),
            ..self.place(stage, number, worker)
        };
        let error = match (failed, outcome) {
            (Some(source), _) => LoadError::Order { at, source },
            (None, Ok(Ok(()))) => return None,
            (None, Ok(Err(error))) => error.at(at),
            (None, Err(message)) => LoadError::Panic { at, message },
        };
        let error = Box::new(error);
        Some(Failure { offset, error })
    }

    /// Makes the epoch's order ready, unless that has been done: before what it takes is counted
    /// as the cost of items.
    pub(crate) fn prepare(&self, number: usize, hand: &Hand<'_>) {
        if self.plan.is_prepared() {
            return;
        }
        if let Some(activity) = hand.activity {
            activity.fetching(self.whereabouts(number));
        }
        self.plan.prepare();
    }

    /// Makes the batch of its pieces, unless a part of it has failed.
    pub(crate) fn assemble(
        &self,
        (finished, mut ticket): (Finished<S::Piece>, Ticket),
        hand: &Hand<'_>,
    ) -> Assembled<S> {
        let outcome = self.try_assemble(finished, hand);
        match &outcome {
            Ok((_, Some(size))) => ticket.learned(*size),
            Ok((_, None)) => {}
            Err(_) => ticket.weighed(0),
        }
        Made {
            outcome: outcome.map(|(batch, _)| batch),
            ticket,
        }
    }

    /// The batch and, where it was measured, its size.
    fn try_assemble(
        &self,
        finished: Finished<S::Piece>,
        hand: &Hand<'_>,
    ) -> Result<(S::Batch, Option<u64>), Box<LoadError>> {
        let Finished {
            number,
            pieces,
            failure,
        } = finished;
        if let Some(error) = failure {
            pieces.into_iter().for_each(dispose);
            return Err(error);
        }
        let worker = hand.worker;
        if let Some(activity) = hand.activity {
            activity.assembling(self.whereabouts(number));
        }
        let alone = (Domain::Assemble, number);
        let scope = Scope::enter(self.context(number, worker), self.seed, alone);
        let span = spans::assemble(self.plan.epoch(), number);
        let outcome = guard(|| {
            let batch = self.source.assemble(pieces)?;
            let size = self.source.size(&batch);
            Ok((batch, size))
        });
        drop((span, scope));
        match outcome {
            Ok(Ok(batch)) => Ok(batch),
            Ok(Err(source)) => {
                let at = self.place(Stage::Assemble, number, worker);
                Err(Box::new(LoadError::Assemble { at, source }))
            }
            Err(message) => {
                let at = self.place(Stage::Assemble, number, worker);
                Err(Box::new(LoadError::Panic { at, message }))
            }
        }
    }

    /// Makes what the reader returns of an assembled batch.
    pub(crate) fn upload(
        &self,
        number: usize,
        assembled: Assembled<S>,
        hand: &Hand<'_>,
    ) -> Outcome<S> {
        assembled.and_then(|batch| self.try_upload(number, batch, hand))
    }

    fn try_upload(
        &self,
        number: usize,
        batch: S::Batch,
        hand: &Hand<'_>,
    ) -> Result<S::Output, Box<LoadError>> {
        // The uploader has no number: there is one.
        let worker = hand.worker.filter(|_| self.uploader.is_none());
        if let Some(activity) = hand.activity {
            activity.uploading(self.whereabouts(number));
        }
        let alone = (Domain::Upload, number);
        let scope = Scope::enter(self.context(number, worker), self.seed, alone);
        let span = spans::upload(self.plan.epoch(), number);
        let outcome = guard(|| self.source.upload(batch));
        drop((span, scope));
        let at = |stage| self.place(stage, number, worker);
        match outcome {
            Ok(Ok(output)) => Ok(output),
            Ok(Err(source)) => Err(Box::new(LoadError::Upload {
                at: at(Stage::Upload),
                source,
            })),
            Err(message) => Err(Box::new(LoadError::Panic {
                at: at(Stage::Upload),
                message,
            })),
        }
    }

    /// Drops what is left of a batch that nobody takes.
    pub(crate) fn dispose<T>(
        &self,
        number: usize,
        values: impl IntoIterator<Item = T>,
        hand: &Hand<'_>,
    ) {
        if let Some(activity) = hand.activity {
            activity.assembling(self.whereabouts(number));
        }
        values.into_iter().for_each(dispose);
        hand.outside();
    }

    fn context(&self, number: usize, worker: Option<usize>) -> FetchContext {
        FetchContext {
            epoch: self.plan.epoch(),
            batch: number,
            padding: self.plan.padding(number),
            index: None,
            worker,
        }
    }

    fn whereabouts(&self, number: usize) -> Whereabouts {
        Whereabouts {
            pass: self.id(),
            epoch: self.plan.epoch(),
            batch: number,
        }
    }

    pub(crate) fn place(&self, stage: Stage, number: usize, worker: Option<usize>) -> Place {
        Place {
            stage,
            epoch: self.plan.epoch(),
            batch: number,
            index: None,
            indices: Vec::new(),
            worker,
        }
    }
}
