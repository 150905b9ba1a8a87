//! What the promises on Burn's CUDA backend share: the stand-in driver as tests see it, and doubles.
//!
//! The promises are the files in `tests`, one a file and so one a process: `CubeCL` keeps a device's
//! server, streams and pools as long as the process lives.
#![cfg(feature = "cuda")]

mod orders;
mod slot;
mod staged;
mod stand_in;
mod tensors;

pub use cuda_stand_in::{Code, Live, Record};
pub use orders::{Order, Slots, upload};
pub use slot::{Returned, Shelf};
pub use staged::{
    Arrived, InRows, NOTHING, Ragged, RowBuilder, Samples, Traffic, bytes_of, drain, rows,
};
pub use stand_in::{StandIn, thread_name};
pub use tensors::{KINDS, Kind, Uploaded, device, kick, payload};
