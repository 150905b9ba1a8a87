//! What is checked on a card, one point at a time.

use clap::{Args, ValueEnum};

use crate::data::Source;
use crate::device::Device;

#[derive(Debug, Clone, Args)]
pub(crate) struct GpuCheckArgs {
    /// What to check; prints its rows of a Markdown table.
    #[arg(value_enum)]
    pub(crate) point: Point,
    /// The card.
    #[arg(long, value_name = "DEVICE", default_value = "cuda:0")]
    pub(crate) device: Device,
    /// The pictures to train on.
    #[arg(long, value_name = "DIR|shapes", default_value = "shapes")]
    pub(crate) data: Source,
}

/// What can be checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Point {
    /// What is uploaded arrives, whatever else the card does and however early a pass ends
    Content,
    /// How fast batches are uploaded, beside other ways and a bare copy
    Speed,
    /// A training with Burn's loader and with ours, plain and staged
    Training,
    /// Whether device memory grows from epoch to epoch
    Growth,
    /// Plain batchers on one stream and on a stream for each worker
    Streams,
}
