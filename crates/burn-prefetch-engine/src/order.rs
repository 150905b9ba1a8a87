//! Which dataset indices an epoch visits, and when.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::order_error::OrderError;
use crate::permutation::{self, Permutation, RUN};
use crate::recipe::{Identity, Prepared, Recipe};
use crate::sampler::{Custom, Sampler};
use crate::seed::{self, Domain, derive, digest};
use crate::sync::OnceLock;

/// The version of shuffles of data as a whole: it rises whenever any index changes.
pub(crate) const SHUFFLE_VERSION: u32 = permutation::VERSION + seed::VERSION;

/// Dataset indices and the way an epoch goes through them.
///
/// A pure function of what it was made from and the epoch: no state, no randomness of its own.
/// Samplers turn into one with `Order::from`.
#[derive(Clone, Debug)]
pub struct Order {
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    /// The indices from `start` on, shuffled under a seed or not.
    Range {
        start: usize,
        len: usize,
        shuffle: Option<u64>,
    },
    Recipe(Arc<dyn Recipe>),
    /// The positions `start..end` of a recipe's epochs of `of` positions, and as large a part of
    /// longer and shorter ones.
    Positions {
        recipe: Arc<dyn Recipe>,
        start: usize,
        end: usize,
        of: usize,
    },
}

impl Order {
    /// All of `len` indices, one after the other.
    #[must_use]
    pub fn sequential(len: usize) -> Self {
        Self::range(len, None)
    }

    /// All of `len` indices in another order every epoch, a function of `seed` and the epoch.
    #[must_use]
    pub fn shuffled(len: usize, seed: u64) -> Self {
        Self::range(len, Some(seed))
    }

    fn range(len: usize, shuffle: Option<u64>) -> Self {
        let start = 0;
        let kind = Kind::Range {
            start,
            len,
            shuffle,
        };
        Self { kind }
    }

    /// The order of a sampler of your own, over data of `data_len` items.
    #[must_use]
    pub fn sampled(sampler: impl Sampler, data_len: usize) -> Self {
        Self::made_from(Arc::new(Custom::new(sampler, data_len)))
    }

    pub(crate) fn made_from(recipe: Arc<dyn Recipe>) -> Self {
        Self {
            kind: Kind::Recipe(recipe),
        }
    }

    /// The part `start..end` of this order, where an epoch has `of` items.
    ///
    /// Of data in sequence, shuffled, shuffled in a window, or of a subset: these items, ordered
    /// within themselves, so that two slices share none. Of what is drawn in another way: these
    /// positions of each epoch, so that two slices of one epoch do not overlap, while an item may
    /// be in one slice in this epoch and in the other in the next. Where a sampler of your own has
    /// epochs of other lengths, the bounds move with the length: slices that made up the whole of
    /// one epoch make up the whole of every one.
    ///
    /// # Panics
    ///
    /// When `start > end`, or `end` is beyond data that does not change: the caller checks.
    #[must_use]
    pub fn slice(&self, start: usize, end: usize, of: usize) -> Self {
        assert!(start <= end, "the caller checks the bounds of a slice");
        let kind = match &self.kind {
            Kind::Range {
                start: from,
                len,
                shuffle,
            } => {
                assert!(end <= *len, "the caller checks the bounds of a slice");
                Kind::Range {
                    start: from + start,
                    len: end - start,
                    shuffle: *shuffle,
                }
            }
            Kind::Recipe(recipe) => match recipe.slice(start, end) {
                Some(recipe) => Kind::Recipe(recipe),
                None => Kind::Positions {
                    recipe: Arc::clone(recipe),
                    start,
                    end,
                    of,
                },
            },
            // Both bounds in the items of the whole, as they are where its epochs have `of`.
            Kind::Positions {
                recipe,
                start: from,
                end: to,
                of: whole,
            } => {
                let within = |bound| from + scaled(bound, (to - from, of));
                Kind::Positions {
                    recipe: Arc::clone(recipe),
                    start: within(start),
                    end: within(end),
                    of: *whole,
                }
            }
        };
        Self { kind }
    }

    /// How many indices `epoch` visits.
    #[must_use]
    pub fn num_items(&self, epoch: usize) -> usize {
        match &self.kind {
            Kind::Range { len, .. } => *len,
            Kind::Recipe(recipe) => recipe.len(epoch),
            Kind::Positions { .. } => self.positions(epoch).len(),
        }
    }

    /// The positions of `epoch` that are visited, where they are a part.
    fn positions(&self, epoch: usize) -> Range<usize> {
        match &self.kind {
            Kind::Positions {
                recipe,
                start,
                end,
                of,
            } => {
                let len = recipe.len(epoch);
                scaled(*start, (len, *of))..scaled(*end, (len, *of))
            }
            Kind::Range { len, .. } => 0..*len,
            Kind::Recipe(recipe) => 0..recipe.len(epoch),
        }
    }

