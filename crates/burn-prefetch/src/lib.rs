//! A data loader for [Burn](https://burn.dev) that takes the place of
//! `burn::data::dataloader::DataLoaderBuilder` by one changed import, and then gives what Burn's
//! own does not: a hard bound on the batches alive, one order for any number of workers, workers
//! that outlive epochs, and errors that say where.

mod bookmark;
mod builder;
mod burn;
mod chosen;
mod config_error;
mod effective;
mod loader;
mod prefetch;
mod progress;
mod settings;
mod source;
mod state;
mod state_error;
mod workers;

pub use builder::DataLoaderBuilder;
pub use burn_prefetch_engine::{
    BatchLimit, BatchLists, BatchSampler, BatchSizes, BoxError, Buckets, ClassBalanced, ContextRng,
    CrewReport, Doing, FetchContext, IntoOrder, IntoPlan, ItemRng, LoadError, Mixture, OrderError,
    Place, Remainder, Sampler, SharedError, Stage, Subset, Weighted, WeightedWithoutReplacement,
    Windowed, WorkerReport, context, real_mask, rng, rng_at,
};
pub use config_error::ConfigError;
pub use effective::{EffectiveConfig, Ignored, WindowConfig};
pub use loader::PrefetchDataLoader;
pub use prefetch::{Prefetch, PrefetchIter};
pub use progress::PrefetchIterator;
pub use state::LoaderState;
pub use state_error::StateError;
pub use workers::{Workers, WorkersBuilder};
