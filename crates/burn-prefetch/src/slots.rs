//! The slots of a device: lent, brought back, page-locked as far as that is allowed.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use crate::burn::{AllocationProperty, Bytes};
use crate::slot::{Home, Slot};

/// No slot is smaller; a page.
const SMALLEST: usize = 4096;

/// A slot may be used for so many times fewer bytes than it has.
const LARGER: usize = 4;

/// Page-locks so many bytes; `None` when the device could not.
pub(crate) type Pin = Box<dyn Fn(usize) -> Option<Bytes> + Send + Sync>;

/// What a device's slots are, at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct StagingStats {
    /// Bytes that are page-locked, in use or not.
    pub pinned_bytes: u64,
    /// In how many slots.
    pub pinned_slots: usize,
    /// Slots that are in use, pinned or not. Those of the batch uploaded last stay so until the next upload,
    /// or until the last loader for the device ends: the device gives them back with what it is told next.
    pub slots_in_use: usize,
    /// Bytes in slots that are not page-locked.
    pub pageable_bytes: u64,
    /// How often a slot was not page-locked although that was asked for: the budget was used up, or
    /// the system refused.
    pub pageable_fallbacks: u64,
    /// Bytes handed to the device.
    pub uploaded_bytes: u64,
    /// Batches handed to the device.
    pub uploads: u64,
}

/// Lends slots and takes them back. Never waits for one: where no pinned one may be had, a pageable one
/// takes its place and is counted.
///
/// Invariants: the pinned slots never have more bytes than the budgets of its members together; the lock
/// is a leaf: nothing of Burn is called under it, and no memory is dropped.
pub(crate) struct Slots {
    pin: Option<Pin>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    pinned: Shelf,
    pageable: Shelf,
    /// By member; `None`: no limit.
    budgets: BTreeMap<usize, Option<u64>>,
    joined: usize,
    fallbacks: u64,
    uploads: (u64, u64),
    /// The system has refused to page-lock memory.
    refused: bool,
    /// Warned of a slot that no budget can bear.
    warned: bool,
    closed: bool,
}

/// Slots of one kind, by their size.
#[derive(Default)]
struct Shelf {
    idle: BTreeMap<usize, Vec<Bytes>>,
    /// By size, how many there are: as many find room on the shelf.
    made: BTreeMap<usize, usize>,
    bytes: usize,
    in_use: usize,
}

impl Shelf {
    fn take(&mut self, size: usize) -> Option<Bytes> {
        let mut fitting = self.idle.range_mut(size..=size.saturating_mul(LARGER));
        let memory = fitting.find_map(|(_, idle)| idle.pop())?;
        self.in_use += 1;
        Some(memory)
    }

    /// One more will come of this size: room for it is made now, so that bringing it back allocates
    /// nothing.
    fn expect(&mut self, size: usize) {
        let made = self.made.entry(size).or_default();
        *made += 1;
        let idle = self.idle.entry(size).or_default();
        idle.reserve(made.saturating_sub(idle.len()));
        self.bytes += size;
        self.in_use += 1;
    }

    /// It did not come, or is no more.
    fn forget(&mut self, size: usize) {
        if let Some(made) = self.made.get_mut(&size) {
            *made -= 1;
        }
        self.bytes -= size;
    }

    fn give_back(&mut self, memory: Bytes) {
        self.in_use -= 1;
        self.idle.entry(memory.len()).or_default().push(memory);
    }

    /// Takes idle slots from the shelf until it has at most so many `bytes`, if that is possible.
    fn shrink(&mut self, bytes: usize) -> Vec<Bytes> {
        let mut gone = Vec::new();
        while self.bytes > bytes {
            let Some(memory) = self.idle.values_mut().rev().find_map(Vec::pop) else {
                break;
            };
            self.forget(memory.len());
            gone.push(memory);
        }
        gone
    }
}

impl State {
    /// How many bytes may be page-locked.
    fn cap(&self) -> usize {
        let all: Option<Vec<_>> = self.budgets.values().copied().collect();
        let sum = all.map(|all| all.into_iter().fold(0, u64::saturating_add));
        sum.map_or(usize::MAX, |sum| usize::try_from(sum).unwrap_or(usize::MAX))
    }

    fn shelf(&mut self, property: AllocationProperty) -> &mut Shelf {
        if property == AllocationProperty::Pinned {
            &mut self.pinned
        } else {
            &mut self.pageable
        }
    }
}

/// What was decided under the lock about a slot that is asked for.
enum Decision {
    Lend(Bytes),
    Make,
    Refuse,
}

