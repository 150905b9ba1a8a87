//! The engine of [burn-prefetch](https://docs.rs/burn-prefetch): ordered, bounded, parallel batch
//! loading, without a framework.
//!
//! A [`Plan`] says which items make which batch; a [`Source`] fetches items and assembles batches;
//! a [`Pool`] of workers does that for any number of [`Reader`]s, each of which yields its epoch's
//! batches in order and never has more of them alive than its [`Limits`] allow.
//!
//! A reader pulls: workers only ever get work that may be done at once, so that no worker waits
//! for a reader and no reader can starve another.

mod activity;
mod assembly;
mod background;
mod budget;
mod context;
mod cost;
mod crew;
mod desk;
mod error;
mod feed;
mod init;
mod job;
mod ledger;
mod line;
mod order;
mod permutation;
mod plan;
mod pool;
mod reader;
mod report;
mod ring;
mod seed;
mod sizes;
mod source;
mod stats;
mod sync;
mod tally;
mod ticket;
mod unwind;
mod watch;
mod window;

pub use assembly::Pieces;
pub use background::{Background, Outlet, RunAhead};
pub use budget::MemoryBudget;
pub use context::{ContextRng, FetchContext, ItemRng, context, rng, rng_at};
pub use cost::{Ahead, CostMemory, Parts};
pub use desk::Limits;
pub use error::{BoxError, FetchError, LoadError, Place, SharedError, Stage};
pub use init::WorkerInit;
pub use job::Job;
pub use order::{EpochOrder, Order};
pub use plan::{EpochPlan, Plan, Remainder};
pub use pool::{Lifetime, Pool, PoolConfig};
pub use reader::{Reader, ReaderConfig};
pub use report::{CrewReport, Doing, WorkerReport};
pub use ring::Delivery;
pub use sizes::Sizes;
pub use source::{Part, Source};
pub use stats::{BudgetStats, Level, SlowItem, Stats, WaitStats, Work, WorkerStats};
pub use tally::Tally;
pub use ticket::{Account, Cost};
pub use watch::Patience;