    /// How many items the data has that indices are of; of data in sequence or shuffled, at least
    /// how many.
    pub(crate) fn data_len(&self) -> usize {
        match &self.kind {
            Kind::Range { start, len, .. } => start + len,
            Kind::Recipe(recipe) | Kind::Positions { recipe, .. } => recipe.data_len(),
        }
    }

    /// Whether every epoch has as many items as every other.
    pub(crate) fn is_steady(&self) -> bool {
        match &self.kind {
            Kind::Range { .. } => true,
            Kind::Recipe(recipe) | Kind::Positions { recipe, .. } => recipe.is_trusted(),
        }
    }

    /// Which order this is.
    #[must_use]
    pub fn identity(&self) -> Identity {
        match &self.kind {
            Kind::Range {
                start,
                len,
                shuffle,
            } => Identity {
                name: shuffle.map_or("sequential", |_| "shuffled"),
                version: shuffle.map_or(1, |_| SHUFFLE_VERSION),
                digest: digest([*start as u64, *len as u64, shuffle.unwrap_or_default()]),
            },
            Kind::Recipe(recipe) => recipe.identity(),
            Kind::Positions {
                recipe,
                start,
                end,
                of,
            } => {
                let whole = recipe.identity();
                let bounds = [*start, *end, *of].map(|bound| bound as u64);
                Identity {
                    digest: digest(bounds.into_iter().chain([whole.digest])),
                    ..whole
                }
            }
        }
    }

    /// The order of one epoch. Prepares nothing that takes long.
    ///
    /// Slices of one loader draw different permutations: their bounds are part of the key.
    #[must_use]
    pub fn at(&self, epoch: usize) -> EpochOrder {
        let len = self.num_items(epoch);
        let (start, form) = match &self.kind {
            Kind::Range {
                start,
                shuffle: None,
                ..
            } => (*start, Form::Sequential),
            Kind::Range {
                start,
                shuffle: Some(seed),
                ..
            } => {
                let bounds = derive(*seed, Domain::Shuffle, *start as u64, len as u64);
                let key = derive(bounds, Domain::Shuffle, epoch as u64, 0);
                (*start, Form::Shuffled(Permutation::new(len, key)))
            }
            Kind::Recipe(recipe) => (0, Form::made(recipe, epoch)),
            Kind::Positions { recipe, .. } => {
                (self.positions(epoch).start, Form::made(recipe, epoch))
            }
        };
        EpochOrder { start, len, form }
    }
}

/// Where a bound stands in `len` items that stands at `bound` in `of`.
fn scaled(bound: usize, (len, of): (usize, usize)) -> usize {
    if len == of {
        return bound.min(len);
    }
    let scaled = bound as u128 * len as u128 / of.max(1) as u128;
    usize::try_from(scaled).map_or(len, |scaled| scaled.min(len))
}

/// The order of one epoch: from position to dataset index.
#[derive(Clone, Debug)]
pub struct EpochOrder {
    start: usize,
    len: usize,
    form: Form,
}

/// What is asked for most stands here without a call through a table of functions.
#[derive(Clone, Debug)]
enum Form {
    Sequential,
    Shuffled(Permutation),
    Made(Arc<Made>),
}

impl Form {
    fn made(recipe: &Arc<dyn Recipe>, epoch: usize) -> Self {
        Self::Made(Arc::new(Made {
            recipe: Arc::clone(recipe),
            epoch,
            prepared: OnceLock::new(),
        }))
    }
}

/// One epoch of a recipe, prepared by whoever needs it first.
struct Made {
    recipe: Arc<dyn Recipe>,
    epoch: usize,
    prepared: OnceLock<Box<dyn Prepared>>,
}

impl Made {
    fn prepared(&self) -> &dyn Prepared {
        let prepared = self
            .prepared
            .get_or_init(|| self.recipe.prepare(self.epoch));
        prepared.as_ref()
    }
}

impl fmt::Debug for Made {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Made")
            .field("recipe", &self.recipe)
            .field("epoch", &self.epoch)
            .finish_non_exhaustive()
    }
}

impl EpochOrder {
    /// How many positions there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The dataset index at `position`; what a sampler of the user's own returns is not checked.
    ///
    /// # Panics
    ///
    /// When `position` is not below the number of items, or the user's sampler does.
    #[must_use]
    #[inline]
    pub fn index(&self, position: usize) -> usize {
        assert!(
            position < self.len,
            "position {position} of {} items",
            self.len
        );
        match &self.form {
            Form::Sequential => self.start + position,
            Form::Shuffled(permutation) => self.start + permutation.index(position),
            Form::Made(made) => made.prepared().index(self.start + position),
        }
    }

