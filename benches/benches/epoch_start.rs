//! Question: what does an epoch's order cost: at its start, for each index, and when a run is resumed?
//! Fixed: items that cost nothing, batch 64, no workers, so that what is seen is the order.
//! Swept: a million, a hundred million and a thousand million items; Burn's shuffled loader, ours, a shuffled vector.

use std::fs;
use std::hint::black_box;
use std::io;
use std::num::NonZeroUsize;

use burn::data::dataloader::{DataLoader, DataLoaderBuilder as BurnBuilder};
use burn::data::dataset::{Dataset, DatasetError};
use burn_prefetch::{DataLoaderBuilder, LoaderState};
use burn_prefetch_benches::{
    Collect, Effort, Report, Run, Sample, Series, interleaved, real, timed,
};
use burn_prefetch_engine::{
    ClassBalanced, EpochPlan, Mixture, Order, Plan, RUN, Remainder, Weighted,
    WeightedWithoutReplacement, Windowed,
};
use rand::SeedableRng as _;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom as _;

const BATCH: usize = 64;
const SEED: u64 = 7;
/// More entries than this would be a vector of gigabytes.
const MOST_IN_A_VECTOR: usize = 100_000_000;

/// The items `0..len`, each its own index.
#[derive(Clone, Copy, Debug)]
struct Numbers(usize);

impl Dataset<usize> for Numbers {
    fn get(&self, index: usize) -> Result<usize, DatasetError> {
        Ok(index)
    }

    fn len(&self) -> usize {
        self.0
    }
}

fn main() -> io::Result<()> {
    let effort = Effort::from_args();
    starts(effort)?;
    indices(effort)?;
    resumptions(effort)
}

/// From `iter()` to the first batch.
fn starts(effort: Effort) -> io::Result<()> {
    let mut report = Report::new(
        format!("Start of a shuffled epoch, to its first batch of {BATCH}"),
        &[
            "items",
            "order",
            "ms",
            "times as fast as Burn",
            "memory, MiB",
        ],
    );
    let large = [1_000_000, MOST_IN_A_VECTOR, 1_000_000_000];
    for len in effort.pick(vec![10_000], large.to_vec()) {
        let rounds = effort.pick(1, if len > 1_000_000 { 1 } else { 9 });
        let ours = DataLoaderBuilder::new(Collect::default())
            .batch_size(BATCH)
            .shuffle(SEED);
        let ours = ours.build(Numbers(len));
        if len > MOST_IN_A_VECTOR {
            let series = interleaved(rounds, vec![start(ours.as_ref())]);
            let gigabytes = len * size_of::<usize>() / 1_000_000_000;
            let none = format!("not run: {gigabytes} GB");
            report.row(&[&len, &"Burn", &none, &"", &""]);
            let memory = held(ours.as_ref());
            report.row(&[&len, &"ours", &ms(&series[0]), &"", &memory]);
            continue;
        }
        let burns = BurnBuilder::new(Collect::default())
            .batch_size(BATCH)
            .shuffle(SEED);
        let burns = burns.build(Numbers(len));
        let vector_of = format!("{:.1}", real(len * size_of::<usize>()) / real(1 << 20));
        // First of all: what was freed before would be used again unseen.
        let memory = [held(burns.as_ref()), held(ours.as_ref()), vector_of];
        let runs = vec![start(burns.as_ref()), start(ours.as_ref()), vector(len)];
        let series = interleaved(rounds, runs);
        let names = ["Burn", "ours", "a shuffled vector, no loader"];
        for ((name, series_of), memory) in names.iter().zip(&series).zip(memory) {
            let speed = series_of.speed_against(&series[0]);
            report.row(&[&len, name, &ms(series_of), &speed, &memory]);
        }
    }
    report.print(effort)
}

fn start(loader: &dyn DataLoader<Vec<usize>>) -> Run<'_> {
    Box::new(move || {
        let mut batches = None;
        let sample = timed(|| {
            let mut pass = loader.iter();
            black_box(pass.next().map(|batch| batch.expect("numbers can be read")));
            batches = Some(pass);
        });
        drop(batches);
        sample
    })
}

/// The way without a loader: a vector of all indices, shuffled by Fisher and Yates.
fn vector(len: usize) -> Run<'static> {
    Box::new(move || {
        let mut indices = Vec::new();
        let sample = timed(|| {
            indices = (0..len).collect::<Vec<_>>();
            indices.shuffle(&mut SmallRng::seed_from_u64(SEED));
            black_box(indices.first());
        });
        drop(indices);
        sample
    })
}

/// What a pass holds in memory after its first batch, as the system sees it.
fn held(loader: &dyn DataLoader<Vec<usize>>) -> String {
    let before = resident();
    let mut batches = loader.iter();
    black_box(
        batches
            .next()
            .map(|batch| batch.expect("numbers can be read")),
    );
    let during = resident();
    drop(batches);
    format!("{:.1}", real(during.saturating_sub(before)) / real(1 << 20))
}

/// The bytes of this process that are in memory; 0 where there is no `/proc`.
fn resident() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kibibytes = line.and_then(|line| line.split_whitespace().next()?.parse::<usize>().ok());
    kibibytes.unwrap_or_default() * 1024
}

