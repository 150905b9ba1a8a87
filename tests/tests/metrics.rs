//! What burn-train logs of a loader is what the loader says of itself.

use std::sync::Arc;

use burn::data::dataloader::DataLoader;
use burn::data::dataloader::batcher::Batcher;
use burn::module::{Module, Param};
use burn::optim::SgdConfig;
use burn::tensor::{Device, Tensor};
use burn::train::logger::MetricLogger;
use burn::train::metric::store::{EpochSummary, MetricsUpdate, Split};
use burn::train::metric::{MetricDefinition, NumericEntry};
use burn::train::renderer::CliMetricsRenderer;
use burn::train::{
    ExecutionStrategy, InferenceStep, Learner, RegressionOutput, SupervisedTraining, TrainOutput,
    TrainStep,
};
use burn_prefetch::{
    DataLoaderBuilder, DataWaitMetric, LoaderMemoryMetric, PrefetchDataLoader,
    PrefetchReadinessMetric, Stats,
};
use burn_prefetch_tests::{Numbers, Tally, eventually, for_each_worker_count};

const EPOCHS: usize = 3;
/// Bytes of a batch, as far as the loader knows.
const BATCH: usize = 3 << 20;

#[derive(Clone)]
struct Ones;

impl Batcher<usize, Tensor<2>> for Ones {
    fn batch(&self, items: Vec<usize>, device: &Device) -> Tensor<2> {
        Tensor::ones([items.len(), 2], device)
    }
}

#[derive(Module, Debug)]
struct Row {
    weight: Param<Tensor<2>>,
}

impl Row {
    fn regress(&self, target: Tensor<2>) -> RegressionOutput {
        let output = self.weight.val().repeat_dim(0, target.dims()[0]);
        let loss = output.clone().sub(target.clone()).powi_scalar(2).mean();
        RegressionOutput::new(loss, output, target)
    }
}

impl TrainStep for Row {
    type Input = Tensor<2>;
    type Output = RegressionOutput;

    fn step(&self, batch: Tensor<2>) -> TrainOutput<RegressionOutput> {
        let output = self.regress(batch);
        TrainOutput::new(self, output.loss.backward(), output)
    }
}

impl InferenceStep for Row {
    type Input = Tensor<2>;
    type Output = RegressionOutput;

    fn step(&self, batch: Tensor<2>) -> RegressionOutput {
        self.regress(batch)
    }
}

/// A number that was logged: of which split and metric.
type Logged = (Split, String, NumericEntry);

/// Keeps every number.
struct Log {
    names: Vec<MetricDefinition>,
    numbers: Arc<Tally<Vec<Logged>>>,
}

impl MetricLogger for Log {
    fn log(&mut self, update: MetricsUpdate, _: usize, split: &Split) {
        for metric in update.entries_numeric {
            let id = &metric.entry.metric_id;
            let known = self.names.iter().find(|known| known.metric_id == *id);
            let name = known.expect("it was defined").name.to_string();
            if let Some(number) = metric.numeric_entry {
                self.numbers
                    .update(|numbers| numbers.push((split.clone(), name, number)));
            }
        }
    }

    fn read_numeric(&mut self, _: &str, _: usize, _: &Split) -> Result<Vec<NumericEntry>, String> {
        Ok(Vec::new())
    }

    fn log_metric_definition(&mut self, definition: MetricDefinition) {
        self.names.push(definition);
    }

    fn log_epoch_summary(&mut self, _: EpochSummary) {}
}

type Loader = Arc<PrefetchDataLoader<Tensor<2>>>;

fn loader(workers: usize, items: usize) -> Loader {
    let builder = DataLoaderBuilder::new(Ones)
        .num_workers(workers)
        .batch_size(4)
        .max_batch_bytes(BATCH as u64);
    Arc::new(builder.try_build(Numbers(items)).expect("it is a loader"))
}

/// Trains with the metrics of both loaders and gives what was logged.
fn train(train: &Loader, valid: &Loader) -> Vec<Logged> {
    let device = Device::flex().autodiff();
    let row = Row {
        weight: Param::from_tensor(Tensor::zeros([1, 2], &device)),
    };
    let numbers = Tally::new(Vec::new());
    let log = Log {
        names: Vec::new(),
        numbers: Arc::clone(&numbers),
    };
    let folder = tempfile::tempdir().expect("a folder for the run");
    let given = |loader: &Loader| -> Arc<dyn DataLoader<_>> { Loader::clone(loader) };
    let result = SupervisedTraining::new(folder.path(), given(train), given(valid))
        .metric_train_numeric(DataWaitMetric::new(train))
        .metric_train_numeric(PrefetchReadinessMetric::new(train))
        .metric_train_numeric(LoaderMemoryMetric::new(train))
        .metric_valid_numeric(DataWaitMetric::new(valid))
        .metric_valid_numeric(PrefetchReadinessMetric::new(valid))
        .metric_valid_numeric(LoaderMemoryMetric::new(valid))
        .num_epochs(EPOCHS)
        .with_training_strategy(ExecutionStrategy::single(device).into())
        .with_metric_logger(log)
        .renderer(Box::new(CliMetricsRenderer::new()))
        .with_application_logger(None)
        .launch(Learner::new(row, SgdConfig::new().init(), 0.1));
    assert!(result.error.is_none(), "{:?}", result.error);
    numbers.now()
}

