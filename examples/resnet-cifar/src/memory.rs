//! The most memory that this process held beyond what it needs anyway.

use std::fs;

/// What is not counted: the most that was held by the work before the mark.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Baseline(usize);

impl Baseline {
    /// Runs `work` and takes the most memory it held for the baseline; the peak starts anew after it.
    ///
    /// `None` where the system keeps no such peak (anything but Linux) or does not let it start
    /// anew.
    ///
    /// Source: proc(5), `/proc/pid/clear_refs`: writing 5 resets the peak resident set size to the
    /// current one.
    pub(crate) fn of<T>(work: impl FnOnce() -> T) -> (T, Option<Self>) {
        let restarted = restart_peak();
        let done = work();
        let baseline = restarted.and_then(|()| status("VmHWM:")).map(Self);
        (done, baseline.filter(|_| restart_peak().is_some()))
    }

    /// Bytes that the peak since then is above the baseline.
    pub(crate) fn peak_above(self) -> Option<usize> {
        Some(status("VmHWM:")?.saturating_sub(self.0))
    }
}

/// Bytes that are resident now; `None` where the system does not say.
pub(crate) fn resident() -> Option<usize> {
    status("VmRSS:")
}

fn restart_peak() -> Option<()> {
    fs::write("/proc/self/clear_refs", "5").ok()
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
        let (kept, Some(baseline)) = Baseline::of(|| vec![1_u8; SIZE]) else {
            return; // a container without clear_refs: `compare` prints no figure there
        };
        drop(std::hint::black_box(vec![1_u8; SIZE]));
        drop(std::hint::black_box(kept));
        let above = baseline.peak_above().unwrap();
        assert!(above > SIZE / 4 * 3, "{above} bytes");
        assert!(
            above < SIZE / 4 * 5,
            "{above} bytes: the baseline's own count too"
        );
    }
}
