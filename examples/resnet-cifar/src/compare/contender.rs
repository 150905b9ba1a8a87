//! One that takes part in a comparison: a loader with its settings, without those that are idle.

use std::ffi::OsString;

use crate::cli::{LoaderArgs, StagingArgs, Value};
use crate::run;

/// A loader with its settings.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Contender {
    /// Unique within a comparison.
    pub(super) name: String,
    workers: u16,
    loader: LoaderArgs,
}

impl Contender {
    pub(super) fn new(workers: u16, loader: LoaderArgs) -> Self {
        Self {
            name: run::name(&loader),
            workers,
            loader,
        }
    }

    pub(super) fn to_args(&self) -> Vec<OsString> {
        let mut args = self.loader.to_args();
        args.extend(["--workers".into(), self.workers.to_string().into()]);
        args
    }

    pub(super) fn with(&self, value: Value) -> Self {
        let mut changed = self.clone();
        let loader = &mut changed.loader;
        match value {
            Value::Workers(workers) => changed.workers = workers,
            Value::Prefetch(batches) => loader.prefetch = Some(batches),
            Value::PrefetchFactor(batches) => loader.prefetch_factor = Some(batches),
            Value::Budget(size) => loader.memory_budget = Some(size),
            Value::Staging(staging) => loader.staging = StagingArgs::plain(staging),
        }
        changed
    }

    /// The same without settings that have no effect, and why they have none.
    pub(super) fn effective(mut self) -> (Self, Option<Idle>) {
        let loader = &mut self.loader;
        let bounds = (loader.prefetch_factor, loader.prefetch);
        let bounded = bounds != (None, None) || loader.memory_budget.is_some();
        let mut idle = None;
        if self.workers == 0 && bounded {
            idle = Some(Idle::Inline);
            (loader.prefetch_factor, loader.prefetch) = (None, None);
            loader.memory_budget = None;
        } else if let (Some(factor), Some(total)) = bounds {
            let by_factor = factor.saturating_mul(usize::from(self.workers)).max(1);
            idle = Some(Idle::Laxer);
            if total < by_factor {
                loader.prefetch_factor = None;
            } else {
                loader.prefetch = None;
            }
        }
        self.name = run::name(&self.loader);
        (self, idle)
    }

    pub(super) fn named_with_workers(self) -> Self {
        let workers = match self.workers {
            1 => "1 worker".to_owned(),
            workers => format!("{workers} workers"),
        };
        Self {
            name: format!("{}, {workers}", self.name),
            ..self
        }
    }
}

/// Why settings have no effect.
#[derive(Debug, Clone, Copy)]
pub(super) enum Idle {
    Inline,
    Laxer,
}

impl Idle {
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Inline => {
                "with 0 workers a batch is made when next() asks for it; bounds on prefetch and bytes \
                 have no effect there and are left out"
            }
            Self::Laxer => {
                "of a prefetch and a prefetch factor the stricter holds; the other has no effect and is \
                 left out"
            }
        }
    }
}
