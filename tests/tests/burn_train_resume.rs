//! Trainings through burn-train that go on: at an epoch's start by one line, in its middle by a state.

use std::path::Path;
use std::sync::Arc;

use burn::data::dataloader::DataLoader;
use burn::data::dataloader::batcher::Batcher;
use burn::lr_scheduler::{LrScheduler, LrSchedulerRecord};
use burn::module::{Module, Param};
use burn::optim::SgdConfig;
use burn::tensor::{Device, Tensor};
use burn::train::logger::InMemoryMetricLogger;
use burn::train::renderer::CliMetricsRenderer;
use burn::train::{
    ExecutionStrategy, InferenceStep, Learner, MultiDeviceOptim, RegressionOutput,
    SupervisedTraining, TrainOutput, TrainStep,
};
use burn_prefetch::{DataLoaderBuilder, LoaderState, PrefetchDataLoader, Weighted};
use burn_prefetch_tests::{Numbers, Tally, for_each_worker_count};

const ITEMS: usize = 20;
const EPOCHS: usize = 3;

/// The batches that were trained with, in order.
type Seen = Arc<Tally<Vec<Vec<usize>>>>;

struct Batch {
    items: Vec<usize>,
    target: Tensor<2>,
    seen: Option<Seen>,
}

/// Makes batches that say where they are seen.
#[derive(Clone)]
struct Told(Option<Seen>);

impl Batcher<usize, Batch> for Told {
    fn batch(&self, items: Vec<usize>, device: &Device) -> Batch {
        Batch {
            items,
            target: Tensor::ones([1, 2], device),
            seen: self.0.clone(),
        }
    }
}

#[derive(Module, Debug)]
struct Row {
    weight: Param<Tensor<2>>,
}

impl Row {
    fn regress(&self, batch: Batch) -> RegressionOutput {
        if let Some(seen) = &batch.seen {
            seen.update(|seen| seen.push(batch.items));
        }
        let output = self.weight.val();
        let loss = output
            .clone()
            .sub(batch.target.clone())
            .powi_scalar(2)
            .mean();
        RegressionOutput::new(loss, output, batch.target)
    }
}

impl TrainStep for Row {
    type Input = Batch;
    type Output = RegressionOutput;

    fn step(&self, batch: Batch) -> TrainOutput<RegressionOutput> {
        let output = self.regress(batch);
        TrainOutput::new(self, output.loss.backward(), output)
    }
}

impl InferenceStep for Row {
    type Input = Batch;
    type Output = RegressionOutput;

    fn step(&self, batch: Batch) -> RegressionOutput {
        self.regress(batch)
    }
}

#[derive(Clone)]
struct Steady;

impl LrScheduler for Steady {
    fn step(&mut self) -> f64 {
        0.1
    }

    fn to_record(&self) -> LrSchedulerRecord {
        LrSchedulerRecord::new()
    }

    fn load_record(&mut self, _record: LrSchedulerRecord) {}
}

fn builder(workers: usize, seen: &Seen) -> DataLoaderBuilder<usize, Batch> {
    DataLoaderBuilder::new(Told(Some(Arc::clone(seen))))
        .num_workers(workers)
        .batch_size(3)
}

fn built(builder: DataLoaderBuilder<usize, Batch>) -> Arc<PrefetchDataLoader<Batch>> {
    Arc::new(builder.try_build(Numbers(ITEMS)).expect("it is a loader"))
}

/// Trains up to so many epochs, after a checkpoint in the folder.
fn train(
    loader: Arc<dyn DataLoader<Batch>>,
    (folder, epochs, checkpoint): (&Path, usize, Option<usize>),
    strategy: ExecutionStrategy,
) {
    let device = Device::flex().autodiff();
    let row = Row {
        weight: Param::from_tensor(Tensor::zeros([1, 2], &device)),
    };
    let valid = DataLoaderBuilder::new(Told(None)).build(Numbers(2));
    let mut training = SupervisedTraining::new(folder, loader, valid)
        .num_epochs(epochs)
        .with_training_strategy(strategy.into())
        .with_default_checkpointers()
        .with_metric_logger(InMemoryMetricLogger::new())
        .renderer(Box::new(CliMetricsRenderer::new()))
        .with_application_logger(None);
    if let Some(checkpoint) = checkpoint {
        training = training.checkpoint(checkpoint);
    }
    let result = training.launch(Learner::new(row, SgdConfig::new().init(), Steady));
    assert!(result.error.is_none(), "{:?}", result.error);
}

