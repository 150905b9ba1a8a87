//! One run of a contender: its loader, its steps, its figures.

use std::io::{self, Write as _};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, ensure};
use burn::data::dataloader::{DataLoader, DataLoaderIterator};
use burn::tensor::Device;
use cpu_time::ProcessTime;
use indicatif::ProgressBar;
use serde::{Deserialize, Serialize};

use crate::allocator;
use crate::batch::PictureBatch;
use crate::checksum::Checksum;
use crate::cli::{
    Allocator, ContenderArgs, LoaderArgs, LoaderKind, RunArgs, Size, Staging, Workload,
};
use crate::data::{Drawn, Owner, Pictures, Request, Split, Unreadable};
use crate::gauge::Gauge;
use crate::gpu::{self, GpuFigures, Watch};
use crate::lifeline;
use crate::loader::{self, Feed};
use crate::memory::Baseline;
use crate::meter::{self, Sample, Waits};
use crate::progress;
use crate::step::{Step, Trainer};
use crate::timeline::{Moment, Timeline};

/// The figures of one run, or of several put together: what a row of the table is made from.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Run {
    /// What it is called, unique within a table.
    pub(crate) name: String,
    pub(crate) loader: LoaderKind,
    /// Whether batches stayed bytes until they were on the device.
    pub(crate) staged: bool,
    pub(crate) device: String,
    pub(crate) workers: u16,
    pub(crate) batch_size: usize,
    /// The most batches that may be alive; null where the loader has no such setting, or it was
    /// left alone.
    pub(crate) bound: Option<usize>,
    /// The bytes that batches alive may have together, or that one has; null where none was set.
    pub(crate) memory_budget: Option<u64>,
    /// The most bytes that the loader had set aside for batches, by its own count; null where it
    /// has none.
    pub(crate) reserved_bytes: Option<u64>,
    /// Steps that were run, the warm-up among them.
    pub(crate) steps: u32,
    /// Steps at the start that no rate, no share and no wait counts.
    pub(crate) warm_up_steps: u32,
    /// The data's name; drawn data says so.
    pub(crate) data: String,
    pub(crate) workload: Workload,
    pub(crate) allocator: Allocator,
    pub(crate) model: String,
    /// The wait that replaced the training step; null where the network was trained.
    pub(crate) step_ms: Option<u64>,
    /// The median over the steps.
    pub(crate) images_per_second: f64,
    /// The share of time in which the training thread had no batch, 0 to 1.
    pub(crate) wait_share: f64,
    /// CPU time of the whole process for 1,000 batches, seconds.
    pub(crate) cpu_seconds_per_1000_batches: f64,
    /// How long `next()` took.
    pub(crate) waits: Waits,
    pub(crate) peak_batches_alive: usize,
    /// Bytes.
    pub(crate) peak_batch_bytes: usize,
    /// Bytes above the most that a training without any loader held before; null where the system
    /// keeps no peak that can start anew.
    pub(crate) peak_rss_above_baseline: Option<usize>,
    pub(crate) timeline: Vec<Moment>,
    /// The mean of the last five losses; null where the step is simulated.
    pub(crate) final_loss: Option<f32>,
    /// Every step's loss.
    pub(crate) losses: Vec<f32>,
    /// Of the batches' bytes, in the order of their arrival; on a card of those in the warm-up
    /// alone, since reading them back is work that no training has.
    pub(crate) checksum: String,
    /// Null where no card computes.
    pub(crate) gpu: Option<GpuFigures>,
}

/// What the loop brings home.
#[derive(Debug)]
struct Course {
    samples: Vec<Sample>,
    losses: Vec<f32>,
    checksum: Checksum,
    /// When the last step ended: what passes until the next batch is waiting.
    since: Instant,
    /// Steps that no figure counts.
    warm_up: usize,
    /// Set when these are over.
    cpu_since: Option<ProcessTime>,
    /// Bytes of the batches after them.
    uploaded: usize,
}

