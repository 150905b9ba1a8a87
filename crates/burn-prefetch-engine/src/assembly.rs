//! The target of one batch, its parts, and who brings the last.

use std::ops::Range;

use crate::error::LoadError;

/// The pieces of one batch: at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pieces<P> {
    /// The piece of the first part.
    pub first: P,
    /// Those of the others, in order.
    pub rest: Vec<P>,
}

impl<P> Pieces<P> {
    /// As many pieces as `parts` says (at least one), each made by `make` from its number.
    pub fn from_fn(parts: usize, mut make: impl FnMut(usize) -> P) -> Self {
        Self {
            first: make(0),
            rest: (1..parts).map(make).collect(),
        }
    }

    /// The only piece there is.
    pub(crate) fn whole(piece: P) -> Self {
        Self {
            first: piece,
            rest: Vec::new(),
        }
    }
}

impl<P> IntoIterator for Pieces<P> {
    type Item = P;
    type IntoIter = std::iter::Chain<std::iter::Once<P>, std::vec::IntoIter<P>>;

    fn into_iter(self) -> Self::IntoIter {
        std::iter::once(self.first).chain(self.rest)
    }
}

/// The pieces of one batch on their way to the workers and back. No thread, no lock.
///
/// Invariant: a piece is here, or out with exactly one worker.
#[derive(Debug)]
pub(crate) struct Assembly<P> {
    number: usize,
    len: usize,
    pieces: Vec<Option<P>>,
    /// The first part that nobody has claimed.
    next: usize,
    out: usize,
    failure: Option<Failure>,
}

/// An error and where in its batch it happened.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) offset: usize,
    pub(crate) error: Box<LoadError>,
}

/// All parts of a batch, back again.
#[derive(Debug)]
pub(crate) struct Finished<P> {
    pub(crate) number: usize,
    pub(crate) pieces: Pieces<P>,
    /// The failure with the lowest offset, whichever thread was first.
    pub(crate) failure: Option<Box<LoadError>>,
}

impl<P> Assembly<P> {
    /// A batch of `len` items, cut into as many parts as there are pieces.
    pub(crate) fn new(number: usize, len: usize, pieces: Pieces<P>) -> Self {
        let pieces: Vec<_> = pieces.into_iter().map(Some).collect();
        debug_assert!(pieces.len() <= len.max(1), "one item a part at least");
        Self {
            number,
            len,
            pieces,
            next: 0,
            out: 0,
            failure: None,
        }
    }

    pub(crate) fn number(&self) -> usize {
        self.number
    }

    pub(crate) fn has_unclaimed(&self) -> bool {
        self.next < self.pieces.len()
    }

    /// The next part, its piece and the offsets in the batch that it fetches.
    pub(crate) fn claim(&mut self) -> Option<(usize, P, Range<usize>)> {
        let part = self.next;
        let piece = self.pieces.get_mut(part)?.take()?;
        self.next += 1;
        self.out += 1;
        Some((part, piece, self.cut(part)))
    }

    /// Takes back a claimed part; `true` when it was the last one out and none is left to claim.
    ///
    /// Parts are claimed in order, so what is unclaimed after a failure lies behind it and is not
    /// fetched any more; what lies before it is out and may still fail at a lower offset.
    pub(crate) fn give_back(&mut self, part: usize, piece: P, failure: Option<Failure>) -> bool {
        self.pieces[part] = Some(piece);
        self.out -= 1;
        if let Some(failure) = failure {
            self.next = self.pieces.len();
            if self
                .failure
                .as_ref()
                .is_none_or(|known| failure.offset < known.offset)
            {
                self.failure = Some(failure);
            }
        }
        self.out == 0 && !self.has_unclaimed()
    }

    /// All pieces and the failure, if there was one; `None` while a piece is out.
    pub(crate) fn finish(self) -> Option<Finished<P>> {
        let mut pieces = self
            .pieces
            .into_iter()
            .collect::<Option<Vec<_>>>()?
            .into_iter();
        let first = pieces.next()?;
        let rest = pieces.collect();
        let failure = self.failure.map(|failure| failure.error);
        Some(Finished {
            number: self.number,
            pieces: Pieces { first, rest },
            failure,
        })
    }

    /// Nobody wants the batch any more: gives the pieces that are here, to be dropped. Those that are
    /// out are [forgotten](Self::forget) one by one.
    pub(crate) fn abandon(&mut self) -> impl Iterator<Item = P> + use<P> {
        self.next = self.pieces.len();
        let here: Vec<_> = self.pieces.iter_mut().filter_map(Option::take).collect();
        here.into_iter()
    }

    /// A part of an abandoned batch is back; `true` when it was the last one out.
    pub(crate) fn forget(&mut self) -> bool {
        self.out -= 1;
        self.out == 0
    }

    /// Whether no part is out.
    pub(crate) fn is_home(&self) -> bool {
        self.out == 0
    }

    fn cut(&self, part: usize) -> Range<usize> {
        cut(self.len, self.pieces.len(), part)
    }
}

/// The offsets of one of `parts` parts of a batch of `len` items: sizes differ by one at most.
#[must_use]
pub fn cut(len: usize, parts: usize, part: usize) -> Range<usize> {
    let at = |part: usize| {
        let (part, parts) = (part as u128, parts as u128);
        usize::try_from(len as u128 * part / parts).unwrap_or(len)
    };
    at(part)..at(part + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{Place, Stage};
    use proptest::prelude::*;

    fn failure(offset: usize) -> Failure {
        let at = Place {
            stage: Stage::Fetch,
            epoch: 0,
            batch: 0,
            index: Some(offset),
            indices: Vec::new(),
            worker: None,
        };
        Failure {
            offset,
            error: Box::new(LoadError::Panic {
                at,
                message: String::new(),
            }),
        }
    }

    #[test]
    fn parts_behind_a_failure_are_not_claimed() {
        let mut assembly = Assembly::new(0, 10, Pieces::from_fn(5, |_| ()));
        assembly.claim();
        assembly.claim();
        assert!(!assembly.give_back(1, (), Some(failure(3))));
        assert!(assembly.claim().is_none());
        assert!(assembly.give_back(0, (), Some(failure(1))));
        let finished = assembly.finish().unwrap();
        assert_eq!(finished.failure.unwrap().place().index, Some(1));
        assert_eq!(finished.pieces.into_iter().count(), 5);
    }

    proptest! {
        #[test]
        fn every_offset_once_whatever_the_order_of_return(
            len in 1usize..60,
            parts in 1usize..12,
            order in any::<u64>(),
        ) {
            let parts = parts.min(len);
            let mut assembly = Assembly::new(4, len, Pieces::from_fn(parts, |part| part));
            let mut out = Vec::new();
            let mut next = 0;
            while let Some((part, piece, range)) = assembly.claim() {
                prop_assert_eq!((part, range.start), (piece, next));
                prop_assert!(!range.is_empty() && range.len() <= len.div_ceil(parts));
                next = range.end;
                out.push(part);
            }
            prop_assert_eq!(next, len);
            let mut last = false;
            let mut order = order;
            while !out.is_empty() {
                prop_assert!(!last);
                let part = out.swap_remove(usize::try_from(order % out.len() as u64).unwrap());
                order = order.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1) >> 1;
                last = assembly.give_back(part, part, None);
            }
            prop_assert!(last);
            prop_assert_eq!(assembly.finish().unwrap().pieces, Pieces::from_fn(parts, |part| part));
        }
    }
}
