//! Which checkpoints at the ends of epochs stay: the last two, and the one with the lowest test loss.

use std::collections::BTreeSet;
use std::path::PathBuf;

use burn::train::checkpoint::{CheckpointingAction, CheckpointingStrategy};
use burn::train::metric::store::{Aggregate, Direction, EventStoreClient, Split};

use super::place;

/// Looks at what is there, not only at what it has seen: a resumed training has predecessors.
#[derive(Debug)]
pub(super) struct LastTwoAndBest {
    /// The folder of checkpoints.
    pub(super) folder: PathBuf,
}

impl CheckpointingStrategy for LastTwoAndBest {
    fn checkpointing(
        &mut self,
        epoch: usize,
        metrics: &EventStoreClient,
    ) -> Vec<CheckpointingAction> {
        let best = metrics.find_epoch("Loss", Aggregate::Mean, Direction::Lowest, &Split::Valid);
        // A folder that cannot be listed is told by the writing that follows.
        let there = place::epochs(&self.folder).unwrap_or_default();
        let mut actions = vec![CheckpointingAction::Save];
        let gone = superfluous(&there, (epoch, best));
        actions.extend(gone.map(CheckpointingAction::Delete));
        actions
    }
}

fn superfluous(
    there: &BTreeSet<usize>,
    (last, best): (usize, Option<usize>),
) -> impl Iterator<Item = usize> {
    let before = there.range(..last).next_back().copied();
    let kept = [Some(last), before, best];
    there
        .iter()
        .copied()
        .filter(move |&epoch| !kept.contains(&Some(epoch)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_two_and_the_best_stay_whoever_wrote_them() {
        let there = BTreeSet::from([1, 2, 3, 5, 6]);
        let gone = |last, best| superfluous(&there, (last, best)).collect::<Vec<_>>();
        assert_eq!(gone(6, Some(2)), [1, 3]);
        assert_eq!(gone(6, Some(6)), [1, 2, 3]);
        assert_eq!(gone(7, Some(1)), [2, 3, 5]);
        assert_eq!(gone(6, None), [1, 2, 3]);
    }
}
