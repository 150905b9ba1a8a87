//! Plain batchers that compute on the card: on one stream for all, and on one for each worker.

use std::time::{Duration, Instant};

use burn::data::dataloader::batcher::Batcher;
use burn::data::dataset::InMemDataset;
use burn::tensor::{DType, Device, Int, StreamId, Tensor, TensorData};
use burn_prefetch::{DataLoaderBuilder, PrefetchDataLoader};

use super::card::{Card, NO_KERNELS};
use super::finding::Finding;
use crate::meter;

const BATCHES: usize = 5_000;
const LAST: usize = 500;
const BATCH: usize = 64;
/// Bytes of a sample.
const BYTES: usize = 3_072;
/// A pass ends after it.
const PATIENCE: Duration = Duration::from_secs(12);

/// Widens and normalises on the card, a few operations that can be fused.
struct Normalising {
    stream: Option<StreamId>,
}

impl Batcher<u8, Tensor<2>> for Normalising {
    fn batch(&self, items: Vec<u8>, device: &Device) -> Tensor<2> {
        let work = || {
            let bytes: Vec<u8> = items.iter().flat_map(|item| [*item; BYTES]).collect();
            let data = TensorData::new(bytes, [items.len(), BYTES]);
            let bytes = Tensor::<2, Int>::from_data(data, (device, DType::U8));
            (bytes.float() / 255.0 - 0.5) / 0.25
        };
        match self.stream {
            Some(stream) => stream.executes(work),
            None => work(),
        }
    }
}

pub(super) fn check(card: &Card) -> anyhow::Result<Vec<Finding>> {
    let fused = if cfg!(feature = "fusion") {
        "with fusion"
    } else {
        "without fusion"
    };
    let ways = [
        ("a stream for each", None),
        ("one stream", Some(StreamId::allocate())),
    ];
    let mut findings = Vec::new();
    for (name, stream) in ways {
        let what = format!("plain batcher that computes, 8 workers, {name}, {fused}");
        findings.push(if card.computes {
            Finding::shown(what, run(card, stream)?)
        } else {
            Finding::skipped(what, NO_KERNELS)
        });
    }
    Ok(findings)
}

fn run(card: &Card, stream: Option<StreamId>) -> anyhow::Result<String> {
    let loader: PrefetchDataLoader<Tensor<2>> = DataLoaderBuilder::new(Normalising { stream })
        .batch_size(BATCH)
        .num_workers(8)
        .set_device(card.device.clone())
        .try_build(InMemDataset::new(vec![7_u8; BATCHES * BATCH]))?;
    let since = Instant::now();
    let mut ends = Vec::with_capacity(BATCHES);
    for batch in loader.iter_owned() {
        // The reader waits for the card, so that no queue hides what a batch takes.
        drop(batch?.sum().into_data());
        ends.push(since.elapsed());
        if since.elapsed() > PATIENCE {
            break;
        }
    }
    Ok(per_batch(&ends))
}

/// The time of a batch at the beginning and at the end, from the times at which they were done.
fn per_batch(ends: &[Duration]) -> String {
    let last = LAST.min(ends.len() / 2);
    if last == 0 {
        return "no batch was done".to_owned();
    }
    let of = |from: usize, to: usize| {
        let took = ends[to].saturating_sub(ends[from]);
        1e3 * took.as_secs_f64() / meter::to_f64((to - from).max(1))
    };
    let end = ends.len() - 1;
    format!(
        "{:.3} ms a batch in the last {last} of {}, {:.3} ms in the first {last}",
        of(end - last, end),
        ends.len(),
        of(0, last)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_batches_are_told_from_the_first() {
        let ends: Vec<Duration> = (0..2_000_u64)
            .map(|at| {
                Duration::from_micros(if at < 1_000 {
                    at
                } else {
                    1_000 + (at - 1_000) * 3
                })
            })
            .collect();
        let said = per_batch(&ends);
        assert!(
            said.starts_with("0.003 ms a batch in the last 500 of 2000"),
            "{said}"
        );
        assert!(said.ends_with("0.001 ms in the first 500"), "{said}");
        assert_eq!(per_batch(&[]), "no batch was done");
    }
}
