//! Whether a dataset and batcher give the same batches, whoever makes them and in how many parts.

use std::fmt::Debug;
use std::num::NonZeroUsize;
use std::sync::Arc;

use burn_prefetch_engine::{Ahead, Delivery, LoadError, Parts, Patience, Pool, PoolConfig};

use crate::loader::PrefetchDataLoader;
use crate::source::Pass;

/// How many workers, and how many parts a batch, are tried after one part on the calling thread.
const TRIALS: [Trial; 7] = [
    Trial::new(0, 1),
    Trial::new(0, 3),
    Trial::new(1, 1),
    Trial::new(2, 1),
    Trial::new(2, 2),
    Trial::new(4, 3),
    Trial::new(4, 7),
];

/// So many characters of a batch are shown where it differs.
const SHOWN: usize = 120;

/// One way to make batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Trial {
    workers: usize,
    parts: NonZeroUsize,
}

impl Trial {
    const FIRST: Self = Self::new(0, 1);

    const fn new(workers: usize, parts: usize) -> Self {
        match NonZeroUsize::new(parts) {
            Some(parts) => Self { workers, parts },
            None => Self {
                workers,
                parts: NonZeroUsize::MIN,
            },
        }
    }
}

/// Why a loader's batches cannot be relied on to be the same.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Nondeterminism {
    /// A batch was not what it had been.
    #[error(
        "batch {batch} of epoch {epoch}, of the items {indices:?}, is not the same when {workers} \
         workers make it in {parts} parts as when the calling thread makes it in one: {expected} \
         became {found}; draw random numbers from rng() or rng_at(index), and keep nothing between \
         calls that changes what they return"
    )]
    Differs {
        /// The batch.
        batch: usize,
        /// Its epoch.
        epoch: usize,
        /// The dataset's indices in it.
        indices: Vec<usize>,
        /// How many workers made it; 0 is the calling thread once more.
        workers: usize,
        /// In how many parts at most.
        parts: usize,
        /// The first difference, as it was at first.
        expected: String,
        /// The first difference, as it was then.
        found: String,
    },
    /// Not as many batches came.
    #[error(
        "{found} batches came with {workers} workers (0: on the calling thread, once more), and \
         {expected} on the calling thread at first: a sampler has to return the same length for an epoch whenever it is asked"
    )]
    Count {
        /// How many there were at first.
        expected: usize,
        /// How many there were then.
        found: usize,
        /// How many workers made them.
        workers: usize,
    },
    /// Nothing can be said about batches that fail.
    #[error("batches that cannot be loaded cannot be compared")]
    Load(#[from] LoadError),
}

