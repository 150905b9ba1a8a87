//! What the user's code may know of the item or batch it is called for, and its random numbers.

use std::cell::RefCell;
use std::collections::hash_map::RandomState;
use std::convert::Infallible;
use std::hash::BuildHasher;
use std::marker::PhantomData;

use rand_core::{Rng, TryRng};

use crate::seed::{self, Domain, Keys, PositionRng};
use crate::sync::thread_local;

/// For which item and batch the user's code is running.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct FetchContext {
    /// The epoch.
    pub epoch: usize,
    /// The batch within the epoch, from 0.
    pub batch: usize,
    /// How many of the batch's last items repeat others to fill it up: the mask of what is padding.
    pub padding: usize,
    /// The dataset index; `None` in a batcher and where several items are fetched in one call.
    pub index: Option<usize>,
    /// The worker, from 0; `None` on the thread that called `next()`.
    pub worker: Option<usize>,
}

/// One level of nesting: a loader inside a dataset has its own.
struct Frame {
    context: FetchContext,
    seed: u64,
    /// What is drawn for, and where that is, while no one index is being fetched.
    whole: (Domain, usize),
    /// The keys of the items' numbers, once any has been drawn.
    items: Option<Keys>,
    /// Made at the first draw; continues until the next item.
    rng: Option<PositionRng>,
}

impl Frame {
    #[inline]
    fn rng(&mut self) -> &mut PositionRng {
        let Self {
            context,
            seed,
            whole,
            items,
            rng,
        } = self;
        rng.get_or_insert_with(|| {
            let epoch = context.epoch as u64;
            seed::rng(match context.index {
                Some(index) => items
                    .get_or_insert_with(|| Keys::new(*seed, Domain::Fetch, epoch))
                    .at(index as u64),
                None => seed::derive(*seed, whole.0, epoch, whole.1 as u64),
            })
        })
    }
}

thread_local! {
    static FRAME: RefCell<Option<Frame>> = const { RefCell::new(None) };
    static OUTSIDE: RefCell<Option<PositionRng>> = const { RefCell::new(None) };
}

/// Sets the context around user code; dropping it restores the one before.
#[derive(Debug)]
pub(crate) struct Scope {
    outer: Option<Frame>,
    /// The frame belongs to the thread it was set on.
    _here: PhantomData<*const ()>,
}

impl std::fmt::Debug for Frame {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.context.fmt(f)
    }
}

impl Scope {
    /// `whole` says what draws are for that belong to several items rather than to one index, and
    /// where that is.
    pub(crate) fn enter(context: FetchContext, seed: u64, whole: (Domain, usize)) -> Self {
        let frame = Frame {
            context,
            seed,
            whole,
            items: None,
            rng: None,
        };
        let outer = FRAME.with(|slot| {
            let mut slot = slot.borrow_mut();
            // A frame is large, and seldom inside another one.
            let outer = if slot.is_some() { slot.take() } else { None };
            *slot = Some(frame);
            outer
        });
        Self {
            outer,
            _here: PhantomData,
        }
    }

    /// Moves on to the item at `index`, or to none: random numbers start afresh.
    pub(crate) fn set_index(index: Option<usize>) {
        FRAME.with(|slot| {
            if let Some(frame) = slot.borrow_mut().as_mut() {
                frame.context.index = index;
                frame.rng = None;
            }
        });
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        FRAME.with(|slot| {
            let mut slot = slot.borrow_mut();
            match &mut self.outer {
                None => *slot = None,
                outer @ Some(_) => *slot = outer.take(),
            }
        });
    }
}

/// For which item and batch this thread is running user code; `None` outside a loader.
#[must_use]
pub fn context() -> Option<FetchContext> {
    FRAME.with(|slot| slot.borrow().as_ref().map(|frame| frame.context))
}

/// Which of the `len` items of the batch that this thread is working on are real: `true` for those,
/// `false` for the last ones where these repeat others to fill the batch up. All are outside a
/// loader and without padding.
///
/// For a batcher, whose batch carries the mask to whoever weighs the loss by it.
#[must_use]
pub fn real_mask(len: usize) -> Vec<bool> {
    let padding = context().map_or(0, |context| context.padding);
    let real = len.saturating_sub(padding);
    (0..len).map(|place| place < real).collect()
}

/// The random numbers of the item or batch that this thread is working on.
///
/// In `Dataset::get` they are a function of (seed, epoch, index), in a batcher of (seed, epoch,
/// batch), in `get_many` of (seed, epoch, position of the first item asked for), each its own: the
/// same for any number of workers. (What one `get_many` is asked for depends on `parts_per_batch`;
/// [`rng_at`] does not.) Each item starts afresh; within
/// one item every call continues where the last stopped. The seed is that of the loader's
/// shuffle, 0 without one. Outside a loader the numbers start from a random seed, once a thread;
/// that goes for threads that user code starts or borrows too: give those an [`rng_at`] of the index.
///
/// It implements `rand_core` 0.10's `Rng`, and so `rand` 0.10's `RngExt`.
#[must_use]
pub fn rng() -> ContextRng {
    ContextRng { _here: PhantomData }
}