fn single() -> ExecutionStrategy {
    ExecutionStrategy::single(Device::flex().autodiff())
}

fn uninterrupted(workers: usize) -> Vec<Vec<usize>> {
    let seen = Tally::new(Vec::new());
    let folder = tempfile::tempdir().expect("there is room");
    let loader = built(builder(workers, &seen).shuffle(5));
    train(loader, (folder.path(), EPOCHS, None), single());
    seen.now()
}

#[test]
fn start_epoch_with_the_number_of_the_checkpoint_is_all_it_takes() {
    for_each_worker_count(|workers| {
        let whole = uninterrupted(workers);
        for checkpoint in 1..EPOCHS {
            let seen = Tally::new(Vec::new());
            let folder = tempfile::tempdir().unwrap();
            let first = built(builder(workers, &seen).shuffle(5));
            train(first, (folder.path(), checkpoint, None), single());
            let second = built(builder(workers, &seen).shuffle(5).start_epoch(checkpoint));
            train(second, (folder.path(), EPOCHS, Some(checkpoint)), single());
            assert_eq!(seen.now(), whole, "after checkpoint {checkpoint}");
        }
    });
}

#[test]
fn a_restored_loader_goes_on_in_the_middle_of_its_epoch() {
    for_each_worker_count(|workers| {
        let whole = uninterrupted(workers);
        let batches = whole.len() / EPOCHS;
        // As if the training had been killed after 4 batches of its second epoch.
        let seen = Tally::new(Vec::new());
        let folder = tempfile::tempdir().unwrap();
        let first = built(builder(workers, &seen).shuffle(5));
        train(
            Arc::<PrefetchDataLoader<_>>::clone(&first) as _,
            (folder.path(), 1, None),
            single(),
        );
        let state = first.state();
        assert_eq!(
            (state.epoch(), state.batch()),
            (1, 0),
            "the copy that burn-train read"
        );
        let mut second = first.iter_epoch(1);
        second.by_ref().take(4).for_each(drop);
        let saved = serde_json::to_string(&second.state()).unwrap();
        let state: LoaderState = serde_json::from_str(&saved).unwrap();

        let rest = built(builder(workers, &seen).shuffle(5).restore(state));
        train(rest, (folder.path(), EPOCHS, Some(1)), single());
        let expected = [&whole[..batches], &whole[batches + 4..]].concat();
        assert_eq!(seen.now(), expected);
    });
}

#[test]
fn two_devices_share_out_what_a_sampler_draws() {
    for_each_worker_count(|workers| {
        let weights: Vec<f64> = (0_u8..).take(ITEMS).map(f64::from).collect();
        let sampler = || Weighted::new(&weights, 50, 3).unwrap();
        let seen = Tally::new(Vec::new());
        let folder = tempfile::tempdir().unwrap();
        let devices = vec![Device::flex().autodiff(), Device::flex().autodiff()];
        let strategy = ExecutionStrategy::multi(devices, MultiDeviceOptim::OptimMainDevice);
        let loader = built(builder(workers, &seen).sampler(sampler()));
        train(loader, (folder.path(), EPOCHS, None), strategy);
        let mut trained = seen.now().concat();
        let same = Tally::new(Vec::new());
        let whole = built(builder(0, &same).sampler(sampler()));
        let epochs = (0..EPOCHS).flat_map(|_| whole.iter_owned());
        let mut drawn: Vec<_> = epochs.flat_map(|batch| batch.unwrap().items).collect();
        trained.sort_unstable();
        drawn.sort_unstable();
        assert_eq!(trained, drawn);
    });
}
