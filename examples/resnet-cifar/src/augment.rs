//! The augmentation of He et al. 2015: a random 32×32 crop of the picture padded by 4, mirrored
//! half of the time; larger pictures are padded by the same eighth.

use rand::{Rng, RngExt as _};

use crate::data::CHANNELS;

/// Where the crop starts in the padded picture (the padding itself is the middle), and whether it
/// is mirrored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Window {
    top: usize,
    left: usize,
    mirrored: bool,
}

/// A square picture, plane after plane.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Square<'a> {
    pub(crate) pixels: &'a [u8],
    pub(crate) side: usize,
}

impl Square<'_> {
    /// A random crop; what lies outside of the picture is black.
    pub(crate) fn crop_and_mirror(self, rng: &mut impl Rng) -> Vec<u8> {
        self.crop(self.any_window(rng))
    }

    /// The same crop, written over as many zeros.
    pub(crate) fn crop_and_mirror_into(self, zeros: &mut [u8], rng: &mut impl Rng) {
        self.crop_into(zeros, self.any_window(rng));
    }

    /// The crop that is the picture itself.
    pub(crate) fn middle(self) -> Vec<u8> {
        self.crop(Window {
            top: self.pad(),
            left: self.pad(),
            mirrored: false,
        })
    }

    fn any_window(self, rng: &mut impl Rng) -> Window {
        Window {
            top: rng.random_range(0..=2 * self.pad()),
            left: rng.random_range(0..=2 * self.pad()),
            mirrored: rng.random(),
        }
    }

    fn pad(self) -> usize {
        self.side / 8
    }

    fn crop(self, window: Window) -> Vec<u8> {
        let mut out = vec![0; CHANNELS * self.side * self.side];
        self.crop_into(&mut out, window);
        out
    }

    fn crop_into(self, out: &mut [u8], window: Window) {
        let side = self.side;
        let plane = side * side;
        let (from_row, to_row) = self.overlap(window.top);
        let (from_column, to_column) = self.overlap(window.left);
        let width = side - from_column.max(to_column);
        let height = side - from_row.max(to_row);
        let planes = self.pixels.chunks_exact(plane);
        for (source, target) in planes.zip(out.chunks_exact_mut(plane)) {
            let rows = source.chunks_exact(side).skip(from_row).take(height);
            for (row, target) in rows.zip(target.chunks_exact_mut(side).skip(to_row)) {
                target[to_column..][..width].copy_from_slice(&row[from_column..][..width]);
            }
        }
        if window.mirrored {
            out.chunks_exact_mut(side).for_each(<[u8]>::reverse);
        }
    }

    /// The first position that is read and the first that is written, for a crop that starts at
    /// `start`.
    fn overlap(self, start: usize) -> (usize, usize) {
        let pad = self.pad();
        (start.saturating_sub(pad), pad.saturating_sub(start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbered(side: usize) -> Vec<u8> {
        let count = CHANNELS * side * side;
        (0..=255_u8).cycle().take(count).collect()
    }

    fn crop(pixels: &[u8], side: usize, window: Window) -> Vec<u8> {
        Square { pixels, side }.crop(window)
    }

    #[test]
    fn the_middle_crop_is_the_picture() {
        for side in [32, 64] {
            let pixels = &numbered(side);
            assert_eq!(&Square { pixels, side }.middle(), pixels);
        }
    }

    /// The same crop of a picture of 32 × 32, one pixel at a time.
    fn pixel(picture: &[u8], window: Window, at: usize) -> u8 {
        let (channel, y, x) = (at / 1024, at % 1024 / 32, at % 32);
        let x = if window.mirrored { 31 - x } else { x };
        let (y, x) = (y + window.top, x + window.left);
        let inside = 4..36;
        if inside.contains(&y) && inside.contains(&x) {
            picture[channel * 1024 + (y - 4) * 32 + (x - 4)]
        } else {
            0
        }
    }

    #[test]
    fn every_crop_agrees_with_the_padded_picture_pixel_by_pixel() {
        let picture = numbered(32);
        for (top, left) in [(0, 0), (0, 8), (8, 0), (8, 8), (3, 6)] {
            for mirrored in [false, true] {
                let window = Window {
                    top,
                    left,
                    mirrored,
                };
                let expected: Vec<u8> = (0..3072).map(|at| pixel(&picture, window, at)).collect();
                assert_eq!(crop(&picture, 32, window), expected, "{window:?}");
            }
        }
    }
}
