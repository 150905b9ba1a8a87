//! Throughput against memory: one point for each setting, up and to the left is better.

use maud::{Markup, html};

use super::super::{Comparison, words};
use super::frame::{Frame, Key, px};
use super::labels::{self, Label};
use super::scale::{Scale, bytes, plain, whole};
use super::{Chart, MOST_SHOWN, colour, is_burns};
use crate::compare::Row;
use crate::meter::to_f64;

const WIDTH: u32 = 760;
const HEIGHT: f64 = 330.0;

/// A row and where it stands.
struct Point<'a> {
    row: &'a Row,
    colour: String,
    at: [f64; 2],
    /// The top and the bottom of what its runs span.
    span: [f64; 2],
}

/// The chart that a comparison is made for.
pub(in crate::report) fn tradeoff(comparison: &Comparison) -> Chart {
    let rows = &comparison.rows;
    let colours = colours(comparison);
    let key = key(comparison, &colours);
    let top = key.height + 30.0;
    let frame = Frame {
        left: 58.0,
        right: 740.0,
        top,
        bottom: top + HEIGHT,
    };
    let held = rows.iter().map(|row| to_f64(row.run.peak_batch_bytes));
    let least = held.clone().fold(f64::INFINITY, f64::min);
    let x = Scale::doublings(least, held.fold(0.0, f64::max));
    let y = Scale::from_zero(rows.iter().map(|row| row.range().1).fold(0.0, f64::max));
    let points = rows.iter().zip(colours);
    let points: Vec<Point> = points
        .map(|(row, colour)| place(row, colour, (frame, x, y)))
        .collect();
    let body = html! {
        (key.draw([4.0, 0.0]))
        (frame.rows(&y.ticks(plain), "images a second"))
        (frame.columns(&x.ticks_doubling(bytes), "most bytes of batches alive, each mark twice the one before"))
        @if comparison.swept { (frontier(&points)) }
        @for point in &points { (mark(point)) }
        @for label in named(&points, frame.right) { (label.draw()) }
    };
    Chart {
        name: "tradeoff",
        title: "Throughput against memory",
        says: says(rows),
        size: [
            WIDTH,
            u32::try_from(whole(frame.bottom + 54.0)).unwrap_or(WIDTH),
        ],
        body,
    }
}

/// Swept settings are told apart by their workers, a few contenders by themselves.
fn colours(comparison: &Comparison) -> Vec<String> {
    let mut counts: Vec<u16> = comparison.rows.iter().map(|row| row.run.workers).collect();
    counts.sort_unstable();
    counts.dedup();
    let rows = comparison.rows.iter().enumerate();
    let colours = rows.map(|(number, row)| {
        let of_workers = counts.iter().position(|count| *count == row.run.workers);
        let swept = of_workers.map_or(number, |at| at + 1);
        colour(row, if comparison.swept { swept } else { number })
    });
    colours.collect()
}

/// Which colour is whose.
fn key(comparison: &Comparison, colours: &[String]) -> Key {
    let mut names: Vec<(String, String)> = Vec::new();
    for (row, colour) in comparison.rows.iter().zip(colours) {
        let name = match (comparison.swept, is_burns(row), row.run.workers) {
            (false, ..) => row.run.name.clone(),
            (true, true, _) => "Burn's loader".to_owned(),
            (true, false, 1) => "burn-prefetch, 1 worker".to_owned(),
            (true, false, workers) => format!("burn-prefetch, {workers} workers"),
        };
        if names.iter().all(|(known, _)| *known != name) {
            names.push((name, colour.clone()));
        }
    }
    Key::of(names.into_iter(), f64::from(WIDTH))
}

fn place(row: &Row, colour: String, (frame, x, y): (Frame, Scale, Scale)) -> Point<'_> {
    let high = |rate| frame.y(y.place(rate));
    let (slowest, fastest) = row.range();
    Point {
        row,
        colour,
        at: [
            frame.x(x.place(to_f64(row.run.peak_batch_bytes))),
            high(row.run.images_per_second),
        ],
        span: [high(fastest), high(slowest)],
    }
}

/// The line from one setting that nothing beats to the next.
fn frontier(points: &[Point]) -> Markup {
    let best = points.iter().filter(|point| point.row.on_frontier);
    let mut best: Vec<[f64; 2]> = best.map(|point| point.at).collect();
    best.sort_by(|one, other| one[0].total_cmp(&other[0]));
    let places = best.iter().map(|[x, y]| format!("{},{}", px(*x), px(*y)));
    html! {
        polyline class="frontier" points=(places.collect::<Vec<_>>().join(" ")) {}
    }
}

fn mark(point: &Point) -> Markup {
    let [x, y] = point.at.map(px);
    let [top, bottom] = point.span.map(px);
    let row = point.row;
    let radius = if row.on_frontier { "7" } else { "5.5" };
    html! {
        line class=(format!("line {}", point.colour)) x1=(x) x2=(x) y1=(top) y2=(bottom) {}
        circle class=(format!("mark {}", point.colour)) cx=(x) cy=(y) r=(radius) { title { (says_one(row)) } }
    }
}

/// The names of all of a few points, else of Burn's and the frontier's.
fn named(points: &[Point], right: f64) -> Vec<Label> {
    let few = points.len() <= MOST_SHOWN;
    let worth = |point: &&Point| few || point.row.on_frontier || is_burns(point.row);
    let places: Vec<[f64; 2]> = points.iter().map(|point| point.at).collect();
    let label = |point: &Point| Label::beside(point.at, &point.row.run.name, (&places, right));
    labels::apart(points.iter().filter(worth).map(label).collect())
}

fn says(rows: &[Row]) -> String {
    rows.iter().map(says_one).collect::<Vec<_>>().join("; ")
}

fn says_one(row: &Row) -> String {
    let (name, rate) = (&row.run.name, row.run.images_per_second);
    let held = words::bytes(row.run.peak_batch_bytes);
    format!("{name}: {rate:.0} images a second with {held}")
}
