//! From values to places along an axis, and the ticks between.

use super::super::words;

/// A stretch of values and where they lie, from 0 to 1.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scale {
    from: f64,
    to: f64,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Linear,
    Logarithmic,
}

/// A value worth a line across the chart.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tick {
    pub(super) at: f64,
    pub(super) label: String,
}

impl Scale {
    /// From 0 to a round number that is not below `most`.
    pub(super) fn from_zero(most: f64) -> Self {
        let step = round_step(most / 4.0);
        Self {
            from: 0.0,
            to: (most / step).ceil().max(1.0) * step,
            kind: Kind::Linear,
        }
    }

    /// From 0 to exactly `most`.
    pub(super) fn up_to(most: f64) -> Self {
        Self {
            from: 0.0,
            to: most.max(1e-9),
            kind: Kind::Linear,
        }
    }

    /// Each step a doubling, some room at both ends.
    pub(super) fn doublings(least: f64, most: f64) -> Self {
        Self {
            from: least.max(1.0) / 1.5,
            to: most.max(1.0) * 1.5,
            kind: Kind::Logarithmic,
        }
    }

    /// Whole powers of ten around the values.
    pub(super) fn decades(least: f64, most: f64) -> Self {
        Self {
            from: 10_f64.powf(least.max(1e-9).log10().floor()),
            to: 10_f64.powf(most.max(1e-8).log10().ceil()),
            kind: Kind::Logarithmic,
        }
    }

    /// Where a value lies: 0 at the beginning, 1 at the end.
    pub(super) fn place(&self, value: f64) -> f64 {
        match self.kind {
            Kind::Linear => (value - self.from) / (self.to - self.from),
            Kind::Logarithmic => {
                (value.max(f64::MIN_POSITIVE) / self.from).ln() / (self.to / self.from).ln()
            }
        }
    }

    /// Round values with their words.
    pub(super) fn ticks(&self, label: fn(f64) -> String) -> Vec<Tick> {
        let step = round_step((self.to - self.from) / 4.0);
        self.every(|value| value + step, self.from, label)
    }

    /// Powers of two.
    pub(super) fn ticks_doubling(&self, label: fn(f64) -> String) -> Vec<Tick> {
        self.every(
            |value| 2.0 * value,
            2_f64.powf(self.from.log2().ceil()),
            label,
        )
    }

    /// Powers of ten.
    pub(super) fn ticks_tenfold(&self, label: fn(f64) -> String) -> Vec<Tick> {
        self.every(|value| 10.0 * value, self.from, label)
    }

    fn every(&self, next: impl Fn(f64) -> f64, first: f64, label: fn(f64) -> String) -> Vec<Tick> {
        let values = std::iter::successors(Some(first), |&value| Some(next(value)));
        let values = values
            .take_while(|&value| value <= self.to * (1.0 + 1e-9))
            .take(64);
        let tick = |at| Tick {
            at: self.place(at),
            label: label(at),
        };
        values.map(tick).collect()
    }
}

/// 1, 2, 2.5 or 5 times a power of ten, not below `step`.
fn round_step(step: f64) -> f64 {
    let power = 10_f64.powf(step.max(1e-12).log10().floor());
    let factor = [1.0, 2.0, 2.5, 5.0]
        .into_iter()
        .find(|factor| factor * power >= step * (1.0 - 1e-9));
    factor.unwrap_or(10.0) * power
}

/// A number of bytes, of which an axis shows whole units only.
pub(super) fn bytes(value: f64) -> String {
    let text = words::bytes(whole(value));
    text.replace(".00", "")
}

pub(super) fn plain(value: f64) -> String {
    // Twelve digits take the crumbs off a sum of steps.
    let rounded = (value * 1e12).round() / 1e12;
    format!("{rounded}")
}

/// A value from 0 as a count.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the value is clamped to what fits first"
)]
pub(super) fn whole(value: f64) -> usize {
    value.clamp(0.0, 9e15).round() as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(ticks: &[Tick]) -> Vec<&str> {
        ticks.iter().map(|tick| tick.label.as_str()).collect()
    }

    #[test]
    fn an_axis_from_zero_ends_at_a_round_number_above_the_most() {
        let scale = Scale::from_zero(233.0);
        assert_eq!(labels(&scale.ticks(plain)), ["0", "100", "200", "300"]);
        assert!((scale.place(150.0) - 0.5).abs() < 1e-9);
        assert_eq!(
            labels(&Scale::from_zero(0.7).ticks(plain)),
            ["0", "0.2", "0.4", "0.6", "0.8"]
        );
    }

    #[test]
    fn doublings_are_ticked_at_powers_of_two() {
        const MIB: f64 = 1_048_576.0;
        let scale = Scale::doublings(1.7 * MIB, 5.0 * MIB);
        assert_eq!(labels(&scale.ticks_doubling(bytes)), ["2 MiB", "4 MiB"]);
        assert!(scale.place(1.7 * MIB) > 0.0 && scale.place(5.0 * MIB) < 1.0);
    }

    #[test]
    fn decades_surround_the_values() {
        let scale = Scale::decades(3e-6, 0.02);
        assert_eq!(
            labels(&scale.ticks_tenfold(words::time)),
            ["1.0 µs", "10 µs", "100 µs", "1.0 ms", "10 ms", "100 ms"]
        );
    }

    #[test]
    fn nothing_at_all_still_has_an_axis() {
        for scale in [
            Scale::from_zero(0.0),
            Scale::up_to(0.0),
            Scale::doublings(0.0, 0.0),
        ] {
            assert!(scale.place(0.0).is_finite());
        }
    }
}
