//! Question: what does passing one batch from a worker to the reader cost, on the clock and in CPU time?
//! Fixed: batch 1, no assembly, a reader that does nothing with a batch.
//! Swept: 1 and 2 workers; items that cost nothing and items that wait 1 ms (a loader that spins would show there as busy
//! cores); Burn's queue of 100, ours with a window of 100 and with its default window.

use std::io;
use std::time::Duration;

use burn_prefetch_benches::{
    Collect, Contender, Effort, Items, Report, Run, Series, Setup, Which, Window, epoch,
    interleaved, real,
};

const CONTENDERS: [Contender; 3] = [
    Contender::Burn,
    Contender::Ours(Window::Total(100)),
    Contender::Ours(Window::Learned),
];

fn main() -> io::Result<()> {
    let effort = Effort::from_args();
    let trivial = Items {
        len: effort.pick(1_000, 50_000),
        which: Which::None,
        wait: Duration::ZERO,
    };
    let waiting = Items {
        len: effort.pick(20, 500),
        which: Which::All,
        wait: Duration::from_millis(1),
    };
    let mut report = Report::new(
        "Handing over one batch of one item",
        &[
            "items",
            "workers",
            "loader",
            "ns a batch",
            "CPU ns a batch",
            "cores busy",
            "sleeps a batch",
            "times as fast as Burn",
        ],
    );
    for (name, items) in [("cost nothing", trivial), ("wait 1 ms", waiting)] {
        for workers in [1, 2] {
            let runs = CONTENDERS.map(|contender| epoch_of(contender, workers, items));
            let series = interleaved(effort.pick(1, 9), runs.into());
            for (contender, own) in CONTENDERS.iter().zip(&series) {
                let [wall, cpu] = [own.wall(), own.cpu()].map(|s| s * 1e9 / real(items.len));
                report.row(&[
                    &name,
                    &workers,
                    contender,
                    &format!("{wall:.0}"),
                    &format!("{cpu:.0}"),
                    &cores_busy(own),
                    &format!("{:.2}", own.sleeps() / real(items.len)),
                    &own.speed_against(&series[0]),
                ]);
            }
        }
    }
    report.print(effort)
}

fn cores_busy(series: &Series) -> String {
    format!("{:.2}", series.cpu() / series.wall())
}

fn epoch_of(contender: Contender, workers: usize, items: Items) -> Run<'static> {
    let setup = Setup {
        batch_size: 1,
        workers,
        shuffle: None,
    };
    epoch(contender.build(setup, Collect::default(), items))
}
