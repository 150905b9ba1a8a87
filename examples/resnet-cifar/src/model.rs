//! The residual networks of He et al. 2015: those for CIFAR with 6n + 2 layers (section 4.2), and
//! the one with 18 layers for photographs (table 1).
//!
//! For CIFAR, shortcuts are the paper's option A: where the size halves, the input is subsampled
//! and the new channels are zero, so a shortcut has no parameters. For photographs they are option
//! B: a 1×1 convolution.

use burn::module::{Initializer, Module};
use burn::nn::conv::{Conv2d, Conv2dConfig};
use burn::nn::pool::{MaxPool2d, MaxPool2dConfig};
use burn::nn::{BatchNorm, BatchNormConfig, Linear, LinearConfig, PaddingConfig2d};
use burn::tensor::activation::relu;
use burn::tensor::{Device, Tensor, s};

use crate::cli::Architecture;
use crate::data::CHANNELS;

#[derive(Module, Debug)]
pub(crate) struct ResNet {
    stem: ConvNorm,
    pool: Option<MaxPool2d>,
    blocks: Vec<Block>,
    head: Linear,
}

/// Two 3×3 convolutions beside a shortcut.
#[derive(Module, Debug)]
struct Block {
    first: ConvNorm,
    second: ConvNorm,
    /// Option B; none where the input fits, or under option A.
    projection: Option<ConvNorm>,
}

/// A convolution without bias and its batch norm.
#[derive(Module, Debug)]
struct ConvNorm {
    conv: Conv2d,
    norm: BatchNorm,
}

/// What sets one network apart from another.
#[derive(Debug, Clone, Copy)]
struct Plan {
    /// Channels of the stages; the size of the picture halves from one to the next.
    widths: &'static [usize],
    blocks_per_stage: usize,
    /// A stem that brings a photograph down to a quarter, and projections.
    photographs: bool,
}

/// A convolution's shape.
#[derive(Debug, Clone, Copy)]
struct Shape {
    from: usize,
    to: usize,
    kernel: usize,
    stride: usize,
}

impl Plan {
    fn of(architecture: Architecture) -> Self {
        let small = |blocks_per_stage| Self {
            widths: &[16, 32, 64],
            blocks_per_stage,
            photographs: false,
        };
        match architecture {
            Architecture::Resnet8 => small(1),
            Architecture::Resnet20 => small(3),
            Architecture::Resnet56 => small(9),
            Architecture::Resnet18 => Self {
                widths: &[64, 128, 256, 512],
                blocks_per_stage: 2,
                photographs: true,
            },
        }
    }

    fn stem(self) -> Shape {
        let (kernel, stride) = if self.photographs { (7, 2) } else { (3, 1) };
        Shape {
            from: CHANNELS,
            to: self.widths[0],
            kernel,
            stride,
        }
    }

    fn blocks(self, device: &Device) -> Vec<Block> {
        let mut from = self.widths[0];
        let mut blocks = Vec::new();
        for &to in self.widths {
            for _ in 0..self.blocks_per_stage {
                blocks.push(self.block([from, to], device));
                from = to;
            }
        }
        blocks
    }

    /// The size halves exactly where the channels grow.
    fn block(self, [from, to]: [usize; 2], device: &Device) -> Block {
        let first = Shape {
            from,
            to,
            kernel: 3,
            stride: if from == to { 1 } else { 2 },
        };
        let second = Shape {
            from: to,
            stride: 1,
            ..first
        };
        let projection = Shape { kernel: 1, ..first };
        let projected = self.photographs && from != to;
        Block {
            first: first.init(device),
            second: second.init(device),
            projection: projected.then(|| projection.init(device)),
        }
    }
}

impl Shape {
    fn init(self, device: &Device) -> ConvNorm {
        let pad = self.kernel / 2;
        let conv = Conv2dConfig::new([self.from, self.to], [self.kernel; 2])
            .with_stride([self.stride; 2])
            .with_padding(PaddingConfig2d::Explicit(pad, pad, pad, pad))
            .with_bias(false)
            .with_initializer(he_normal());
        ConvNorm {
            conv: conv.init(device),
            norm: BatchNormConfig::new(self.to).init(device),
        }
    }
}

impl ResNet {
    pub(crate) fn new(architecture: Architecture, classes: usize, device: &Device) -> Self {
        let plan = Plan::of(architecture);
        let pool = MaxPool2dConfig::new([3, 3])
            .with_strides([2, 2])
            .with_padding(PaddingConfig2d::Explicit(1, 1, 1, 1));
        let features = plan.widths.last().copied().unwrap_or_default();
        Self {
            stem: plan.stem().init(device),
            pool: plan.photographs.then(|| pool.init()),
            blocks: plan.blocks(device),
            head: LinearConfig::new(features, classes)
                .with_initializer(he_normal())
                .init(device),
        }
    }

    /// Pictures `[batch, 3, side, side]` to logits `[batch, classes]`.
    pub(crate) fn forward(&self, images: Tensor<4>) -> Tensor<2> {
        let mut x = relu(self.stem.forward(images));
        if let Some(pool) = &self.pool {
            x = pool.forward(x);
        }
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
        let beside = match &self.projection {
            Some(projection) => projection.forward(x),
            None => shortcut(x, self.second.channels()),
        };
        relu(self.second.forward(inner) + beside)
    }
}

impl ConvNorm {
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
        let count =
            |architecture, classes| ResNet::new(architecture, classes, &device).num_params();
        // The paper says 0.27 and 0.85 million for 20 and 56 layers; by hand, for 20: 432 + 13,824 +
        // 50,688 + 202,752 in convolutions, 1,376 in batch norms, 650 in the last layer. Burn counts
        // the running means and variances as well, as many as there are in batch norms.
        assert_eq!(count(Architecture::Resnet8, 10), 75_290 + 480);
        assert_eq!(count(Architecture::Resnet20, 10), 269_722 + 1_376);
        assert_eq!(count(Architecture::Resnet56, 10), 853_018 + 4_064);
        // The number that is known for 1,000 classes.
        assert_eq!(count(Architecture::Resnet18, 1_000), 11_689_512 + 9_600);
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
        for (architecture, side) in [(Architecture::Resnet8, 32), (Architecture::Resnet18, 64)] {
            let images = Tensor::zeros([2, 3, side, side], &device);
            let logits = ResNet::new(architecture, 7, &device).forward(images);
            assert_eq!(logits.dims(), [2, 7]);
        }
    }
}
