//! Question: how few batches alive keep all workers busy?
//! Fixed: 8 workers, batch 32, every fourth item waits 4 ms, so that a batch's fetch takes 32 ms in all.
//! Swept: assembly at 0, 12, 25 and 50 % of the fetch; 1 to 8 batches alive, and the default; full rate is that of 32 alive.

use std::io;
use std::time::Duration;

use burn_prefetch_benches::{
    Collect, Contender, Effort, Items, Report, Run, Series, Setup, Which, Window, epoch,
    interleaved, real,
};

const WORKERS: usize = 8;
const WINDOWS: [usize; 8] = [1, 2, 3, 4, 5, 6, 7, 8];
const BATCH: usize = 32;
const WAIT: Duration = Duration::from_millis(4);
const FETCH: Duration = Duration::from_millis(4 * 32 / 4);

fn main() -> io::Result<()> {
    let effort = Effort::from_args();
    let alive = WINDOWS.map(|window| window.to_string());
    let mut columns = vec!["assembly / fetch"];
    columns.extend(alive.iter().map(String::as_str));
    columns.extend(["default", "needed for 95 %", "2 + ceil(n a/(a+f))"]);
    let mut report = Report::new(
        "Share of the full rate with 8 workers, by batches alive",
        &columns,
    );
    for percent in effort.pick(vec![25], vec![0, 12, 25, 50]) {
        let series = interleaved(effort.pick(1, 5), runs(percent, effort.pick(1, 64)));
        let cells = cells(percent, &series);
        let cells: Vec<_> = cells.iter().map(|cell| cell as _).collect();
        report.row(&cells);
    }
    report.print(effort)
}

/// One run for each window, then the default, then what counts as the full rate.
fn runs(percent: u32, batches: usize) -> Vec<Run<'static>> {
    let setup = Setup {
        batch_size: BATCH,
        workers: WORKERS,
        shuffle: None,
    };
    let items = Items {
        len: batches * BATCH,
        which: Which::EveryFourth,
        wait: WAIT,
    };
    let collect = Collect {
        assembly: FETCH * percent / 100,
    };
    let windows = WINDOWS.into_iter().map(Window::Total);
    windows
        .chain([Window::Learned, Window::Total(4 * WORKERS)])
        .map(|window| epoch(Contender::Ours(window).build(setup, collect, items)))
        .collect()
}

fn cells(percent: u32, series: &[Series]) -> Vec<String> {
    let (full, others) = series
        .split_last()
        .expect("the full rate is always measured");
    let shares: Vec<f64> = others
        .iter()
        .map(|own| own.speed_against(full).median)
        .collect();
    let needed = WINDOWS
        .iter()
        .zip(&shares)
        .find(|&(_, &share)| share >= 0.95);
    let assembly = f64::from(percent) / 100.0;
    let formula = 2.0 + (real(WORKERS) * assembly / (1.0 + assembly)).ceil();

    let mut cells = vec![format!("{percent} %")];
    cells.extend(shares.iter().map(|share| format!("{:.0} %", share * 100.0)));
    cells.push(needed.map_or_else(
        || "more than 8".to_owned(),
        |(window, _)| window.to_string(),
    ));
    cells.push(format!("{formula:.0}"));
    cells
}
