//! Question: how long does validation wait behind a long queue of training batches, and what do shared workers cost?
//! Fixed: training has read 4 of its 20 batches of 16 items of 2 ms, and all others are being made or queued; then validation
//! reads 8 batches of 16 items of 1 ms, and after it training is read to its end.
//! Swept: 1, 2, 4, 8 workers a loader; two loaders of Burn's, two of ours, two of ours on one set of workers.

use std::fmt;
use std::fs;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use burn::data::dataloader::DataLoader;
use burn_prefetch::{DataLoaderBuilder, Workers};
use burn_prefetch_benches::{
    Collect, Contender, Effort, Items, Report, Run, Setup, Which, Window, interleaved, timed,
};

/// Batches of training that are read before validation.
const READ: usize = 4;
/// Batches of training that are made ahead.
const QUEUE: usize = 16;
/// Batches of validation.
const HELD_OUT: usize = 8;
const ENTRANTS: [Entrant; 3] = [Entrant::Burn, Entrant::Apart, Entrant::Shared];

type Loader = Arc<dyn DataLoader<Vec<usize>>>;

/// Who loads.
#[derive(Clone, Copy, Debug)]
enum Entrant {
    Burn,
    /// Two of ours, each with its own workers.
    Apart,
    /// Two of ours on one `Workers`.
    Shared,
}

impl fmt::Display for Entrant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Burn => "Burn",
            Self::Apart => "ours, workers each",
            Self::Shared => "ours, one Workers",
        })
    }
}

/// Training and validation.
struct Pair {
    train: Loader,
    valid: Loader,
}

/// Which part of a run is timed.
#[derive(Clone, Copy, Debug)]
enum Timed {
    FirstBatch,
    Validation,
    Both,
}

fn main() -> io::Result<()> {
    let effort = Effort::from_args();
    let rounds = effort.pick(1, 7);
    let mut report = Report::new(
        format!(
            "Validation behind {QUEUE} unread training batches of {} items of 2 ms",
            batch_size(effort)
        ),
        &[
            "workers",
            "loaders",
            "threads in all",
            "first batch, ms",
            "share of Burn's",
            "validation, ms",
            "share of Burn's",
            "both, ms",
            "share of Burn's",
        ],
    );
    for workers in effort.pick(vec![2], vec![1, 2, 4, 8]) {
        let threads = ENTRANTS.map(|entrant| threads_of(entrant, workers, effort));
        let measure = |which| {
            let pairs = ENTRANTS.map(|entrant| entrant.build(workers, effort));
            interleaved(rounds, pairs.map(|pair| validate(pair, which)).into())
        };
        let all = [Timed::FirstBatch, Timed::Validation, Timed::Both].map(measure);
        for (row, entrant) in ENTRANTS.iter().enumerate() {
            let [first, validation, both] =
                [0, 1, 2].map(|column| format!("{:.1}", all[column][row].wall() * 1e3));
            let [first_share, validation_share, both_share] =
                [0, 1, 2].map(|column| all[column][0].speed_against(&all[column][row]));
            report.row(&[
                &workers,
                entrant,
                &threads[row],
                &first,
                &first_share,
                &validation,
                &validation_share,
                &both,
                &both_share,
            ]);
        }
    }
    report.print(effort)
}

fn batch_size(effort: Effort) -> usize {
    effort.pick(4, 16)
}

impl Entrant {
    fn build(self, workers: usize, effort: Effort) -> Pair {
        let batch_size = batch_size(effort);
        let items = |batches: usize, wait| Items {
            len: batches * batch_size,
            which: Which::All,
            wait: Duration::from_millis(wait),
        };
        let (train, valid) = (items(READ + QUEUE, 2), items(HELD_OUT, 1));
        let setup = Setup {
            batch_size,
            workers,
            shuffle: None,
        };
        let apart = |contender: Contender, items| contender.build(setup, Collect::default(), items);
        let ahead = Contender::Ours(Window::Total(QUEUE));
        match self {
            Self::Burn => Pair {
                train: apart(Contender::Burn, train),
                valid: apart(Contender::Burn, valid),
            },
            Self::Apart => Pair {
                train: apart(ahead, train),
                valid: apart(Contender::Ours(Window::Learned), valid),
            },
            Self::Shared => {
                let workers = Workers::new(workers);
                let builder = || {
                    DataLoaderBuilder::new(Collect::default())
                        .batch_size(batch_size)
                        .workers(&workers)
                };
                Pair {
                    train: builder().prefetch(QUEUE).build(train),
                    valid: builder().build(valid),
                }
            }
        }
    }
}

/// Validates while training's queue is being made, and then reads that, so that nobody is busy with it in the next run.
fn validate(pair: Pair, which: Timed) -> Run<'static> {
    Box::new(move || {
        let mut samples = Vec::new();
        let both = timed(|| {
            let mut queue = pair.train.iter();
            queue.by_ref().take(READ).for_each(drop);

            let mut rest = pair.valid.iter();
            let validation = timed(|| {
                samples.push(timed(|| drop(rest.next())));
                rest.for_each(drop);
            });
            samples.push(validation);
            queue.for_each(drop);
        });
        match which {
            Timed::FirstBatch => samples[0],
            Timed::Validation => samples[1],
            Timed::Both => both,
        }
    })
}

/// How many threads the two loaders have, where the system tells.
fn threads_of(entrant: Entrant, workers: usize, effort: Effort) -> String {
    let now = || fs::read_dir("/proc/self/task").map(Iterator::count).ok();
    let before = now();
    let pair = entrant.build(workers, effort);
    let opened = [pair.train.iter(), pair.valid.iter()];
    let own = now().zip(before).map(|(now, before)| now - before);
    opened.into_iter().flatten().for_each(drop);
    own.map_or_else(|| "unknown".to_owned(), |own| own.to_string())
}