/// The orders of `len` items, by name.
fn orders(len: usize) -> Vec<(String, Order)> {
    let weights: Vec<f64> = (0..len).map(|k| real(1 + k % 100)).collect();
    let labels: Vec<_> = (0..len).map(|k| k % 10).collect();
    let made = "the samplers' settings make sense";
    vec![
        (
            "shuffled, 65,536 items, a table".into(),
            Order::shuffled(65_536, SEED),
        ),
        (format!("shuffled, {len} items"), Order::shuffled(len, SEED)),
        ("windowed".into(), Windowed::new(len, 1_000, SEED).into()),
        (
            "weighted".into(),
            Weighted::new(&weights, len, SEED).expect(made).into(),
        ),
        (
            "weighted without replacement".into(),
            WeightedWithoutReplacement::new(weights, len, SEED)
                .expect(made)
                .into(),
        ),
        (
            "class-balanced".into(),
            ClassBalanced::new(&labels, len, SEED).expect(made).into(),
        ),
        (
            "mixture".into(),
            Mixture::new(&[len / 2; 2], &[0.3, 0.7], len, SEED)
                .expect(made)
                .into(),
        ),
    ]
}

/// What one index costs, position by position, once the epoch is prepared.
fn indices(effort: Effort) -> io::Result<()> {
    let len = effort.pick(10_000, 10_000_000);
    // So few that most runs are through before another thread wants the core.
    let count = effort.pick(800, 16_000);
    let mut report = Report::new(
        format!("One index, of {len} items where nothing else is said"),
        &[
            "order",
            "prepared in, ms",
            "ns an index",
            "ns in runs",
            "vector, ns",
        ],
    );
    let mut table: Vec<_> = (0..len).collect();
    table.shuffle(&mut SmallRng::seed_from_u64(SEED));
    for (name, order) in orders(len) {
        let epoch = Plan::new(order, NonZeroUsize::MIN, Remainder::Keep).at(3);
        let prepared = timed(|| {
            black_box(epoch.index(0));
        });
        let count = count.min(epoch.num_items() / 4 / RUN * RUN);
        let runs = vec![
            one_by_one(&epoch, count),
            in_runs(&epoch, count),
            read(&table, count),
        ];
        let series = interleaved(effort.pick(1, 201), runs);
        let ns = |series: &Series| format!("{:.1}", series.wall() * 1e9 / real(count));
        let runs = epoch
            .run(0)
            .map_or_else(|| "–".to_owned(), |_| ns(&series[1]));
        let prepared = format!("{:.2}", prepared.wall * 1e3);
        report.row(&[&name, &prepared, &ns(&series[0]), &runs, &ns(&series[2])]);
    }
    report.print(effort)
}

/// Each run goes on where the last one stopped, so that no cache holds what it needs.
fn stretches(len: usize, count: usize) -> impl FnMut() -> std::ops::Range<usize> {
    let mut starts = (0..len - count).step_by(count).cycle();
    move || {
        let start = starts.next().unwrap_or_default();
        start..start + count
    }
}

fn one_by_one(epoch: &EpochPlan, count: usize) -> Run<'_> {
    let mut stretch = stretches(epoch.num_items(), count);
    Box::new(move || summed(stretch().map(|position| epoch.index(position))))
}

fn in_runs(epoch: &EpochPlan, count: usize) -> Run<'_> {
    let mut stretch = stretches(epoch.num_items(), count);
    Box::new(move || {
        let starts = stretch().step_by(RUN);
        summed(starts.filter_map(|start| epoch.run(start)).flatten())
    })
}

fn read(table: &[usize], count: usize) -> Run<'_> {
    let mut stretch = stretches(table.len(), count);
    Box::new(move || summed(table[stretch()].iter().copied()))
}

fn summed(indices: impl Iterator<Item = usize>) -> Sample {
    timed(|| {
        black_box(indices.fold(0, usize::wrapping_add));
    })
}

/// From a saved state to the batch that comes next.
fn resumptions(effort: Effort) -> io::Result<()> {
    let len: usize = effort.pick(1_000_000, 1_000_000_000);
    let builder = || {
        DataLoaderBuilder::new(Collect::default())
            .batch_size(BATCH)
            .shuffle(SEED)
    };
    let built = "the settings make sense";
    let loader = builder().try_build(Numbers(len)).expect(built);
    let json = serde_json::to_string(&loader.state())?;
    let middle = len.div_ceil(BATCH) / 2;
    let json = json.replace("\"batch\":0,", &format!("\"batch\":{middle},"));
    let states: [LoaderState; 2] = [
        serde_json::to_value(loader.state())?,
        serde_json::from_str(&json)?,
    ]
    .map(|state| serde_json::from_value(state).expect("it was just written"));
    let resume = |state: &LoaderState| {
        let state = state.clone();
        Box::new(move || {
            timed(|| {
                let loader = builder()
                    .restore(state.clone())
                    .try_build(Numbers(len))
                    .expect(built);
                black_box(loader.iter_owned().next());
            })
        }) as Run<'_>
    };
    let series = interleaved(effort.pick(1, 25), states.iter().map(resume).collect());
    let mut report = Report::new(
        format!("Build, restore and the first batch, of {len} items"),
        &["batches returned before", "ms"],
    );
    for (state, series) in states.iter().zip(&series) {
        report.row(&[&state.batch(), &ms(series)]);
    }
    report.print(effort)
}

fn ms(series: &Series) -> String {
    format!("{:.3}", series.wall() * 1e3)
}