impl<O: Send + 'static> PrefetchDataLoader<O> {
    /// Makes the next epoch's first `batches` several times, on this thread, on one, two and four
    /// workers, in up to seven parts each, and compares them: whether the dataset and batcher give
    /// the same batches every time. The epoch is not counted.
    ///
    /// The loader does its part for any number of workers; a dataset that draws from a generator of
    /// its own, or depends on what was called before, does not. The first difference is named. All
    /// of the batches are kept in memory meanwhile, and threads are started for the time it takes. They
    /// are none of the loader's own: [`stats`](Self::stats) does not count them. A
    /// [`timeout`](crate::DataLoaderBuilder::timeout) holds for what workers make.
    ///
    /// Tensors cannot be compared: for batches that hold some there is
    /// [`verify_determinism_by`](Self::verify_determinism_by).
    ///
    /// ```
    /// # use burn::data::{dataloader::batcher::Batcher, dataset::InMemDataset};
    /// # use burn::tensor::Device;
    /// # use burn_prefetch::DataLoaderBuilder;
    /// # struct Collect;
    /// # impl Batcher<u32, Vec<u32>> for Collect {
    /// #     fn batch(&self, items: Vec<u32>, _device: &Device) -> Vec<u32> { items }
    /// # }
    /// # let data = InMemDataset::new((0..100).collect());
    /// let loader = DataLoaderBuilder::new(Collect).batch_size(8).shuffle(1).try_build(data)?;
    /// loader.verify_determinism(10)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// With the first difference, or the first error in loading.
    pub fn verify_determinism(&self, batches: usize) -> Result<(), Nondeterminism>
    where
        O: PartialEq + Debug,
    {
        self.verify_determinism_by(batches, |batch| batch)
    }

    /// As [`verify_determinism`](Self::verify_determinism), for what `key` makes of each batch:
    /// `|batch| batch.images.into_data()` for a batch with a tensor.
    ///
    /// # Errors
    ///
    /// As [`verify_determinism`](Self::verify_determinism).
    pub fn verify_determinism_by<K: PartialEq + Debug>(
        &self,
        batches: usize,
        key: impl Fn(O) -> K,
    ) -> Result<(), Nondeterminism> {
        let first = self.trial(Trial::FIRST).1.take(batches);
        let first: Vec<K> = first
            .map(|batch| batch.map(&key))
            .collect::<Result<_, _>>()?;
        let whole = first.len() < batches;
        TRIALS.into_iter().try_for_each(|trial| {
            let (trial, mut pass) = self.trial(trial);
            compare(&first, (pass.as_mut(), trial), &key)?;
            if whole && pass.next().is_some() {
                return Err(count(&first, first.len() + 1, trial));
            }
            Ok(())
        })
    }

    /// The next epoch, made in another way: in as many parts as the loader itself, where that is said.
    fn trial(&self, Trial { workers, mut parts }: Trial) -> (Trial, Box<dyn Pass<O>>) {
        let pool = PoolConfig {
            size: workers,
            ..self.pool().config().clone()
        };
        let pass = self.start_on(&Arc::new(Pool::new(pool)), |reader| {
            if let Parts::Fixed(own) = reader.limits.parts {
                parts = own;
            }
            reader.limits.parts = Parts::Fixed(parts);
            reader.limits.ahead = Ahead::Fixed(2 * workers);
            reader.delivery = Delivery::InOrder;
            if workers == 0 {
                reader.patience = Patience::default();
            }
        });
        (Trial { workers, parts }, pass)
    }
}

/// Compares a pass with what came first, as far as that goes.
fn compare<O, K: PartialEq + Debug>(
    first: &[K],
    (pass, trial): (&mut dyn Pass<O>, Trial),
    key: impl Fn(O) -> K,
) -> Result<(), Nondeterminism> {
    for (found, expected) in first.iter().enumerate() {
        let batch = pass.next().ok_or_else(|| count(first, found, trial))?;
        let batch = key(batch?);
        if batch != *expected {
            return Err(differs(pass, trial, [expected, &batch]));
        }
    }
    Ok(())
}

fn count<K>(first: &[K], found: usize, trial: Trial) -> Nondeterminism {
    Nondeterminism::Count {
        expected: first.len(),
        found,
        workers: trial.workers,
    }
}

/// The batch that was returned last differs.
fn differs<O, K: Debug>(pass: &dyn Pass<O>, trial: Trial, values: [&K; 2]) -> Nondeterminism {
    let plan = pass.plan();
    let batch = pass.standing().first_missing().saturating_sub(1);
    let [expected, found] = first_difference(values.map(|value| format!("{value:?}")));
    Nondeterminism::Differs {
        batch,
        epoch: plan.epoch(),
        indices: plan.batch(batch).map(|place| plan.index(place)).collect(),
        workers: trial.workers,
        parts: trial.parts.get(),
        expected,
        found,
    }
}

/// Two texts from a little before they part.
fn first_difference(texts: [String; 2]) -> [String; 2] {
    let [one, other] = &texts;
    let same = one.chars().zip(other.chars()).take_while(|(a, b)| a == b);
    let start = same.count().saturating_sub(SHOWN / 4);
    texts.map(|text| {
        let shown: String = text.chars().skip(start).take(SHOWN).collect();
        let before = if start > 0 { "…" } else { "" };
        let after = if text.chars().count() > start + SHOWN {
            "…"
        } else {
            ""
        };
        format!("{before}{shown}{after}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_shown_where_they_part() {
        let long = |end: &str| format!("{}{end}", "x".repeat(1_000));
        let [one, other] = first_difference([long("one"), long("two")]);
        assert_eq!(
            (one.as_str(), other.as_str()),
            (
                format!("…{}one", "x".repeat(30)).as_str(),
                format!("…{}two", "x".repeat(30)).as_str(),
            )
        );
        assert_eq!(first_difference(["1".into(), "2".into()]), ["1", "2"]);
    }
}
