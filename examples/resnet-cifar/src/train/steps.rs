//! The network as burn-train wants it: a step of training, a step of testing.

use burn::nn::loss::CrossEntropyLossConfig;
use burn::train::{ClassificationOutput, InferenceStep, TrainOutput, TrainStep};

use crate::batch::PictureBatch;
use crate::model::ResNet;

impl ResNet {
    fn classify(&self, batch: PictureBatch) -> ClassificationOutput {
        let (images, targets) = batch.into_tensors();
        let output = self.forward(images);
        let loss = CrossEntropyLossConfig::new().init(&output.device());
        ClassificationOutput {
            loss: loss.forward(output.clone(), targets.clone()),
            output,
            targets,
        }
    }
}

impl TrainStep for ResNet {
    type Input = PictureBatch;
    type Output = ClassificationOutput;

    fn step(&self, batch: PictureBatch) -> TrainOutput<ClassificationOutput> {
        let output = self.classify(batch);
        TrainOutput::new(self, output.loss.backward(), output)
    }
}

impl InferenceStep for ResNet {
    type Input = PictureBatch;
    type Output = ClassificationOutput;

    fn step(&self, batch: PictureBatch) -> ClassificationOutput {
        self.classify(batch)
    }
}
