//! What fetching an item and assembling a batch cost, learned as they run, and what follows.

use std::num::NonZeroUsize;
use std::time::Duration;

use crate::sync::Mutex;

/// A part is worth about this much work: long enough that its hand-over does not count, short
/// enough that one part does not delay a batch.
const PART: Duration = Duration::from_micros(100);

/// Below this a batch is so cheap that reading the clock for each would show.
const CHEAP: f64 = 5_000.0;

/// One in so many cheap batches is measured.
const SAMPLED: u32 = 16;

/// The clock is read for each item where it takes longer than this, or nobody knows.
const SLOW: f64 = 3_000.0;

/// Less work than this is done before another worker has woken up for it.
const WAKE: f64 = 20_000.0;

/// The weight of a new measurement: half of what is known is from the last five.
const WEIGHT: f64 = 0.125;

/// How a batch is cut into parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parts {
    /// So that one part is worth about 100 µs; as many as there are workers until that is known.
    Learned,
    /// So many, or as many as the batch has items.
    Fixed(NonZeroUsize),
}

/// How many batches may be alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ahead {
    /// As many as keep all workers busy, learned, at most two for each worker.
    Learned,
    /// So many.
    Fixed(usize),
}

/// Averages of what has been measured, and the decisions taken from them.
#[derive(Clone, Debug)]
pub(crate) struct Costs {
    workers: usize,
    parts: Parts,
    item: Option<f64>,
    assembly: Option<f64>,
    /// Whether nothing of this pass has been measured yet: what is known is of other items.
    unproven: bool,
    /// Whether the reader waited for a batch, so that the next one is measured however cheap it is
    /// said to be.
    doubted: bool,
}

/// What the passes of one loader have learned, for those to come.
#[derive(Debug, Default)]
pub struct CostMemory(Mutex<Known>);

/// Averages of an item's fetch and of a batch's assembly, where they have been measured.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    item: Option<f64>,
    assembly: Option<f64>,
}

impl Costs {
    pub(crate) fn new(workers: usize, parts: Parts) -> Self {
        Self {
            workers,
            parts,
            item: None,
            assembly: None,
            unproven: true,
            doubted: false,
        }
    }

    /// Starts with what is remembered.
    pub(crate) fn remembering(self, memory: &CostMemory) -> Self {
        let Known { item, assembly } = *memory.0.lock();
        Self {
            item,
            assembly,
            ..self
        }
    }

    /// What the pass after this one starts with.
    pub(crate) fn following(&self) -> Self {
        Self {
            unproven: true,
            doubted: false,
            ..self.clone()
        }
    }

    /// Leaves what has been learned, if anything was.
    pub(crate) fn leave(&self, memory: &CostMemory) {
        let mut known = memory.0.lock();
        known.item = self.item.or(known.item);
        known.assembly = self.assembly.or(known.assembly);
    }

    /// The reader went to sleep for a batch: worth the clock, should batches not be as cheap as they
    /// were.
    pub(crate) fn doubt(&mut self) {
        self.doubted = true;
    }

    /// Whether batch `number` of `len` items should be measured, and for how many it then stands.
    pub(crate) fn wants(&mut self, number: usize, len: usize) -> Option<u32> {
        if !self.is_cheap(len) || std::mem::take(&mut self.doubted) || self.unproven {
            return Some(1);
        }
        number.is_multiple_of(SAMPLED as usize).then_some(SAMPLED)
    }

    /// Whether an item takes so long, as far as is known, that reading the clock for each does not
    /// show.
    pub(crate) fn has_slow_items(&self) -> bool {
        self.item.is_none_or(|item| item > SLOW)
    }

    /// Whether a batch of `len` items is known to cost less than to sleep and be woken.
    pub(crate) fn is_cheap(&self, len: usize) -> bool {
        self.item.is_some_and(|item| item * to_f64(len) < CHEAP)
    }

    /// Whether so many batches of `len` items are worth waking one more worker for.
    pub(crate) fn worth_waking(&self, batches: usize, len: usize) -> bool {
        let Some(item) = self.item else {
            return batches > 0;
        };
        let batch = item * to_f64(len) + self.assembly.unwrap_or_default();
        batches > 0 && (batch > CHEAP || batch * to_f64(batches) > WAKE)
    }

    pub(crate) fn fetched(&mut self, items: usize, took: Duration) {
        if items > 0 {
            self.unproven = false;
            learn(&mut self.item, nanos(took) / to_f64(items));
        }
    }

    pub(crate) fn assembled(&mut self, took: Duration) {
        learn(&mut self.assembly, nanos(took));
    }

    /// Into how many parts a batch of `len` items is cut: a pass's first ones so that all workers
    /// share them, whatever is known of other items.
    pub(crate) fn parts(&self, len: usize) -> usize {
        let parts = self.parts_worth_it(len);
        match self.parts {
            Parts::Learned if self.unproven => parts.max(self.workers.clamp(1, len.max(1))),
            Parts::Learned | Parts::Fixed(_) => parts,
        }
    }

    /// Into how many parts a batch is cut that costs what is known.
    fn parts_worth_it(&self, len: usize) -> usize {
        let wanted = match (self.parts, self.item) {
            (Parts::Fixed(parts), _) => parts.get(),
            (Parts::Learned, _) if self.workers == 0 => 1,
            (Parts::Learned, None) => self.workers,
            (Parts::Learned, Some(item)) => to_count(item * to_f64(len) / nanos(PART)),
        };
        wanted.clamp(1, len.max(1))
    }

