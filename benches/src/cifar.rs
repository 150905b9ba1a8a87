//! The contest of `cifar_in_memory`, which each allocator's program runs by itself.

use std::fmt;
use std::io::{self, Write};
use std::sync::Arc;

use burn::data::dataloader::DataLoader;
use burn::data::dataset::Dataset;
use burn_prefetch::DataLoaderBuilder;

use crate::os::keep_freed_memory;
use crate::{
    ByteBatch, Contender, Effort, PictureBatcher, PictureRows, Pictures, Setup, Window, epoch,
    epoch_with, interleaved, real,
};

const BATCH: usize = 128;
const WORKERS: [usize; 4] = [0, 1, 2, 4];

/// Who hands out memory, to both contenders alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allocator {
    /// The system's, as it is.
    System,
    /// glibc's, told to keep what is freed.
    Untrimmed,
    /// mimalloc.
    Mimalloc,
}

impl Allocator {
    /// The argument under which a program runs the contest itself.
    #[must_use]
    pub fn flag(self) -> &'static str {
        match self {
            Self::System => "--under-system",
            Self::Untrimmed => "--under-untrimmed",
            Self::Mimalloc => "--under-mimalloc",
        }
    }
}

impl fmt::Display for Allocator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::System => "the system's, as it is",
            Self::Untrimmed => "glibc, trimming off",
            Self::Mimalloc => "mimalloc",
        })
    }
}

/// Runs the contest in this process and writes one line for each number of workers, cells apart by tabs.
///
/// # Errors
///
/// If standard output cannot be written to, or the allocator cannot be set up as asked.
pub fn contest(allocator: Allocator, effort: Effort) -> io::Result<()> {
    if allocator == Allocator::Untrimmed && !keep_freed_memory() {
        return Err(io::Error::other("this system's allocator is not glibc's"));
    }
    let pictures = Pictures::new(effort.pick(4, 200) * BATCH);
    for workers in WORKERS {
        let cells = cells(&pictures, workers, effort);
        writeln!(io::stdout().lock(), "{}", cells.join("\t"))?;
    }
    Ok(())
}

/// The cells of one number of workers: workers, Burn's and our images a second, the ratios of speed and of CPU time, and the speed of
/// staged bytes against our plain batches, as they come and widened by the reader.
fn cells(pictures: &Pictures, workers: usize, effort: Effort) -> Vec<String> {
    let setup = Setup {
        batch_size: BATCH,
        workers,
        shuffle: Some(7),
    };
    let run =
        |contender: Contender| epoch(contender.build(setup, PictureBatcher, pictures.clone()));
    let staged = || -> Arc<dyn DataLoader<ByteBatch>> {
        let builder = DataLoaderBuilder::staged(PictureRows).batch_size(BATCH);
        let builder = builder.num_workers(workers).shuffle(7);
        let loader = builder.try_build_into(pictures.clone());
        Arc::new(loader.expect("the benches' settings are good"))
    };
    let runs = vec![
        run(Contender::Burn),
        run(Contender::Ours(Window::Learned)),
        epoch(staged()),
        epoch_with(staged(), |batch| drop(batch.widened())),
    ];
    let series = interleaved(effort.pick(1, 15), runs);
    let images = real(pictures.len());
    vec![
        workers.to_string(),
        format!("{:.0}", images / series[0].wall()),
        format!("{:.0}", images / series[1].wall()),
        series[1].speed_against(&series[0]).to_string(),
        series[1].work_against(&series[0]).to_string(),
        series[2].speed_against(&series[1]).to_string(),
        series[3].speed_against(&series[1]).to_string(),
    ]
}
