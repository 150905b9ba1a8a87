//! Datasets whose items say which index was asked for.

use std::error::Error;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use burn::data::dataset::{Dataset, DatasetError};

/// The items `0..len`, each its own index.
#[derive(Clone, Copy, Debug)]
pub struct Numbers(pub usize);

impl Dataset<usize> for Numbers {
    fn get(&self, index: usize) -> Result<usize, DatasetError> {
        assert!(index < self.0, "index {index} of {}", self.0);
        Ok(index)
    }

    fn len(&self) -> usize {
        self.0
    }
}

/// The items `0..len`, where `get` first does what the test says.
#[derive(Clone)]
pub struct Hooked<F> {
    len: usize,
    before: F,
}

impl<F: Fn(usize) + Send + Sync> Hooked<F> {
    /// Calls `before` with the index at the start of every `get`.
    pub fn new(len: usize, before: F) -> Self {
        Self { len, before }
    }
}

impl<F> fmt::Debug for Hooked<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hooked")
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}

impl<F: Fn(usize) + Send + Sync> Dataset<usize> for Hooked<F> {
    fn get(&self, index: usize) -> Result<usize, DatasetError> {
        (self.before)(index);
        Numbers(self.len).get(index)
    }

    fn len(&self) -> usize {
        self.len
    }
}

/// The items `0..len`, of which the first `slow` ones take their time; only where the promise is
/// about time.
#[derive(Clone, Copy, Debug)]
pub struct Waits {
    /// How many items there are.
    pub len: usize,
    /// How many of them, from the first, wait.
    pub slow: usize,
    /// How long each of those waits.
    pub wait: Duration,
}

impl Dataset<usize> for Waits {
    #[expect(
        clippy::disallowed_methods,
        reason = "stands for a slow disk; nothing waits for it"
    )]
    fn get(&self, index: usize) -> Result<usize, DatasetError> {
        if index < self.slow {
            std::thread::sleep(self.wait);
        }
        Numbers(self.len).get(index)
    }

    fn len(&self) -> usize {
        self.len
    }
}

/// The user's own error, to be found again behind the loader's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// The item that could not be read.
    pub index: usize,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "item {} cannot be read", self.index)
    }
}

impl Error for Unreadable {}

/// In which way a [`Broken`] dataset fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// `get` answers with [`Unreadable`].
    Error,
    /// `get` panics, with the text of [`Unreadable`].
    Panic,
    /// `get_many` returns all but one of the items.
    TooFew,
    /// `get_many` returns one item more than asked for.
    TooMany,
}

/// The items `0..len`, of which one brings a fault with it.
#[derive(Clone, Copy, Debug)]
pub struct Broken {
    /// How many items there are.
    pub len: usize,
    /// The index that brings the fault.
    pub at: usize,
    /// Which fault.
    pub fault: Fault,
}

impl Dataset<usize, Unreadable> for Broken {
    fn get(&self, index: usize) -> Result<usize, Unreadable> {
        assert!(index < self.len, "index {index} of {}", self.len);
        match self.fault {
            Fault::Error if index == self.at => Err(Unreadable { index }),
            Fault::Panic if index == self.at => panic!("{}", Unreadable { index }),
            Fault::Error | Fault::Panic | Fault::TooFew | Fault::TooMany => Ok(index),
        }
    }

    fn get_many(&self, indexes: Vec<usize>) -> Result<Vec<usize>, Unreadable> {
        let hit = indexes.contains(&self.at);
        let mut items = indexes
            .into_iter()
            .map(|index| self.get(index))
            .collect::<Result<Vec<_>, _>>()?;
        match self.fault {
            Fault::TooFew if hit => drop(items.pop()),
            Fault::TooMany if hit => items.push(self.at),
            Fault::Error | Fault::Panic | Fault::TooFew | Fault::TooMany => {}
        }
        Ok(items)
    }

    fn len(&self) -> usize {
        self.len
    }
}

/// The items `0..len`, with a list of every call.
#[derive(Debug, Default)]
pub struct Counting {
    len: usize,
    single: Mutex<Vec<usize>>,
    many: Mutex<Vec<Vec<usize>>>,
}

impl Counting {
    /// No call yet.
    #[must_use]
    pub fn new(len: usize) -> Self {
        Self {
            len,
            ..Self::default()
        }
    }

    /// The index of every call of `get`.
    pub fn gets(&self) -> Vec<usize> {
        self.single
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// The indices of every call of `get_many`.
    pub fn get_manys(&self) -> Vec<Vec<usize>> {
        self.many
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Whether nothing was fetched so far.
    pub fn untouched(&self) -> bool {
        self.gets().is_empty() && self.get_manys().is_empty()
    }
}

impl Dataset<usize> for Counting {
    fn get(&self, index: usize) -> Result<usize, DatasetError> {
        self.single
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(index);
        Numbers(self.len).get(index)
    }

    fn get_many(&self, indexes: Vec<usize>) -> Result<Vec<usize>, DatasetError> {
        self.many
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(indexes.clone());
        Numbers(self.len).get_many(indexes)
    }

    fn len(&self) -> usize {
        self.len
    }
}
