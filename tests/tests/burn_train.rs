//! What burn-train expects of a loader, and whole trainings with it.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;

use burn::data::dataloader::batcher::Batcher;
use burn::data::dataloader::split::split_dataloader;
use burn::data::dataloader::{DataLoader, Progress};
use burn::data::dataset::Dataset;
use burn::lr_scheduler::{LrScheduler, LrSchedulerRecord};
use burn::module::{Module, Param};
use burn::optim::SgdConfig;
use burn::tensor::{Device, Tensor};
use burn::train::logger::InMemoryMetricLogger;
use burn::train::renderer::CliMetricsRenderer;
use burn::train::{
    ExecutionStrategy, InferenceStep, Learner, LearningResult, MultiDeviceOptim, RegressionOutput,
    SupervisedTraining, TrainOutput, TrainStep, TrainingError,
};
use burn_prefetch::{DataLoaderBuilder, LoadError};
use burn_prefetch_tests::{
    Broken, Fault, Numbers, Placed, Tally, Unreadable, flat, for_each_case, for_each_worker_count,
    loader, pass,
};

fn steps(loader: &dyn DataLoader<Vec<usize>>) -> Vec<Progress> {
    let mut iterator = loader.iter();
    let mut seen = vec![iterator.progress()];
    while let Some(batch) = iterator.next() {
        batch.expect("every batch loads");
        seen.push(iterator.progress());
    }
    assert!(iterator.next().is_none());
    let after = iterator.progress().items_processed;
    assert_eq!(Some(after), seen.last().map(|step| step.items_processed));
    seen
}

fn processed(steps: &[Progress]) -> Vec<usize> {
    steps.iter().map(|step| step.items_processed).collect()
}

#[test]
fn progress_counts_items_and_is_complete_on_the_last_batch_only() {
    let cases = [(false, vec![0, 3, 6, 9, 10]), (true, vec![0, 3, 6, 9])];
    for_each_case(cases, |workers, (drop_last, expected)| {
        let builder = loader(workers).batch_size(3).drop_last(drop_last);
        let loader = builder.build(Numbers(10));
        let total = *expected.last().unwrap();
        assert_eq!(loader.num_items(), total);
        for _ in 0..2 {
            let steps = steps(loader.as_ref());
            assert_eq!(processed(&steps), expected);
            for (step, progress) in steps.iter().enumerate() {
                assert_eq!(progress.items_total, total);
                assert_eq!(progress.is_completed(), step + 1 == expected.len());
            }
        }
    });
}

#[test]
fn the_progress_of_a_slice_is_its_own() {
    for_each_worker_count(|workers| {
        let loader = loader(workers)
            .batch_size(4)
            .shuffle(1)
            .build(Numbers(20))
            .slice(3, 9);
        let steps = steps(loader.to_device(&Device::flex()).as_ref());
        assert_eq!(processed(&steps), [0, 4, 6]);
        assert!(steps.iter().all(|step| step.items_total == 6));
    });
}

#[test]
fn splitting_over_devices_shares_the_items_out() {
    let cases = [(11, [5, 6]), (10, [5, 5]), (1, [0, 1])];
    for_each_case(cases, |workers, (len, sizes)| {
        let devices = [Device::flex(), Device::flex().autodiff()];
        let builder = DataLoaderBuilder::new(Placed)
            .num_workers(workers)
            .batch_size(5);
        let shards = split_dataloader(builder.shuffle(2).build(Numbers(len)), &devices);
        let mut all = [Vec::new(), Vec::new()];
        // All of them live together, and one that is over is asked again.
        let mut iterators: Vec<_> = shards.iter().map(|shard| shard.iter()).collect();
        for turn in 0..8 {
            let shard = turn % 2;
            let Some(batch) = iterators[shard].next() else {
                continue;
            };
            let (items, device) = batch.unwrap();
            assert_eq!(device.is_autodiff(), devices[shard].is_autodiff());
            all[shard].extend(items);
        }
        assert_eq!(all.each_ref().map(Vec::len), sizes);
        let mut all = all.concat();
        all.sort_unstable();
        assert_eq!(all, (0..len).collect::<Vec<_>>());
    });
}

/// How often each item was in a step.
type Steps = Arc<Tally<BTreeMap<usize, usize>>>;