/// Runs one contender in this process and prints its figures as one JSON object.
pub(crate) fn contender(args: &ContenderArgs) -> anyhow::Result<()> {
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
    if args.with_parent {
        lifeline::hold(
            args.drawn
                .then(|| Drawn::left_by(&args.run.setup.data))
                .flatten(),
        )?;
    }
    let request = Request {
        setup: &args.run.setup,
        workload: args.run.workload,
        owner,
    };
    let pictures = request.load(Split::Train)?;
    if !args.with_parent {
        gpu::note(args.run.setup.device);
    }
    let title = args.title.clone().unwrap_or_else(|| name(&args.loader));
    let bar = progress::bar(&title, args.run.steps.into());
    let run = measure(&args.run, &args.loader, (&pictures, &bar))?;
    bar.finish_and_clear();
    let json = serde_json::to_string(&run).context("cannot write the figures as JSON")?;
    writeln!(io::stdout().lock(), "{json}").context("cannot print the figures")
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
    let feed = Feed {
        setup,
        pictures,
        gauge: &gauge,
        device: &device,
        workload: run.workload,
        epoch: 0,
    };
    let loading = feed.training(args)?;
    let timeline = Timeline::start(&gauge)?;
    let course = Loop {
        loader: &*loading.loader,
        gauge: &gauge,
        bar,
        watch: watch.as_ref(),
    }
    .run(run, &mut step)?;
    let rss = baseline.and_then(Baseline::peak_above);
    let timeline = timeline.stop();
    let seen = watch.map(Watch::stop);
    let gpu = seen.map(|seen| GpuFigures::new(seen, course.upload_rate(), loading.staging()));
    let reserved_bytes = loading.reserved();
    drop(loading);
    let alive = gauge.alive();
    ensure!(alive == 0, "{alive} batches outlive their loader");
    Ok(Run {
        peak_batches_alive: gauge.peak().batches,
        peak_batch_bytes: gauge.peak().bytes,
        peak_rss_above_baseline: rss,
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
    let samples = course.samples.get(course.warm_up..).unwrap_or_default();
    let cpu = course.cpu_since.map(|since| since.elapsed());
    let batches = meter::to_f64(samples.len().max(1));
    Run {
        name: name(args),
        loader: args.loader,
        staged: args.is_staged(run.setup.device),
        device: run.setup.device.to_string(),
        workers: run.setup.workers,
        batch_size: run.setup.batch_size.get(),
        bound: loader::bound(args, run.setup.workers),
        memory_budget: args.memory_budget.map(|Size(bytes)| bytes),
        reserved_bytes: None,
        steps: run.steps,
        warm_up_steps: run.warm_up(),
        data: data.to_owned(),
        workload: run.workload,
        allocator: allocator::in_use(),
        model: run.setup.model.title().to_owned(),
        step_ms: run.step_ms,
        images_per_second: meter::images_per_second(samples),
        wait_share: meter::wait_share(samples),
        cpu_seconds_per_1000_batches: 1e3 * cpu.unwrap_or_default().as_secs_f64() / batches,
        waits: Waits::of(samples),
        peak_batches_alive: 0,
        peak_batch_bytes: 0,
        peak_rss_above_baseline: None,
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

/// The training loop; it sees Burn's traits only.
struct Loop<'a> {
    loader: &'a dyn DataLoader<PictureBatch>,
    gauge: &'a Gauge,
    bar: &'a ProgressBar,
    /// Where a card computes.
    watch: Option<&'a Watch>,
}

impl Loop<'_> {
    /// Runs all steps, over as many epochs as they take.
    fn run(&self, run: &RunArgs, step: &mut Step) -> anyhow::Result<Course> {
        let steps = run.steps as usize;
        let mut course = Course::new(run.warm_up() as usize);
        while course.samples.len() < steps {
            let before = course.samples.len();
            let mut batches = self.loader.iter();
            while course.samples.len() < steps && self.advance(&mut *batches, step, &mut course)? {}
            ensure!(
                course.samples.len() > before,
                "an epoch of the data has no batch"
            );
        }
        Ok(course)
    }

    /// One step; `false` where the epoch has no batch left, and then the time goes on.
    fn advance(
        &self,
        batches: &mut dyn DataLoaderIterator<PictureBatch>,
        step: &mut Step,
        course: &mut Course,
    ) -> anyhow::Result<bool> {
        let asking = self.gauge.ask();
        let Some(batch) = batches.next() else {
            return Ok(false);
        };
        let batch = batch.map_err(|error| match Unreadable::among(&error) {
            Some(file) => anyhow!("{file}"),
            None => anyhow!(error).context("the loader gave an error"),
        })?;
        asking.got(&batch.guard);
        let waited = course.since.elapsed();
        let images = batch.len();
        if course.is_measured() {
            course.uploaded += batch.bytes();
        }
        let batch = batch.normalised();
        if self.watch.is_none() || !course.is_measured() {
            course.checksum.add(&batch)?;
        }
        course.losses.extend(step.run(batch)?);
        course.samples.push(Sample {
            images,
            waited,
            total: course.since.elapsed(),
        });
        course.since = Instant::now();
        if course.samples.len() == course.warm_up {
            course.cpu_since = Some(ProcessTime::now());
            self.watch.inspect(|watch| watch.warm_up_is_over());
        }
        if let Some(loss) = last_losses(&course.losses) {
            self.bar.set_message(format!("loss {loss:.3}"));
        }
        self.bar.inc(1);
        Ok(true)
    }
}

impl Course {
    /// Whether the warm-up is over.
    fn is_measured(&self) -> bool {
        self.cpu_since.is_some()
    }

    /// Bytes of batches a second, the steps included.
    fn upload_rate(&self) -> f64 {
        let samples = self.samples.get(self.warm_up..).unwrap_or_default();
        let took = samples.iter().map(|sample| sample.total).sum();
        meter::rate(self.uploaded, took)
    }

    fn new(warm_up: usize) -> Self {
        Self {
            samples: Vec::new(),
            losses: Vec::new(),
            checksum: Checksum::new(),
            since: Instant::now(),
            warm_up,
            cpu_since: None,
            uploaded: 0,
        }
    }
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
