//! The most memory that this process held since a chosen moment.

use std::fs;

/// Marks the moment: the peak starts anew, and what is held now is the baseline.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Baseline(usize);

impl Baseline {
    /// `None` where the system keeps no such peak (anything but Linux) or does not let it start
    /// anew.
    ///
    /// Source: proc(5), `/proc/pid/clear_refs`: writing 5 resets the peak resident set size to the
    /// current one.
    pub(crate) fn mark() -> Option<Self> {
        fs::write("/proc/self/clear_refs", "5").ok()?;
        status("VmRSS:").map(Self)
    }

    /// Bytes that the peak is above the baseline.
    pub(crate) fn peak_above(self) -> Option<usize> {
        Some(status("VmHWM:")?.saturating_sub(self.0))
    }
}

/// A line of `/proc/self/status`, in bytes.
fn status(field: &str) -> Option<usize> {
    parse(&fs::read_to_string("/proc/self/status").ok()?, field)
}

fn parse(status: &str, field: &str) -> Option<usize> {
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    let kibibytes: usize = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_line_is_read_in_bytes() {
        let text = "Name:\tx\nVmHWM:\t    1234 kB\nVmRSS:\t  99 kB\n";
        assert_eq!(parse(text, "VmHWM:"), Some(1234 * 1024));
        assert_eq!(parse(text, "VmRSS:"), Some(99 * 1024));
        assert_eq!(parse(text, "VmSwap:"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn memory_touched_and_given_back_stays_in_the_peak() {
        const SIZE: usize = 128 << 20;
        let Some(baseline) = Baseline::mark() else {
            return; // a container without clear_refs: `compare` prints no figure there
        };
        drop(std::hint::black_box(vec![1_u8; SIZE]));
        let above = baseline.peak_above().unwrap();
        assert!(above > SIZE / 4 * 3, "{above} bytes");
    }
}
