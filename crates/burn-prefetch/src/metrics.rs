//! A loader's figures as burn-train's metrics.

use std::fmt;
use std::sync::Arc;

use crate::burn::{
    Metric, MetricAttributes, MetricMetadata, MetricName, Numeric, NumericAttributes, NumericEntry,
    SerializedEntry, TensorReadError,
};
use crate::figures::{Bytes, Figure, Mean, Source};
use crate::loader::PrefetchDataLoader;

/// How long `next()` waited, in milliseconds a batch: the mean over the batches since the last
/// update, and over the epoch.
///
/// 0 where every batch was there when it was asked for. Batches that are read while no training runs
/// count with those of the next update. burn-train updates its metrics on a thread of its own, so that
/// a batch may be in the figure of its step or of the step before; over an epoch, none is missing.
///
/// Each metric is of one loader: give the training's to `metric_train_numeric` and the validation's
/// to `metric_valid_numeric`. A metric keeps its loader, and with it the workers, until it is dropped,
/// which a training does at its end.
///
/// ```
/// # use burn::data::dataloader::batcher::Batcher;
/// # use burn::data::dataset::{Dataset, DatasetError};
/// # use burn::tensor::Device;
/// # #[derive(Clone)]
/// # struct Squares;
/// # impl Batcher<usize, Vec<usize>> for Squares {
/// #     fn batch(&self, items: Vec<usize>, _: &Device) -> Vec<usize> { items }
/// # }
/// # impl Dataset<usize> for Squares {
/// #     fn get(&self, index: usize) -> Result<usize, DatasetError> { Ok(index * index) }
/// #     fn len(&self) -> usize { 10 }
/// # }
/// use std::sync::Arc;
///
/// use burn_prefetch::{DataLoaderBuilder, DataWaitMetric, PrefetchReadinessMetric};
///
/// let builder = DataLoaderBuilder::new(Squares).batch_size(5).num_workers(2);
/// let loader = Arc::new(builder.try_build(Squares)?);
/// let wait = DataWaitMetric::new(&loader);
/// let ready = PrefetchReadinessMetric::new(&loader);
/// // SupervisedTraining::new(folder, loader, valid)
/// //     .metric_train_numeric(wait)
/// //     .metric_train_numeric(ready)
/// # use burn::train::metric::Metric;
/// # assert_ne!(wait.name(), ready.name());
/// # Ok::<(), burn_prefetch::ConfigError>(())
/// ```
#[derive(Clone)]
pub struct DataWaitMetric(Mean);

/// Bytes of batches alive, in MiB: now at each update, and for an epoch the most so far.
///
/// They are known where sizes are declared or measured, with
/// [`max_batch_bytes`](crate::DataLoaderBuilder::max_batch_bytes),
/// [`sample_bytes`](crate::DataLoaderBuilder::sample_bytes),
/// [`batch_bytes`](crate::DataLoaderBuilder::batch_bytes) or
/// [`item_bytes`](crate::DataLoaderBuilder::item_bytes) (of items only), and for staged batches; else the
/// figure is 0.
/// The most is since the loader was built: it never falls from one epoch to the next. For which loader
/// and how long: see [`DataWaitMetric`].
#[derive(Clone)]
pub struct LoaderMemoryMetric(Bytes);

/// How often `next()` found a batch, in percent: of the batches since the last update, and of the
/// epoch's.
///
/// For which loader, which batches and how long: see [`DataWaitMetric`].
#[derive(Clone)]
pub struct PrefetchReadinessMetric(Mean);

impl DataWaitMetric {
    /// Of what the loader does from now on, and its copies for devices, its slices and iterators.
    #[must_use]
    pub fn new<O: Send + 'static>(loader: &Arc<PrefetchDataLoader<O>>) -> Self {
        Self::of(Source::of(loader))
    }

    fn of(source: Source) -> Self {
        Self(Mean::new(source, "ms", |waits| {
            1e3 * waits.sum.as_secs_f64()
        }))
    }
}

impl LoaderMemoryMetric {
    /// Of the loader's batches, and those of its copies for devices, its slices and iterators.
    #[must_use]
    pub fn new<O: Send + 'static>(loader: &Arc<PrefetchDataLoader<O>>) -> Self {
        Self(Bytes::new(Source::of(loader)))
    }
}

impl PrefetchReadinessMetric {
    /// Of what the loader does from now on, and its copies for devices, its slices and iterators.
    #[must_use]
    pub fn new<O: Send + 'static>(loader: &Arc<PrefetchDataLoader<O>>) -> Self {
        Self::of(Source::of(loader))
    }

    #[expect(clippy::cast_precision_loss, reason = "a share needs no 53 bits")]
    fn of(source: Source) -> Self {
        Self(Mean::new(source, "%", |waits| 100.0 * waits.ready as f64))
    }
}

/// What burn-train asks of a metric, from the figure that it shows.
macro_rules! shows {
    ($metric:ident, $name:literal, $unit:literal, $higher_is_better:literal, $description:literal) => {
        impl Metric for $metric {
            type Input = ();

            fn name(&self) -> MetricName {
                Arc::new($name.to_owned())
            }

            fn description(&self) -> Option<String> {
                Some($description.to_owned())
            }

            fn attributes(&self) -> MetricAttributes {
                let unit = Some($unit.to_owned());
                let higher_is_better = $higher_is_better;
                MetricAttributes::Numeric(NumericAttributes {
                    unit,
                    higher_is_better,
                })
            }

            fn update(
                &mut self,
                (): &(),
                _: &MetricMetadata,
            ) -> Result<SerializedEntry, TensorReadError> {
                self.0.look();
                Ok(entry(&self.0, self.value()))
            }

            fn compute(&mut self) -> Result<SerializedEntry, TensorReadError> {
                self.0.look();
                Ok(entry(&self.0, Some(self.final_value())))
            }

            fn clear(&mut self) {
                self.0.clear();
            }
        }

        impl Numeric for $metric {
            fn value(&self) -> Option<NumericEntry> {
                self.0.last()
            }

            fn running_value(&self) -> Option<NumericEntry> {
                Some(self.0.epoch()).filter(|entry| !entry.current().is_nan())
            }

            fn final_value(&self) -> NumericEntry {
                NumericEntry::Final(self.0.epoch().current())
            }
        }

        impl fmt::Debug for $metric {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_tuple(stringify!($metric))
                    .field(&self.0.words())
                    .finish()
            }
        }
    };
}