struct Batch {
    items: Vec<usize>,
    target: Tensor<2>,
    trained: Steps,
    validated: Steps,
}

#[derive(Clone)]
struct Targets {
    trained: Steps,
    validated: Steps,
}

impl Targets {
    fn new() -> Self {
        Self {
            trained: Tally::new(BTreeMap::new()),
            validated: Tally::new(BTreeMap::new()),
        }
    }
}

impl Batcher<usize, Batch> for Targets {
    fn batch(&self, items: Vec<usize>, device: &Device) -> Batch {
        let target = Tensor::ones([1, 2], device);
        let (trained, validated) = (Arc::clone(&self.trained), Arc::clone(&self.validated));
        Batch {
            items,
            target,
            trained,
            validated,
        }
    }
}

fn note(steps: &Steps, items: &[usize]) {
    steps.update(|steps| {
        for &item in items {
            *steps.entry(item).or_default() += 1;
        }
    });
}

/// One row of weights that is drawn to the target.
#[derive(Module, Debug)]
struct Row {
    weight: Param<Tensor<2>>,
}

impl Row {
    fn new(device: &Device) -> Self {
        Self {
            weight: Param::from_tensor(Tensor::zeros([1, 2], device)),
        }
    }

    fn regress(&self, target: Tensor<2>) -> RegressionOutput {
        let output = self.weight.val();
        let loss = output.clone().sub(target.clone()).powi_scalar(2).mean();
        RegressionOutput::new(loss, output, target)
    }
}

impl TrainStep for Row {
    type Input = Batch;
    type Output = RegressionOutput;

    fn step(&self, batch: Batch) -> TrainOutput<RegressionOutput> {
        note(&batch.trained, &batch.items);
        let output = self.regress(batch.target);
        TrainOutput::new(self, output.loss.backward(), output)
    }
}

impl InferenceStep for Row {
    type Input = Batch;
    type Output = RegressionOutput;

    fn step(&self, batch: Batch) -> RegressionOutput {
        note(&batch.validated, &batch.items);
        self.regress(batch.target)
    }
}

/// Counts the steps of the optimiser: the rate is asked for once before each.
#[derive(Clone)]
struct Rate(Arc<Tally<usize>>);

impl LrScheduler for Rate {
    fn step(&mut self) -> f64 {
        self.0.update(|steps| *steps += 1);
        0.1
    }

    fn to_record(&self) -> LrSchedulerRecord {
        LrSchedulerRecord::new()
    }

    fn load_record(&mut self, _record: LrSchedulerRecord) {}
}

struct Run {
    result: LearningResult<Row>,
    optimiser_steps: usize,
}

const EPOCHS: usize = 3;

fn train(
    loaders: [Arc<dyn DataLoader<Batch>>; 2],
    accumulation: usize,
    strategy: ExecutionStrategy,
) -> Run {
    let device = Device::flex().autodiff();
    let steps = Tally::new(0);
    let learner = Learner::new(
        Row::new(&device),
        SgdConfig::new().init(),
        Rate(Arc::clone(&steps)),
    );
    let folder = tempfile::tempdir().expect("a folder for the run");
    let [train, valid] = loaders;
    let result = SupervisedTraining::new(folder.path(), train, valid)
        .num_epochs(EPOCHS)
        .grads_accumulation(accumulation)
        .with_training_strategy(strategy.into())
        .with_metric_logger(InMemoryMetricLogger::new())
        .renderer(Box::new(CliMetricsRenderer::new()))
        .with_application_logger(None)
        .launch(learner);
    Run {
        result,
        optimiser_steps: steps.now(),
    }
}

fn single() -> ExecutionStrategy {
    ExecutionStrategy::single(Device::flex().autodiff())
}

/// A training and a validation loader over these data, and where their steps are noted.
fn loaders<E: Error + Send + Sync + 'static>(
    workers: usize,
    data: impl Dataset<usize, E> + 'static,
) -> (Targets, [Arc<dyn DataLoader<Batch>>; 2]) {
    let targets = Targets::new();
    let builder = || {
        DataLoaderBuilder::new(targets.clone())
            .num_workers(workers)
            .batch_size(3)
    };
    let train = builder().shuffle(5).build(data);
    let valid = builder().build(Numbers(7));
    (targets, [train, valid])
}

