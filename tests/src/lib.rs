//! The doubles and helpers that the promises share, each written once.
//!
//! The promises themselves are the files beside this package's `src`, one a file. All of them run
//! under a [watchdog](within) and none sleeps to synchronise: what has to happen first is waited
//! for, with a [`Gate`], a [`Tally`] or a gauge.

mod batchers;
mod children;
mod crews;
mod datasets;
mod failures;
mod floors;
mod gate;
mod gauge;
mod logs;
mod orders;
mod passes;
mod process;
mod spans;
mod storm;
mod traces;
mod turns;
mod watchdog;

pub use batchers::{Collect, Keep, PanicOn, Placed, Rows};
pub use children::{Child, Ended, role};
pub use crews::{expect_crew, for_each_crew, once_it_waits};
pub use datasets::{Broken, Counting, Fault, Hooked, Numbers, Unreadable, Waits};
pub use failures::{cause, failure, is_exhausted, late, timed_out};
pub use floors::{Source, complaints};
pub use gate::{Gate, Tally};
pub use gauge::{Alive, Guarded, GuardedNumbers, Lead, Token};
pub use logs::{Record, capture_logs, logged};
pub use orders::{
    Builder, FromTheBack, ORDERED, SetOrder, Stairs, batch_orders, even_orders, ordered,
    ordered_data, orders,
};
pub use passes::{Batches, chunks, flat, loader, outcomes, pass};
pub use process::{
    LiveThreads, alone, eventually, expect_loader_threads, loader_threads, open_files,
    threads_begun_here,
};
pub use spans::{OnSpan, SpanFields};
pub use storm::{Dice, Sky, UnderSky, Weather};
pub use traces::{Kept, Traced, Traces, indices};
pub use turns::Turns;
pub use watchdog::{LIMIT, WORKERS, for_each_case, for_each_worker_count, guarded, within};
