//! Ten shapes, drawn from a seed: data that needs no download and that a small network learns in a
//! minute.
//!
//! A picture has a dark background and a bright foreground of random colours, a random place and
//! size, and some noise. Every shape stays in its class when it is mirrored or moved by four
//! pixels, as the augmentation does. Nothing here is CIFAR: figures made with it say "drawn
//! shapes".

use super::{CHANNELS, Norm, PICTURE, PLANE, Pictures, SIDE, Split};

/// The shapes; a label is a position in this list.
const SHAPES: [Shape; 10] = [
    Shape::Disc,
    Shape::Ring,
    Shape::Square,
    Shape::Frame,
    Shape::Triangle,
    Shape::Plus,
    Shape::Saltire,
    Shape::Rows,
    Shape::Columns,
    Shape::Checks,
];

#[derive(Debug, Clone, Copy)]
enum Shape {
    Disc,
    Ring,
    Square,
    Frame,
    Triangle,
    Plus,
    Saltire,
    Rows,
    Columns,
    Checks,
}

/// Draws `count` pictures, the classes in turn; the two parts share no random number.
pub(super) fn draw(seed: u64, count: usize, split: Split) -> Pictures {
    let (part, stream) = match split {
        Split::Train => ("training", 0),
        Split::Test => ("test", 1),
    };
    let mut rng = SplitMix(SplitMix(seed).next() ^ stream);
    let mut pixels = vec![0; count * PICTURE];
    let mut labels = Vec::with_capacity(count);
    for (picture, (label, shape)) in pixels
        .chunks_exact_mut(PICTURE)
        .zip((0_u8..).zip(SHAPES).cycle())
    {
        draw_one(shape, picture, &mut rng);
        labels.push(label);
    }
    Pictures {
        name: format!("drawn shapes, {count} {part} records"),
        classes: SHAPES.len(),
        norm: Norm::measure(&pixels),
        pixels,
        labels,
    }
}

fn draw_one(shape: Shape, picture: &mut [u8], rng: &mut SplitMix) {
    let radius = 7.0 + 5.0 * rng.unit();
    let room = 15.5 - radius;
    let centre = (
        15.5 + room * (rng.unit() - 0.5),
        15.5 + room * (rng.unit() - 0.5),
    );
    let mut back = [0.0; CHANNELS];
    let mut fore = [0.0; CHANNELS];
    for channel in 0..CHANNELS {
        back[channel] = 16.0 + 48.0 * rng.unit();
        fore[channel] = 112.0 + 128.0 * rng.unit();
    }
    for at in 0..PLANE {
        let (row, column) = (pixel(at / SIDE), pixel(at % SIDE));
        let (y, x) = ((row - centre.0) / radius, (column - centre.1) / radius);
        let colour = if shape.covers(y, x) { &fore } else { &back };
        for channel in 0..CHANNELS {
            let value = colour[channel] + 32.0 * (rng.unit() - 0.5);
            picture[channel * PLANE + at] = byte(value);
        }
    }
}

impl Shape {
    /// Whether the point (y down, x right; the shape's own square is -1 to 1) is inside.
    fn covers(self, y: f32, x: f32) -> bool {
        let in_square = y.abs().max(x.abs()) <= 1.0;
        match self {
            Self::Disc => y.hypot(x) <= 1.0,
            Self::Ring => (0.6..=1.0).contains(&y.hypot(x)),
            Self::Square => in_square,
            Self::Frame => in_square && y.abs().max(x.abs()) >= 0.65,
            Self::Triangle => y.abs() <= 1.0 && 2.0 * x.abs() <= y + 1.0,
            Self::Plus => in_square && y.abs().min(x.abs()) <= 0.25,
            Self::Saltire => in_square && (y.abs() - x.abs()).abs() <= 0.35,
            Self::Rows => in_square && stripe(y),
            Self::Columns => in_square && stripe(x),
            Self::Checks => in_square && (stripe(y) != stripe(x)),
        }
    }
}

/// Symmetric about 0, so that a mirrored pattern is the same pattern.
fn stripe(at: f32) -> bool {
    (at.abs() * 2.5 + 0.5).rem_euclid(2.0) < 1.0
}

#[expect(clippy::cast_precision_loss, reason = "a pixel position is below 32")]
fn pixel(position: usize) -> f32 {
    position as f32
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the value is clamped to a byte first"
)]
fn byte(value: f32) -> u8 {
    value.clamp(0.0, 255.0) as u8
}

/// `SplitMix64` (Steele, Lea, Flood 2014): the same pictures on every machine and with every
/// version of `rand`.
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// In 0 to 1, the end excluded.
    #[expect(clippy::cast_precision_loss, reason = "24 bits fit an f32")]
    fn unit(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1_u64 << 24) as f32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_draws_the_same_pictures_and_another_seed_others() {
        let first = draw(1, 20, Split::Train);
        assert_eq!(first.pixels, draw(1, 20, Split::Train).pixels);
        assert_ne!(first.pixels, draw(2, 20, Split::Train).pixels);
        assert_ne!(first.pixels, draw(1, 20, Split::Test).pixels);
    }

    #[test]
    fn the_classes_come_in_turn_and_the_name_says_drawn() {
        let pictures = draw(1, 25, Split::Train);
        assert_eq!(pictures.labels[8..13], [8, 9, 0, 1, 2]);
        assert_eq!(pictures.len(), 25);
        assert!(pictures.name.starts_with("drawn shapes"));
    }

    #[test]
    fn a_shape_is_its_own_mirror_image_and_no_other_shape() {
        let grid: Vec<f32> = (-10..=10_i8).map(|step| f32::from(step) / 10.0).collect();
        let mask = |shape: Shape, sign: f32| -> Vec<bool> {
            let points = grid.iter().flat_map(|&y| grid.iter().map(move |&x| (y, x)));
            points.map(|(y, x)| shape.covers(y, sign * x)).collect()
        };
        for (number, &shape) in SHAPES.iter().enumerate() {
            assert_eq!(mask(shape, 1.0), mask(shape, -1.0), "{shape:?}");
            for &other in &SHAPES[number + 1..] {
                assert_ne!(mask(shape, 1.0), mask(other, 1.0), "{shape:?} {other:?}");
            }
        }
    }
}
