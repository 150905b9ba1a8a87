//! Throughput against memory: one point for each setting, up and to the left is better.

use maud::{Markup, html};

use super::super::{Comparison, words};
use super::frame::{Frame, key, px};
use super::scale::{Scale, bytes, plain};
use super::{Chart, colour, is_burns};
use crate::compare::Row;
use crate::meter::to_f64;

const SIZE: [u32; 2] = [760, 440];
const FRAME: Frame = Frame {
    left: 58.0,
    right: 740.0,
    top: 40.0,
    bottom: 380.0,
};
/// Labels of neighbours stay that far apart.
const LINE: f64 = 17.0;
/// About the width of a letter.
const LETTER: f64 = 6.8;

/// A row and where it stands.
struct Point<'a> {
    row: &'a Row,
    colour: String,
    at: [f64; 2],
    /// The top and the bottom of what its runs span.
    span: [f64; 2],
}

/// A name beside its point.
struct Label {
    text: String,
    left: f64,
    y: f64,
    point: [f64; 2],
}

/// The chart that a comparison is made for.
pub(in crate::report) fn tradeoff(comparison: &Comparison) -> Chart {
    let rows = &comparison.rows;
    let held = rows.iter().map(|row| to_f64(row.run.peak_batch_bytes));
    let least = held.clone().fold(f64::INFINITY, f64::min);
    let (x, y) = (
        Scale::doublings(least, held.fold(0.0, f64::max)),
        Scale::from_zero(rows.iter().map(|row| row.range().1).fold(0.0, f64::max)),
    );
    let points = points(comparison, (x, y));
    let body = html! {
        (FRAME.rows(&y.ticks(plain), "images a second"))
        (FRAME.columns(&x.ticks_doubling(bytes), "most bytes of batches alive, each line twice the one before"))
        (frontier(comparison, &points))
        @for point in &points { (mark(point)) }
        @for label in labels(comparison, &points) { (name(&label)) }
        @if comparison.swept { (workers(&points)) }
    };
    Chart {
        name: "tradeoff",
        title: "Throughput against memory",
        says: says(rows),
        size: SIZE,
        body,
    }
}

fn points(comparison: &Comparison, (x, y): (Scale, Scale)) -> Vec<Point<'_>> {
    let mut counts: Vec<u16> = comparison.rows.iter().map(|row| row.run.workers).collect();
    counts.sort_unstable();
    counts.dedup();
    let point = |(number, row): (usize, &'_ Row)| {
        // Swept settings are told apart by their workers, the few by themselves.
        let of_workers = counts.iter().position(|count| *count == row.run.workers);
        let number = if comparison.swept {
            of_workers.unwrap_or(0) + 1
        } else {
            number
        };
        let (slowest, fastest) = row.range();
        let high = |rate| FRAME.y(y.place(rate));
        (
            colour(row, number),
            [
                FRAME.x(x.place(to_f64(row.run.peak_batch_bytes))),
                high(row.run.images_per_second),
            ],
            [high(fastest), high(slowest)],
        )
    };
    let rows = comparison.rows.iter().enumerate();
    let rows = rows.map(|(number, row)| {
        let (colour, at, span) = point((number, row));
        Point {
            row,
            colour,
            at,
            span,
        }
    });
    rows.collect()
}

/// The line from one setting that nothing beats to the next.
fn frontier(comparison: &Comparison, points: &[Point]) -> Markup {
    let mut best: Vec<[f64; 2]> = points
        .iter()
        .filter(|point| point.row.on_frontier)
        .map(|point| point.at)
        .collect();
    best.sort_by(|one, other| one[0].total_cmp(&other[0]));
    let places: Vec<String> = best
        .iter()
        .map(|[x, y]| format!("{},{}", px(*x), px(*y)))
        .collect();
    html! {
        @if comparison.swept && places.len() > 1 {
            polyline class="frontier" points=(places.join(" ")) {}
        }
    }
}

fn mark(point: &Point) -> Markup {
    let [x, y] = point.at;
    let row = point.row;
    let tip = format!(
        "{}: {:.0} images/s, {}",
        row.run.name,
        row.run.images_per_second,
        words::bytes(row.run.peak_batch_bytes)
    );
    let radius = if row.on_frontier { "7" } else { "5.5" };
    html! {
        line class=(format!("line {}", point.colour)) x1=(px(x)) x2=(px(x)) y1=(px(point.span[0])) y2=(px(point.span[1])) {}
        circle class=(format!("mark {}", point.colour)) cx=(px(x)) cy=(px(y)) r=(radius) { title { (tip) } }
    }
}

/// The names of all of a few points, else of Burn's and the frontier's, moved apart.
fn labels(comparison: &Comparison, points: &[Point]) -> Vec<Label> {
    let few = points.len() <= super::MOST_SHOWN;
    let named = points
        .iter()
        .filter(|point| few || point.row.on_frontier || is_burns(point.row));
    let mut labels: Vec<Label> = named
        .map(|point| {
            let text = point.row.run.name.clone();
            let width = LETTER * to_f64(text.chars().count());
            let fits = point.at[0] + 14.0 + width < FRAME.right;
            let left = if fits {
                point.at[0] + 14.0
            } else {
                point.at[0] - 14.0 - width
            };
            Label {
                text,
                left,
                y: point.at[1],
                point: point.at,
            }
        })
        .collect();
    labels.sort_by(|one, other| one.y.total_cmp(&other.y));
    let _ = comparison;
    for at in 1..labels.len() {
        let (above, rest) = labels.split_at_mut(at);
        let label = &mut rest[0];
        let width = LETTER * to_f64(label.text.chars().count());
        for other in above.iter() {
            let other_width = LETTER * to_f64(other.text.chars().count());
            let beside = label.left > other.left + other_width || other.left > label.left + width;
            if !beside && label.y < other.y + LINE {
                label.y = other.y + LINE;
            }
        }
    }
    labels
}

fn name(label: &Label) -> Markup {
    let [x, y] = label.point;
    let moved = (label.y - y).abs() > 2.0;
    let end = if label.left > x {
        label.left - 3.0
    } else {
        label.left + LETTER * to_f64(label.text.chars().count()) + 3.0
    };
    html! {
        @if moved {
            line class="lead" x1=(px(x)) y1=(px(y)) x2=(px(end)) y2=(px(label.y)) {}
        }
        text class="label" x=(px(label.left)) y=(px(label.y)) dy="0.32em" { (label.text) }
    }
}

/// Which colour is how many workers.
fn workers(points: &[Point]) -> Markup {
    let mut names: Vec<(String, String)> = Vec::new();
    for point in points {
        let name = match (is_burns(point.row), point.row.run.workers) {
            (true, _) => "Burn's loader".to_owned(),
            (false, 1) => "burn-prefetch, 1 worker".to_owned(),
            (false, workers) => format!("burn-prefetch, {workers} workers"),
        };
        if names.iter().all(|(known, _)| *known != name) {
            names.push((name, point.colour.clone()));
        }
    }
    let lines = to_f64(names.len());
    key(
        &names,
        [
            FRAME.right - 190.0,
            FRAME.bottom - 12.0 - 19.0 * (lines - 1.0),
        ],
    )
}

fn says(rows: &[Row]) -> String {
    let each = rows.iter().map(|row| {
        let run = &row.run;
        let held = words::bytes(run.peak_batch_bytes);
        format!(
            "{}: {:.0} images a second with {held}",
            run.name, run.images_per_second
        )
    });
    each.collect::<Vec<_>>().join("; ")
}
