//! Question: how long does training wait between the last batch of an epoch and the first of the next?
//! Fixed: batch 64, 200 µs an item, epochs of 12 batches, each followed by a training step of 5 ms; the gap begins when the
//! last step ends, and has in it the end of one iterator and the start of the next.
//! Swept: 1, 2, 4, 8 workers; Burn's loader, ours, ours with `warm_next_epoch(true)`.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use burn::data::dataloader::{DataLoader, DataLoaderIterator};
use burn_prefetch::DataLoaderBuilder;
use burn_prefetch_benches::{
    Collect, Contender, Effort, Items, Report, Run, Setup, Which, Window, interleaved, timed,
};

/// Batches an epoch.
const BATCHES: usize = 12;
/// A training step.
const STEP: Duration = Duration::from_millis(5);
const CONTENDERS: [Entrant; 3] = [
    Entrant::AsBuilt(Contender::Burn),
    Entrant::AsBuilt(Contender::Ours(Window::Learned)),
    Entrant::Warm,
];

type Loader = Arc<dyn DataLoader<Vec<usize>>>;
type Batches<'a> = dyn DataLoaderIterator<Vec<usize>> + 'a;

/// Who loads.
#[derive(Clone, Copy, Debug)]
enum Entrant {
    AsBuilt(Contender),
    /// Ours with `warm_next_epoch(true)`.
    Warm,
}

impl fmt::Display for Entrant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AsBuilt(contender) => contender.fmt(f),
            Self::Warm => f.write_str("ours, warm_next_epoch(true)"),
        }
    }
}

impl Entrant {
    fn build(self, setup: Setup, items: Items) -> Loader {
        match self {
            Self::AsBuilt(contender) => contender.build(setup, Collect::default(), items),
            Self::Warm => DataLoaderBuilder::new(Collect::default())
                .batch_size(setup.batch_size)
                .num_workers(setup.workers)
                .warm_next_epoch(true)
                .build(items),
        }
    }
}

fn main() -> io::Result<()> {
    let effort = Effort::from_args();
    let batch_size = effort.pick(8, 64);
    let items = Items {
        len: BATCHES * batch_size,
        which: Which::All,
        wait: Duration::from_micros(200),
    };
    let mut report = Report::new(
        format!(
            "From the last step of an epoch to the next batch: batch {batch_size}, {:?} an item, step {STEP:?}",
            items.wait
        ),
        &[
            "workers",
            "loader",
            "gap, ms",
            "share of Burn's",
            "two epochs, ms",
            "two epochs, times as fast as Burn",
        ],
    );
    for workers in effort.pick(vec![2], vec![1, 2, 4, 8]) {
        let setup = Setup {
            batch_size,
            workers,
            shuffle: None,
        };
        let rounds = effort.pick(1, 9);
        let build = |entrant: Entrant| entrant.build(setup, items);
        let gaps = interleaved(rounds, CONTENDERS.map(|one| gap(build(one))).into());
        let pairs = interleaved(rounds, CONTENDERS.map(|one| two_epochs(build(one))).into());
        for ((entrant, gap), pair) in CONTENDERS.iter().zip(&gaps).zip(&pairs) {
            report.row(&[
                &workers,
                entrant,
                &format!("{:.2}", gap.wall() * 1e3),
                &gaps[0].speed_against(gap),
                &format!("{:.1}", pair.wall() * 1e3),
                &pair.speed_against(&pairs[0]),
            ]);
        }
    }
    report.print(effort)
}

/// Trains for two epochs and times only what lies between them.
fn gap(loader: Loader) -> Run<'static> {
    Box::new(move || {
        let mut last = loader.iter();
        train(last.as_mut(), BATCHES);
        let mut next = None;
        let sample = timed(|| {
            assert!(last.next().is_none(), "the epoch is over");
            drop(last);
            let mut batches = loader.iter();
            drop(batches.next().expect("there is a next epoch"));
            next = Some(batches);
        });
        step();
        if let Some(mut rest) = next {
            train(rest.as_mut(), BATCHES - 1);
        }
        sample
    })
}

fn two_epochs(loader: Loader) -> Run<'static> {
    Box::new(move || {
        timed(|| {
            for _ in 0..2 {
                train(loader.iter().as_mut(), BATCHES);
            }
        })
    })
}

/// A training step for each of so many batches.
fn train(batches: &mut Batches<'_>, steps: usize) {
    for batch in batches.take(steps) {
        drop(batch.expect("the benches' data never fails"));
        step();
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the wait stands for a step on a device; it is not a way to order threads"
)]
fn step() {
    std::thread::sleep(STEP);
}
