//! Question: what do a few slow items cost, and how few batches alive keep all workers busy?
//! Fixed: a quarter of the items waits 4 ms, batch 32, dataset order.
//! Swept: where the slow quarter is; 4 and 8 workers; Burn's loader, ours with three windows. Then, with 8 workers and the slow
//! items spread evenly: assembly at 0, 12, 25 and 50 % of a batch's fetch time; 1 to 8 batches alive, and the default.

use std::io;
use std::time::Duration;

use burn_prefetch_benches::{
    Collect, Contender, Effort, Items, Report, Run, Series, Setup, Which, Window, interleaved,
    pass, real, timed,
};

const WAIT: Duration = Duration::from_millis(4);
const BATCH: usize = 32;

fn main() -> io::Result<()> {
    let effort = Effort::from_args();
    against_burn(effort).print()?;
    batches_needed(effort).print()
}

fn against_burn(effort: Effort) -> Report {
    let contenders = [
        Contender::Burn,
        Contender::Ours(Window::Learned),
        Contender::Ours(Window::Factor(2)),
        Contender::Ours(Window::Total(2)),
    ];
    let mut report = Report::new(
        "A quarter of the items waits 4 ms: times as fast as Burn",
        &[
            "slow items",
            "workers",
            "Burn, items/s",
            "ours, default",
            "prefetch_factor(2)",
            "prefetch(2)",
            "prefetch(2) / prefetch_factor(2)",
        ],
    );
    for (name, which) in [
        ("the first quarter", Which::FirstQuarter),
        ("every fourth", Which::EveryFourth),
    ] {
        for workers in [4, 8] {
            let load = Load {
                which,
                workers,
                assembly: Duration::ZERO,
                batches: effort.pick(2, 32),
            };
            let runs = contenders.map(|contender| load.run(contender));
            let series = interleaved(effort.pick(1, 7), runs.into());
            report.row(&[
                &name,
                &workers,
                &format!("{:.0}", real(load.batches * BATCH) / series[0].wall()),
                &series[1].speed_against(&series[0]),
                &series[2].speed_against(&series[0]),
                &series[3].speed_against(&series[0]),
                &series[3].speed_against(&series[2]),
            ]);
        }
    }
    report
}

const WORKERS: usize = 8;
const WINDOWS: [usize; 8] = [1, 2, 3, 4, 5, 6, 7, 8];

fn batches_needed(effort: Effort) -> Report {
    let mut report = Report::new(
        "Share of the full rate (at 32 batches alive) with 8 workers, by batches alive",
        &[
            "assembly / fetch",
            "1",
            "2",
            "3",
            "4",
            "5",
            "6",
            "7",
            "8",
            "default",
            "needed for 95 %",
            "2 + ceil(n a/(a+f))",
        ],
    );
    for percent in effort.pick(vec![25], vec![0, 12, 25, 50]) {
        let fetch = WAIT * u32::try_from(BATCH / 4).unwrap_or_default();
        let load = Load {
            which: Which::EveryFourth,
            workers: WORKERS,
            assembly: fetch * percent / 100,
            batches: effort.pick(2, 64),
        };
        let windows = WINDOWS.into_iter().map(Window::Total);
        let runs = windows.chain([Window::Learned, Window::Total(4 * WORKERS)]);
        let runs = runs
            .map(|window| load.run(Contender::Ours(window)))
            .collect();
        let series = interleaved(effort.pick(1, 5), runs);
        report.row(
            &row(percent, &shares(&series))
                .each_ref()
                .map(|cell| cell as _),
        );
    }
    report
}

/// Each series' rate as a share of the last one's.
fn shares(series: &[Series]) -> Vec<f64> {
    let full = &series[series.len() - 1];
    series
        .iter()
        .map(|own| own.speed_against(full).median)
        .collect()
}

fn row(percent: u32, shares: &[f64]) -> [String; 12] {
    let needed = WINDOWS
        .iter()
        .zip(shares)
        .find(|&(_, &share)| share >= 0.95);
    let share = f64::from(percent) / 100.0;
    let formula = 2.0 + (real(WORKERS) * share / (1.0 + share)).ceil();
    std::array::from_fn(|column| match column {
        0 => format!("{percent} %"),
        10 => needed.map_or_else(
            || "more than 8".to_owned(),
            |(window, _)| window.to_string(),
        ),
        11 => format!("{formula:.0}"),
        _ => format!("{:.0} %", shares[column - 1] * 100.0),
    })
}

/// What has to be loaded.
#[derive(Clone, Copy)]
struct Load {
    which: Which,
    workers: usize,
    assembly: Duration,
    batches: usize,
}

impl Load {
    fn run(self, contender: Contender) -> Run<'static> {
        let setup = Setup {
            batch_size: BATCH,
            workers: self.workers,
            shuffle: None,
        };
        let items = Items {
            len: self.batches * BATCH,
            which: self.which,
            wait: WAIT,
        };
        let loader = contender.build(
            setup,
            Collect {
                assembly: self.assembly,
            },
            items,
        );
        Box::new(move || {
            timed(|| {
                pass(loader.as_ref());
            })
        })
    }
}
