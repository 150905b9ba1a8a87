//! The figures of one run: what a row of the table is made from.

use serde::{Deserialize, Serialize};

use crate::cli::{Allocator, LoaderKind, Workload};
use crate::gpu::GpuFigures;
use crate::meter::Waits;
use crate::timeline::Moment;

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
    pub(crate) memory_budget_bytes: Option<u64>,
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
    /// The images of all steps after the warm-up by their time.
    pub(crate) images_per_second: f64,
    /// The share of time in which the training thread had no batch that the network takes, 0 to 1: it was
    /// in `next()`, or widened bytes.
    pub(crate) wait_share: f64,
    /// The share that went into steps.
    pub(crate) step_share: f64,
    /// The share that went into dropping batches; the three shares are all of the time.
    pub(crate) drop_share: f64,
    /// CPU time of the whole process for 1,000 batches, seconds.
    pub(crate) cpu_seconds_per_1000_batches: f64,
    /// How long `next()` took.
    pub(crate) waits: Waits,
    pub(crate) peak_batches_alive: usize,
    pub(crate) peak_batch_bytes: usize,
    /// Bytes above the most that a training without any loader held before; null where the system
    /// keeps no peak that can start anew.
    pub(crate) peak_rss_above_baseline_bytes: Option<usize>,
    pub(crate) timeline: Vec<Moment>,
    /// The mean of the last five losses; null where the step is simulated.
    pub(crate) final_loss: Option<f32>,
    /// Every step's loss.
    pub(crate) losses: Vec<f32>,
    /// Of the classes of all batches in the order of their arrival, then of the pictures of some
    /// batches more, which are read when everything is measured; on a card of the latter alone.
    pub(crate) checksum: String,
    /// Null where no card computes.
    pub(crate) gpu: Option<GpuFigures>,
}
