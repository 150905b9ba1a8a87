//! Whether device memory grows from epoch to epoch.

use std::sync::Arc;

use burn::data::dataloader::DataLoader;

use super::card::{Card, NO_KERNELS};
use super::finding::{Finding, Verdict};
use crate::batch::PictureBatch;
use crate::cli::{Cli, LoaderArgs, LoaderKind, Staging, StagingArgs, Workload};
use crate::data::{Owner, Request, Split};
use crate::gauge::Gauge;
use crate::gpu;
use crate::loader::Feed;

const EPOCHS: usize = 20;
/// The epochs after whose end memory is looked at.
const LOOKS: [usize; 4] = [2, 5, 10, EPOCHS];
/// What may come and go with the driver's own doings.
const SLACK: u64 = 8 << 20;

pub(super) fn check(card: &Card) -> anyhow::Result<Vec<Finding>> {
    let what = |staging| match staging {
        Staging::Off => "device memory over 20 epochs, plain, 8 workers",
        Staging::On | Staging::Auto => "device memory over 20 epochs, staged, 8 workers",
    };
    let all = [Staging::On, Staging::Off];
    if !card.computes {
        let skipped = all.map(|staging| Finding::skipped(what(staging), NO_KERNELS));
        return Ok(skipped.into());
    }
    if gpu::memory_in_use(card.name).is_none() {
        let why = "NVML does not tell what is in use";
        return Ok(all
            .map(|staging| Finding::skipped(what(staging), why))
            .into());
    }
    let of = |staging| Ok(finding(what(staging), &epochs(card, staging)?));
    all.into_iter().map(of).collect()
}

/// Bytes in use after these epochs.
fn epochs(card: &Card, staging: Staging) -> anyhow::Result<Vec<u64>> {
    let loader = loader(card, staging)?;
    let mut seen = Vec::new();
    for epoch in 1..=EPOCHS {
        for batch in loader.iter() {
            // What a training does with a batch, in short.
            let mean: f32 = batch?.images().mean().into_scalar();
            anyhow::ensure!(mean.is_finite(), "a batch has a pixel that is no number");
        }
        if LOOKS.contains(&epoch) {
            seen.extend(gpu::memory_in_use(card.name));
        }
    }
    Ok(seen)
}

fn loader(card: &Card, staging: Staging) -> anyhow::Result<Arc<dyn DataLoader<PictureBatch>>> {
    let mut setup = Cli::defaults().run.setup;
    setup.device = card.name;
    setup.workers = 8;
    let request = Request {
        setup: &setup,
        workload: Workload::Memory,
        owner: Owner::User,
    };
    let feed = Feed {
        setup: &setup,
        pictures: &request.load(Split::Train)?,
        gauge: &Gauge::new(setup.batch_size.get()),
        device: &card.device,
        workload: Workload::Memory,
        epoch: 0,
        budget: None,
    };
    let args = LoaderArgs {
        staging: StagingArgs::plain(staging),
        ..LoaderArgs::plain(LoaderKind::Prefetch)
    };
    Ok(feed.training(&args)?.loader)
}

fn finding(what: &str, seen: &[u64]) -> Finding {
    let first = seen.first().copied().unwrap_or_default();
    let last = seen.last().copied().unwrap_or_default();
    let shown: Vec<String> = LOOKS
        .iter()
        .zip(seen)
        .map(|(epoch, bytes)| format!("{} MiB after {epoch}", bytes >> 20))
        .collect();
    Finding {
        what: what.to_owned(),
        found: shown.join(", "),
        goal: "flat after the 2nd",
        verdict: Verdict::of(last <= first + SLACK),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_what_the_last_look_has_above_the_first() {
        let mebibyte = 1 << 20;
        let flat = finding("x", &[100 * mebibyte, 107 * mebibyte, 101 * mebibyte]);
        assert_eq!(flat.verdict, Verdict::Holds);
        let grown = finding("x", &[100 * mebibyte, 150 * mebibyte, 200 * mebibyte]);
        assert_eq!(grown.verdict, Verdict::Missed);
        assert!(grown.found.starts_with("100 MiB after 2, 150 MiB after 5"));
    }
}
