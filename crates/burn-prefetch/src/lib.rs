//! A data loader for [Burn](https://burn.dev) that takes the place of
//! `burn::data::dataloader::DataLoaderBuilder` by one changed import, and then gives what Burn's
//! own does not: a hard bound on the batches alive, one order for any number of workers, workers
//! that outlive epochs, and errors that say where.
//!
//! # Features
//!
//! None is on by default.
//!
//! | feature | what it adds |
//! |---|---|
//! | `cuda` | Burn's CUDA backend; there, batches that go through host memory ([`DataLoaderBuilder::staged`], [`pin_memory`](DataLoaderBuilder::pin_memory)) lie in page-locked memory and one stream uploads them |
//! | `train` | burn-train, and for its dashboard and logs `DataWaitMetric`, `PrefetchReadinessMetric` and `LoaderMemoryMetric` |
//! | `tracing` | spans around what is done for a batch |
//!
//! With `tracing` each of these is a span of the crate `tracing`, target `burn_prefetch`, level `DEBUG`, for
//! as long as it lasts, on the thread that does it. All fields are numbers.
//!
//! | span | fields | what it stands for |
//! |---|---|---|
//! | `fetch` | `epoch`, `batch`, `items` | so many items of a batch, inside the dataset; one for each part |
//! | `assemble` | `epoch`, `batch` | inside the batcher |
//! | `upload` | `epoch`, `batch` | on the way to the device; of no length for a plain batcher, which has done it |
//! | `wait` | `epoch`, `batch` | inside `next()`, for a batch that is not there; none where it is |

mod advice;
mod auto;
mod bookmark;
mod builder;
mod burn;
mod checks;
mod chosen;
mod collated;
mod config_error;
mod control;
mod determinism;
mod effective;
mod explain;
#[cfg(feature = "train")]
mod figures;
mod frozen;
mod host_batch;
mod host_batcher;
mod in_force;
mod layout;
mod loader;
mod machine;
mod maker;
mod memory;
#[cfg(feature = "train")]
mod metrics;
mod moved;
mod prefetch;
mod progress;
mod row;
mod rows;
mod settings;
mod slot;
mod slots;
mod source;
mod stage;
mod staged;
mod staged_batch;
mod state;
mod state_error;
mod weigh;
mod workers;

pub use auto::{Amount, Auto};
pub use builder::DataLoaderBuilder;
pub use burn_prefetch_derive::{ByteCount, StagedBatch};
pub use burn_prefetch_engine::{
    BatchLimit, BatchLists, BatchSampler, BatchSizes, BoxError, Buckets, BudgetStats,
    ClassBalanced, ContextRng, CrewReport, Decision, Doing, FetchContext, IntoOrder, IntoPlan,
    ItemRng, Knob, Level, LoadError, MemoryBudget, Mixture, OrderError, Place, Remainder, Sampler,
    SharedError, SlowItem, Stage, Stats, Subset, UploadStats, WaitStats, Weighted,
    WeightedWithoutReplacement, Why, Windowed, Work, WorkerReport, WorkerStats, context, real_mask,
    rng, rng_at,
};
pub use config_error::ConfigError;
pub use control::LoaderControl;
pub use determinism::Nondeterminism;
pub use effective::{EffectiveConfig, Ignored, StagingConfig, WindowConfig};
pub use frozen::FrozenSettings;
pub use host_batch::{Host, HostBatch, HostSlot};
pub use host_batcher::{CollateBatcher, Collated, FetchInto, HostBatcher, RowBatcher, Rowwise};
pub use layout::{HostError, Layout, SlotKey};
pub use loader::PrefetchDataLoader;
pub use maker::{MovedBatcher, PlainBatcher, StagedBatcher};
pub use memory::{Fraction, MemoryLimit};
#[cfg(feature = "train")]
pub use metrics::{DataWaitMetric, LoaderMemoryMetric, PrefetchReadinessMetric};
pub use prefetch::{Prefetch, PrefetchIter};
pub use progress::PrefetchIterator;
pub use row::Row;
pub use slots::StagingStats;
pub use staged_batch::{StagedBatch, TensorVisitor};
pub use state::LoaderState;
pub use state_error::StateError;
pub use weigh::ByteCount;
pub use workers::{Workers, WorkersBuilder};
