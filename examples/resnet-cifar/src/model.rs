//! The residual networks for CIFAR of He et al. 2015, section 4.2: 6n + 2 layers.
//!
//! Shortcuts are the paper's option A: where the size halves, the input is subsampled and the new
//! channels are zero, so a shortcut has no parameters.

use burn::module::{Initializer, Module};
use burn::nn::conv::{Conv2d, Conv2dConfig};
use burn::nn::{BatchNorm, BatchNormConfig, Linear, LinearConfig, PaddingConfig2d};
use burn::tensor::activation::relu;
use burn::tensor::{Device, Tensor, s};

use crate::cli::Architecture;
use crate::data::CHANNELS;

/// Channels of the three stages; the size of the picture halves from one to the next.
const WIDTHS: [usize; 3] = [16, 32, 64];

#[derive(Module, Debug)]
pub(crate) struct ResNet {
    stem: ConvNorm,
    blocks: Vec<Block>,
    head: Linear,
}

/// Two 3×3 convolutions beside a shortcut.
#[derive(Module, Debug)]
struct Block {
    first: ConvNorm,
    second: ConvNorm,
}

/// A 3×3 convolution without bias and its batch norm.
#[derive(Module, Debug)]
struct ConvNorm {
    conv: Conv2d,
    norm: BatchNorm,
}

impl ResNet {
    pub(crate) fn new(architecture: Architecture, classes: usize, device: &Device) -> Self {
        let mut blocks = Vec::new();
        let mut channels = WIDTHS[0];
        for width in WIDTHS {
            for _ in 0..architecture.blocks_per_stage() {
                blocks.push(Block {
                    first: ConvNorm::new(channels, width, device),
                    second: ConvNorm::new(width, width, device),
                });
                channels = width;
            }
        }
        Self {
            stem: ConvNorm::new(CHANNELS, WIDTHS[0], device),
            blocks,
            head: LinearConfig::new(channels, classes)
                .with_initializer(he_normal())
                .init(device),
        }
    }

    /// Pictures `[batch, 3, 32, 32]` to logits `[batch, classes]`.
    pub(crate) fn forward(&self, images: Tensor<4>) -> Tensor<2> {
        let mut x = relu(self.stem.forward(images));
        for block in &self.blocks {
            x = block.forward(x);
        }
        let pooled = x.mean_dims(&[2, 3]).flatten::<2>(1, 3);
        self.head.forward(pooled)
    }
}

impl Block {
    fn forward(&self, x: Tensor<4>) -> Tensor<4> {
        let inner = relu(self.first.forward(x.clone()));
        relu(self.second.forward(inner) + shortcut(x, self.second.channels()))
    }
}

impl ConvNorm {
    /// The size halves exactly where the channels grow past the stem's.
    fn new(from: usize, to: usize, device: &Device) -> Self {
        let stride = if from != to && from != CHANNELS { 2 } else { 1 };
        let conv = Conv2dConfig::new([from, to], [3, 3])
            .with_stride([stride, stride])
            .with_padding(PaddingConfig2d::Explicit(1, 1, 1, 1))
            .with_bias(false)
            .with_initializer(he_normal());
        Self {
            conv: conv.init(device),
            norm: BatchNormConfig::new(to).init(device),
        }
    }

    fn channels(&self) -> usize {
        self.norm.gamma.dims()[0]
    }

    fn forward(&self, x: Tensor<4>) -> Tensor<4> {
        self.norm.forward(self.conv.forward(x))
    }
}

/// Option A: the input itself, or every second pixel of it and zeros for the new channels.
fn shortcut(x: Tensor<4>, channels: usize) -> Tensor<4> {
    let [batch, from, ..] = x.dims();
    if from == channels {
        return x;
    }
    let x = x.slice(s![.., .., ..;2, ..;2]);
    let [.., height, width] = x.dims();
    let zeros = Tensor::zeros([batch, channels - from, height, width], &x.device());
    Tensor::cat(vec![x, zeros], 1)
}

/// He et al. 2015 (the other one, "Delving deep into rectifiers"): deviation `√(2 / fan in)`.
fn he_normal() -> Initializer {
    Initializer::KaimingNormal {
        gain: f64::sqrt(2.0),
        fan_out_only: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_networks_have_the_papers_number_of_parameters() {
        let device = Device::flex();
        let count = |architecture| ResNet::new(architecture, 10, &device).num_params();
        // The paper says 0.27 million for 20 layers; by hand: 432 + 13,824 + 50,688 + 202,752 in
        // convolutions, 1,376 in batch norms, 650 in the last layer. Burn counts the 1,376 running
        // means and variances as well.
        assert_eq!(count(Architecture::Resnet20), 269_722 + 1_376);
        assert_eq!(count(Architecture::Resnet8), 75_290 + 480);
    }

    #[test]
    fn the_shortcut_keeps_every_second_pixel_and_adds_zero_channels() {
        let device = Device::flex();
        let x = Tensor::<4>::from_floats([[[[1.0, 2.0], [3.0, 4.0]]]], &device).repeat_dim(1, 2);
        let out = shortcut(x, 4);
        assert_eq!(out.dims(), [1, 4, 1, 1]);
        assert_eq!(
            out.to_data().as_slice::<f32>().unwrap(),
            [1.0, 1.0, 0.0, 0.0]
        );
    }

    #[test]
    fn pictures_become_one_row_of_logits_each() {
        let device = Device::flex();
        let logits = ResNet::new(Architecture::Resnet8, 7, &device)
            .forward(Tensor::zeros([2, 3, 32, 32], &device));
        assert_eq!(logits.dims(), [2, 7]);
    }
}
