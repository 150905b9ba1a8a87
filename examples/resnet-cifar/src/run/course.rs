//! The loop of a run: what its steps took, lost and brought.

use std::time::{Duration, Instant};

use cpu_time::ProcessTime;
use indicatif::ProgressBar;

use super::epochs::Epochs;
use super::last_losses;
use crate::batch::PictureBatch;
use crate::checksum::Checksum;
use crate::gpu::Watch;
use crate::meter::{self, Sample};
use crate::step::Step;

/// Batches behind the last step whose pictures are read. What is lost, doubled or out of its turn
/// before them shows in them too.
const READ_AFTER: usize = 8;

/// Runs the steps of a run.
pub(super) struct Loop<'a> {
    pub(super) bar: &'a ProgressBar,
    /// Where a card computes.
    pub(super) watch: Option<&'a Watch>,
    pub(super) steps: u32,
    pub(super) warm_up: u32,
}

/// What the loop brings home.
#[derive(Debug)]
pub(super) struct Course {
    /// A step each, those of the warm-up first.
    samples: Vec<Sample>,
    /// Steps that no figure counts.
    warm_up: usize,
    pub(super) losses: Vec<f32>,
    pub(super) checksum: Checksum,
    /// Bytes of the batches after the warm-up.
    uploaded: usize,
    /// CPU time of the process in the steps after the warm-up.
    pub(super) cpu: Duration,
}

impl Loop<'_> {
    /// Runs all steps, over as many epochs as they take.
    ///
    /// A step's time is four parts, and nothing of it is left over: the wait for a batch, the widening of
    /// one of bytes, the step, the drop of the batch. What the measurement itself does lies between two steps: some
    /// microseconds.
    pub(super) fn run(&self, epochs: &mut Epochs, step: &mut Step) -> anyhow::Result<Course> {
        let mut course = Course::new(self.warm_up as usize);
        let mut cpu = ProcessTime::now();
        let mut since = Instant::now();
        for _ in 0..self.steps {
            let batch = epochs.next()?;
            let waited = since.elapsed();
            self.note(&batch, &mut course)?;
            let images = batch.len();
            let done = step.run(batch)?;
            course.losses.extend(done.loss);
            course.samples.push(Sample {
                images,
                waited,
                widened: done.widened,
                stepped: done.stepped,
                dropped: done.dropped,
            });
            if course.samples.len() == course.warm_up {
                cpu = ProcessTime::now();
                self.watch.inspect(|watch| watch.warm_up_is_over());
            }
            self.show(&course);
            since = Instant::now();
        }
        course.cpu = cpu.elapsed();
        Ok(course)
    }

    fn note(&self, batch: &PictureBatch, course: &mut Course) -> anyhow::Result<()> {
        if course.samples.len() >= course.warm_up {
            course.uploaded += batch.bytes();
        }
        // A card would have to finish all of its work first.
        if self.watch.is_none() {
            course.checksum.add_classes(batch)?;
        }
        Ok(())
    }

    fn show(&self, course: &Course) {
        if let Some(loss) = last_losses(&course.losses) {
            self.bar.set_message(format!("loss {loss:.3}"));
        }
        self.bar.inc(1);
    }
}

impl Course {
    fn new(warm_up: usize) -> Self {
        Self {
            samples: Vec::new(),
            warm_up,
            losses: Vec::new(),
            checksum: Checksum::new(),
            uploaded: 0,
            cpu: Duration::ZERO,
        }
    }

    /// Reads the pictures of some more batches, when everything is measured: that takes as long
    /// as a fast step, and no training does it.
    pub(super) fn read_on(&mut self, epochs: &mut Epochs) -> anyhow::Result<()> {
        for _ in 0..READ_AFTER {
            self.checksum.add(&epochs.next()?)?;
        }
        Ok(())
    }

    /// The steps that figures count.
    pub(super) fn measured(&self) -> &[Sample] {
        self.samples.get(self.warm_up..).unwrap_or_default()
    }

    /// Bytes of batches a second, the steps included.
    pub(super) fn upload_rate(&self) -> f64 {
        let took = self.measured().iter().map(Sample::total).sum();
        meter::rate(self.uploaded, took)
    }
}
