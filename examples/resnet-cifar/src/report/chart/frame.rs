//! What every chart stands in: the area, its grid, the words along its axes.

use maud::{Markup, html};

use super::scale::Tick;
use crate::meter::to_f64;

/// The area that values are drawn in, in pixels of the whole drawing.
#[derive(Debug, Clone, Copy)]
pub(super) struct Frame {
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
}

impl Frame {
    /// The pixel of a place from 0 to 1 along the horizontal axis.
    pub(super) fn x(&self, place: f64) -> f64 {
        self.left + place * (self.right - self.left)
    }

    /// The pixel of a place from 0 to 1 along the vertical axis, which rises.
    pub(super) fn y(&self, place: f64) -> f64 {
        self.bottom - place * (self.bottom - self.top)
    }

    /// Lines across for the vertical axis, its labels and its name.
    pub(super) fn rows(&self, ticks: &[Tick], name: &str) -> Markup {
        html! {
            @for tick in ticks {
                @let y = px(self.y(tick.at));
                line class="grid" x1=(px(self.left)) x2=(px(self.right)) y1=(y) y2=(y) {}
                text class="tick" x=(px(self.left - 8.0)) y=(y) dy="0.32em" text-anchor="end" { (tick.label) }
            }
            text class="axis" x="4" y=(px(self.top - 14.0)) { (name) }
        }
    }

    /// Labels and marks for the horizontal axis, its line and its name.
    pub(super) fn columns(&self, ticks: &[Tick], name: &str) -> Markup {
        let bottom = px(self.bottom);
        html! {
            line class="base" x1=(px(self.left)) x2=(px(self.right)) y1=(bottom) y2=(bottom) {}
            @for tick in ticks {
                @let x = px(self.x(tick.at));
                line class="base" x1=(x) x2=(x) y1=(bottom) y2=(px(self.bottom + 5.0)) {}
                text class="tick" x=(x) y=(px(self.bottom + 20.0)) text-anchor="middle" { (tick.label) }
            }
            text class="axis" x=(px(self.right)) y=(px(self.bottom + 42.0)) text-anchor="end" { (name) }
        }
    }
}

/// Names with their colours, side by side in as many lines as they need.
#[derive(Debug)]
pub(super) struct Key {
    /// Name, colour and place.
    names: Vec<(String, String, [f64; 2])>,
    /// Height of all lines.
    pub(super) height: f64,
}

impl Key {
    const LINE: f64 = 20.0;
    /// The square before a name and the room after it.
    const BESIDE: f64 = 42.0;

    /// In lines of that width.
    pub(super) fn of(names: impl Iterator<Item = (String, String)>, width: f64) -> Self {
        let (mut x, mut y) = (0.0, 0.0);
        let mut placed = Vec::new();
        for (name, colour) in names {
            let needed = width_of(&name) + Self::BESIDE;
            if x > 0.0 && x + needed > width {
                (x, y) = (0.0, y + Self::LINE);
            }
            placed.push((name, colour, [x, y]));
            x += needed;
        }
        Self {
            names: placed,
            height: y + Self::LINE,
        }
    }

    /// Drawn from this corner.
    pub(super) fn draw(&self, [left, top]: [f64; 2]) -> Markup {
        html! {
            @for (name, colour, [x, y]) in &self.names {
                rect class=(format!("mark {colour}")) x=(px(left + x)) y=(px(top + y + 3.0)) width="11" height="11" rx="3" {}
                text class="label" x=(px(left + x + 18.0)) y=(px(top + y + 13.0)) { (name) }
            }
        }
    }
}

/// About how wide a text is.
pub(super) fn width_of(text: &str) -> f64 {
    const LETTER: f64 = 6.9;
    LETTER * to_f64(text.chars().count())
}

/// A length with as many digits as an eye can tell.
pub(super) fn px(length: f64) -> String {
    format!("{length:.1}")
}