impl fmt::Debug for Slots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slots")
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}

/// A loader's part in the slots of a device; while it is there its budget counts.
#[derive(Debug)]
pub(crate) struct Member {
    slots: Arc<Slots>,
    number: usize,
}

impl Slots {
    /// None yet. With `pin` they can be page-locked.
    pub(crate) fn new(pin: Option<Pin>) -> Arc<Self> {
        Arc::new(Self {
            pin,
            state: Mutex::default(),
        })
    }

    /// Takes in a loader that may page-lock so many bytes; `None`: as many as it uses.
    pub(crate) fn join(self: &Arc<Self>, budget: Option<u64>) -> Member {
        let mut state = self.lock();
        let number = state.joined;
        state.joined += 1;
        state.budgets.insert(number, budget);
        drop(state);
        Member {
            slots: Arc::clone(self),
            number,
        }
    }

    /// A slot of at least `len` bytes, `pinned` if that may be had. What is in it is of another batch.
    /// `None` where the system has no memory.
    pub(crate) fn take(self: &Arc<Self>, len: usize, pinned: bool) -> Option<Slot> {
        let size = size_class(len);
        let wanted = self.pin.as_ref().filter(|_| pinned);
        let memory = wanted.and_then(|pin| self.take_pinned(size, pin));
        let memory = memory.or_else(|| self.take_pageable(size))?;
        Some(Slot::new(memory, Arc::<Self>::clone(self)))
    }

    fn take_pinned(&self, size: usize, pin: &Pin) -> Option<Bytes> {
        let (decision, gone) = self.decide(size);
        drop(gone);
        match decision {
            Decision::Lend(memory) => return Some(memory),
            Decision::Refuse => return None,
            Decision::Make => {}
        }
        let made = pin(size);
        if made.is_none() {
            let mut state = self.lock();
            state.pinned.in_use -= 1;
            state.pinned.forget(size);
            state.fallbacks += 1;
            let first = !std::mem::replace(&mut state.refused, true);
            drop(state);
            if first {
                log::warn!(
                    "no page-locked memory could be had for a slot of {size} bytes: batches go \
                     through pageable memory from here on"
                );
            }
        }
        made
    }

    fn decide(&self, size: usize) -> (Decision, Vec<Bytes>) {
        let mut state = self.lock();
        if let Some(memory) = state.pinned.take(size) {
            return (Decision::Lend(memory), Vec::new());
        }
        let cap = state.cap();
        let mut gone = Vec::new();
        if !state.refused && size <= cap {
            gone = state.pinned.shrink(cap - size);
            if state.pinned.bytes <= cap - size {
                state.pinned.expect(size);
                return (Decision::Make, gone);
            }
        }
        state.fallbacks += 1;
        let warn = size > cap && !std::mem::replace(&mut state.warned, true);
        drop(state);
        if warn {
            log::warn!(
                "pinned_budget is {cap} bytes, but a slot takes {size}: such batches go through \
                 pageable memory; use at least {size} bytes for each slot that is in use at a time"
            );
        }
        (Decision::Refuse, gone)
    }

    fn take_pageable(&self, size: usize) -> Option<Bytes> {
        let mut state = self.lock();
        if let Some(memory) = state.pageable.take(size) {
            return Some(memory);
        }
        // What lies idle although none of it fits is not needed as much as what is in use.
        let idle: usize = state.pageable.idle.values().map(Vec::len).sum();
        let gone = if idle > state.pageable.in_use {
            state.pageable.shrink(0)
        } else {
            Vec::new()
        };
        state.pageable.expect(size);
        drop(state);
        drop(gone);
        let mut memory: Vec<u64> = Vec::new();
        let words = size / size_of::<u64>();
        if memory.try_reserve_exact(words).is_err() {
            let mut state = self.lock();
            state.pageable.in_use -= 1;
            state.pageable.forget(size);
            return None;
        }
        memory.resize(words, 0);
        Some(Bytes::from_elems(memory))
    }

    /// Counts a batch handed to the device.
    pub(crate) fn uploaded(&self, bytes: usize) {
        let mut state = self.lock();
        state.uploads.0 += 1;
        state.uploads.1 += bytes as u64;
    }