/// What was logged under this name: the batches of the updates, their sum, and the epochs' figures.
fn sums(logged: &[Logged], split: &Split, name: &str) -> (usize, f64, Vec<f64>) {
    let (mut batches, mut sum, mut finals) = (0, 0.0, Vec::new());
    for (_, _, number) in logged
        .iter()
        .filter(|(of, named, _)| of == split && named == name)
    {
        match number {
            NumericEntry::Aggregated {
                aggregated_value,
                count,
            } => {
                batches += count;
                sum += aggregated_value * real(*count as u64);
            }
            NumericEntry::Final(value) => finals.push(*value),
            NumericEntry::Value(_) => {}
        }
    }
    (batches, sum, finals)
}

fn close(found: f64, expected: f64) {
    let apart = (found - expected).abs();
    assert!(apart <= 1e-6 * expected.abs(), "{found}, not {expected}");
}

fn real(count: u64) -> f64 {
    f64::from(u32::try_from(count).expect("these are few"))
}

/// The loader has done nothing but this training, of so many batches an epoch.
fn check(logged: &[Logged], split: &Split, (stats, epoch): (&Stats, usize)) {
    let waits = stats.waits;
    assert_eq!(waits.count, (EPOCHS * epoch) as u64);
    let each = real(epoch as u64);
    let of = |name| {
        let (batches, sum, finals) = sums(logged, split, name);
        assert_eq!(batches, EPOCHS * epoch, "{name}");
        assert_eq!(finals.len(), EPOCHS, "{name}");
        // What the epochs say and what the updates in them said is the same.
        close(finals.iter().map(|mean| mean * each).sum(), sum);
        sum
    };
    close(of("Data Wait"), 1e3 * waits.sum.as_secs_f64());
    close(of("Prefetch Readiness"), 100.0 * real(waits.ready));
    let (_, _, most) = sums(logged, split, "Loader Memory");
    assert_eq!(most.len(), EPOCHS);
    let most = most.into_iter().fold(0.0, f64::max);
    close(most, real(stats.bytes.most) / f64::from(1 << 20));
}

#[test]
fn what_is_logged_of_a_training_is_what_each_loader_says_of_itself() {
    for_each_worker_count(|workers| {
        let loaders = [loader(workers, 38), loader(workers, 10)];
        let [training, validation] = &loaders;
        let logged = train(training, validation);
        let splits = [(Split::Train, 10), (Split::Valid, 3)];
        for (loader, (split, epoch)) in loaders.iter().zip(splits) {
            let stats = loader.stats();
            // Neither figure is zero throughout: the first batch of a pass is never there.
            assert!(!stats.waits.sum.is_zero() && stats.bytes.most >= BATCH as u64);
            check(&logged, &split, (&stats, epoch));
        }
    });
}

#[test]
fn what_a_loader_did_before_is_not_the_trainings() {
    let loaders = [loader(2, 38), loader(2, 10)];
    let [training, validation] = &loaders;
    for _ in 0..2 {
        assert_eq!(training.iter_owned().count(), 10);
    }
    let before = training.stats().waits;
    let logged = train(training, validation);
    let (batches, sum, _) = sums(&logged, &Split::Train, "Data Wait");
    assert_eq!(batches, EPOCHS * 10);
    let after = training.stats().waits;
    let [before, after] = [before, after].map(|waits| 1e3 * waits.sum.as_secs_f64());
    close(sum, after - before);
}

#[test]
fn a_metric_keeps_its_loader_and_a_training_that_is_over_keeps_none() {
    let loaders = [loader(2, 8), loader(2, 8)];
    let [training, validation] = &loaders;
    train(training, validation);
    for loader in loaders {
        eventually("the training still has its loaders", || {
            Arc::strong_count(&loader) == 1
        });
        let metric = DataWaitMetric::new(&loader);
        let kept = Arc::downgrade(&loader);
        drop(loader);
        assert!(kept.upgrade().is_some());
        drop(metric);
        assert!(kept.upgrade().is_none());
    }
}
