//! The book of `burn-prefetch`: each chapter's code is compiled and run as a doc test of this crate.
//!
//! The chapters are read with mdBook (`mdbook serve book`) or as plain Markdown in `book/src`.

#[doc = include_str!("quick-start.md")]
pub mod quick_start {}

#[doc = include_str!("memory.md")]
pub mod memory {}

#[doc = include_str!("order.md")]
pub mod order {}

#[doc = include_str!("samplers.md")]
pub mod samplers {}

#[doc = include_str!("resume.md")]
pub mod resume {}

#[doc = include_str!("staging.md")]
pub mod staging {}

#[doc = include_str!("errors.md")]
pub mod errors {}

#[doc = include_str!("hard-cases.md")]
pub mod hard_cases {}

#[doc = include_str!("symptoms.md")]
pub mod symptoms {}

#[doc = include_str!("trainer.md")]
pub mod trainer {}
