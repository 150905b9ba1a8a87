//! Memory over time: a line for each loader, from the first step to the last.

use maud::{Markup, html};

use super::super::Comparison;
use super::frame::{Frame, Key, px};
use super::scale::{Scale, Tick, bytes, plain, whole};
use super::{Chart, shown};
use crate::compare::Row;
use crate::meter::to_f64;
use crate::timeline::Moment;

const WIDTH: u32 = 760;
const LEFT: f64 = 74.0;
const RIGHT: f64 = 740.0;
const HEIGHT: f64 = 240.0;

/// What is looked at, and what it is called.
struct Subject {
    name: &'static str,
    title: &'static str,
    axis: &'static str,
    of: fn(&Moment) -> Option<usize>,
}

/// Bytes of items and batches, counted.
pub(super) fn batches(comparison: &Comparison) -> Chart {
    draw(
        comparison,
        &Subject {
            name: "memory",
            title: "Batch memory over time",
            axis: "bytes of items and batches alive, as counted",
            of: |moment| Some(moment.batch_bytes),
        },
    )
}

/// What the system says that the process holds.
pub(super) fn resident(comparison: &Comparison) -> Chart {
    draw(
        comparison,
        &Subject {
            name: "resident",
            title: "Resident memory over time",
            axis: "memory of the process above that at the start, as the system says",
            of: |moment| moment.rss_above_start_bytes,
        },
    )
}

fn draw(comparison: &Comparison, subject: &Subject) -> Chart {
    let rows = shown(comparison);
    let moments = || rows.iter().flat_map(|(row, _)| &row.run.timeline);
    let longest = moments().map(|moment| moment.seconds).fold(0.0, f64::max);
    let most = moments().filter_map(subject.of).max().unwrap_or(0);
    let (x, y) = (Scale::up_to(longest), mebibytes(to_f64(most)));
    let key = Key::of(
        rows.iter()
            .map(|(row, colour)| (row.run.name.clone(), colour.clone())),
        RIGHT,
    );
    let top = key.height + 30.0;
    let frame = Frame {
        left: LEFT,
        right: RIGHT,
        top,
        bottom: top + HEIGHT,
    };
    let body = html! {
        (key.draw([4.0, 0.0]))
        (frame.rows(&y.1, subject.axis))
        (frame.columns(&x.ticks(in_seconds), "since the first step began, first run"))
        @for (row, colour) in &rows { (line(row, (subject, colour), (frame, x, y.0))) }
    };
    let ends = rows.iter().map(|(row, _)| {
        let most = row
            .run
            .timeline
            .iter()
            .filter_map(subject.of)
            .max()
            .unwrap_or(0);
        format!(
            "{}: at most {}",
            row.run.name,
            super::super::words::bytes(most)
        )
    });
    Chart {
        name: subject.name,
        title: subject.title,
        says: ends.collect::<Vec<_>>().join("; "),
        size: [
            WIDTH,
            u32::try_from(whole(frame.bottom + 54.0)).unwrap_or(WIDTH),
        ],
        body,
    }
}

/// From 0 in whole steps of a power of two, which bytes are round in.
fn mebibytes(most: f64) -> (Scale, Vec<Tick>) {
    let step = 2_f64.powf((most.max(1024.0) / 4.0).log2().ceil());
    let scale = Scale::up_to((most / step).ceil().max(1.0) * step);
    let lines = whole((most / step).ceil().max(1.0));
    let tick = |line: usize| {
        let value = to_f64(line) * step;
        Tick {
            at: scale.place(value),
            label: bytes(value),
        }
    };
    (scale, (0..=lines).map(tick).collect())
}

fn line(
    row: &Row,
    (subject, colour): (&Subject, &str),
    (frame, x, y): (Frame, Scale, Scale),
) -> Markup {
    let places = row.run.timeline.iter().filter_map(|moment| {
        let value = (subject.of)(moment)?;
        let (x, y) = (
            frame.x(x.place(moment.seconds)),
            frame.y(y.place(to_f64(value))),
        );
        Some(format!("{},{}", px(x), px(y)))
    });
    let places = places.collect::<Vec<_>>().join(" ");
    html! {
        polyline class=(format!("line {colour}")) points=(places) { title { (row.run.name) } }
    }
}

fn in_seconds(seconds: f64) -> String {
    format!("{} s", plain(seconds))
}