shows!(
    DataWaitMetric,
    "Data Wait",
    "ms",
    false,
    "How long next() waited for a batch"
);
shows!(
    LoaderMemoryMetric,
    "Loader Memory",
    "MiB",
    false,
    "Bytes of the batches alive"
);
shows!(
    PrefetchReadinessMetric,
    "Prefetch Readiness",
    "%",
    true,
    "How often next() found a batch"
);

/// In words, and as burn-train's loggers keep it.
fn entry(figure: &impl Figure, value: Option<NumericEntry>) -> SerializedEntry {
    let kept = value.map(|value| value.serialize());
    let kept = kept.unwrap_or_else(|| SerializedEntry::NOT_AVAILABLE.to_owned());
    SerializedEntry::new(figure.words(), kept)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::time::Duration;

    use burn_prefetch_engine::Stats;

    use crate::burn::Progress;

    use super::*;

    /// A loader that has done what it is told.
    #[derive(Clone, Default)]
    struct Told(Arc<Mutex<Stats>>);

    impl Told {
        fn source(&self) -> Source {
            let stats = Arc::clone(&self.0);
            Source(Arc::new(move || stats.lock().unwrap().clone()))
        }

        fn batches(&self, count: u64, ready: u64, waited_ms: u64) {
            let waits = &mut self.0.lock().unwrap().waits;
            waits.count += count;
            waits.ready += ready;
            waits.sum += Duration::from_millis(waited_ms);
        }

        fn bytes(&self, now: u64) {
            let bytes = &mut self.0.lock().unwrap().bytes;
            bytes.now = now << 20;
            bytes.most = bytes.most.max(bytes.now);
        }
    }

    fn update(metric: &mut (impl Metric<Input = ()> + Numeric)) -> Option<f64> {
        let metadata = MetricMetadata {
            progress: Progress::new(1, 1, None),
            iteration: None,
            lr: None,
        };
        let entry = metric.update(&(), &metadata).unwrap();
        let value = metric.value();
        let kept = NumericEntry::deserialize(&entry.serialized).ok();
        assert_eq!(
            kept.map(|kept| kept.serialize()),
            value.as_ref().map(NumericEntry::serialize)
        );
        value.map(|value| value.current())
    }

    fn finish(metric: &mut (impl Metric<Input = ()> + Numeric)) -> f64 {
        let entry = metric.compute().unwrap();
        let last = metric.final_value();
        assert_eq!(entry.serialized, last.serialize());
        metric.clear();
        last.current()
    }

    fn close(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-9, "{found}, not {expected}");
    }

    #[test]
    fn a_wait_is_that_of_the_batches_since_the_last_update_and_the_last_is_the_epochs_mean() {
        let told = Told::default();
        // Before there was a metric.
        told.batches(7, 0, 900);
        let mut wait = DataWaitMetric::of(told.source());
        told.batches(1, 0, 6);
        close(update(&mut wait).unwrap(), 6.0);
        assert_eq!(update(&mut wait), None);
        told.batches(2, 1, 6);
        close(update(&mut wait).unwrap(), 3.0);
        close(finish(&mut wait), 4.0);
        // What comes after the last update of an epoch is the next epoch's.
        told.batches(4, 0, 8);
        close(finish(&mut wait), 2.0);
    }

    #[test]
    fn readiness_is_a_share_of_batches_in_percent() {
        let told = Told::default();
        let mut ready = PrefetchReadinessMetric::of(told.source());
        told.batches(1, 0, 1);
        close(update(&mut ready).unwrap(), 0.0);
        told.batches(3, 3, 0);
        close(update(&mut ready).unwrap(), 100.0);
        assert_eq!(ready.0.words(), "epoch 75.00 % - batch 100.00 %");
        close(finish(&mut ready), 75.0);
    }

    #[test]
    fn memory_is_what_is_alive_and_for_an_epoch_the_most_so_far_even_between_updates() {
        let told = Told::default();
        let mut memory = LoaderMemoryMetric(Bytes::new(told.source()));
        told.bytes(8);
        told.bytes(2);
        close(update(&mut memory).unwrap(), 2.0);
        close(finish(&mut memory), 8.0);
        told.bytes(3);
        close(update(&mut memory).unwrap(), 3.0);
        assert_eq!(memory.0.words(), "most 8.00 MiB - now 3.00 MiB");
        close(finish(&mut memory), 8.0);
        told.bytes(9);
        told.bytes(0);
        close(finish(&mut memory), 9.0);
    }

    #[test]
    fn each_metric_has_a_name_of_its_own() {
        let source = Told::default().source();
        let names = [
            DataWaitMetric::of(source.clone()).name(),
            PrefetchReadinessMetric::of(source.clone()).name(),
            LoaderMemoryMetric(Bytes::new(source)).name(),
        ];
        assert_eq!(
            names.map(|name| name.to_string()),
            ["Data Wait", "Prefetch Readiness", "Loader Memory"]
        );
    }
}
