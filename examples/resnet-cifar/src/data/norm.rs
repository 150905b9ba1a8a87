//! Mean and standard deviation of pictures, channel by channel.

use super::CHANNELS;

/// Mean and standard deviation of each channel, on the scale of 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Norm {
    pub(crate) mean: [f32; CHANNELS],
    pub(crate) std: [f32; CHANNELS],
}

impl Norm {
    /// A byte times the first less the second is a value as networks take it, channel by channel.
    pub(crate) fn scale_and_shift(&self) -> ([f32; CHANNELS], [f32; CHANNELS]) {
        let of = |of: fn(f32, f32) -> f32| {
            std::array::from_fn(|channel| of(self.mean[channel], self.std[channel]))
        };
        (of(|_, std| 1.0 / (255.0 * std)), of(|mean, std| mean / std))
    }

    /// The mean and standard deviation of these very pixels, whose planes have `plane` bytes.
    pub(super) fn measure(pixels: &[u8], plane: usize) -> Self {
        let mut norm = Self {
            mean: [0.0; CHANNELS],
            std: [1.0; CHANNELS],
        };
        for channel in 0..CHANNELS {
            let (mut count, mut sum, mut squares) = (0_u64, 0_u64, 0_u64);
            let planes = pixels.chunks_exact(plane).skip(channel).step_by(CHANNELS);
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
        let mut pixels = vec![0; CHANNELS * 16];
        pixels.extend(vec![255; CHANNELS * 16]);
        let norm = Norm::measure(&pixels, 16);
        for channel in 0..CHANNELS {
            assert!((norm.mean[channel] - 0.5).abs() < 1e-6);
            assert!((norm.std[channel] - 0.5).abs() < 1e-6);
        }
    }
}
