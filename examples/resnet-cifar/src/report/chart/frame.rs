//! What every chart stands in: the area, its grid, the words along its axes.

use maud::{Markup, html};

use super::scale::Tick;

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
            text class="axis" x="0" y=(px(self.top - 14.0)) { (name) }
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

/// Names with their colours, one under the other.
pub(super) fn key(names: &[(String, String)], [x, y]: [f64; 2]) -> Markup {
    html! {
        @for (at, (name, colour)) in names.iter().enumerate() {
            @let y = y + 19.0 * f64::from(u32::try_from(at).unwrap_or(u32::MAX));
            rect class=(format!("mark {colour}")) x=(px(x)) y=(px(y - 9.0)) width="11" height="11" rx="3" {}
            text class="label" x=(px(x + 18.0)) y=(px(y)) { (name) }
        }
    }
}

/// A length with as many digits as an eye can tell.
pub(super) fn px(length: f64) -> String {
    format!("{length:.1}")
}
