//! Memory over time: a line for each loader, from the first step to the last.

use maud::{Markup, html};

use super::super::Comparison;
use super::frame::{Frame, key, px};
use super::scale::{Scale, bytes};
use super::{Chart, shown};
use crate::compare::Row;
use crate::memory::Moment;
use crate::meter::to_f64;

const SIZE: [u32; 2] = [760, 340];
const FRAME: Frame = Frame {
    left: 74.0,
    right: 740.0,
    top: 40.0,
    bottom: 280.0,
};

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
            of: |moment| moment.rss_above_start,
        },
    )
}

fn draw(comparison: &Comparison, subject: &Subject) -> Chart {
    let rows = shown(comparison);
    let moments = || rows.iter().flat_map(|(row, _)| &row.run.timeline);
    let longest = moments().map(|moment| moment.seconds).fold(0.0, f64::max);
    let most = moments().filter_map(subject.of).max().unwrap_or(0);
    let (x, y) = (Scale::up_to(longest), mebibytes(to_f64(most)));
    let names: Vec<_> = rows
        .iter()
        .map(|(row, colour)| (row.run.name.clone(), colour.clone()))
        .collect();
    let body = html! {
        (FRAME.rows(&y.1, subject.axis))
        (FRAME.columns(&x.ticks(|seconds| format!("{} s", super::scale::plain(seconds))), "since the first step began, first run"))
        @for (row, colour) in &rows { (line(row, colour, (subject, x, y.0))) }
        (key(&names, [FRAME.right - 170.0, FRAME.top + 12.0]))
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
        size: SIZE,
        body,
    }
}

/// From 0 in whole steps of a power of two, which bytes are round in.
fn mebibytes(most: f64) -> (Scale, Vec<super::scale::Tick>) {
    let step = 2_f64.powf((most.max(1024.0) / 4.0).log2().ceil());
    let scale = Scale::up_to((most / step).ceil().max(1.0) * step);
    let lines = super::scale::whole((most / step).ceil().max(1.0));
    let tick = |line: usize| {
        let value = to_f64(line) * step;
        super::scale::Tick {
            at: scale.place(value),
            label: bytes(value),
        }
    };
    (scale, (0..=lines).map(tick).collect())
}

fn line(row: &Row, colour: &str, (subject, x, y): (&Subject, Scale, Scale)) -> Markup {
    let places = row.run.timeline.iter().filter_map(|moment| {
        let value = (subject.of)(moment)?;
        let (x, y) = (
            FRAME.x(x.place(moment.seconds)),
            FRAME.y(y.place(to_f64(value))),
        );
        Some(format!("{},{}", px(x), px(y)))
    });
    let places = places.collect::<Vec<_>>().join(" ");
    html! {
        polyline class=(format!("line {colour}")) points=(places) { title { (row.run.name) } }
    }
}
