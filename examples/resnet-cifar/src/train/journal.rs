//! What a training has to tell: a line for each epoch, and the best of them.

use std::collections::HashMap;
use std::io::{self, Write as _};
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use burn::train::Interrupter;
use burn::train::logger::{MetricLogger, TrainingProgressLogger};
use burn::train::metric::store::{EpochSummary, MetricsUpdate, Split};
use burn::train::metric::{MetricDefinition, MetricId, NumericEntry};
use indicatif::ProgressBar;

use super::epochs::{self, Epoch};
use super::watch::Watched;
use crate::meter;
use crate::progress;

/// What the training is stopped with when its loss is no number any more.
pub(super) const DIVERGED: &str =
    "the loss is no longer a number: the training has diverged, choose a lower --lr";

/// When lines are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Printing {
    /// As they come, with a bar between them.
    AtOnce,
    /// The dashboard has the screen until the end.
    AfterTheDashboard,
}

/// The journal; copies write into the same one. burn-train asks for one that hears of metrics and
/// one that hears of progress.
#[derive(Debug, Clone)]
pub(super) struct Journal(Arc<Mutex<Pages>>);

#[derive(Debug)]
struct Pages {
    printing: Printing,
    /// Share of right answers by guessing.
    chance: f64,
    interrupter: Stop,
    names: HashMap<MetricId, String>,
    train: Means,
    test: Means,
    /// Whether the split that runs is the training's.
    training: bool,
    /// How many of the split are done, and how many were before it was begun here.
    images: usize,
    skipped: usize,
    started: Instant,
    images_per_second: f64,
    bar: ProgressBar,
    /// Of the split that runs, as soon as there is one.
    loss: Option<f64>,
    before: Before,
    epochs: Vec<Epoch>,
    kept: Vec<String>,
}

/// Burn's handle knows no `Debug`.
struct Stop(Interrupter);

/// The last values of an epoch's metrics.
#[derive(Debug, Default, Clone, Copy)]
struct Means {
    loss: f64,
    /// 0 to 100.
    accuracy: f64,
    data: Watched,
}

/// What was done before this training goes on.
#[derive(Debug, Default)]
pub(super) struct Before {
    pub(super) epochs: Vec<Epoch>,
    /// Of the epoch that it goes on in the middle of.
    pub(super) images: usize,
}

impl Journal {
    pub(super) fn new(
        printing: Printing,
        classes: usize,
        interrupter: Interrupter,
        before: Before,
    ) -> Self {
        Self(Arc::new(Mutex::new(Pages {
            printing,
            chance: 100.0 / meter::to_f64(classes.max(1)),
            interrupter: Stop(interrupter),
            names: HashMap::new(),
            train: Means::default(),
            test: Means::default(),
            training: false,
            images: 0,
            skipped: 0,
            started: Instant::now(),
            images_per_second: 0.0,
            bar: ProgressBar::hidden(),
            loss: None,
            before,
            epochs: Vec::new(),
            kept: Vec::new(),
        })))
    }

    /// Lines that the dashboard was in the way of, and what all epochs come to.
    pub(super) fn close(&self) -> Vec<String> {
        let pages = self.pages();
        pages.bar.finish_and_clear();
        let mut lines = pages.kept.clone();
        lines.extend(epochs::summary([&pages.before.epochs, &pages.epochs]));
        lines
    }

    fn pages(&self) -> MutexGuard<'_, Pages> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pages {
    fn note(&mut self, split: &Split, name: &str, value: f64) {
        let means = match split {
            Split::Train => &mut self.train,
            Split::Valid | Split::Test(_) => &mut self.test,
        };
        match name {
            "Loss" => {
                means.loss = value;
                self.loss = Some(value);
            }
            "Accuracy" => means.accuracy = value,
            _ => means.data.note(name, value),
        }
        if name == "Loss" && !value.is_finite() {
            self.interrupter.0.stop(Some(DIVERGED));
        }
    }

