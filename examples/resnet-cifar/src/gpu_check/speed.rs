//! How fast batches are uploaded, beside other ways and a bare copy from page-locked memory.

use std::time::Instant;

use anyhow::Context as _;
use burn::tensor::{DType, Int, Tensor, TensorData};
use burn_prefetch::PrefetchDataLoader;

use super::card::Card;
use super::finding::{Finding, Verdict};
use super::numbered::{Numbered, NumberedBatch, Written, filled};
use crate::meter;

/// Bytes of a batch, and how many are uploaded in a row.
const SIZES: [(usize, usize); 3] = [(1 << 20, 64), (8 << 20, 16), (64 << 20, 4)];
/// The ways take turns, so that what slows the machine for a while hits all alike.
const ROUNDS: usize = 3;
/// Batches before the time runs: then every slot is page-locked.
const WARM_UP: usize = 8;
/// Batches alive in our loader.
const ALIVE: usize = 4;
/// Samples of a batch.
const BATCH: usize = 64;
const GOAL: f64 = 0.9;
/// From this size on.
const FROM: usize = 8 << 20;

/// A way to the card.
#[derive(Debug, Clone, Copy)]
enum Way {
    /// `Tensor::from_data` of memory as it is.
    Plain,
    /// `Device::staging`, then `Tensor::from_data`.
    Cubecl,
    /// Our loader with 8 workers, which write nothing.
    Ours,
    /// `Tensor::from_data` of memory that has been page-locked before: the limit.
    Bare,
}

const WAYS: [Way; 4] = [Way::Plain, Way::Cubecl, Way::Ours, Way::Bare];

pub(super) fn check(card: &Card) -> anyhow::Result<Vec<Finding>> {
    SIZES.iter().map(|&size| of_size(card, size)).collect()
}

fn of_size(card: &Card, (bytes, count): (usize, usize)) -> anyhow::Result<Finding> {
    let samples = Numbered {
        samples: BATCH * (WARM_UP + count),
        bytes: bytes / BATCH,
        written: Written::Nothing,
    };
    // For all rounds: it keeps its slots.
    let loader = samples.loader(&card.device, |builder| {
        let builder = builder.batch_size(BATCH).num_workers(8);
        builder.prefetch(ALIVE).device_prefetch(2)
    })?;
    let mut rates = WAYS.map(|_| Vec::new());
    for _ in 0..ROUNDS {
        for (way, rates) in WAYS.iter().zip(&mut rates) {
            rates.push(match way {
                Way::Ours => ours(card, &loader)?,
                Way::Plain | Way::Cubecl | Way::Bare => way.rate(card, (bytes, count))?,
            });
        }
    }
    let rates = rates.map(|rates| meter::median(rates.into_iter()).unwrap_or(0.0));
    let [plain, cubecl, ours, bare] = rates.map(|rate| rate / 1e9);
    let share = ours / bare.max(1e-9);
    let judged = card.computes && bytes >= FROM;
    Ok(Finding {
        what: format!("upload of batches of {} MiB, GB/s", bytes >> 20),
        found: format!(
            "plain {plain:.1}, CubeCL's own staging {cubecl:.1}, staged {ours:.1}, bare pinned copy \
             {bare:.1}: staged is {share:.2} of it"
        ),
        goal: if bytes >= FROM { "at least 0.9" } else { "" },
        verdict: if judged {
            Verdict::of(share >= GOAL)
        } else {
            Verdict::Shown
        },
    })
}

impl Way {
    /// Bytes a second, without our loader.
    fn rate(self, card: &Card, (bytes, count): (usize, usize)) -> anyhow::Result<f64> {
        let one = filled(bytes);
        let data = |_| TensorData::from_bytes_vec(one.clone(), [bytes], DType::U8);
        let mut all: Vec<TensorData> = (0..count).map(data).collect();
        if matches!(self, Self::Bare) {
            card.device.staging(all.iter_mut());
        }
        card.took(Instant::now())?;
        let since = Instant::now();
        for mut data in all {
            if matches!(self, Self::Cubecl) {
                card.device.staging(std::iter::once(&mut data));
            }
            let options = (&card.device, DType::U8);
            drop(Tensor::<1, Int>::from_data(data, options));
        }
        Ok(meter::rate(bytes * count, card.took(since)?))
    }
}

/// Bytes a second of a pass of our loader, without its beginning. What was on its way when the time
/// began is not counted.
fn ours(card: &Card, loader: &PrefetchDataLoader<NumberedBatch>) -> anyhow::Result<f64> {
    let uploaded = || {
        let stats = loader.staging().context("the batches were not staged")?;
        usize::try_from(stats.uploaded_bytes).context("too many bytes")
    };
    let mut batches = loader.iter_owned();
    for _ in 0..WARM_UP {
        batches.next().context("there is a batch")??;
    }
    card.took(Instant::now())?;
    let (since, before) = (Instant::now(), uploaded()?);
    for batch in batches {
        drop(batch?);
    }
    let took = card.took(since)?;
    Ok(meter::rate(uploaded()? - before, took))
}
