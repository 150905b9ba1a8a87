//! The trainer as a user runs it, from the command line to the last figure.
#![cfg(test)]

mod alive;
mod budget;
mod checkpoints;
mod child;
mod clock;
mod compare;
#[cfg(feature = "cuda")]
mod cuda;
mod dashboard;
mod ending;
mod folders;
mod keep;
mod midway;
mod notes;
mod order;
mod refusals;
mod report;
mod staged;
mod support;
mod sweep;
mod workloads;
