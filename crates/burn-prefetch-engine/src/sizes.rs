//! How large the last batches were, and so the next one may be.

use crate::sync::QuietMutex;

/// So many batches are remembered: one that is larger than all others is forgotten after as many.
const REMEMBERED: usize = 64;

/// The sizes of the last 64 batches of one loader, in bytes.
#[derive(Debug, Default)]
pub struct Sizes(QuietMutex<Last>);

#[derive(Debug, Default)]
struct Last {
    /// At most [`REMEMBERED`], in no order once it is full.
    sizes: Vec<u64>,
    /// Which is replaced next.
    oldest: usize,
    largest: u64,
}

impl Sizes {
    /// One more batch was so large.
    pub(crate) fn learn(&self, size: u64) {
        self.0.lock().learn(size);
    }

    /// The largest of the last 64; `None` before the first.
    #[must_use]
    pub fn largest(&self) -> Option<u64> {
        let last = self.0.lock();
        (!last.sizes.is_empty()).then_some(last.largest)
    }
}

impl Last {
    fn learn(&mut self, size: u64) {
        if self.sizes.len() < REMEMBERED {
            self.sizes.push(size);
            self.largest = self.largest.max(size);
            return;
        }
        let gone = std::mem::replace(&mut self.sizes[self.oldest], size);
        self.oldest = (self.oldest + 1) % REMEMBERED;
        if size >= self.largest {
            self.largest = size;
        } else if gone == self.largest {
            self.largest = self.sizes.iter().copied().max().unwrap_or(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nothing_is_known_before_the_first() {
        let sizes = Sizes::default();
        assert_eq!(sizes.largest(), None);
        sizes.learn(0);
        assert_eq!(sizes.largest(), Some(0));
    }

    #[test]
    fn one_large_picture_among_thumbnails_is_forgotten() {
        let sizes = Sizes::default();
        sizes.learn(10_000);
        for _ in 1..REMEMBERED {
            sizes.learn(10);
            assert_eq!(sizes.largest(), Some(10_000));
        }
        sizes.learn(11);
        assert_eq!(sizes.largest(), Some(11));
    }

    proptest! {
        #[test]
        fn it_is_the_largest_of_the_last_64(all in proptest::collection::vec(0u64..9, 1..300)) {
            let sizes = Sizes::default();
            for (at, size) in all.iter().enumerate() {
                sizes.learn(*size);
                let from = (at + 1).saturating_sub(REMEMBERED);
                prop_assert_eq!(sizes.largest(), all[from..=at].iter().copied().max());
            }
        }
    }
}
