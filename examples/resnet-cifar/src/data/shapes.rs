//! Ten shapes, drawn from a seed: data that needs no download and that a small network learns in a
//! minute.
//!
//! A picture has a dark background and a bright foreground of random colours, a random place and
//! size, and some noise. Every shape stays in its class when it is mirrored or moved by four
//! pixels, as the augmentation does. Nothing here is CIFAR: figures made with it say "drawn
//! shapes".

use super::{CHANNELS, Memory, Norm, Pictures, SIDE, Split, Store};

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

/// `count` pictures in memory, the classes in turn; the two parts share no random number.
pub(super) fn pictures(seed: u64, count: usize, split: Split) -> Pictures {
    let mut memory = Memory::default();
    for (picture, label) in draw(seed, SIDE, split).take(count) {
        memory.pixels.extend(picture);
        memory.labels.push(label);
    }
    let part = split.name();
    Pictures {
        name: format!("drawn shapes, {count} {part} records"),
        classes: SHAPES.len(),
        norm: Norm::measure(&memory.pixels, SIDE * SIDE),
        side: SIDE,
        left_out: None,
        store: Store::Memory(memory),
    }
}

/// Pictures without end, plane after plane, and their labels.
pub(super) fn draw(seed: u64, side: usize, split: Split) -> impl Iterator<Item = (Vec<u8>, u8)> {
    let stream = match split {
        Split::Train => 0,
        Split::Test => 1,
    };
    let mut rng = SplitMix(SplitMix(seed).next() ^ stream);
    let classes = (0..).zip(SHAPES).cycle();
    classes.map(move |(label, shape)| (draw_one(shape, side, &mut rng), label))
}

/// The name of each label's shape.
pub(super) fn names() -> [String; 10] {
    SHAPES.map(|shape| format!("{shape:?}").to_lowercase())
}

/// Lengths are those in a picture of 32 × 32, scaled.
fn draw_one(shape: Shape, side: usize, rng: &mut SplitMix) -> Vec<u8> {
    let scale = pixel(side) / 32.0;
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
    let plane = side * side;
    let mut picture = vec![0; CHANNELS * plane];
    for at in 0..plane {
        let (row, column) = (pixel(at / side) / scale, pixel(at % side) / scale);
        let (y, x) = ((row - centre.0) / radius, (column - centre.1) / radius);
        let colour = if shape.covers(y, x) { &fore } else { &back };
        for channel in 0..CHANNELS {
            let value = colour[channel] + 32.0 * (rng.unit() - 0.5);
            picture[channel * plane + at] = byte(value);
        }
    }
    picture
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

#[expect(clippy::cast_precision_loss, reason = "a pixel position is below 2^24")]
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

    fn drawn(seed: u64, split: Split) -> Vec<(Vec<u8>, u8)> {
        draw(seed, SIDE, split).take(25).collect()
    }

    #[test]
    fn the_same_seed_draws_the_same_pictures_and_another_seed_others() {
        let first = drawn(1, Split::Train);
        assert_eq!(first, drawn(1, Split::Train));
        assert_ne!(first, drawn(2, Split::Train));
        assert_ne!(first, drawn(1, Split::Test));
    }

    #[test]
    fn the_classes_come_in_turn_and_the_name_says_drawn() {
        let labels: Vec<u8> = drawn(1, Split::Train)
            .iter()
            .map(|(_, label)| *label)
            .collect();
        assert_eq!(labels[8..13], [8, 9, 0, 1, 2]);
        let pictures = pictures(1, 25, Split::Train);
        assert_eq!(pictures.len(), 25);
        assert!(pictures.name.starts_with("drawn shapes"));
        let names = names();
        assert_eq!([&names[0], &names[9]], ["disc", "checks"]);
    }

    #[test]
    fn a_larger_picture_shows_the_same_shape() {
        let bright = |side| {
            let (picture, _) = draw(3, side, Split::Train).next().unwrap();
            let green = &picture[side * side..][..side * side];
            let lit = green.iter().filter(|&&value| value > 90).count();
            lit * 1_000 / green.len()
        };
        let (small, large) = (bright(32), bright(128));
        assert!(
            small.abs_diff(large) < 50 && small > 50,
            "{small} and {large} of 1,000"
        );
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
