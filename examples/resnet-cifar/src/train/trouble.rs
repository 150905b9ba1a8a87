//! What stopped a training, in the trainer's own words.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use burn::train::Interrupter;

/// Stops the training and keeps why; Burn's errors would wrap it in their words.
#[derive(Clone)]
pub(super) struct Trouble {
    interrupter: Interrupter,
    first: Arc<Mutex<Option<anyhow::Error>>>,
}

impl Trouble {
    pub(super) fn new(interrupter: Interrupter) -> Self {
        Self {
            interrupter,
            first: Arc::default(),
        }
    }

    /// The first call says why; what follows follows from it.
    pub(super) fn stop(&self, error: anyhow::Error) {
        self.first().get_or_insert(error);
        self.interrupter.stop(None);
    }

    pub(super) fn take(&self) -> Option<anyhow::Error> {
        self.first().take()
    }

    fn first(&self) -> MutexGuard<'_, Option<anyhow::Error>> {
        self.first.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Trouble").field(&*self.first()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_trouble_stops_the_training_and_is_the_one_that_is_told() {
        let interrupter = Interrupter::new();
        let trouble = Trouble::new(interrupter.clone());
        assert!(!interrupter.should_stop());
        trouble.stop(anyhow::anyhow!("no room"));
        trouble.clone().stop(anyhow::anyhow!("no file"));
        assert!(interrupter.should_stop());
        assert_eq!(trouble.take().unwrap().to_string(), "no room");
    }
}
