//! What is kept of a pass to go on with it in another process.

use burn_prefetch_engine::{Identity, Plan, RNG_VERSION, Remainder, Standing};
use serde::{Deserialize, Serialize};

use crate::state_error::StateError;

/// The version of the format: it rises when a field changes its meaning.
const FORMAT: u32 = 1;

/// Where a loader stands: an epoch, how many of its batches have been returned, and a fingerprint
/// of everything that its order depends on. A few numbers, whatever the data weighs.
///
/// Saved with any `serde` format, and [restored](crate::PrefetchDataLoader::restore) in a loader
/// that may have other workers, windows and parts. Batches that are ready but were not returned are
/// not in it: they are made again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoaderState {
    /// 0 where there is none, which is no version.
    #[serde(default)]
    version: u32,
    #[serde(default)]
    epoch: usize,
    /// All batches below have been returned, but for those `missing`.
    #[serde(default)]
    batch: usize,
    #[serde(default)]
    missing: Vec<usize>,
    #[serde(default)]
    fingerprint: Fingerprint,
}

impl LoaderState {
    pub(crate) fn new(epoch: usize, standing: &Standing, fingerprint: Fingerprint) -> Self {
        Self {
            version: FORMAT,
            epoch,
            batch: standing.next(),
            missing: standing.missing().to_vec(),
            fingerprint,
        }
    }

    /// The epoch that is gone on with.
    #[must_use]
    pub fn epoch(&self) -> usize {
        self.epoch
    }

    /// How many batches of the epoch have been returned.
    #[must_use]
    pub fn batch(&self) -> usize {
        self.batch.saturating_sub(self.missing.len())
    }

    /// Where it stands in a loader with this `fingerprint` and `plan`, if it belongs there.
    pub(crate) fn check(
        &self,
        fingerprint: &Fingerprint,
        plan: &Plan,
    ) -> Result<Standing, StateError> {
        if self.version != FORMAT {
            return Err(StateError::Version {
                found: self.version,
                known: FORMAT,
            });
        }
        self.fingerprint.expect(fingerprint, plan)?;
        let standing = Standing::new(self.batch, self.missing.clone())?;
        let batches = plan.num_batches(self.epoch);
        if standing.next() > batches {
            return Err(StateError::Beyond {
                batch: standing.next(),
                epoch: self.epoch,
                batches,
            });
        }
        Ok(standing)
    }
}

/// Everything that the batches of a loader depend on, but for the data itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Fingerprint {
    data_len: usize,
    /// None where a batch sampler makes the batches.
    batch_size: Option<usize>,
    /// What becomes of the items that do not fill a last batch.
    remainder: String,
    order: String,
    /// Of the order's algorithm.
    order_version: u32,
    /// What the order was made from, in one number, which a signed one can hold.
    order_digest: u64,
    /// Of a plain shuffle.
    shuffle: Option<u64>,
    /// Of random augmentation.
    seed: u64,
    rng_version: u32,
}

/// What a fingerprint has from the settings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cut {
    pub(crate) batch_size: Option<usize>,
    pub(crate) remainder: Remainder,
    pub(crate) shuffle: Option<u64>,
    pub(crate) seed: u64,
}

impl Fingerprint {
    /// Reads all that the order was made from: about a nanosecond an entry of a list.
    pub(crate) fn new(plan: &Plan, cut: Cut) -> Self {
        let Identity {
            name,
            version,
            digest,
        } = plan.identity();
        Self {
            data_len: plan.data_len(),
            batch_size: cut.batch_size,
            remainder: words(cut.remainder).to_owned(),
            order: name.to_owned(),
            order_version: version,
            order_digest: digest >> 1,
            shuffle: cut.shuffle,
            seed: cut.seed,
            rng_version: RNG_VERSION,
        }
    }

    /// Fails at the first difference between this, which was saved, and what is `here`.
    fn expect(&self, here: &Self, plan: &Plan) -> Result<(), StateError> {
        let differences = [
            (
                "a data length of",
                self.data_len.to_string(),
                here.data_len.to_string(),
            ),
            ("the order", self.order.clone(), here.order.clone()),
            (
                "the shuffle's seed",
                shown(self.shuffle),
                shown(here.shuffle),
            ),
            ("the seed", self.seed.to_string(), here.seed.to_string()),
            (
                "a batch size of",
                shown(self.batch_size),
                shown(here.batch_size),
            ),
            (
                "a last batch that is",
                self.remainder.clone(),
                here.remainder.clone(),
            ),
            (
                "the order's version",
                self.order_version.to_string(),
                here.order_version.to_string(),
            ),
            (
                "the random numbers' version",
                self.rng_version.to_string(),
                here.rng_version.to_string(),
            ),
        ];
        let difference = differences
            .into_iter()
            .find(|(_, saved, here)| saved != here);
        if let Some((what, saved, here)) = difference {
            return Err(StateError::Differs { what, saved, here });
        }
        if self.order_digest != here.order_digest {
            let order = plan.identity().name;
            return Err(StateError::OtherOrder { order });
        }
        Ok(())
    }
}

fn shown<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| "none".to_owned(), |value| value.to_string())
}

fn words(remainder: Remainder) -> &'static str {
    match remainder {
        Remainder::Keep => "kept",
        Remainder::Drop => "dropped",
        Remainder::Pad => "padded",
    }
}