    /// The indices at [`RUN`](crate::RUN) positions from `start` on, where that is faster than one
    /// by one and they are all there.
    #[must_use]
    #[inline]
    pub fn run(&self, start: usize) -> Option<[usize; RUN]> {
        match &self.form {
            Form::Shuffled(permutation) => {
                let indices = permutation.run(start)?;
                Some(indices.map(|index| self.start + index))
            }
            Form::Sequential | Form::Made(_) => None,
        }
    }

    /// As [`index`](Self::index), unless a user's sampler returns an index beyond the data.
    #[inline]
    pub(crate) fn checked_index(&self, position: usize) -> Result<usize, OrderError> {
        let index = self.index(position);
        if let Form::Made(made) = &self.form
            && !made.recipe.is_trusted()
            && index >= made.recipe.data_len()
        {
            let len = made.recipe.data_len();
            return Err(OrderError::Beyond {
                position,
                index,
                len,
            });
        }
        Ok(index)
    }

    /// Whether all that takes long has been made ready.
    pub(crate) fn is_prepared(&self) -> bool {
        match &self.form {
            Form::Sequential | Form::Shuffled(_) => true,
            Form::Made(made) => made.prepared.get().is_some(),
        }
    }

    /// Whether the user's code says what the indices are.
    pub(crate) fn asks_the_user(&self) -> bool {
        match &self.form {
            Form::Sequential | Form::Shuffled(_) => false,
            Form::Made(made) => !made.recipe.is_trusted(),
        }
    }

