//! What happens to a batch: a training step, or a wait that stands for one.

use std::time::{Duration, Instant};

use anyhow::ensure;
use burn::nn::loss::{CrossEntropyLoss, CrossEntropyLossConfig};
use burn::optim::decay::WeightDecayConfig;
use burn::optim::momentum::MomentumConfig;
use burn::optim::{GradientsParams, ModuleOptimizer, SgdConfig};
use burn::tensor::{Device, Int, Tensor};

use crate::batch::PictureBatch;
use crate::cli::Setup;
use crate::data::{CHANNELS, Pictures};
use crate::model::ResNet;
use crate::pause::pause;

/// What a contender does with each batch.
#[derive(Debug)]
pub(crate) enum Step {
    Train(Box<Trainer>),
    /// The training thread has the batch that long: what the loader sees of a fast device.
    Simulated(Duration),
}

/// A network under training: SGD with momentum 0.9 and weight decay 1e-4, as He et al. 2015.
pub(crate) struct Trainer {
    model: ResNet,
    optimizer: ModuleOptimizer,
    loss: CrossEntropyLoss,
    rate: f64,
}

/// What became of a batch.
#[derive(Debug)]
pub(crate) struct Done {
    /// Before the step; none where that is simulated.
    pub(crate) loss: Option<f32>,
    /// How long it took to make of the batch what the network takes: nothing, unless it is bytes.
    pub(crate) widened: Duration,
    /// How long the step took.
    pub(crate) stepped: Duration,
    /// How long it took to let go of the batch afterwards; nothing where the training itself
    /// consumes it.
    pub(crate) dropped: Duration,
}

impl Step {
    /// Does it with this batch, and looks at the clock.
    pub(crate) fn run(&mut self, batch: PictureBatch) -> anyhow::Result<Done> {
        let given = Instant::now();
        let batch = batch.normalised();
        let began = Instant::now();
        let widened = began.duration_since(given);
        match self {
            Self::Train(trainer) => {
                let loss = trainer.step(batch)?;
                Ok(Done {
                    loss: Some(loss),
                    widened,
                    stepped: began.elapsed(),
                    dropped: Duration::ZERO,
                })
            }
            Self::Simulated(wait) => {
                pause(*wait);
                let ended = Instant::now();
                drop(batch);
                Ok(Done {
                    loss: None,
                    widened,
                    stepped: ended.duration_since(began),
                    dropped: ended.elapsed(),
                })
            }
        }
    }
}

impl Trainer {
    /// A network drawn from the seed.
    ///
    /// Before that, one step of a twin on a blank batch brings everything that a training needs
    /// into memory, so that what comes on top of it is the loader's.
    pub(crate) fn new(setup: &Setup, pictures: &Pictures, device: &Device) -> Self {
        let classes = pictures.classes;
        // No batch has more than all pictures.
        let count = setup.batch_size.get().min(pictures.len().max(1));
        let images = Tensor::zeros([count, CHANNELS, pictures.side, pictures.side], device);
        let mut twin = Self::untrained(setup, classes, device);
        let (_, grads) = twin.backward(images, Tensor::zeros([count], device));
        twin.update(grads);
        drop(twin);
        Self::untrained(setup, classes, device)
    }

    fn untrained(setup: &Setup, classes: usize, device: &Device) -> Self {
        device.seed(setup.seed);
        Self {
            model: ResNet::new(setup.model, classes, device),
            optimizer: optimizer(),
            loss: CrossEntropyLossConfig::new().init(device),
            rate: setup.lr,
        }
    }

    /// One step of SGD; the loss is that before it.
    pub(crate) fn step(&mut self, batch: PictureBatch) -> anyhow::Result<f32> {
        let (images, targets) = batch.into_tensors();
        let (loss, grads) = self.backward(images, targets);
        ensure!(
            loss.is_finite(),
            "the loss is {loss}: the training has diverged, choose a lower --lr"
        );
        self.update(grads);
        Ok(loss)
    }

    fn update(&mut self, grads: GradientsParams) {
        self.model = self.optimizer.step(self.rate, self.model.clone(), grads);
    }

    fn backward(&self, images: Tensor<4>, targets: Tensor<1, Int>) -> (f32, GradientsParams) {
        let loss = self.loss.forward(self.model.forward(images), targets);
        let grads = GradientsParams::from_grads(loss.backward(), &self.model);
        (loss.into_scalar(), grads)
    }
}

impl std::fmt::Debug for Trainer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Trainer")
            .field("model", &self.model)
            .field("rate", &self.rate)
            .finish_non_exhaustive()
    }
}

/// SGD with momentum 0.9 and weight decay 1e-4.
pub(crate) fn optimizer() -> ModuleOptimizer {
    SgdConfig::new()
        .with_momentum(Some(
            MomentumConfig::new().with_momentum(0.9).with_dampening(0.0),
        ))
        .with_weight_decay(Some(WeightDecayConfig::new(1e-4)))
        .init()
}
