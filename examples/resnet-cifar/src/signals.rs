//! The signals that ask a process to end: Ctrl-C's, a supervisor's, and that of a terminal that is gone.

use std::sync::Arc;

use anyhow::Context as _;

/// Calls `handler` for each of them, on a thread of its own.
pub(crate) fn watch(handler: impl Fn() + Send + Sync + 'static) -> anyhow::Result<()> {
    let handler = Arc::new(handler);
    let ctrl_c = Arc::clone(&handler);
    ctrlc::set_handler(move || ctrl_c()).context("cannot watch for Ctrl-C")?;
    others(handler)
}

#[cfg(unix)]
fn others(handler: Arc<impl Fn() + Send + Sync + 'static>) -> anyhow::Result<()> {
    use signal_hook::consts::{SIGHUP, SIGTERM};
    use signal_hook::iterator::Signals;

    let mut watched = vec![SIGTERM];
    // Under `nohup` a training is to outlive its terminal.
    if !is_ignored(SIGHUP) {
        watched.push(SIGHUP);
    }
    let mut signals = Signals::new(watched).context("cannot watch for signals")?;
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || signals.forever().for_each(|_| handler()))
        .context("cannot start the thread that watches for signals")?;
    Ok(())
}

#[cfg(not(unix))]
fn others(_: Arc<impl Fn() + Send + Sync + 'static>) -> anyhow::Result<()> {
    Ok(())
}

/// Whether whoever started this process had the signal ignored, where the system tells.
#[cfg(unix)]
fn is_ignored(signal: i32) -> bool {
    std::fs::read_to_string("/proc/self/status").is_ok_and(|status| is_among(&status, signal))
}

#[cfg(unix)]
fn is_among(status: &str, signal: i32) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & (1 << (signal - 1)) != 0)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn what_is_ignored_is_read_from_the_systems_mask() {
        let status = "SigBlk:\t0000000000000001\nSigIgn:\t0000000000001001\nSigCgt:\t0\n";
        let ignored = [1, 2, 13, 15].map(|signal| is_among(status, signal));
        assert_eq!(ignored, [true, false, true, false]);
        assert!(!is_among("", 1));
    }
}