    /// Makes ready what takes long, unless that has been done.
    pub(crate) fn prepare(&self) {
        if let Form::Made(made) = &self.form {
            made.prepared();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::chance::{assert_chance, real};

    fn all(order: &Order, epoch: usize) -> Vec<usize> {
        let at = order.at(epoch);
        (0..at.len()).map(|position| at.index(position)).collect()
    }

    /// In epoch e: e items, of which the position is the index, and one beyond four is not in the
    /// data.
    #[derive(Debug)]
    struct Growing;

    impl Sampler for Growing {
        fn len(&self, epoch: usize) -> usize {
            epoch
        }

        fn at(&self, _epoch: usize, position: usize) -> usize {
            position
        }
    }

    #[test]
    fn a_slice_stays_within_its_bounds() {
        let order = Order::shuffled(100, 7).slice(20, 50, 100).slice(5, 15, 30);
        let mut seen = all(&order, 3);
        seen.sort_unstable();
        assert_eq!(seen, (25..35).collect::<Vec<_>>());
    }

    #[test]
    fn the_whole_as_a_slice_changes_nothing() {
        let order = Order::shuffled(100, 7);
        assert_eq!(all(&order, 1), all(&order.slice(0, 100, 100), 1));
        let (twice, once) = (
            order.slice(2, 9, 100).slice(1, 4, 7),
            order.slice(3, 6, 100),
        );
        assert_eq!(all(&twice, 1), all(&once, 1));
        assert_eq!(twice.identity(), once.identity());
        assert_ne!(once.identity(), order.identity());
    }

    #[test]
    fn epochs_and_slices_differ() {
        let order = Order::shuffled(100, 7);
        assert_ne!(all(&order, 0), all(&order, 1));
        let halves = [order.slice(0, 50, 100), order.slice(50, 100, 100)].map(|half| all(&half, 0));
        assert_ne!(
            halves[0],
            halves[1].iter().map(|i| i - 50).collect::<Vec<_>>()
        );
    }

    #[test]
    fn shuffles_are_those_of_the_first_release() {
        let start = |order: &Order, epoch| all(order, epoch)[..5].to_vec();
        let order = Order::shuffled(100, 7);
        assert_eq!(start(&order, 0), [17, 27, 62, 47, 39]);
        assert_eq!(start(&order.slice(20, 60, 100), 3), [25, 28, 36, 53, 38]);
        let order = Order::shuffled(1_000_000, 7);
        assert_eq!(
            start(&order, 2),
            [911_066, 627_620, 952_982, 994_941, 822_638]
        );
        assert_eq!(
            start(&order.slice(5, 100_005, 1_000_000), 2),
            [2_228, 45_113, 97_396, 86_942, 42_003]
        );
    }

    #[test]
    fn epochs_of_a_sampler_have_lengths_of_their_own() {
        let order = Order::sampled(Growing, 4);
        assert_eq!([0, 1, 7].map(|epoch| order.at(epoch).len()), [0, 1, 7]);
        let slice = order.slice(2, 9, 9).slice(1, 3, 7);
        assert_eq!(all(&slice, 9), [3, 4]);
        // A third and two thirds of whatever there is.
        let parts = [order.slice(0, 3, 9), order.slice(3, 9, 9)];
        for epoch in 0..20 {
            let apart = parts.iter().flat_map(|part| all(part, epoch));
            assert!(apart.eq(0..epoch), "epoch {epoch}");
            assert_eq!(parts[0].num_items(epoch), epoch / 3);
        }
    }

    #[test]
    fn an_index_beyond_the_data_is_found_at_its_position() {
        let epoch = Order::sampled(Growing, 4).at(9);
        assert_eq!(epoch.checked_index(3), Ok(3));
        let beyond = OrderError::Beyond {
            position: 4,
            index: 4,
            len: 4,
        };
        assert_eq!(epoch.checked_index(4), Err(beyond));
    }

    #[test]
    fn an_order_knows_nothing_of_that_of_the_next_epoch_seed_or_slice() {
        // A table and a cipher.
        for len in [5_000, 100_000] {
            let order = Order::shuffled(len, 7);
            let others = [
                ("epoch", all(&order, 1)),
                ("seed", all(&Order::shuffled(len, 8), 0)),
                ("length", all(&Order::shuffled(len + 1, 7), 0)),
                (
                    "slice",
                    all(&Order::shuffled(len + 1, 7).slice(1, len + 1, len + 1), 0),
                ),
            ];
            let this = all(&order, 0);
            for (what, other) in others {
                assert_unrelated(&this, &other, &format!("next {what}, {len} items"));
            }
        }
    }

    fn assert_unrelated(this: &[usize], other: &[usize], what: &str) {
        let len = this.len();
        let (mut seen, mut stayed) = (vec![0; 256], 0);
        for (&a, &b) in this.iter().zip(other) {
            seen[a * 16 / len * 16 + (b * 16 / len).min(15)] += 1;
            stayed += usize::from(a == b);
        }
        assert_chance(&seen, &[real(len) / 256.0; 256], what);
        // One on average, spread as Poisson has it: ten are one chance in a million.
        assert!(stayed < 10, "{what}: {stayed} stayed");
    }

    #[test]
    #[cfg(target_pointer_width = "64")]
    fn a_thousand_million_items_go_anywhere() {
        const LEN: usize = 1_000_000_000;
        // Neighbours, and positions far apart: every sixteenth of the data is as likely as the
        // others, for each and for the two after one another.
        for step in [1, 1_000, 31_623, 9_999_991] {
            let epoch = Order::shuffled(LEN, 11).at(2);
            let positions = (0..100_000).map(|k| (k * step) % LEN);
            let indices: Vec<_> = positions.map(|position| epoch.index(position)).collect();
            let (mut single, mut pairs) = (vec![0; 1_000], vec![0; 256]);
            for pair in indices.windows(2) {
                single[pair[0] / (LEN / 1_000)] += 1;
                pairs[pair[0] * 16 / LEN * 16 + pair[1] * 16 / LEN] += 1;
            }
            let samples = real(indices.len() - 1);
            let expected = vec![samples / 1_000.0; 1_000];
            assert_chance(&single, &expected, &format!("places, step {step}"));
            let expected = [samples / 256.0; 256];
            assert_chance(&pairs, &expected, &format!("pairs, step {step}"));
        }
    }

    /// Counts how often an epoch is prepared.
    #[derive(Debug, Default)]
    struct Counting(Arc<AtomicUsize>);

    impl Recipe for Counting {
        fn data_len(&self) -> usize {
            100
        }

        fn len(&self, _epoch: usize) -> usize {
            100
        }

        fn prepare(&self, epoch: usize) -> Box<dyn Prepared> {
            self.0.fetch_add(1, Ordering::SeqCst);
            Custom::new(Growing, 100).prepare(epoch)
        }

        fn identity(&self) -> Identity {
            Custom::new(Growing, 100).identity()
        }
    }

    #[test]
    fn an_epoch_is_prepared_once_and_not_before_it_is_needed() {
        let recipe = Counting::default();
        let prepared = Arc::clone(&recipe.0);
        let count = || prepared.load(Ordering::SeqCst);
        let order = Order::made_from(Arc::new(recipe));
        let epoch = order.slice(10, 90, 100).at(3);
        assert_eq!((epoch.len(), count()), (80, 0));
        assert!(!epoch.is_prepared());
        let ask = || {
            epoch.prepare();
            assert!(epoch.is_prepared());
            epoch.index(5)
        };
        let asked = std::thread::scope(|scope| {
            let threads = [(); 4].map(|()| scope.spawn(ask));
            threads.map(|thread| thread.join().unwrap())
        });
        assert_eq!(asked, [15; 4]);
        assert_eq!(count(), 1);
        assert_eq!((order.at(4).index(0), count()), (0, 2));
    }
}