    /// How many batches alive keep every worker busy: `⌈n/p⌉ + 1 + ⌈n·a/(a+f)⌉` for n workers, p
    /// parts a batch, and a batch's assembly taking a and its fetch f. At most 2n.
    ///
    /// The workers share the parts of the oldest batch (n of them need `⌈n/p⌉` batches), while
    /// assembly occupies n·a/(a+f) workers with a batch each, and one more is being waited for.
    /// Measured by the bench `uneven_items`.
    pub(crate) fn ahead(&self, len: usize) -> usize {
        let workers = self.workers;
        let sharing = workers.div_ceil(self.parts_worth_it(len).min(workers.max(1)));
        let assembling = match (self.item, self.assembly) {
            (Some(item), Some(assembly)) if assembly > 0.0 => {
                let share = assembly / (assembly + item * to_f64(len));
                to_count(to_f64(workers) * share)
            }
            _ => 0,
        };
        (sharing + 1 + assembling).min(2 * workers)
    }
}

fn learn(known: &mut Option<f64>, new: f64) {
    *known = Some(known.map_or(new, |old| old + WEIGHT * (new - old)));
}

fn nanos(time: Duration) -> f64 {
    time.as_secs_f64() * 1e9
}

#[expect(clippy::cast_precision_loss, reason = "an average needs no 53 bits")]
fn to_f64(count: usize) -> f64 {
    count as f64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a cast from a float saturates, and the caller clamps"
)]
fn to_count(value: f64) -> usize {
    value.ceil() as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn costs(workers: usize, item: u64, assembly: u64) -> Costs {
        let mut costs = Costs::new(workers, Parts::Learned);
        costs.fetched(1, Duration::from_micros(item));
        costs.assembled(Duration::from_micros(assembly));
        costs
    }

    #[test]
    fn before_anything_is_known_a_batch_is_shared_by_all_workers() {
        let costs = Costs::new(4, Parts::Learned);
        assert_eq!((costs.parts(64), costs.ahead(64)), (4, 2));
        assert_eq!((costs.parts(1), costs.ahead(1)), (1, 5));
        assert_eq!(Costs::new(4, Parts::Fixed(NonZeroUsize::MIN)).parts(64), 1);
        assert_eq!(Costs::new(0, Parts::Learned).parts(64), 1);
    }

    #[cfg(not(shuttle))]
    #[test]
    fn what_one_pass_has_learned_the_next_one_knows() {
        let memory = CostMemory::default();
        let fresh = || Costs::new(4, Parts::Learned).remembering(&memory);
        assert_eq!(fresh().parts(64), 4);
        costs(4, 50, 0).leave(&memory);
        assert_eq!(fresh().parts(64), 32);
        Costs::new(4, Parts::Learned).leave(&memory);
        assert_eq!(fresh().parts(64), 32);
    }

    #[cfg(not(shuttle))]
    #[test]
    fn the_first_batches_are_shared_however_cheap_those_before_were() {
        let memory = CostMemory::default();
        costs(4, 0, 0).leave(&memory);
        let mut costs = Costs::new(4, Parts::Learned).remembering(&memory);
        assert_eq!((costs.parts(64), costs.parts(2), costs.parts(0)), (4, 2, 1));
        assert_eq!((costs.ahead(64), costs.wants(3, 64)), (5, Some(1)));
        costs.fetched(16, Duration::ZERO);
        assert_eq!((costs.parts(64), costs.wants(3, 64)), (1, None));
        assert_eq!(costs.following().parts(64), 4);
    }

    #[test]
    fn a_batch_that_was_waited_for_has_the_next_one_measured() {
        let mut costs = costs(2, 0, 0);
        assert_eq!(costs.wants(3, 64), None);
        costs.doubt();
        assert_eq!(costs.wants(4, 64), Some(1));
        assert_eq!(costs.wants(5, 64), None);
    }

    #[test]
    fn a_part_is_worth_a_hundred_microseconds() {
        assert_eq!(costs(4, 50, 0).parts(64), 32);
        assert_eq!(costs(4, 5_000, 0).parts(64), 64);
        assert_eq!(costs(4, 0, 0).parts(64), 1);
    }

    #[test]
    fn the_window_follows_the_share_of_assembly() {
        // The formula's own examples: 8 workers, parts enough for all.
        assert_eq!(costs(8, 100, 0).ahead(64), 2);
        assert_eq!(costs(8, 100, 1_600).ahead(64), 4);
        assert_eq!(costs(8, 100, 6_400).ahead(64), 6);
        // One part a batch: every worker needs its own.
        assert_eq!(costs(8, 100, 0).ahead(1), 9);
        assert_eq!(costs(1, 100, 100_000).ahead(64), 2);
        assert_eq!(costs(0, 100, 100).ahead(64), 0);
    }

    #[test]
    fn cheap_batches_are_sampled() {
        let mut costs = costs(2, 1, 0);
        assert_eq!(costs.wants(3, 64), Some(1));
        assert_eq!(costs.wants(3, 2), None);
        assert_eq!(costs.wants(32, 2), Some(16));
        assert!(!costs.has_slow_items() && Costs::new(2, Parts::Learned).has_slow_items());
    }

    #[test]
    fn a_worker_is_woken_for_what_takes_longer_than_to_wake() {
        assert!(Costs::new(2, Parts::Learned).worth_waking(1, 1));
        assert!(costs(2, 6, 0).worth_waking(1, 1));
        assert!(!costs(2, 1, 0).worth_waking(19, 1));
        assert!(costs(2, 1, 0).worth_waking(21, 1));
        assert!(!costs(2, 6, 0).worth_waking(0, 1));
    }
}
