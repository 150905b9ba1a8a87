//! The network as burn-train wants it: a step of training, a step of testing.

use burn::module::Module;
use burn::nn::loss::CrossEntropyLossConfig;
use burn::optim::lr_scheduler::module_lr_scheduler::ModuleLearningRate;
use burn::optim::{GradientsParams, ModuleOptimizer};
use burn::train::{ClassificationOutput, InferenceStep, TrainOutput, TrainStep};

use super::midway::Saver;
use crate::batch::PictureBatch;
use crate::model::ResNet;

/// A network under training, and who keeps it as it learns.
#[derive(Module, Debug)]
pub(super) struct Learning {
    pub(super) net: ResNet,
    #[module(skip)]
    pub(super) saver: Option<Saver>,
}

impl Learning {
    fn classify(&self, batch: PictureBatch) -> ClassificationOutput {
        let (images, targets) = batch.into_tensors();
        let output = self.net.forward(images);
        let loss = CrossEntropyLossConfig::new().init(&output.device());
        ClassificationOutput {
            loss: loss.forward(output.clone(), targets.clone()),
            output,
            targets,
        }
    }
}

impl TrainStep for Learning {
    type Input = PictureBatch;
    type Output = ClassificationOutput;

    fn step(&self, batch: PictureBatch) -> TrainOutput<ClassificationOutput> {
        let output = self.classify(batch);
        TrainOutput::new(self, output.loss.backward(), output)
    }

    fn optimize(
        self,
        optimizer: &mut ModuleOptimizer,
        rate: ModuleLearningRate,
        grads: GradientsParams,
    ) -> Self {
        let stepped = optimizer.step(rate, self, grads);
        if let Some(saver) = &stepped.saver {
            saver.after_step(&stepped, optimizer);
        }
        stepped
    }
}

impl InferenceStep for Learning {
    type Input = PictureBatch;
    type Output = ClassificationOutput;

    fn step(&self, batch: PictureBatch) -> ClassificationOutput {
        self.classify(batch)
    }
}
