//! Loaders whose batches are assembled in host memory and uploaded from there.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};

use burn_prefetch_engine::{
    BoxError, Cost, CostMemory, FetchError, Job, Part, Pieces, Pool, Reader, Source, Upcoming,
};

use crate::burn::Device;
use crate::config_error::ConfigError;
use crate::slots::StagingStats;
use crate::source::{Pass, PassSettings, Supply};
use crate::stage::{Stage, StageSettings, is_card};
use crate::weigh::Declared;

/// What is done for one batch on its way through host memory.
pub(crate) trait Work: Send + Sync + 'static {
    type Piece: Send + 'static;
    type Batch: Send + 'static;
    type Output: Send + 'static;

    /// What every sample takes in its batch, where that is the same for all; the user's code.
    fn row_bytes(&self) -> Option<u64> {
        None
    }
    fn open(&self, len: usize, parts: usize) -> Pieces<Self::Piece>;
    fn fetch(
        &self,
        piece: &mut Self::Piece,
        part: &mut Part<'_>,
        stage: &Stage,
    ) -> Result<(), FetchError>;
    fn assemble(&self, pieces: Pieces<Self::Piece>, stage: &Stage)
    -> Result<Self::Batch, BoxError>;
    /// The bytes of each slot of a batch.
    fn sizes(batch: &Self::Batch) -> Vec<usize>;
    /// What a batch weighs.
    fn size(batch: &Self::Batch) -> u64 {
        let sizes = Self::sizes(batch).into_iter();
        sizes.map(|bytes| bytes as u64).sum()
    }
    fn upload(&self, batch: Self::Batch, device: &Device) -> Result<Self::Output, BoxError>;
}

/// A loader's work for one device.
pub(crate) struct Staged<W> {
    work: Arc<W>,
    device: Device,
    settings: StageSettings,
    declared: Declared,
    costs: Arc<CostMemory>,
    /// Opened by the first pass: the device a loader is built for need not be the one it is used for.
    stage: OnceLock<Result<Stage, ConfigError>>,
}

impl<W: Work> Staged<W> {
    pub(crate) fn new(
        work: W,
        device: Device,
        (settings, mut declared): (StageSettings, Declared),
    ) -> Self {
        // What the user's code panics with it shows again where it can be returned.
        declared.row = catch_unwind(AssertUnwindSafe(|| work.row_bytes())).unwrap_or(None);
        Self {
            work: Arc::new(work),
            device,
            settings,
            declared,
            costs: Arc::default(),
            stage: OnceLock::new(),
        }
    }

    /// The way to the device, or why there is none.
    pub(crate) fn stage(&self) -> Result<&Stage, ConfigError> {
        let open = || Stage::to(&self.device, self.settings);
        self.stage.get_or_init(open).as_ref().map_err(Clone::clone)
    }
}

impl<W: Work> Supply<W::Output> for Arc<Staged<W>> {
    fn start(&self, pool: &Arc<Pool>, pass: PassSettings) -> Box<dyn Pass<W::Output>> {
        let PassSettings {
            plan,
            standing,
            seed,
            reader,
            account,
        } = pass;
        // Where there is no way to the device the first fetch says so.
        let uploader = self.stage().ok().and_then(Stage::uploader);
        let job = Job {
            source: Arc::clone(self),
            plan,
            seed,
            costs: Arc::clone(&self.costs),
            uploader,
            account,
        };
        Box::new(Reader::resume(Arc::clone(pool), job, reader, standing))
    }

    fn on(&self, device: Device) -> Arc<dyn Supply<W::Output>> {
        Arc::new(Arc::new(Staged {
            work: Arc::clone(&self.work),
            device,
            settings: self.settings,
            declared: self.declared.clone(),
            costs: Arc::clone(&self.costs),
            stage: OnceLock::new(),
        }))
    }

    fn staging(&self) -> Option<StagingStats> {
        let stage = self.stage.get()?;
        Some(stage.as_ref().ok()?.stats())
    }

    fn can_pin(&self) -> bool {
        is_card(&self.device)
    }

    fn settle(&self) {
        if let Some(Ok(stage)) = self.stage.get() {
            stage.settle();
        }
    }
}

impl<W: Work> Source for Staged<W> {
    type Piece = W::Piece;
    type Batch = W::Batch;
    type Output = W::Output;

    fn open(&self, len: usize, parts: usize) -> Pieces<W::Piece> {
        self.work.open(len, parts)
    }

    fn fetch(&self, piece: &mut W::Piece, part: &mut Part<'_>) -> Result<(), FetchError> {
        let stage = self.stage().map_err(write_error)?;
        self.work.fetch(piece, part, stage)
    }

    fn assemble(&self, pieces: Pieces<W::Piece>) -> Result<W::Batch, BoxError> {
        self.work.assemble(pieces, self.stage()?)
    }

    fn cost(&self, batch: &Upcoming<'_>) -> Cost {
        self.declared.cost(batch, true)
    }

    fn size(&self, batch: &W::Batch) -> Option<u64> {
        Some(W::size(batch))
    }

    fn upload(&self, batch: W::Batch) -> Result<W::Output, BoxError> {
        let stage = self.stage()?;
        let sizes = W::sizes(&batch);
        stage.upload(sizes.into_iter(), || {
            self.work.upload(batch, stage.device())
        })
    }
}

/// An error of whoever writes a sample into its row.
pub(crate) fn write_error(error: impl Into<BoxError>) -> FetchError {
    FetchError::Write(error.into())
}
