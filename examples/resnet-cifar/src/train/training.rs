//! One training: its loaders, what it shows and keeps, and how it ends.

use std::io::{self, Write as _};
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, anyhow, bail};
use burn::tensor::Device;
use burn::train::logger::FileMetricLogger;
use burn::train::metric::{AccuracyMetric, LearningRateMetric, LossMetric};
use burn::train::renderer::MetricsRenderer;
use burn::train::{ExecutionStrategy, Interrupter, Learner, LearningResult, SupervisedTraining};

use super::journal::{Before, DIVERGED, Journal, Printing};
use super::keep::Kept;
use super::midway::Saver;
use super::quiet::Quiet;
use super::schedule::Schedule;
use super::screen::Screen;
use super::steps::Learning;
use super::trouble::Trouble;
use super::{INTERRUPTED, epochs, watch};
use burn_prefetch::MemoryBudget;

use crate::cli::{TrainArgs, Workload};
use crate::data::{Pictures, Unreadable};
use crate::gauge::Gauge;
use crate::interrupt::{self, Interrupted};
use crate::loader::{Fed, Feed};
use crate::note;
use crate::step;

/// One training, from the first epoch that is missing to the last that is wanted.
pub(super) struct Training<'a> {
    pub(super) args: &'a TrainArgs,
    pub(super) device: Device,
    pub(super) kept: Option<Kept>,
    /// Of both loaders together.
    pub(super) budget: Option<MemoryBudget>,
    pub(super) printing: Printing,
    pub(super) interrupter: Interrupter,
    pub(super) trouble: Trouble,
}

