//! A stand-in for NVIDIA's CUDA driver library: it moves bytes, runs no kernel and records every call.
//!
//! Laid out as `libcuda.so` this library lets code that is written for the CUDA driver run on a
//! machine without a GPU, as far as memory, copies, streams and events go. What a test may ask of it
//! beside the driver's own functions is in `control`; the types that go to and fro are public here.
//! The README says what it does and does not model.
//!
//! The rooms from bottom to top: the types ([`Record`], [`Live`], [`Fault`], [`Code`]); `memory`,
//! `streams`, `log` and `faults`, which decide and touch nothing; `driver`, which is all of them
//! together; `raw`, the only place where bytes move; `door`, the lock around it; `calls` and
//! `control`, the exported functions.

mod calls;
mod code;
mod control;
mod device;
mod door;
mod driver;
mod faults;
mod log;
mod memory;
mod protocol;
mod raw;
mod streams;
mod transfer;

pub use code::Code;
pub use protocol::{ACROSS, DEVICES, DOWN, Fault, Held, Live, NAME, NOWHERE, Record, UP};
