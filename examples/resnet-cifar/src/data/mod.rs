//! Pictures in memory: where they come from, what they are called, how they are normalised.

mod cifar;
mod shapes;

use std::convert::Infallible;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use anyhow::Context as _;

use crate::cli::Setup;

/// Channels of a picture: red, green, blue, one plane after the other.
pub(crate) const CHANNELS: usize = 3;
/// Height and width of a picture.
pub(crate) const SIDE: usize = 32;
/// Pixels in one channel.
pub(crate) const PLANE: usize = SIDE * SIDE;
/// Bytes of one picture.
pub(crate) const PICTURE: usize = CHANNELS * PLANE;

/// Where the pictures come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    /// Ten shapes, drawn from a seed.
    Shapes,
    /// A folder with CIFAR binary files.
    Dir(PathBuf),
}

/// Which part of a data set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Split {
    Train,
    Test,
}

/// Mean and standard deviation of each channel, on the scale of 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Norm {
    pub(crate) mean: [f32; CHANNELS],
    pub(crate) std: [f32; CHANNELS],
}

/// Labelled 8-bit pictures; `pixels` holds exactly [`PICTURE`] bytes for each label.
#[derive(Debug)]
pub(crate) struct Pictures {
    /// What figures made with these pictures are shown under.
    pub(crate) name: String,
    pub(crate) classes: usize,
    pub(crate) norm: Norm,
    pixels: Vec<u8>,
    labels: Vec<u8>,
}

impl Source {
    pub(crate) fn as_arg(&self) -> &OsStr {
        match self {
            Self::Shapes => OsStr::new("shapes"),
            Self::Dir(dir) => dir.as_os_str(),
        }
    }
}

impl FromStr for Source {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(match text {
            "shapes" => Self::Shapes,
            dir => Self::Dir(PathBuf::from(dir)),
        })
    }
}

impl Pictures {
    pub(crate) fn len(&self) -> usize {
        self.labels.len()
    }

    /// The picture at `index` and its label.
    ///
    /// # Panics
    ///
    /// Panics where `index` is not below [`len`](Self::len).
    pub(crate) fn get(&self, index: usize) -> (&[u8], u8) {
        (
            &self.pixels[index * PICTURE..][..PICTURE],
            self.labels[index],
        )
    }
}

/// Reads or draws one part of the data that `setup` names.
pub(crate) fn load(setup: &Setup, split: Split) -> anyhow::Result<Arc<Pictures>> {
    let pictures = match &setup.data {
        Source::Shapes => {
            let count = match split {
                Split::Train => setup.images.get(),
                Split::Test => setup.images.get().div_ceil(8),
            };
            shapes::draw(setup.seed, count, split)
        }
        Source::Dir(dir) => cifar::read(dir, split)
            .with_context(|| format!("cannot use the data folder {}", dir.display()))?,
    };
    Ok(Arc::new(pictures))
}

impl Norm {
    /// The mean and standard deviation of these very pixels.
    fn measure(pixels: &[u8]) -> Self {
        let mut norm = Self {
            mean: [0.0; CHANNELS],
            std: [1.0; CHANNELS],
        };
        for channel in 0..CHANNELS {
            let (mut count, mut sum, mut squares) = (0_u64, 0_u64, 0_u64);
            let planes = pixels.chunks_exact(PLANE).skip(channel).step_by(CHANNELS);
            for value in planes.flatten().copied().map(u64::from) {
                count += 1;
                sum += value;
                squares += value * value;
            }
            (norm.mean[channel], norm.std[channel]) = moments(count.max(1), sum, squares);
        }
        norm
    }
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "sums of bytes stay far below 2^53, and a mean needs no more than f32"
)]
fn moments(count: u64, sum: u64, squares: u64) -> (f32, f32) {
    let mean = sum as f64 / count as f64;
    let variance = (squares as f64 / count as f64 - mean * mean).max(0.0);
    let std = (variance.sqrt() / 255.0).max(1e-3);
    ((mean / 255.0) as f32, std as f32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_norm_of_two_flat_pictures_is_their_mean_and_half_their_distance() {
        let mut pixels = vec![0; PICTURE];
        pixels.extend(vec![255; PICTURE]);
        let norm = Norm::measure(&pixels);
        for channel in 0..CHANNELS {
            assert!((norm.mean[channel] - 0.5).abs() < 1e-6);
            assert!((norm.std[channel] - 0.5).abs() < 1e-6);
        }
    }
}