/// The random numbers of the item at `index`, from their start.
///
/// For `get_many`, where one call serves several items: what [`rng`] gives in `get(index)`.
/// Outside a loader a function of `index` and a random seed, drawn once a thread.
#[must_use]
pub fn rng_at(index: usize) -> ItemRng {
    let key = FRAME.with(|slot| {
        let frame = slot.borrow();
        let Frame { seed, context, .. } = frame.as_ref()?;
        let epoch = context.epoch as u64;
        Some(seed::derive(*seed, Domain::Fetch, epoch, index as u64))
    });
    let key = key.unwrap_or_else(|| {
        let seed = outside(|rng| rng.clone().next_u64());
        seed::derive(seed, Domain::Fetch, 0, index as u64)
    });
    ItemRng(seed::rng(key))
}

/// A thread's generator for draws outside any loader.
fn outside<T>(draw: impl FnOnce(&mut PositionRng) -> T) -> T {
    OUTSIDE.with(|slot| {
        // `RandomState` is keyed by the operating system's randomness.
        draw(
            slot.borrow_mut()
                .get_or_insert_with(|| seed::rng(RandomState::new().hash_one(0u8))),
        )
    })
}

#[inline]
fn draw<T>(draw: impl FnOnce(&mut PositionRng) -> T) -> T {
    FRAME.with(|slot| match slot.borrow_mut().as_mut() {
        None => outside(draw),
        Some(frame) => draw(frame.rng()),
    })
}

/// What [`rng`] returns: a handle to the numbers of whatever this thread is working on.
#[derive(Debug)]
pub struct ContextRng {
    _here: PhantomData<*const ()>,
}

impl TryRng for ContextRng {
    type Error = Infallible;

    #[inline]
    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(draw(Rng::next_u32))
    }

    #[inline]
    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(draw(Rng::next_u64))
    }

    #[inline]
    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        draw(|rng| rng.fill_bytes(bytes));
        Ok(())
    }
}

/// What [`rng_at`] returns: the numbers of one item.
#[derive(Clone, Debug)]
pub struct ItemRng(PositionRng);

impl TryRng for ItemRng {
    type Error = Infallible;

    #[inline]
    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(self.0.next_u32())
    }

    #[inline]
    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(self.0.next_u64())
    }

    #[inline]
    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        self.0.fill_bytes(bytes);
        Ok(())
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    const AT: FetchContext = FetchContext {
        epoch: 2,
        batch: 5,
        padding: 0,
        index: None,
        worker: Some(1),
    };

    #[test]
    fn a_nested_scope_gives_the_outer_one_back() {
        assert_eq!(context(), None);
        let outer = Scope::enter(AT, 0, (Domain::Assemble, 5));
        {
            let _inner = Scope::enter(FetchContext { batch: 9, ..AT }, 0, (Domain::Fetch, 5));
            Scope::set_index(Some(3));
            assert_eq!(context().and_then(|context| context.index), Some(3));
        }
        assert_eq!(context(), Some(AT));
        drop(outer);
        assert_eq!(context(), None);
    }

    #[test]
    fn the_numbers_follow_the_index_and_continue_within_it() {
        let _scope = Scope::enter(AT, 11, (Domain::Assemble, 5));
        Scope::set_index(Some(7));
        let first = [rng().next_u64(), rng().next_u64()];
        assert_ne!(first[0], first[1]);
        Scope::set_index(Some(8));
        assert_ne!(rng().next_u64(), first[0]);
        Scope::set_index(Some(7));
        assert_eq!(rng().next_u64(), first[0]);
        assert_eq!(rng_at(7).next_u64(), first[0]);
    }

    #[test]
    fn a_batch_draws_other_numbers_than_an_item() {
        let assembling = Scope::enter(AT, 11, (Domain::Assemble, 5));
        let drawn = rng().next_u64();
        assert_ne!(drawn, rng_at(AT.batch).next_u64());
        drop(assembling);
        let _fetching = Scope::enter(AT, 11, (Domain::FetchMany, 5));
        assert_ne!(drawn, rng().next_u64());
    }

    #[test]
    fn outside_a_loader_there_are_numbers_too() {
        assert_ne!(rng().next_u64(), rng().next_u64());
        assert_eq!(rng_at(1).next_u64(), rng_at(1).next_u64());
    }
}
