//! What a card did during a run: its memory, its work, and what was uploaded to it.

mod card;
mod watch;

use std::io::{self, Write as _};

use burn_prefetch::StagingStats;
use serde::{Deserialize, Serialize};

use crate::device::Device;
use crate::meter;
use watch::Seen;
pub(crate) use watch::Watch;

/// The figures of a run on a card, or of several put together.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct GpuFigures {
    /// Most bytes in use on the card above those in use before the run; null where the driver's
    /// library for management (NVML) does not say.
    pub(crate) peak_memory_bytes: Option<u64>,
    /// The share of time in which a kernel ran, 0 to 1, warm-up left out; null likewise.
    pub(crate) utilisation_share: Option<f64>,
    /// Bytes of batches that were handed to the card in a second of training.
    pub(crate) upload_bytes_per_second: f64,
    /// Bytes that the loader had page-locked at the end; null where it stages nothing.
    pub(crate) pinned_bytes: Option<u64>,
    /// How often a slot was not page-locked although that was asked for; null likewise.
    pub(crate) pageable_fallbacks: Option<u64>,
}

/// Says once that this machine does not tell what its card does, if so.
pub(crate) fn note(device: Device) {
    if let Some(Err(why)) = card::of(device) {
        // With stderr gone there is nobody left to tell.
        let _ = writeln!(
            io::stderr().lock(),
            "note: the memory and the work of {device} stay unknown: NVML, which comes with the \
             NVIDIA driver, cannot be used ({why})"
        );
    }
}

/// Bytes in use on the card, by whomever; `None` where that is not told.
#[cfg(feature = "cuda")]
pub(crate) fn memory_in_use(device: Device) -> Option<u64> {
    card::of(device)?.ok()?().memory
}

impl GpuFigures {
    pub(crate) fn new(seen: Seen, upload_rate: f64, staging: Option<StagingStats>) -> Self {
        Self {
            peak_memory_bytes: seen.peak_memory_bytes,
            utilisation_share: seen.utilisation,
            upload_bytes_per_second: upload_rate,
            pinned_bytes: staging.map(|stats| stats.pinned_bytes),
            pageable_fallbacks: staging.map(|stats| stats.pageable_fallbacks),
        }
    }

    /// Medians of rates and shares, the most of what is a most; `None` of none.
    pub(crate) fn of(runs: impl Iterator<Item = Self> + Clone) -> Option<Self> {
        let rates = runs.clone().map(|run| run.upload_bytes_per_second);
        Some(Self {
            peak_memory_bytes: runs.clone().filter_map(|run| run.peak_memory_bytes).max(),
            utilisation_share: meter::median(runs.clone().filter_map(|run| run.utilisation_share)),
            upload_bytes_per_second: meter::median(rates)?,
            pinned_bytes: runs.clone().filter_map(|run| run.pinned_bytes).max(),
            pageable_fallbacks: runs.filter_map(|run| run.pageable_fallbacks).max(),
        })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// What a staged run on a card might show.
    pub(crate) fn figures() -> GpuFigures {
        GpuFigures {
            peak_memory_bytes: Some(3 << 30),
            utilisation_share: Some(0.875),
            upload_bytes_per_second: 512.0 * 1024.0 * 1024.0,
            pinned_bytes: Some(6 << 20),
            pageable_fallbacks: Some(7),
        }
    }

    #[test]
    fn several_runs_are_their_medians_and_mosts_and_none_is_nothing() {
        let mut runs = [figures(); 3];
        runs[0].utilisation_share = Some(0.5);
        runs[1].peak_memory_bytes = None;
        runs[2].pageable_fallbacks = Some(9);
        let all = GpuFigures::of(runs.iter().copied()).unwrap();
        let expected = GpuFigures {
            pageable_fallbacks: Some(9),
            ..figures()
        };
        assert_eq!(all, expected);
        assert_eq!(GpuFigures::of(std::iter::empty()), None);
    }
}
