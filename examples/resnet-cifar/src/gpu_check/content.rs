//! Whether what is uploaded arrives, whatever else the card does and however early a pass ends.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use burn::tensor::{Distribution, Tensor};
use burn_prefetch::PrefetchDataLoader;

use super::card::{Card, NO_KERNELS};
use super::finding::{Finding, Verdict};
use super::numbered::{Numbered, NumberedBatch, Written};

const BATCH: usize = 64;
const SAMPLES: Numbered = Numbered {
    samples: 250 * BATCH,
    bytes: 3_072,
    written: Written::All,
};
/// Every other pass ends early.
const PASSES: [usize; 10] = [250, 150, 250, 150, 250, 150, 250, 150, 250, 150];
/// Batches that are kept before the first of them is read back.
const KEPT: usize = 4;
/// No more passes begin after it.
const PATIENCE: Duration = Duration::from_mins(1);

/// What was read back.
#[derive(Default)]
struct Tally {
    batches: usize,
    wrong: usize,
    out_of_order: usize,
}

/// Reads 2,000 batches back, with 8 workers.
pub(super) fn check(card: &Card) -> anyhow::Result<Vec<Finding>> {
    let loader = SAMPLES.loader(&card.device, |builder| {
        builder.batch_size(BATCH).num_workers(8)
    })?;
    let since = Instant::now();
    let mut tally = Tally::default();
    for batches in PASSES {
        if since.elapsed() < PATIENCE {
            pass(card, (&loader, batches), &mut tally)?;
        }
    }
    let stats = loader.staging().context("the batches were not staged")?;
    let work = if card.computes {
        "long work queued before each"
    } else {
        NO_KERNELS
    };
    let found = format!(
        "{} batches, {} samples wrong, {} batches out of order; {} pinned slots, {} fall-backs; {work}",
        tally.batches,
        tally.wrong,
        tally.out_of_order,
        stats.pinned_slots,
        stats.pageable_fallbacks
    );
    let sound = tally.wrong + tally.out_of_order == 0 && tally.batches > 0;
    Ok(vec![Finding {
        what: "uploaded batches read back, 8 workers, passes ended early".to_owned(),
        found,
        goal: "2,000 batches, none wrong",
        verdict: match (sound, stats.pinned_slots) {
            (false, _) => Verdict::Broken,
            (true, 0) => Verdict::Missed,
            (true, _) => Verdict::of(tally.batches == PASSES.iter().sum::<usize>()),
        },
    }])
}

fn pass(
    card: &Card,
    (loader, batches): (&PrefetchDataLoader<NumberedBatch>, usize),
    tally: &mut Tally,
) -> anyhow::Result<()> {
    let work = card
        .computes
        .then(|| Tensor::<2>::random([1_024, 1_024], Distribution::Default, &card.device));
    let mut kept = VecDeque::new();
    let mut first = 0;
    for batch in loader.iter_owned().take(batches) {
        let long = work
            .as_ref()
            .map(|work| (0..4).fold(work.clone(), |all, _| all.matmul(work.clone())));
        drop(long);
        kept.push_back(batch?);
        if kept.len() > KEPT {
            tally.read(kept.pop_front(), &mut first)?;
        }
    }
    while !kept.is_empty() {
        tally.read(kept.pop_front(), &mut first)?;
    }
    Ok(())
}

impl Tally {
    fn read(&mut self, batch: Option<NumberedBatch>, first: &mut i64) -> anyhow::Result<()> {
        let Some(batch) = batch else { return Ok(()) };
        let (numbers, wrong) = batch.read(SAMPLES)?;
        let in_order = (*first..)
            .zip(&numbers)
            .all(|(number, found)| number == *found);
        self.batches += 1;
        self.wrong += wrong;
        self.out_of_order += usize::from(!in_order || numbers.len() != BATCH);
        *first += i64::try_from(BATCH)?;
        Ok(())
    }
}
