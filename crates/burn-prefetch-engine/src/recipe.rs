//! What an order is made from: one recipe for all epochs, and a prepared form for each.

use std::fmt;
use std::sync::Arc;

/// Which order this is, so that a saved state can refuse another one.
///
/// Equal identities give equal orders in every release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    /// The kind of order.
    pub name: &'static str,
    /// The version of its algorithm: it rises when any index changes.
    pub version: u32,
    /// All that the order depends on, but for the epoch, in one number.
    pub digest: u64,
}

/// An order of indices, for every epoch: a pure function of its fields.
pub(crate) trait Recipe: fmt::Debug + Send + Sync {
    /// How many items the data has that indices are of.
    fn data_len(&self) -> usize;

    /// How many positions `epoch` has. Runs on the thread that begins a pass. The same for every
    /// epoch where indices are [trusted](Self::is_trusted).
    fn len(&self, epoch: usize) -> usize;

    /// What `epoch` needs to be drawn by position. Runs once an epoch, on a worker where there is
    /// one, and may take as long as it says.
    fn prepare(&self, epoch: usize) -> Box<dyn Prepared>;

    /// The part `start..end` of what is ordered, ordered within itself; `None` where nothing but
    /// the positions of an epoch can be cut.
    fn slice(&self, start: usize, end: usize) -> Option<Arc<dyn Recipe>> {
        let _ = (start, end);
        None
    }

    /// Whether indices are known to be within the data; not where the user's code returns them.
    fn is_trusted(&self) -> bool {
        true
    }

    fn identity(&self) -> Identity;
}

/// One epoch of a recipe, ready to be asked for any position, by any number of threads.
pub(crate) trait Prepared: Send + Sync {
    /// The index at `position`, which is below the epoch's length.
    fn index(&self, position: usize) -> usize;
}
