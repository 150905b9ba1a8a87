//! Ctrl-C: what was begun is taken back or brought to an end, and the exit code says why.

use std::fs;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::{self, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use anyhow::Context as _;

/// 128 and the number of the signal, as shells have it.
pub(crate) const EXIT_CODE: u8 = 130;

/// The user wanted it to end.
#[derive(Debug, thiserror::Error)]
#[error("interrupted")]
pub(crate) struct Interrupted;

/// The folder that Ctrl-C removes, if there is one. Who puts something into it has the lock, which
/// Ctrl-C never gives back: what is removed stays so.
static FOLDER: Mutex<Option<PathBuf>> = Mutex::new(None);
static BEGUN: AtomicBool = AtomicBool::new(false);

/// The folder that Ctrl-C removes, while nobody else changes anything in it.
#[derive(Debug)]
pub(crate) struct Held(MutexGuard<'static, Option<PathBuf>>);

/// Keeps Ctrl-C out of its folder, and once it has begun keeps the caller out for good.
pub(crate) fn hold() -> Held {
    Held(FOLDER.lock().unwrap_or_else(PoisonError::into_inner))
}

impl Held {
    /// From now on Ctrl-C removes this folder first.
    pub(crate) fn remove(mut self, folder: PathBuf) {
        *self.0 = Some(folder);
    }
}

/// From now on Ctrl-C ends the process, and first removes the folder that it was told.
pub(crate) fn or_clean_up() -> anyhow::Result<()> {
    let handler = || {
        BEGUN.store(true, Ordering::SeqCst);
        let held = hold();
        if let Some(folder) = &*held.0 {
            // What cannot be removed stays in the folder for temporary files.
            let _ = fs::remove_dir_all(folder);
        }
        leave();
    };
    ctrlc::set_handler(handler).context("cannot watch for Ctrl-C")
}

/// Where Ctrl-C is ending the process, waits for that; what fails meanwhile is not worth a word.
pub(crate) fn wait_if_begun() {
    while BEGUN.load(Ordering::SeqCst) {
        thread::park();
    }
}

/// From now on Ctrl-C asks for an end in good order, and a second one ends the process.
pub(crate) fn or_stop(stop: impl Fn() + Send + 'static) -> anyhow::Result<()> {
    let asked = AtomicBool::new(false);
    let handler = move || {
        if asked.swap(true, Ordering::Relaxed) {
            leave();
        }
        stop();
    };
    ctrlc::set_handler(handler).context("cannot watch for Ctrl-C")
}

/// Whether a child process was ended by Ctrl-C, which all of a terminal's processes get.
#[cfg(unix)]
pub(crate) fn ended(child: ExitStatus) -> bool {
    use std::os::unix::process::ExitStatusExt as _;

    /// The number of the signal.
    const SIGINT: i32 = 2;
    child.signal() == Some(SIGINT)
}

/// Whether a child process was ended by Ctrl-C, which all of a terminal's processes get.
#[cfg(not(unix))]
pub(crate) fn ended(_: ExitStatus) -> bool {
    false
}

fn leave() -> ! {
    // With stderr gone there is nobody left to tell.
    let _ = writeln!(io::stderr().lock(), "{Interrupted}");
    process::exit(EXIT_CODE.into())
}
