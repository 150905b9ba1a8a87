//! burn-train's dashboard, as far as it would leave the user without an answer.

use std::error::Error;

use burn::train::logger::{EvaluationProgressLogger, TrainingProgressLogger};
use burn::train::metric::MetricDefinition;
use burn::train::renderer::tui::TuiMetricsRendererWrapper as Dashboard;
use burn::train::renderer::{
    EvaluationName, MetricState, MetricsRenderer, MetricsRendererEvaluation,
    MetricsRendererTraining,
};
use burn::train::{Interrupter, LearnerSummary};

use super::INTERRUPTED;
use crate::{interrupt, quiet, terminal};

/// The dashboard resets its handle when the training ends, and panics to end the process; so it has
/// a handle of its own, and its panics end here.
pub(super) struct Screen {
    /// None only while it is dropped.
    dashboard: Option<Dashboard>,
    /// What `q` then `s` stops.
    asked: Interrupter,
    training: Interrupter,
}

impl Screen {
    pub(super) fn new(training: Interrupter, checkpoint: Option<usize>) -> Self {
        let asked = Interrupter::new();
        terminal::is_taken();
        Self {
            dashboard: Some(Dashboard::new(asked.clone(), checkpoint)),
            asked,
            training,
        }
    }

    fn show<T>(&mut self, update: impl FnOnce(&mut Dashboard) -> T) -> Option<T> {
        terminal::let_ctrl_c_through();
        if self.asked.should_stop() {
            self.training.stop(Some(INTERRUPTED));
        }
        let dashboard = self.dashboard.as_mut()?;
        Some(unless_killed(|| update(dashboard)))
    }
}

/// `q` then `k` ends the process at once, and the dashboard does so by a panic.
fn unless_killed<T>(update: impl FnOnce() -> T) -> T {
    quiet::catch(update).unwrap_or_else(|_| interrupt::leave())
}

impl Drop for Screen {
    fn drop(&mut self) {
        let dashboard = self.dashboard.take();
        unless_killed(|| drop(dashboard));
        terminal::is_free();
    }
}

impl MetricsRendererTraining for Screen {
    fn update_train(&mut self, state: MetricState) {
        self.show(|dashboard| dashboard.update_train(state));
    }

    fn update_valid(&mut self, state: MetricState) {
        self.show(|dashboard| dashboard.update_valid(state));
    }

    fn on_train_end(&mut self, summary: Option<LearnerSummary>) -> Result<(), Box<dyn Error>> {
        self.show(|dashboard| dashboard.on_train_end(summary))
            .unwrap_or(Ok(()))
    }
}

impl MetricsRendererEvaluation for Screen {
    fn update_test(&mut self, name: EvaluationName, state: MetricState) {
        self.show(|dashboard| dashboard.update_test(name, state));
    }
}

impl MetricsRenderer for Screen {
    fn manual_close(&mut self) {
        self.show(MetricsRenderer::manual_close);
    }

    fn register_metric(&mut self, definition: MetricDefinition) {
        self.show(|dashboard| dashboard.register_metric(definition));
    }
}

impl TrainingProgressLogger for Screen {
    fn start(
        &mut self,
        epochs: usize,
        first_epoch: usize,
        items: Option<usize>,
        label: Option<&str>,
    ) {
        self.show(|dashboard| dashboard.start(epochs, first_epoch, items, label));
    }

    fn update_epoch(&mut self, epoch: usize) {
        self.show(|dashboard| dashboard.update_epoch(epoch));
    }

    fn start_split(&mut self, split: &str, items: usize) {
        self.show(|dashboard| dashboard.start_split(split, items));
    }

    fn update_split(&mut self, items: usize) {
        self.show(|dashboard| dashboard.update_split(items));
    }

    fn end_split(&mut self) {
        self.show(TrainingProgressLogger::end_split);
    }

    fn end(&mut self) {
        self.show(TrainingProgressLogger::end);
    }

    fn log_event_training(&mut self, event: String) {
        self.show(|dashboard| dashboard.log_event_training(event));
    }
}

impl EvaluationProgressLogger for Screen {
    fn start_global_progress(&mut self, tests: usize) {
        self.show(|dashboard| dashboard.start_global_progress(tests));
    }

    fn start_test(&mut self, name: &str, items: usize) {
        self.show(|dashboard| dashboard.start_test(name, items));
    }

    fn update_test_progress(&mut self, items: usize) {
        self.show(|dashboard| dashboard.update_test_progress(items));
    }

    fn end_test(&mut self) {
        self.show(EvaluationProgressLogger::end_test);
    }

    fn end_global_progress(&mut self) {
        self.show(EvaluationProgressLogger::end_global_progress);
    }

    fn log_event_evaluation(&mut self, event: String) {
        self.show(|dashboard| dashboard.log_event_evaluation(event));
    }
}
