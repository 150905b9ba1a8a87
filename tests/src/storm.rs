//! Loaders whose items do whatever may go wrong, each the same in every run of the same seed.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};

use burn::data::dataloader::DataLoader;
use burn::data::dataset::{Dataset, DatasetError};
use burn_prefetch::{BoxError, PrefetchDataLoader, context};

use crate::{Gate, Guarded, Kept, LiveThreads, Traces, Unreadable};

/// A die whose throws are a function of its seed (`SplitMix64`).
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// Throws as no other seed's.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(scatter(seed))
    }

    fn throw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        scatter(self.0)
    }

    /// A number below `end`.
    ///
    /// # Panics
    ///
    /// When there is none.
    pub fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.throw() % end as u64).expect("it is below a usize")
    }

    /// True once in so many times.
    pub fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// One of them.
    ///
    /// # Panics
    ///
    /// When there is none.
    pub fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }

    /// Takes one of them out, if there is any.
    pub fn take<T>(&mut self, all: &mut Vec<T>) -> Option<T> {
        if all.is_empty() {
            None
        } else {
            Some(all.swap_remove(self.below(all.len())))
        }
    }
}

/// Another number for every number, with nothing of its pattern.
fn scatter(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    number ^ (number >> 31)
}

/// What may go wrong, until it [clears up](Sky::clear_up).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weather {
    /// Nothing.
    Calm,
    /// Items return errors.
    Errors,
    /// Threads cannot be prepared.
    Init,
    /// Readers wait for less time than a batch may take.
    Hurry,
    /// Items do not return until they are [let go](Sky::let_go).
    Stuck,
}

impl Weather {
    /// Every one.
    pub const ALL: [Self; 5] = [
        Self::Calm,
        Self::Errors,
        Self::Init,
        Self::Hurry,
        Self::Stuck,
    ];
}

/// What the items of several loaders do, and what is left of them.
#[derive(Debug)]
pub struct Sky {
    seed: u64,
    weather: Weather,
    clear: AtomicBool,
    gate: Mutex<Arc<Gate>>,
    /// Items, batches and datasets that are alive.
    pub traces: Traces,
    /// Workers that have fetched an item and not ended.
    pub threads: LiveThreads,
}

impl Sky {
    /// Nothing has happened yet.
    #[must_use]
    pub fn new(seed: u64, weather: Weather) -> Arc<Self> {
        Arc::new(Self {
            seed,
            weather,
            clear: AtomicBool::new(false),
            gate: Mutex::new(Gate::closed()),
            traces: Traces::none(),
            threads: LiveThreads::default(),
        })
    }

    /// Whether the weather is this, and has not cleared up.
    #[must_use]
    pub fn is(&self, weather: Weather) -> bool {
        self.weather == weather && !self.clear.load(SeqCst)
    }

    /// Nothing goes wrong any more.
    pub fn clear_up(&self) {
        self.clear.store(true, SeqCst);
        self.let_go();
    }

    /// Those that are stuck now return; others will be stuck.
    pub fn let_go(&self) {
        let mut gate = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *gate, Gate::closed()).open();
    }

    fn wait_if_stuck(&self) {
        let now = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
        // Asked under the lock: whoever clears up opens this gate afterwards.
        let gate = self.is(Weather::Stuck).then(|| Arc::clone(&now));
        drop(now);
        if let Some(gate) = gate {
            gate.wait();
        }
    }

    /// What prepares a thread, or not.
    pub fn init(
        self: &Arc<Self>,
    ) -> impl Fn(Option<usize>) -> Result<(), BoxError> + Send + Sync + use<> {
        let (sky, dice) = (Arc::clone(self), Mutex::new(Dice::new(self.seed)));
        move |_| {
            let mut dice = dice.lock().unwrap_or_else(PoisonError::into_inner);
            if sky.is(Weather::Init) && dice.one_in(6) {
                return Err("not in this weather".into());
            }
            Ok(())
        }
    }

    /// The items `0..len`, some of which read a part of a pass of `inner` first.
    #[must_use]
    pub fn dataset(
        self: &Arc<Self>,
        len: usize,
        inner: Option<Arc<PrefetchDataLoader<Kept>>>,
    ) -> UnderSky {
        UnderSky {
            sky: Arc::clone(self),
            inner,
            items: Box::new(self.traces.dataset(len, |_| ())),
        }
    }
}

/// What [`Sky::dataset`] gives.
pub struct UnderSky {
    sky: Arc<Sky>,
    inner: Option<Arc<PrefetchDataLoader<Kept>>>,
    items: Box<dyn Dataset<Guarded>>,
}

impl fmt::Debug for UnderSky {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnderSky")
            .field("sky", &self.sky)
            .field("inner", &self.inner)
            .finish_non_exhaustive()
    }
}

impl Dataset<Guarded> for UnderSky {
    fn get(&self, index: usize) -> Result<Guarded, DatasetError> {
        let at = context().expect("this is user code");
        if at.worker.is_some() {
            self.sky.threads.enter();
        }
        let item = (at.epoch * 1_000 + index) as u64;
        let mut dice = Dice::new(self.sky.seed.wrapping_mul(1_000_003) ^ item);
        let inner = self.inner.as_ref().filter(|_| dice.one_in(3));
        if let Some(inner) = inner {
            for batch in inner.iter().take(dice.below(8)) {
                batch?;
            }
        }
        if dice.one_in(12) {
            self.sky.wait_if_stuck();
        }
        if dice.one_in(20) && self.sky.is(Weather::Errors) {
            return Err(DatasetError::new(Unreadable { index }));
        }
        self.items.get(index)
    }

    fn len(&self) -> usize {
        self.items.len()
    }
}