    fn end_epoch(&mut self, number: usize) {
        let Self {
            train,
            test,
            images_per_second,
            chance,
            ..
        } = self;
        let line = format!(
            "epoch {number}: loss {:.3}, {images_per_second:.0} images/s, test accuracy {:.2} % \
             (chance: {chance:.0} %){}",
            train.loss,
            test.accuracy,
            Watched::words([train.data, test.data])
        );
        self.epochs.push(Epoch {
            number,
            accuracy: test.accuracy,
        });
        match self.printing {
            Printing::AfterTheDashboard => self.kept.push(line),
            // A reader who has left does not end the training; the last line will tell.
            Printing::AtOnce => self.bar.suspend(|| {
                let _ = writeln!(io::stdout().lock(), "{line}");
            }),
        }
    }

    fn start(&mut self, split: &str, images: usize) {
        self.training = split == "train";
        // Only the first split is one that was begun before.
        self.skipped = mem::take(&mut self.before.images);
        self.images = self.skipped;
        self.loss = None;
        self.started = Instant::now();
        if self.printing == Printing::AtOnce {
            let what = if self.training { "training" } else { "testing" };
            self.bar.finish_and_clear();
            self.bar = progress::bar(what, images as u64);
        }
    }
}

impl MetricLogger for Journal {
    fn log(&mut self, update: MetricsUpdate, _: usize, split: &Split) {
        let mut pages = self.pages();
        for metric in update.entries_numeric {
            let name = pages.names.get(&metric.entry.metric_id).cloned();
            if let (Some(name), Some(entry)) = (name, metric.numeric_entry) {
                pages.note(split, &name, entry.current());
            }
        }
    }

    fn read_numeric(&mut self, _: &str, _: usize, _: &Split) -> Result<Vec<NumericEntry>, String> {
        Err("the journal keeps the last values only".to_owned())
    }

    fn log_metric_definition(&mut self, definition: MetricDefinition) {
        let name = definition.name.to_string();
        self.pages().names.insert(definition.metric_id, name);
    }

    fn log_epoch_summary(&mut self, summary: EpochSummary) {
        if summary.split == Split::Valid {
            self.pages().end_epoch(summary.epoch_number);
        }
    }
}

impl TrainingProgressLogger for Journal {
    fn start(&mut self, _: usize, _: usize, _: Option<usize>, _: Option<&str>) {}

    fn update_epoch(&mut self, _: usize) {}

    fn start_split(&mut self, split: &str, images: usize) {
        self.pages().start(split, images);
    }

    fn update_split(&mut self, images: usize) {
        let mut pages = self.pages();
        pages.images = images;
        pages.bar.set_position(images as u64);
        if let Some(loss) = pages.loss {
            pages.bar.set_message(format!("loss {loss:.3}"));
        }
    }

    fn end_split(&mut self) {
        let mut pages = self.pages();
        let done = pages.images.saturating_sub(pages.skipped);
        let rate = meter::rate(done, pages.started.elapsed());
        // The test's pictures come without augmentation or gradients: their rate is another one.
        if pages.training {
            pages.images_per_second = rate;
        }
    }

    fn end(&mut self) {}

    fn log_event_training(&mut self, _: String) {}
}

impl std::fmt::Debug for Stop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Stop").field(&self.0.should_stop()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_rate_of_an_epoch_that_is_gone_on_with_is_that_of_its_rest() {
        let before = Before {
            epochs: Vec::new(),
            images: 152,
        };
        let interrupter = Interrupter::new();
        let mut journal = Journal::new(Printing::AfterTheDashboard, 10, interrupter, before);
        let mut done = |images: usize| {
            journal.start_split("train", 160);
            journal.pages().started -= Duration::from_secs(1);
            journal.update_split(images);
            journal.end_split();
            journal.pages().images_per_second
        };
        assert!((7.0..=8.0).contains(&done(160)));
        assert!((150.0..=160.0).contains(&done(160)));
    }
}
