//! Which batches of an epoch have been returned, and which come next.

/// How far a pass has come: all batches below `next` have been returned, but for some.
///
/// What is saved to go on from there. Where batches leave in order none is missing; where they
/// leave as they finish, no more are missing than may be alive.
///
/// Invariant: what is missing rises, and is below `next`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    next: usize,
    missing: Vec<usize>,
}

/// Why numbers cannot be a [`Standing`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StandingError {
    /// A missing batch is not below the next one.
    #[error("batch {number} is said to be missing, and is not below {next}, where the pass stands")]
    Beyond {
        /// The batch.
        number: usize,
        /// Where the pass stands.
        next: usize,
    },
    /// Missing batches do not rise.
    #[error("batch {number} stands out of turn among the missing ones, which have to rise")]
    Unsorted {
        /// The batch.
        number: usize,
    },
}

impl Standing {
    /// The batches below `number` have been returned; 0 is the beginning of an epoch.
    #[must_use]
    pub fn before(number: usize) -> Self {
        Self {
            next: number,
            missing: Vec::new(),
        }
    }

    /// The batches below `next` have been returned, but for those `missing`.
    ///
    /// # Errors
    ///
    /// When those missing do not rise, or are not below `next`.
    pub fn new(next: usize, missing: Vec<usize>) -> Result<Self, StandingError> {
        if let Some(pair) = missing.windows(2).find(|pair| pair[0] >= pair[1]) {
            return Err(StandingError::Unsorted { number: pair[1] });
        }
        match missing.last() {
            Some(&number) if number >= next => Err(StandingError::Beyond { number, next }),
            _ => Ok(Self { next, missing }),
        }
    }

    /// The first batch of which neither it nor one behind it has been returned.
    #[must_use]
    pub fn next(&self) -> usize {
        self.next
    }

    /// The batches below [`next`](Self::next) that have not been returned, from the first on.
    #[must_use]
    pub fn missing(&self) -> &[usize] {
        &self.missing
    }

    /// How many batches have been returned.
    #[must_use]
    pub fn returned(&self) -> usize {
        self.next - self.missing.len()
    }

    /// The first batch that has not been returned.
    #[must_use]
    pub fn first_missing(&self) -> usize {
        self.missing.first().copied().unwrap_or(self.next)
    }

    /// Counts batch `number` as returned.
    pub(crate) fn mark(&mut self, number: usize) {
        if number >= self.next {
            self.missing.extend(self.next..number);
            self.next = number + 1;
        } else if let Ok(at) = self.missing.binary_search(&number) {
            self.missing.remove(at);
        }
    }

    /// Which batch is the `turn`-th from here on: those missing, then the others.
    pub(crate) fn nth(&self, turn: usize) -> usize {
        match self.missing.get(turn) {
            Some(&number) => number,
            None => self.returned().saturating_add(turn),
        }
    }

    /// The inverse of [`nth`](Self::nth), for a batch that has not been returned; for any other
    /// number, and so for an end, how many batches are to come below it.
    pub(crate) fn turn(&self, number: usize) -> usize {
        let missing = self.missing.partition_point(|&missing| missing < number);
        missing + number.saturating_sub(self.next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn garbage_is_refused() {
        let beyond = StandingError::Beyond { number: 5, next: 5 };
        assert_eq!(Standing::new(5, vec![1, 5]), Err(beyond));
        let unsorted = StandingError::Unsorted { number: 1 };
        assert_eq!(Standing::new(5, vec![1, 1]), Err(unsorted));
    }

    proptest! {
        #[test]
        fn what_has_been_returned_is_known_in_any_order(
            order in Just((0..30usize).collect::<Vec<_>>()).prop_shuffle(),
            cut in 0..30usize,
        ) {
            let mut standing = Standing::before(0);
            order[..cut].iter().for_each(|number| standing.mark(*number));
            prop_assert_eq!(standing.returned(), cut);
            prop_assert_eq!(Standing::new(standing.next(), standing.missing().to_vec()).unwrap(), standing.clone());
            let mut left = order[cut..].to_vec();
            left.sort_unstable();
            prop_assert_eq!(left.first().copied().unwrap_or(30), standing.first_missing());
            let turns: Vec<_> = (0..30 - cut).map(|turn| standing.nth(turn)).collect();
            for (turn, number) in turns.iter().enumerate() {
                prop_assert_eq!(standing.turn(*number), turn);
            }
            prop_assert_eq!(standing.turn(30), turns.len());
            prop_assert_eq!(turns, left);
        }
    }
}
