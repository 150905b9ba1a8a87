//! One run of a contender: its loader, its steps, its figures.

mod answer;
mod course;
mod epochs;
mod figures;

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use burn::tensor::Device;
use indicatif::ProgressBar;
use serde::Serialize;

use crate::allocator;
use crate::cli::{ContenderArgs, LoaderArgs, LoaderKind, RunArgs, Size, Staging};
use crate::data::{Drawn, Owner, Pictures, Request, Split};
use crate::gauge::Gauge;
use crate::gpu::{self, GpuFigures, Watch};
use crate::lifeline;
use crate::loader::{self, Feed};
use crate::memory::Baseline;
use crate::meter::{self, Waits};
use crate::progress;
use crate::step::{Step, Trainer};
use crate::timeline::Timeline;
pub(crate) use answer::Answer;
use course::{Course, Loop};
use epochs::Epochs;
pub(crate) use figures::Run;

/// Runs one contender in this process and prints its figures as one JSON object, for a parent inside
/// of an [`Answer`].
pub(crate) fn contender(args: &ContenderArgs) -> anyhow::Result<()> {
    if !args.with_parent {
        gpu::note(args.run.setup.device);
        return print(&one(args)?);
    }
    lifeline::hold(left_behind(args))?;
    let answer = Answer::of(one(args));
    // A parent that is gone needs no answer, and has said itself why it went.
    let _ = print(&answer);
    Ok(())
}

/// The folder that a parent which was killed leaves to its child.
fn left_behind(args: &ContenderArgs) -> Option<PathBuf> {
    let drawn = args.drawn.then(|| Drawn::left_by(&args.run.setup.data));
    drawn.flatten()
}

fn print(figures: &impl Serialize) -> anyhow::Result<()> {
    let json = serde_json::to_string(figures).context("cannot write the figures as JSON")?;
    writeln!(io::stdout().lock(), "{json}").context("cannot print the figures")
}

fn one(args: &ContenderArgs) -> anyhow::Result<Run> {
    if args.with_parent {
        args.run.fits()?;
    } else {
        args.run.check()?;
    }
    args.loader.check()?;
    let owner = if args.drawn {
        Owner::Drawn
    } else {
        Owner::User
    };
    let request = Request {
        setup: &args.run.setup,
        workload: args.run.workload,
        owner,
    };
    let pictures = request.load(Split::Train)?;
    let title = args.title.clone().unwrap_or_else(|| name(&args.loader));
    let bar = progress::bar(&title, args.run.steps.into());
    let run = measure(&args.run, &args.loader, (&pictures, &bar))?;
    bar.finish_and_clear();
    Ok(run)
}

fn measure(
    run: &RunArgs,
    args: &LoaderArgs,
    (pictures, bar): (&Arc<Pictures>, &ProgressBar),
) -> anyhow::Result<Run> {
    let setup = &run.setup;
    let watch = Watch::of(setup.device)?;
    let device = setup.device.open()?;
    let (mut step, baseline) = Baseline::of(|| first_step(run, pictures, &device));
    let gauge = Gauge::new(setup.batch_size.get());
    let budget = loader::budget(args);
    let feed = Feed {
        setup,
        pictures,
        gauge: &gauge,
        device: &device,
        workload: run.workload,
        epoch: 0,
        budget: budget.as_ref(),
    };
    let loading = feed.training(args)?;
    let timeline = Timeline::start(&gauge)?;
    let mut epochs = Epochs::of(&*loading.loader, &gauge);
    let steps = Loop {
        bar,
        watch: watch.as_ref(),
        steps: run.steps,
        warm_up: run.warm_up(),
    };
    let mut course = steps.run(&mut epochs, &mut step)?;
    let peak = gauge.peak();
    let rss = baseline.and_then(Baseline::peak_above);
    let timeline = timeline.stop();
    let seen = watch.map(Watch::stop);
    let gpu = seen.map(|seen| GpuFigures::new(seen, course.upload_rate(), loading.staging()));
    let reserved_bytes = loading.reserved();
    course.read_on(&mut epochs)?;
    drop(epochs);
    drop(loading);
    let alive = gauge.alive();
    ensure!(alive == 0, "{alive} batches outlive their loader");
    Ok(Run {
        peak_batches_alive: peak.batches,
        peak_batch_bytes: peak.bytes,
        peak_rss_above_baseline_bytes: rss,
        reserved_bytes,
        timeline,
        gpu,
        ..figures(run, args, (&pictures.name, course))
    })
}

fn first_step(run: &RunArgs, pictures: &Pictures, device: &Device) -> Step {
    match run.step_ms {
        Some(wait) => Step::Simulated(Duration::from_millis(wait)),
        None => Step::Train(Box::new(Trainer::new(&run.setup, pictures, device))),
    }
}

fn figures(run: &RunArgs, args: &LoaderArgs, (data, course): (&str, Course)) -> Run {
    let samples = course.measured();
    let shares = meter::shares(samples);
    let batches = meter::to_f64(samples.len().max(1));
    Run {
        name: name(args),
        loader: args.loader,
        staged: args.is_staged(run.setup.device),
        device: run.setup.device.to_string(),
        workers: run.setup.workers,
        batch_size: run.setup.batch_size.get(),
        bound: loader::bound(args, run.setup.workers),
        memory_budget_bytes: args.memory_budget.map(|Size(bytes)| bytes),
        reserved_bytes: None,
        steps: run.steps,
        warm_up_steps: run.warm_up(),
        data: data.to_owned(),
        workload: run.workload,
        allocator: allocator::in_use(),
        model: run.setup.model.title().to_owned(),
        step_ms: run.step_ms,
        images_per_second: meter::images_per_second(samples),
        wait_share: shares.waited,
        step_share: shares.stepped,
        drop_share: shares.dropped,
        cpu_seconds_per_1000_batches: 1e3 * course.cpu.as_secs_f64() / batches,
        waits: Waits::of(samples),
        peak_batches_alive: 0,
        peak_batch_bytes: 0,
        peak_rss_above_baseline_bytes: None,
        timeline: Vec::new(),
        final_loss: last_losses(&course.losses),
        losses: course.losses,
        checksum: course.checksum.hex(),
        gpu: None,
    }
}

/// What the contender is called in the table.
pub(crate) fn name(args: &LoaderArgs) -> String {
    let mut words = Vec::new();
    if args.staging.staging == Staging::On {
        words.push("staged".to_owned());
    }
    if let Some(factor) = args.prefetch_factor {
        words.push(format!("prefetch_factor({factor})"));
    }
    if let Some(total) = args.prefetch {
        words.push(format!("prefetch({total})"));
    }
    if let Some(size) = args.memory_budget {
        words.push(format!("memory_budget({size})"));
    }
    match args.loader {
        LoaderKind::Burn => "Burn's loader".to_owned(),
        LoaderKind::Prefetch if words.is_empty() => "burn-prefetch".to_owned(),
        LoaderKind::Prefetch => words.join(", "),
    }
}

#[expect(clippy::cast_precision_loss, reason = "there are at most five")]
fn last_losses(losses: &[f32]) -> Option<f32> {
    let last = &losses[losses.len().saturating_sub(5)..];
    (!last.is_empty()).then(|| last.iter().sum::<f32>() / last.len() as f32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_final_loss_is_the_mean_of_the_last_five() {
        assert_eq!(last_losses(&[]), None);
        assert_eq!(last_losses(&[3.0]), Some(3.0));
        assert_eq!(last_losses(&[100.0, 1.0, 2.0, 3.0, 4.0, 5.0]), Some(3.0));
    }
}
