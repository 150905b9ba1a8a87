//! Items that take turns: each waits until one more may pass.

use std::sync::Arc;

use crate::Tally;

/// How many wait, may pass and have passed.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    waiting: usize,
    permitted: usize,
    done: usize,
}

/// A gate for so many, in the order in which they come.
#[derive(Clone, Debug)]
pub struct Turns(Arc<Tally<Count>>);

impl Turns {
    /// Nobody may pass yet.
    #[must_use]
    pub fn none() -> Self {
        Self(Tally::new(Count::default()))
    }

    /// Waits until one more may pass, and passes.
    pub fn take(&self) {
        self.0.update(|turns| turns.waiting += 1);
        let permitted = |turns: &Count| turns.permitted > turns.done;
        self.0.update_when(permitted, |turns| {
            turns.waiting -= 1;
            turns.done += 1;
        });
    }

    /// Waits until so many wait.
    pub fn wait_for(&self, waiting: usize) {
        self.0.wait_until(|turns| turns.waiting >= waiting);
    }

    /// So many may pass in all.
    pub fn permit(&self, all: usize) {
        self.0.update(|turns| turns.permitted = all);
    }

    /// How many have passed.
    #[must_use]
    pub fn done(&self) -> usize {
        self.0.now().done
    }
}
