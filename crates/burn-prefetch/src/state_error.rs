//! Why a saved state cannot be gone on from, in one sentence.

use burn_prefetch_engine::StandingError;

/// Why a [`LoaderState`](crate::LoaderState) was refused; the loader is as it was before.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// Another release wrote it, or nobody did.
    #[error(
        "the state is of format version {found}, and this release reads version {known}: it was \
         saved by another release, or it is no state of a loader"
    )]
    Version {
        /// What the state says.
        found: u32,
        /// What can be read.
        known: u32,
    },
    /// It belongs to a loader with another setting.
    #[error(
        "the state was saved with {what} {saved}, and this loader has {here}: the rest of its epoch \
         would be made of other batches; build the loader as it was, or begin the epoch anew with \
         start_epoch"
    )]
    Differs {
        /// What is another.
        what: &'static str,
        /// As it was when the state was saved.
        saved: String,
        /// As it is now.
        here: String,
    },
    /// It belongs to an order of the same kind that was made from something else.
    #[error(
        "the state was saved under another {order} order (another seed, other items or weights, or \
         another slice): the rest of its epoch would be made of other batches; build the loader as \
         it was, or begin the epoch anew with start_epoch"
    )]
    OtherOrder {
        /// The kind of order.
        order: &'static str,
    },
    /// Its epoch has not as many batches.
    #[error(
        "the state stands at batch {batch} of epoch {epoch}, which has {batches} batches in this \
         loader"
    )]
    Beyond {
        /// Where it stands.
        batch: usize,
        /// In which epoch.
        epoch: usize,
        /// How many batches the epoch has.
        batches: usize,
    },
    /// Its numbers contradict each other.
    #[error("the state is damaged: {0}")]
    Damaged(#[from] StandingError),
}
