//! The only calls into the C library: what this process has used, and glibc's trimming.
#![expect(
    unsafe_code,
    reason = "the standard library offers neither CPU time nor allocator settings"
)]

use std::io;
use std::mem::MaybeUninit;
use std::time::Duration;

/// What all threads of this process have used so far.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Usage {
    /// CPU time, user and system.
    pub(crate) cpu: Duration,
    /// How many times a thread gave up its core to wait for something.
    pub(crate) sleeps: usize,
}

/// What this process has used so far.
///
/// # Panics
///
/// If the system refuses to say, which it does only for arguments that are not used here.
#[must_use]
pub(crate) fn usage() -> Usage {
    let mut usage = MaybeUninit::<libc::rusage>::uninit();
    // SAFETY: the pointer is to writable memory of the right type, which outlives the call.
    let status = unsafe { libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr()) };
    assert_eq!(status, 0, "getrusage: {}", io::Error::last_os_error());
    // SAFETY: getrusage returned 0, so it has filled the struct.
    let usage = unsafe { usage.assume_init() };
    Usage {
        cpu: duration(usage.ru_utime) + duration(usage.ru_stime),
        sleeps: usize::try_from(usage.ru_nvcsw).unwrap_or_default(),
    }
}

fn duration(time: libc::timeval) -> Duration {
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    let micros = u64::try_from(time.tv_usec).unwrap_or_default();
    Duration::from_secs(seconds) + Duration::from_micros(micros)
}

/// Tells glibc to keep what is freed instead of giving it back to the system at once; `false` where the allocator is
/// not glibc's or refused.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[must_use]
pub(crate) fn keep_freed_memory() -> bool {
    /// The largest threshold that glibc accepts on 64-bit systems.
    const LARGEST_MMAP_THRESHOLD: libc::c_int = 32 << 20;
    // SAFETY: mallopt takes plain integers and locks the allocator's state itself.
    let mmap = unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, LARGEST_MMAP_THRESHOLD) };
    // SAFETY: as above.
    let trim = unsafe { libc::mallopt(libc::M_TRIM_THRESHOLD, libc::c_int::MAX) };
    mmap == 1 && trim == 1
}

/// Tells glibc to keep what is freed instead of giving it back to the system at once; `false` where the allocator is
/// not glibc's or refused.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
#[must_use]
pub(crate) fn keep_freed_memory() -> bool {
    false
}
