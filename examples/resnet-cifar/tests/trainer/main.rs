//! The trainer as a user runs it, from the command line to the last figure.
#![cfg(test)]

mod compare;
mod ending;
mod order;
mod refusals;
mod support;
