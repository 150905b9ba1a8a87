//! How long the training thread waited in `next()`: a histogram for each loader, one under the
//! other.

use maud::{Markup, html};

use super::super::{Comparison, words};
use super::frame::{Frame, px};
use super::scale::{Scale, whole};
use super::{Chart, shown};
use crate::compare::Row;
use crate::meter::to_f64;

const WIDTH: u32 = 760;
/// Height of one loader's histogram, its name included.
const LANE: f64 = 84.0;
const BARS: f64 = 46.0;
const TOP: f64 = 14.0;
/// Bars in each tenfold of time.
const BARS_A_DECADE: f64 = 5.0;

/// The chart of all lanes over one axis.
pub(super) fn waits(comparison: &Comparison) -> Chart {
    let rows = shown(comparison);
    let waits = rows
        .iter()
        .flat_map(|(row, _)| seconds(row))
        .map(|(wait, _)| wait);
    let least = waits.clone().fold(f64::INFINITY, f64::min).min(1.0);
    let scale = Scale::decades(least, waits.fold(0.0, f64::max));
    let lanes = to_f64(rows.len());
    let frame = Frame {
        left: 20.0,
        right: 730.0,
        top: TOP,
        bottom: TOP + lanes * LANE + 4.0,
    };
    let body = html! {
        (frame.columns(&scale.ticks_tenfold(words::time), "wait in next(), each mark ten times the one before"))
        @for (at, (row, colour)) in rows.iter().enumerate() {
            @let top = TOP + to_f64(at) * LANE;
            (lane(row, colour, (Frame { top, bottom: top + LANE - 6.0, ..frame }, scale)))
        }
    };
    let each = rows
        .iter()
        .map(|(row, _)| format!("{}: {}", row.run.name, quantiles(row)));
    Chart {
        name: "waits",
        title: "Waiting for a batch",
        says: each.collect::<Vec<_>>().join("; "),
        size: [
            WIDTH,
            u32::try_from(whole(frame.bottom + 54.0)).unwrap_or(WIDTH),
        ],
        body,
    }
}

fn seconds(row: &Row) -> impl Iterator<Item = (f64, u64)> + Clone {
    let waits = row.run.waits.0.iter();
    waits.map(|wait| {
        let time = std::time::Duration::from_nanos(wait.nanoseconds);
        (time.as_secs_f64(), wait.count)
    })
}

fn quantiles(row: &Row) -> String {
    let [half, most, worst] = [
        row.wait_p50_seconds,
        row.wait_p95_seconds,
        row.wait_p99_seconds,
    ]
    .map(words::time);
    format!("half of all waits up to {half}, 95 % up to {most}, 99 % up to {worst}")
}

/// One loader's bars, with lines at its quantiles.
fn lane(row: &Row, colour: &str, (frame, scale): (Frame, Scale)) -> Markup {
    let bars = bars(row, scale);
    let most = bars.iter().map(|(_, count)| *count).max().unwrap_or(1);
    let width = bar_width(scale);
    let base = px(frame.bottom);
    html! {
        text class="label" x=(px(frame.left)) y=(px(frame.top + 12.0)) {
            (row.run.name) tspan class="tick" dx="10" { (quantiles(row)) }
        }
        line class="grid" x1=(px(frame.left)) x2=(px(frame.right)) y1=(base) y2=(base) {}
        @for (place, count) in &bars {
            @let high = BARS * to_f64(usize::try_from(*count).unwrap_or(usize::MAX)) / to_f64(usize::try_from(most).unwrap_or(usize::MAX));
            @let high = high.max(1.5);
            rect class=(format!("mark {colour}")) x=(px(frame.x(*place) + 1.0)) y=(px(frame.bottom - high)) width=(px((frame.x(width) - frame.left - 2.0).max(1.0))) height=(px(high)) rx="2" {}
        }
        @for quantile in [row.wait_p50_seconds, row.wait_p95_seconds, row.wait_p99_seconds] {
            @let x = px(frame.x(scale.place(quantile)));
            line class="mean" x1=(x) x2=(x) y1=(px(frame.bottom - BARS)) y2=(base) {}
        }
    }
}

/// The share of the axis that one bar is wide.
fn bar_width(scale: Scale) -> f64 {
    (scale.place(10.0) - scale.place(1.0)) / BARS_A_DECADE
}

/// Where each bar begins, and how many waits are in it.
fn bars(row: &Row, scale: Scale) -> Vec<(f64, u64)> {
    let width = bar_width(scale);
    let mut bars: Vec<(usize, u64)> = Vec::new();
    for (wait, count) in seconds(row) {
        let bar = whole((scale.place(wait) / width).max(0.0).floor());
        match bars.iter_mut().find(|(known, _)| *known == bar) {
            Some((_, sum)) => *sum += count,
            None => bars.push((bar, count)),
        }
    }
    bars.into_iter()
        .map(|(bar, count)| (to_f64(bar) * width, count))
        .collect()
}
