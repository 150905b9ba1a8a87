//! Question: what do a few slow items cost?
//! Fixed: a quarter of the items waits 4 ms, batch 32, 32 batches in the data set's order.
//! Swept: where the slow quarter is; 4 and 8 workers; Burn's loader, ours with its default window, with two batches alive per
//! worker and with two in all.

use std::io;
use std::time::Duration;

use burn_prefetch_benches::{
    Collect, Contender, Effort, Items, Report, Setup, Which, Window, epoch, interleaved, real,
};

const BATCH: usize = 32;
const CONTENDERS: [Contender; 4] = [
    Contender::Burn,
    Contender::Ours(Window::Learned),
    Contender::Ours(Window::Factor(2)),
    Contender::Ours(Window::Total(2)),
];

fn main() -> io::Result<()> {
    let effort = Effort::from_args();
    let mut report = Report::new(
        "A quarter of the items waits 4 ms: times as fast as Burn",
        &[
            "slow items",
            "workers",
            "Burn, items/s",
            "ours, default",
            "prefetch_factor(2)",
            "prefetch(2)",
            "prefetch(2) against prefetch_factor(2)",
        ],
    );
    for (name, which) in [
        ("the first quarter", Which::FirstQuarter),
        ("every fourth", Which::EveryFourth),
    ] {
        let len = effort.pick(2, 32) * BATCH;
        let items = Items {
            len,
            which,
            wait: Duration::from_millis(4),
        };
        for workers in [4, 8] {
            let setup = Setup {
                batch_size: BATCH,
                workers,
                shuffle: None,
            };
            let runs = CONTENDERS
                .map(|contender| epoch(contender.build(setup, Collect::default(), items)));
            let series = interleaved(effort.pick(1, 7), runs.into());
            let [burn, learned, factor, total] = &series[..] else {
                unreachable!("one series for each contender");
            };
            report.row(&[
                &name,
                &workers,
                &format!("{:.0}", real(len) / burn.wall()),
                &learned.speed_against(burn),
                &factor.speed_against(burn),
                &total.speed_against(burn),
                &total.speed_against(factor),
            ]);
        }
    }
    report.print(effort)
}
