//! What every command shares: pictures, network, batch, workers, seed.

use std::ffi::OsString;
use std::num::NonZeroUsize;

use clap::{Args, ValueEnum};

use super::{Device, Download};
use crate::data::Source;
use crate::note::note;
use crate::number::{positive, within};

/// 3 GB of pixels at 32 × 32.
const MOST_IMAGES: NonZeroUsize = NonZeroUsize::MIN.saturating_add(999_999);
/// Under ResNet-8 each of some ten layers keeps half a gigabyte for that many pictures.
const MOST_IN_A_BATCH: NonZeroUsize = NonZeroUsize::MIN.saturating_add(8_191);
/// Four times what networks for photographs take.
const SIDES: std::ops::RangeInclusive<usize> = 8..=1_024;
/// What the loader takes.
pub(super) const MOST_WORKERS: u16 = 1_024;

/// Data, model, batch, workers, seed.
#[derive(Debug, Clone, Args)]
pub(crate) struct Setup {
    /// Where the pictures are: a folder with the binary files of CIFAR-10 or CIFAR-100; a folder of
    /// pictures (`CLASS/*.png`, or `train/CLASS/…` and `test/CLASS/…`); or `shapes`, ten shapes drawn
    /// from the seed.
    #[arg(long, value_name = "DIR|shapes", default_value = "shapes")]
    pub(crate) data: Source,
    /// Fetch that data set once, by Burn's own source (a mirror of fast.ai's; 135 or 169 MB into the
    /// cache folder), and train on it.
    #[arg(long, value_enum, value_name = "SET", conflicts_with = "data")]
    pub(crate) download: Option<Download>,
    /// How many training pictures `shapes` draws, 1 to 1,000,000 [default: 8192, in files 1024];
    /// `train` tests on an eighth as many others.
    #[arg(long, value_name = "N", value_parser = within(NonZeroUsize::MIN..=MOST_IMAGES))]
    pub(crate) images: Option<NonZeroUsize>,
    /// Side of a picture in pixels, 8 to 1,024 [default: 32, with JPEG files or ResNet-18 224];
    /// pictures of another size are resized as they are read.
    #[arg(long, value_name = "N", value_parser = within(SIDES))]
    pub(crate) size: Option<usize>,
    /// The network.
    #[arg(long, value_enum, default_value_t = Architecture::Resnet8)]
    pub(crate) model: Architecture,
    /// What computes: flex, Burn's backend for CPUs, or (built with `--features cuda`) an NVIDIA card,
    /// cuda or cuda:N.
    #[arg(long, value_name = "DEVICE", default_value = "flex")]
    pub(crate) device: Device,
    /// Pictures in a batch, 1 to 8,192.
    #[arg(long, value_name = "N", default_value = "64")]
    #[arg(value_parser = within(NonZeroUsize::MIN..=MOST_IN_A_BATCH))]
    pub(crate) batch_size: NonZeroUsize,
    /// Worker threads of the loader, 0 to 1,024; 0 loads on the training thread, and no batch is
    /// made ahead.
    #[arg(long, value_name = "N", default_value_t = 2)]
    #[arg(value_parser = within(0..=MOST_WORKERS))]
    pub(crate) workers: u16,
    /// Seed of the weights, the order, the augmentation and the drawn pictures, 0 to
    /// 18,446,744,073,709,551,615.
    #[arg(long, value_name = "SEED", default_value_t = 42)]
    #[arg(value_parser = within(0..=u64::MAX))]
    pub(crate) seed: u64,
    /// Learning rate of SGD (momentum 0.9, weight decay 1e-4), above 0.
    #[arg(
        long,
        value_name = "RATE",
        default_value_t = 0.1,
        value_parser = positive)]
    pub(crate) lr: f64,
}

/// The residual networks of He et al. 2015: 6n + 2 layers for small pictures (section 4.2), and the
/// smallest one for photographs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Architecture {
    /// 8 layers (n = 1), 75,000 parameters: a step in a third of a second on two cores
    Resnet8,
    /// 20 layers (n = 3), 270,000 parameters
    Resnet20,
    /// 56 layers (n = 9), 850,000 parameters
    Resnet56,
    /// 18 layers for photographs, 11 million parameters: for GPUs
    Resnet18,
}

impl Architecture {
    /// The name that figures are shown under.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Resnet8 => "ResNet-8",
            Self::Resnet20 => "ResNet-20",
            Self::Resnet56 => "ResNet-56",
            Self::Resnet18 => "ResNet-18",
        }
    }
}

impl Setup {
    /// Says which settings have no effect.
    pub(crate) fn note_unused(&self) {
        let read = self.download.is_some() || self.data != Source::Shapes;
        if let Some(images) = self.images.filter(|_| read) {
            note(&format!(
                "--images {images} has no effect: it is for drawn pictures, and these are read"
            ));
        }
    }

    /// The same settings as command-line arguments, for a child process; the number of workers
    /// comes with the contender.
    pub(super) fn to_args(&self) -> Vec<OsString> {
        let mut args: Vec<OsString> = vec!["--data".into(), self.data.as_arg().into()];
        let optional = [
            ("--images", self.images.map(NonZeroUsize::get)),
            ("--size", self.size),
        ];
        let optional = optional
            .into_iter()
            .filter_map(|(flag, value)| Some((flag, value?.to_string())));
        let always = [
            ("--model", flag_of(&self.model)),
            ("--device", self.device.to_string()),
            ("--batch-size", self.batch_size.to_string()),
            ("--seed", self.seed.to_string()),
            ("--lr", self.lr.to_string()),
        ];
        for (flag, value) in optional.chain(always) {
            args.extend([flag.into(), value.into()]);
        }
        args
    }
}

/// What is written on the command line for a value.
pub(crate) fn flag_of(value: &impl ValueEnum) -> String {
    let possible = value.to_possible_value();
    possible.map_or_else(String::new, |value| value.get_name().to_owned())
}
