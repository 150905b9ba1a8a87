//! The engine of [burn-prefetch](https://docs.rs/burn-prefetch): ordered, bounded, parallel batch
//! loading, without a framework.
//!
//! A [`Plan`] says which items make which batch, as a pure function: an [`Order`] cut evenly
//! (in sequence, shuffled, [`Windowed`], a [`Subset`], [`Weighted`],
//! [without replacement](WeightedWithoutReplacement), [`ClassBalanced`], a [`Mixture`], or a
//! [`Sampler`] of your own), or batches as such ([`BatchLists`], [`Buckets`], or a
//! [`BatchSampler`] of your own). A [`Source`] fetches items and assembles batches;
//! a [`Pool`] of workers does that for any number of [`Reader`]s, each of which yields its epoch's
//! batches in order and never has more of them alive than its [`Limits`] allow.
//!
//! A reader pulls: workers only ever get work that may be done at once, so that no worker waits
//! for a reader and no reader can starve another.

mod activity;
mod alias;
mod assembly;
mod background;
mod batch_lists;
mod batch_sampler;
mod batches;
mod buckets;
mod budget;
mod carry;
#[cfg(test)]
mod chance;
mod choice;
mod claim;
mod class_balanced;
mod context;
mod cost;
mod crew;
mod desk;
mod dial;
mod dock;
mod error;
mod evenly;
mod feed;
mod init;
mod issuer;
mod job;
mod layout;
mod ledger;
mod line;
mod mixture;
mod order;
mod order_error;
mod patterns;
mod permutation;
mod plan;
mod pool;
mod reader;
mod recipe;
mod report;
mod rest;
mod ring;
mod sampler;
mod seed;
mod shares;
mod shuffles;
mod sizes;
mod source;
mod spans;
mod staff;
mod standing;
mod stats;
mod subset;
mod sync;
mod tally;
mod ticket;
mod tuner;
mod tuning;
mod unwind;
mod upcoming;
mod uploads;
mod waiting;
mod watch;
mod weighted;
mod weights;
mod window;
mod windowed;
mod without_replacement;

pub use assembly::{Pieces, cut};
pub use background::{Background, Outlet, RunAhead};
pub use batch_lists::BatchLists;
pub use batch_sampler::{BatchSampler, BatchSizes};
pub use buckets::Buckets;
pub use budget::MemoryBudget;
pub use choice::{IntoOrder, IntoPlan};
pub use claim::Limits;
pub use class_balanced::ClassBalanced;
pub use context::{ContextRng, FetchContext, ItemRng, context, real_mask, rng, rng_at};
pub use cost::{Ahead, CostMemory, Parts};
pub use dial::Dial;
pub use error::{BoxError, FetchError, LoadError, Place, SharedError, Stage};
pub use evenly::Remainder;
pub use init::WorkerInit;
pub use job::{Job, Uploader};
pub use layout::BatchLimit;
pub use mixture::Mixture;
pub use order::{EpochOrder, Order};
pub use order_error::OrderError;
pub use permutation::RUN;
pub use plan::{EpochPlan, Plan};
pub use pool::Pool;
pub use reader::{Reader, ReaderConfig};
pub use recipe::Identity;
pub use report::{CrewReport, Doing, WorkerReport};
pub use ring::Delivery;
pub use sampler::Sampler;
pub use seed::VERSION as RNG_VERSION;
pub use sizes::Sizes;
pub use source::{Part, Source};
pub use staff::{Lifetime, PoolConfig};
pub use standing::{Standing, StandingError};
pub use stats::{BudgetStats, Level, SlowItem, Stats, UploadStats, WaitStats, Work, WorkerStats};
pub use subset::Subset;
pub use tally::Tally;
pub use ticket::{Account, Cost};
pub use tuner::{Decision, Facts, Knob, Tuner, TunerConfig, Why};
pub use tuning::Tuning;
pub use upcoming::Upcoming;
pub use watch::Patience;
pub use weighted::Weighted;
pub use windowed::Windowed;
pub use without_replacement::WeightedWithoutReplacement;
