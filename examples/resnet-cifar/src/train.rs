//! Training for some epochs, with the accuracy on held-out pictures after each.

use std::io::{self, Write as _};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, ensure};
use burn::data::dataloader::DataLoader;
use burn::tensor::Device;
use indicatif::ProgressBar;

use crate::batch::CifarBatch;
use crate::cli::{LoaderArgs, Setup, TrainArgs};
use crate::data::{self, Pictures, Split};
use crate::gauge::Gauge;
use crate::loader::Feed;
use crate::meter;
use crate::model::ResNet;
use crate::progress;
use crate::step::Trainer;

type Batches = Arc<dyn DataLoader<CifarBatch>>;

/// Trains, prints one line for each epoch.
pub(crate) fn train(args: &TrainArgs) -> anyhow::Result<()> {
    args.loader.check()?;
    let setup = &args.setup;
    let device = Device::flex().autodiff();
    let (pictures, test) = (
        data::load(setup, Split::Train)?,
        data::load(setup, Split::Test)?,
    );
    ensure!(
        pictures.len() > 0 && test.len() > 0,
        "there is nothing to train on"
    );
    let train_batches = batches(setup, &pictures, &device, Some(&args.loader))?;
    let test_batches = batches(setup, &test, &device.clone().inner(), None)?;
    let mut trainer = Trainer::new(setup, &pictures, &device);
    let steps = pictures.len().div_ceil(setup.batch_size.get()) * args.epochs.get();
    let mut schedule = Schedule {
        base: setup.lr,
        steps,
        step: 0,
    };
    say(&format!(
        "{}; {}; tested on {}",
        setup.model.title(),
        pictures.name,
        test.name
    ))?;
    for epoch in 1..=args.epochs.get() {
        let bar = progress::bar(&format!("epoch {epoch}"), pictures.len() as u64);
        let started = Instant::now();
        let loss = one_epoch(&*train_batches, &mut trainer, (&mut schedule, &bar))?;
        let rate = meter::rate(pictures.len(), started.elapsed());
        let accuracy = accuracy(&*test_batches, &trainer.for_evaluation())?;
        bar.finish_and_clear();
        let chance = 100.0 / meter::to_f64(pictures.classes);
        say(&format!(
            "epoch {epoch}: loss {loss:.3}, {rate:.0} images/s, \
             test accuracy {:.1} % (chance: {chance:.0} %)",
            100.0 * accuracy
        ))?;
    }
    Ok(())
}

fn batches(
    setup: &Setup,
    pictures: &Arc<Pictures>,
    device: &Device,
    training: Option<&LoaderArgs>,
) -> anyhow::Result<Batches> {
    let gauge = Gauge::new(setup.batch_size.get());
    let feed = Feed {
        setup,
        pictures,
        gauge: &gauge,
        device,
    };
    match training {
        Some(args) => feed.training(args),
        None => feed.testing(),
    }
}

/// The mean loss over one pass.
fn one_epoch(
    batches: &dyn DataLoader<CifarBatch>,
    trainer: &mut Trainer,
    (schedule, bar): (&mut Schedule, &ProgressBar),
) -> anyhow::Result<f64> {
    let (mut sum, mut images) = (0.0, 0);
    for batch in batches.iter() {
        let batch = batch.context("the loader gave an error")?;
        let count = batch.len();
        trainer.set_rate(schedule.next_rate());
        let loss = trainer.step(batch)?;
        sum += f64::from(loss) * meter::to_f64(count);
        images += count;
        bar.set_message(format!("loss {loss:.3}"));
        bar.inc(count as u64);
    }
    Ok(sum / meter::to_f64(images.max(1)))
}

/// The share of pictures whose highest logit is their class.
fn accuracy(batches: &dyn DataLoader<CifarBatch>, model: &ResNet) -> anyhow::Result<f64> {
    let (mut right, mut images) = (0_i64, 0);
    for batch in batches.iter() {
        let batch = batch.context("the loader gave an error while testing")?;
        images += batch.len();
        let guess = model.forward(batch.images).argmax(1).flatten::<1>(0, 1);
        right += guess.equal(batch.targets).int().sum().into_scalar::<i64>();
    }
    let right = usize::try_from(right).context("a count of pictures is below 0")?;
    Ok(meter::to_f64(right) / meter::to_f64(images.max(1)))
}

fn say(line: &str) -> anyhow::Result<()> {
    writeln!(io::stdout().lock(), "{line}").context("cannot print")
}

/// The learning rate of each step: a tenth from one half of all steps on, a hundredth from three
/// quarters on, as in He et al. 2015 (32,000 and 48,000 of 64,000).
#[derive(Debug)]
struct Schedule {
    base: f64,
    steps: usize,
    step: usize,
}

impl Schedule {
    fn next_rate(&mut self) -> f64 {
        let rate = match 4 * self.step / self.steps.max(1) {
            0 | 1 => self.base,
            2 => self.base / 10.0,
            _ => self.base / 100.0,
        };
        self.step += 1;
        rate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_falls_at_one_half_and_at_three_quarters() {
        let mut schedule = Schedule {
            base: 1.0,
            steps: 8,
            step: 0,
        };
        let rates: Vec<f64> = (0..8).map(|_| schedule.next_rate()).collect();
        assert_eq!(rates, [1.0, 1.0, 1.0, 1.0, 0.1, 0.1, 0.01, 0.01]);
    }
}