impl Training<'_> {
    pub(super) fn run(
        self,
        model: Learning,
        [pictures, test]: [&Arc<Pictures>; 2],
    ) -> anyhow::Result<()> {
        let setup = &self.args.setup;
        let steps = pictures.len().div_ceil(setup.batch_size.get()) * self.args.epochs.get();
        let schedule = Schedule::new(setup.lr, steps);
        let (train_batches, saver) = self.training(pictures, &schedule)?;
        let test_batches = self
            .feed(
                test,
                &Gauge::new(setup.batch_size.get()),
                &self.device.clone().inner(),
            )
            .testing(&self.args.loader)?;
        let model = Learning { saver, ..model };
        let (title, name) = (setup.model.title(), &pictures.name);
        say(&format!("{title}; {name}; tested on {}", test.name))?;
        let learner = Learner::new(model, step::optimizer(), schedule);
        let journal = Journal::new(
            self.printing,
            pictures.classes,
            self.interrupter.clone(),
            self.before(),
        );
        let supervised = self.supervised([train_batches, test_batches], &journal)?;
        let result = supervised.launch(learner);
        let end = self.end(&result);
        // Closes the dashboard, if there is one.
        drop(result);
        for line in journal.close() {
            say(&line)?;
        }
        end
    }

    fn before(&self) -> Before {
        let Some(kept) = &self.kept else {
            return Before::default();
        };
        let batches = kept
            .midway
            .as_ref()
            .map_or(0, |midway| midway.state.batch());
        Before {
            epochs: epochs::past(&kept.folder, kept.epoch),
            images: batches * self.args.setup.batch_size.get(),
        }
    }

    /// The loader to train with, from where the training stands, and who keeps that.
    fn training(
        &self,
        pictures: &Arc<Pictures>,
        schedule: &Schedule,
    ) -> anyhow::Result<(Fed, Option<Saver>)> {
        let args = self.args;
        let gauge = Gauge::new(args.setup.batch_size.get());
        let feed = self.feed(pictures, &gauge, &self.device);
        let batches = feed.training(&args.loader)?;
        let (budget, batch) = (self.budget.as_ref(), feed.batch_bytes(&args.loader));
        if let Some(budget) = budget.map(MemoryBudget::limit).filter(|it| *it < batch) {
            note::of_budget(budget, batch);
        }
        let Some(loader) = &batches.ours else {
            return Ok((batches, None));
        };
        if let Some(midway) = self.kept.as_ref().and_then(|kept| kept.midway.as_ref()) {
            loader.restore(&midway.state).with_context(|| {
                let epoch = midway.state.epoch() + 1;
                format!("cannot go on in the middle of epoch {epoch}")
            })?;
        }
        let saver = |(kept, every): (&Kept, NonZeroUsize)| Saver {
            checkpoints: kept.checkpoints(),
            every,
            loader: Arc::clone(loader),
            schedule: schedule.clone(),
            trouble: self.trouble.clone(),
        };
        let saver = self.kept.as_ref().zip(args.save_every).map(saver);
        Ok((batches, saver))
    }

    fn feed<'a>(
        &'a self,
        pictures: &'a Arc<Pictures>,
        gauge: &'a Arc<Gauge>,
        device: &'a Device,
    ) -> Feed<'a> {
        Feed {
            setup: &self.args.setup,
            pictures,
            gauge,
            device,
            workload: Workload::Memory,
            epoch: self.kept.as_ref().map_or(0, |kept| kept.epoch),
            budget: self.budget.as_ref(),
        }
    }

    fn supervised(
        &self,
        [train, test]: [Fed; 2],
        journal: &Journal,
    ) -> anyhow::Result<SupervisedTraining<Learning>> {
        let folder = self.kept.as_ref().map(|kept| kept.folder.as_path());
        let strategy = ExecutionStrategy::SingleDevice(self.device.clone());
        let folder = folder.unwrap_or(Path::new(""));
        let mut training = SupervisedTraining::new(folder, train.loader, test.loader)
            .metrics((LossMetric::new(), AccuracyMetric::new()))
            .metric_train_numeric(LearningRateMetric::new())
            .num_epochs(self.args.epochs.get())
            .with_training_strategy(strategy.into())
            .with_interrupter(self.interrupter.clone())
            .with_application_logger(None)
            .with_progress_logger(journal.clone());
        // The loader for testing is ours in any case; beside Burn's it is nothing to compare.
        if let (Some(train), Some(test)) = (&train.ours, &test.ours) {
            training = watch::watched(training, [train, test]);
        }
        // The first that is asked for past values is the one that has them.
        if let Some(kept) = &self.kept {
            let [model, optimizer, scheduler] = kept.files(&self.trouble);
            training = training
                .with_metric_logger(FileMetricLogger::new(&kept.folder))
                .with_custom_checkpointers(model, optimizer, scheduler)
                .with_checkpointing_strategy(kept.retention());
        }
        training = training.with_metric_logger(journal.clone());
        if let Some(kept) = self.kept.as_ref().filter(|kept| kept.is_begun()) {
            training = training.checkpoint(kept.epoch);
        }
        let interrupter = self.interrupter.clone();
        interrupt::or_stop(move || interrupter.stop(Some(INTERRUPTED)))?;
        Ok(training.renderer(self.renderer()))
    }

    fn renderer(&self) -> Box<dyn MetricsRenderer> {
        match self.printing {
            Printing::AtOnce => Box::new(Quiet),
            Printing::AfterTheDashboard => {
                let begun = self.kept.as_ref().filter(|kept| kept.is_begun());
                let checkpoint = begun.map(|kept| kept.epoch);
                Box::new(Screen::new(self.interrupter.clone(), checkpoint))
            }
        }
    }

    /// Whether the training came to its end.
    fn end(&self, result: &LearningResult<Learning>) -> anyhow::Result<()> {
        if let Some(trouble) = self.trouble.take() {
            let afterwards = self.kept.as_ref().map_or("", Kept::afterwards);
            bail!("{trouble:#}; make room or see to the folder, then {afterwards}");
        }
        if let Some(error) = &result.error {
            return Err(match Unreadable::among(&**error) {
                Some(file) => anyhow!("{file}"),
                None => anyhow!("the training was stopped by an error: {error}"),
            });
        }
        let reason = result
            .interrupted
            .as_ref()
            .map(|stop| stop.reason.clone().unwrap_or_default());
        match reason.as_deref() {
            None => Ok(()),
            Some(DIVERGED) => bail!(DIVERGED),
            Some(_) => {
                let afterwards = match &self.kept {
                    Some(kept) => kept.afterwards(),
                    None => "nothing is kept without --out",
                };
                Err(Interrupted(format!("; {afterwards}")).into())
            }
        }
    }
}

/// A reader who has left ends no training: what is kept is kept.
fn say(line: &str) -> anyhow::Result<()> {
    match writeln!(io::stdout().lock(), "{line}") {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        said => said.context("cannot print"),
    }
}
