//! Names beside points, moved apart where they would lie over each other.

use maud::{Markup, html};

use super::frame::{px, width_of};

/// Neighbours stay that far apart.
const LINE: f64 = 17.0;
/// Of a point.
const RADIUS: f64 = 7.0;
/// From the middle of a point to its name.
const BESIDE: f64 = 14.0;

/// A name and where it is written.
#[derive(Debug)]
pub(super) struct Label {
    text: String,
    left: f64,
    y: f64,
    point: [f64; 2],
}

impl Label {
    /// To the right of its point, or to the left where the right has no room: another point lies
    /// there, or the drawing ends; below on the right where neither has.
    pub(super) fn beside(point: [f64; 2], text: &str, (points, edge): (&[[f64; 2]], f64)) -> Self {
        let width = width_of(text);
        let at = |left| Self {
            text: text.to_owned(),
            left,
            y: point[1],
            point,
        };
        let (right, left) = (at(point[0] + BESIDE), at(point[0] - BESIDE - width));
        let hidden = points.iter().any(|other| right.covers(*other));
        match (hidden || right.right() > edge, left.left < 0.0) {
            (false, _) => right,
            (true, false) => left,
            (true, true) => Self {
                y: right.y + LINE,
                ..right
            },
        }
    }

    fn covers(&self, [x, y]: [f64; 2]) -> bool {
        x > self.left - RADIUS
            && x < self.right() + RADIUS
            && (y - self.y).abs() < LINE / 2.0 + RADIUS
    }

    fn right(&self) -> f64 {
        self.left + width_of(&self.text)
    }

    /// Less than a line apart; that much less, that a line moved by just a line crosses no more.
    fn crosses(&self, other: &Self) -> bool {
        let beside = self.left > other.right() || other.left > self.right();
        !beside && (self.y - other.y).abs() < LINE - 0.01
    }

    /// The name, and a line to its point where it had to leave it.
    pub(super) fn draw(&self) -> Markup {
        let [x, y] = self.point;
        let moved = (self.y - y).abs() > 2.0;
        let end = if self.left > x {
            self.left - 3.0
        } else {
            self.right() + 3.0
        };
        html! {
            @if moved {
                line class="lead" x1=(px(x)) y1=(px(y)) x2=(px(end)) y2=(px(self.y)) {}
            }
            text class="label" x=(px(self.left)) y=(px(self.y)) dy="0.32em" { (self.text) }
        }
    }
}

/// The labels from top to bottom, each moved down until it crosses none above it.
pub(super) fn apart(mut labels: Vec<Label>) -> Vec<Label> {
    labels.sort_by(|one, other| one.y.total_cmp(&other.y));
    let mut placed: Vec<Label> = Vec::new();
    for mut label in labels {
        while let Some(above) = placed.iter().find(|above| label.crosses(above)) {
            label.y = above.y + LINE;
        }
        placed.push(label);
    }
    placed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_label_lies_over_another_and_each_stays_near_its_point() {
        let points = [[100.0, 50.0], [102.0, 52.0], [300.0, 51.0], [101.0, 51.0]];
        let labels = points.map(|point| Label::beside(point, "a loader", (&[], 700.0)));
        let placed = apart(labels.into());
        for (at, label) in placed.iter().enumerate() {
            assert!(
                placed[..at].iter().all(|above| !label.crosses(above)),
                "{label:?}"
            );
            assert!(label.y - label.point[1] <= 2.0 * LINE, "{label:?}");
        }
    }

    #[test]
    fn labels_come_apart_wherever_they_are() {
        for step in 0..10_000_u16 {
            let y = 380.0 * f64::from(step) / 9_999.0;
            let labels = [y, y, y].map(|y| Label::beside([80.0, y], "a loader", (&[], 700.0)));
            let placed = apart(labels.into());
            assert!((placed[2].y - y - 2.0 * LINE).abs() < 0.1, "{placed:?}");
        }
    }

    #[test]
    fn a_label_without_room_on_the_right_is_written_on_the_left() {
        let label = |points: &[[f64; 2]], x| Label::beside([x, 9.0], "a loader", (points, 700.0));
        assert!(label(&[], 690.0).right() < 690.0);
        assert!(label(&[[120.0, 10.0]], 100.0).right() < 100.0);
        assert!(label(&[[120.0, 40.0]], 100.0).left > 100.0);
        let below = label(&[[50.0, 10.0]], 30.0);
        assert!(
            below.left > 30.0 && !below.covers([50.0, 10.0]),
            "{below:?}"
        );
    }
}