fn each(items: usize, times: usize) -> BTreeMap<usize, usize> {
    (0..items).map(|item| (item, times)).collect()
}

#[test]
fn a_training_sees_every_item_in_every_epoch_and_accumulates_all_gradients() {
    for_each_worker_count(|workers| {
        // Of four batches two windows of three, or two of two, the last one partial or not.
        for (len, accumulation, steps) in [(10, 3, 2), (10, 2, 2), (9, 2, 2), (10, 1, 4)] {
            let (seen, loaders) = loaders(workers, Numbers(len));
            let run = train(loaders, accumulation, single());
            assert!(run.result.error.is_none(), "{:?}", run.result.error);
            assert!(run.result.interrupted.is_none());
            assert_eq!(seen.trained.now(), each(len, EPOCHS));
            assert_eq!(seen.validated.now(), each(7, EPOCHS));
            assert_eq!(
                run.optimiser_steps,
                EPOCHS * steps,
                "{len} items, {accumulation} a step"
            );
            let weights = run
                .result
                .model
                .weight
                .val()
                .into_data()
                .try_to_vec::<f32>()
                .unwrap();
            assert!(
                weights.iter().all(|&weight| weight > 0.0),
                "nothing was learned: {weights:?}"
            );
        }
    });
}

#[test]
fn under_drop_last_the_last_window_is_not_lost() {
    for_each_worker_count(|workers| {
        let targets = Targets::new();
        let builder = || {
            DataLoaderBuilder::new(targets.clone())
                .num_workers(workers)
                .batch_size(3)
        };
        let train_loader = builder().drop_last(true).build(Numbers(10));
        let run = train([train_loader, builder().build(Numbers(4))], 2, single());
        assert!(run.result.error.is_none(), "{:?}", run.result.error);
        assert_eq!(targets.trained.now(), each(9, EPOCHS));
        // Three batches an epoch: one window of two and one of one.
        assert_eq!(run.optimiser_steps, EPOCHS * 2);
    });
}

#[test]
fn a_training_on_two_devices_sees_every_item() {
    for_each_worker_count(|workers| {
        let devices = vec![Device::flex().autodiff(), Device::flex().autodiff()];
        let (seen, loaders) = loaders(workers, Numbers(23));
        let strategy = ExecutionStrategy::multi(devices, MultiDeviceOptim::OptimMainDevice);
        let run = train(loaders, 1, strategy);
        assert!(run.result.error.is_none(), "{:?}", run.result.error);
        assert_eq!(seen.trained.now(), each(23, EPOCHS));
        assert_eq!(seen.validated.now(), each(7, EPOCHS));
    });
}

#[test]
fn a_training_stops_at_an_error_and_says_which_item() {
    for_each_worker_count(|workers| {
        let data = Broken {
            len: 10,
            at: 4,
            fault: Fault::Error,
        };
        let (seen, loaders) = loaders(workers, data);
        let run = train(loaders, 1, single());
        let error = run.result.error.expect("the training fails");
        let TrainingError::Dataset(error) = &*error else {
            panic!("{error}")
        };
        let Some(LoadError::Dataset { at, source }) = LoadError::of(error) else {
            panic!("{error:?}");
        };
        assert_eq!((at.epoch, at.index), (0, Some(4)));
        assert_eq!(source.downcast_ref(), Some(&Unreadable { index: 4 }));
        assert!(!seen.trained.now().contains_key(&4));
        assert!(
            seen.validated.now().is_empty(),
            "a failed epoch is not validated"
        );
    });
}

#[test]
fn the_loader_that_is_given_away_is_never_read_itself() {
    for_each_worker_count(|workers| {
        let (_, loaders) = loaders(workers, Numbers(12));
        let kept = Arc::clone(&loaders[0]);
        let run = train(loaders, 1, single());
        assert!(run.result.error.is_none(), "{:?}", run.result.error);
        // Training reads a copy, whose epochs are its own: the kept one still has its first.
        let order = |loader: &dyn DataLoader<Batch>| -> Vec<_> {
            pass(loader).into_iter().map(|batch| batch.items).collect()
        };
        let fresh = loader(0).batch_size(3).shuffle(5).build(Numbers(12));
        let first = pass(fresh.as_ref());
        assert_eq!(flat(&order(kept.as_ref())), flat(&first));
    });
}
