//! What the loaders do, in burn-train's dashboard and in the journal.

use std::sync::Arc;

use burn::train::SupervisedTraining;
use burn_prefetch::{DataWaitMetric, LoaderMemoryMetric, PrefetchReadinessMetric};

use super::steps::Learning;
use crate::loader::Ours;

/// The training, watching both of its loaders.
pub(super) fn watched(
    training: SupervisedTraining<Learning>,
    [train, test]: [&Arc<Ours>; 2],
) -> SupervisedTraining<Learning> {
    training
        .metric_train_numeric(DataWaitMetric::new(train))
        .metric_train_numeric(PrefetchReadinessMetric::new(train))
        .metric_train_numeric(LoaderMemoryMetric::new(train))
        .metric_valid_numeric(DataWaitMetric::new(test))
        .metric_valid_numeric(PrefetchReadinessMetric::new(test))
        .metric_valid_numeric(LoaderMemoryMetric::new(test))
}

/// What the loader of one split did, by the last figures of its metrics.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Watched {
    /// Milliseconds a batch; none where nobody watches.
    wait: Option<f64>,
    /// Share of batches that were there, 0 to 100.
    ready: f64,
    /// MiB alive at most.
    memory: f64,
}

impl Watched {
    /// Keeps the value of a metric of this name, where it is one of these.
    pub(super) fn note(&mut self, name: &str, value: f64) {
        match name {
            "Data Wait" => self.wait = Some(value),
            "Prefetch Readiness" => self.ready = value,
            "Loader Memory" => self.memory = value,
            _ => {}
        }
    }

    /// The end of an epoch's line: of the training, then of the test.
    pub(super) fn words([train, test]: [Self; 2]) -> String {
        match (train.of_one(), test.of_one()) {
            (Some(train), Some(test)) => format!("; data: waited {train}; in the test {test}"),
            _ => String::new(),
        }
    }

    fn of_one(self) -> Option<String> {
        let Self { ready, memory, .. } = self;
        let wait = self.wait?;
        Some(format!(
            "{wait:.2} ms a batch, {ready:.0} % ready, {memory:.2} MiB at most"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_watches_is_not_spoken_of() {
        let mut watched = [Watched::default(); 2];
        assert_eq!(Watched::words(watched), "");
        for (name, value) in [
            ("Loss", 9.0),
            ("Data Wait", 0.125),
            ("Prefetch Readiness", 99.6),
            ("Loader Memory", 3.375),
        ] {
            for one in &mut watched {
                one.note(name, value);
            }
        }
        let one = "0.12 ms a batch, 100 % ready, 3.38 MiB at most";
        let both = format!("; data: waited {one}; in the test {one}");
        assert_eq!(Watched::words(watched), both);
    }
}
