//! The augmentation of He et al. 2015: a random 32×32 crop of the picture padded by 4, mirrored
//! half of the time.

use rand::{Rng, RngExt as _};

use crate::data::{PICTURE, PLANE, SIDE};

const PAD: usize = 4;

/// Where the crop starts in the padded picture (4, 4 is the middle), and whether it is mirrored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Window {
    top: usize,
    left: usize,
    mirrored: bool,
}

/// A random crop of `picture`; what lies outside of it is black.
pub(crate) fn crop_and_mirror(picture: &[u8], rng: &mut impl Rng) -> Vec<u8> {
    let window = Window {
        top: rng.random_range(0..=2 * PAD),
        left: rng.random_range(0..=2 * PAD),
        mirrored: rng.random(),
    };
    crop(picture, window)
}

fn crop(picture: &[u8], window: Window) -> Vec<u8> {
    let mut out = vec![0; PICTURE];
    let (from_row, to_row) = overlap(window.top);
    let (from_column, to_column) = overlap(window.left);
    let width = SIDE - from_column.max(to_column);
    let height = SIDE - from_row.max(to_row);
    for (source, target) in picture.chunks_exact(PLANE).zip(out.chunks_exact_mut(PLANE)) {
        let rows = source.chunks_exact(SIDE).skip(from_row).take(height);
        for (row, target) in rows.zip(target.chunks_exact_mut(SIDE).skip(to_row)) {
            target[to_column..][..width].copy_from_slice(&row[from_column..][..width]);
            if window.mirrored {
                target.reverse();
            }
        }
    }
    out
}

/// The first position that is read and the first that is written, for a crop that starts at
/// `start`.
fn overlap(start: usize) -> (usize, usize) {
    (start.saturating_sub(PAD), PAD.saturating_sub(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbered() -> Vec<u8> {
        (0..=255_u8).cycle().take(PICTURE).collect()
    }

    #[test]
    fn the_middle_crop_is_the_picture() {
        let window = Window {
            top: PAD,
            left: PAD,
            mirrored: false,
        };
        assert_eq!(crop(&numbered(), window), numbered());
    }

    /// The same crop, one pixel at a time.
    fn pixel(picture: &[u8], window: Window, at: usize) -> u8 {
        let (channel, y, x) = (at / PLANE, at % PLANE / SIDE, at % SIDE);
        let x = if window.mirrored { SIDE - 1 - x } else { x };
        let (y, x) = (y + window.top, x + window.left);
        let inside = PAD..PAD + SIDE;
        if inside.contains(&y) && inside.contains(&x) {
            picture[channel * PLANE + (y - PAD) * SIDE + (x - PAD)]
        } else {
            0
        }
    }

    #[test]
    fn every_crop_agrees_with_the_padded_picture_pixel_by_pixel() {
        let picture = numbered();
        for (top, left) in [(0, 0), (0, 8), (8, 0), (8, 8), (3, 6)] {
            for mirrored in [false, true] {
                let window = Window {
                    top,
                    left,
                    mirrored,
                };
                let expected: Vec<u8> =
                    (0..PICTURE).map(|at| pixel(&picture, window, at)).collect();
                assert_eq!(crop(&picture, window), expected, "{window:?}");
            }
        }
    }
}