    /// Lets go of all slots that are not in use, and from now on of each when it comes back.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        let mut gone = state.pinned.shrink(0);
        gone.append(&mut state.pageable.shrink(0));
        drop(state);
        drop(gone);
    }

    pub(crate) fn stats(&self) -> StagingStats {
        let state = self.lock();
        let (pinned, pageable) = (&state.pinned, &state.pageable);
        StagingStats {
            pinned_bytes: pinned.bytes as u64,
            pinned_slots: pinned.made.values().sum(),
            slots_in_use: pinned.in_use + pageable.in_use,
            pageable_bytes: pageable.bytes as u64,
            pageable_fallbacks: state.fallbacks,
            uploads: state.uploads.0,
            uploaded_bytes: state.uploads.1,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Home for Slots {
    fn take_back(&self, memory: Bytes) {
        let mut state = self.lock();
        let closed = state.closed;
        let lying = state.shelf(memory.property());
        if !closed {
            lying.give_back(memory);
            return;
        }
        lying.in_use -= 1;
        lying.forget(memory.len());
        drop(state);
        drop(memory);
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let mut state = self.slots.lock();
        state.budgets.remove(&self.number);
        let gone = if state.budgets.is_empty() {
            Vec::new()
        } else {
            let cap = state.cap();
            state.pinned.shrink(cap)
        };
        drop(state);
        drop(gone);
    }
}

/// Slots come in sizes four to a doubling, so that at most a quarter of one is unused and batches of
/// like size share them.
fn size_class(len: usize) -> usize {
    let len = len.max(SMALLEST);
    let step = len.checked_next_power_of_two().unwrap_or(len) / 8;
    len.checked_next_multiple_of(step.max(8)).unwrap_or(len)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(slots: &Arc<Slots>, len: usize, pinned: bool) -> Slot {
        slots.take(len, pinned).expect("there is memory")
    }

    #[test]
    fn a_size_is_a_quarter_too_large_at_most() {
        for len in [0, 1, 4096, 4097, 5000, 24 << 20, (24 << 20) + 1, 64 << 20] {
            let size = size_class(len);
            let needed = len.max(SMALLEST);
            assert!(
                size >= needed && size - needed <= needed / 4,
                "{len}: {size}"
            );
            assert_eq!(size_class(size), size);
            assert_eq!(size % 8, 0);
        }
        assert_eq!(size_class(24 << 20), 24 << 20);
    }

    #[test]
    fn what_came_back_is_lent_again() {
        let slots = Slots::new(None);
        let first = take(&slots, 5000, true);
        let address = first.bytes().as_ptr();
        drop(first);
        let again = take(&slots, 4100, true);
        assert_eq!(again.bytes().as_ptr(), address, "a larger one will do");
        let stats = slots.stats();
        assert_eq!((stats.slots_in_use, stats.pageable_bytes), (1, 5120));
        assert_eq!(stats.pageable_fallbacks, 0, "nothing here can be pinned");
        drop(take(&slots, 5000, true));
        assert_eq!(slots.stats().pageable_bytes, 10_240);
    }

    #[test]
    fn slots_of_sizes_that_nobody_wants_any_more_go() {
        let slots = Slots::new(None);
        for len in (0..200).map(|step| 4096 << (step % 12)) {
            drop(take(&slots, len, false));
        }
        assert!(
            slots.stats().pageable_bytes <= 3 * (4096 << 11),
            "{slots:?}"
        );
    }

    #[test]
    fn a_closed_home_lets_go() {
        let slots = Slots::new(None);
        let (one, other) = (take(&slots, 1, false), take(&slots, 1, false));
        drop(one);
        slots.close();
        assert_eq!(slots.stats().pageable_bytes, 4096);
        drop(other);
        assert_eq!(slots.stats().pageable_bytes, 0);
    }

    /// What cannot be page-locked here is tested over the stand-in driver, in `tests/cuda`.
    #[test]
    fn who_is_refused_gets_pageable_memory_and_is_counted() {
        let slots = Slots::new(Some(Box::new(|_| None)));
        let _member = slots.join(None);
        for _ in 0..3 {
            assert!(!take(&slots, 1, true).is_pinned());
        }
        let stats = slots.stats();
        assert_eq!((stats.pageable_fallbacks, stats.pinned_bytes), (3, 0));
    }

    #[test]
    fn the_cap_is_the_sum_of_the_budgets() {
        let slots = Slots::new(None);
        let one = slots.join(Some(10));
        let other = slots.join(Some(5));
        assert_eq!(slots.lock().cap(), 15);
        drop(one);
        assert_eq!(slots.lock().cap(), 5);
        let _unlimited = slots.join(None);
        assert_eq!(slots.lock().cap(), usize::MAX);
        drop(other);
    }
}
