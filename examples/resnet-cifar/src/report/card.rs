//! The columns of a card, where one computed.

use super::words::bytes;
use crate::gpu::GpuFigures;

/// What they are called.
pub(super) const HEADINGS: [&str; 5] = [
    "device memory",
    "GPU utilisation",
    "uploaded/s",
    "pinned",
    "pageable fall-backs",
];

/// How to read them.
pub(super) const LEGEND: [&str; 2] = [
    "Device memory: the most in use on the card above what was before, by NVML; GPU utilisation: share \
     of time with a kernel running, by NVML, warm-up left out.",
    "Uploaded: bytes of batches a second of training. Pinned: page-locked by the loader; fall-backs: \
     slots that were not, although that was asked for.",
];

/// One row under these headings.
pub(super) fn cells(gpu: &GpuFigures) -> [String; 5] {
    let unknown = || "unknown".to_owned();
    let whole = |count: u64| bytes(usize::try_from(count).unwrap_or(usize::MAX));
    let busy = gpu
        .utilisation_share
        .map(|share| format!("{:.0} %", 100.0 * share));
    let none = || "none".to_owned();
    [
        gpu.peak_memory_bytes.map_or_else(unknown, whole),
        busy.unwrap_or_else(unknown),
        format!("{}/s", rate(gpu.upload_bytes_per_second)),
        gpu.pinned_bytes.map_or_else(none, whole),
        gpu.pageable_fallbacks
            .map_or_else(none, |count| count.to_string()),
    ]
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "bytes a second are positive and fit"
)]
fn rate(bytes_per_second: f64) -> String {
    bytes(bytes_per_second as usize)
}

#[cfg(test)]
mod tests {
    use crate::gpu::tests::figures;

    use super::*;

    #[test]
    fn every_figure_is_shown_and_what_is_unknown_says_so() {
        let shown = cells(&figures());
        assert_eq!(shown, ["3.00 GiB", "88 %", "512.00 MiB/s", "6.00 MiB", "7"]);
        let plain = GpuFigures {
            peak_memory_bytes: None,
            utilisation_share: None,
            pinned_bytes: None,
            pageable_fallbacks: None,
            ..figures()
        };
        let shown = cells(&plain);
        assert_eq!(
            shown,
            ["unknown", "unknown", "512.00 MiB/s", "none", "none"]
        );
    }
}
