//! Signals that ask for an end: what was begun is taken back or brought to an end, and the exit
//! code says why.

use std::fs;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::{self, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use crate::{lifeline, signals, terminal};

/// 128 and the number of Ctrl-C's signal, as shells have it; for the other signals too.
pub(crate) const EXIT_CODE: u8 = 130;

/// The user wanted it to end.
#[derive(Debug, Default, thiserror::Error)]
#[error("interrupted{0}")]
pub(crate) struct Interrupted(pub(crate) String);

/// The folder that a signal removes, if there is one. Who puts something into it has the lock, which
/// the signal never gives back: what is removed stays so.
static FOLDER: Mutex<Option<PathBuf>> = Mutex::new(None);
static BEGUN: AtomicBool = AtomicBool::new(false);

/// The folder that a signal removes, while nobody else changes anything in it.
#[derive(Debug)]
pub(crate) struct Held(MutexGuard<'static, Option<PathBuf>>);

/// Keeps a signal out of its folder, and once it has begun keeps the caller out for good.
pub(crate) fn hold() -> Held {
    Held(FOLDER.lock().unwrap_or_else(PoisonError::into_inner))
}

impl Held {
    /// From now on a signal removes this folder first.
    pub(crate) fn remove(mut self, folder: PathBuf) {
        *self.0 = Some(folder);
    }
}

/// From now on a signal ends the process, and before it its child and the folder that it was told.
pub(crate) fn or_clean_up() -> anyhow::Result<()> {
    signals::watch(|| {
        BEGUN.store(true, Ordering::SeqCst);
        let held = hold();
        // Who reads the folder goes before it.
        let _nobody_else_begins = lifeline::cut();
        if let Some(folder) = &*held.0 {
            // What cannot be removed stays in the folder for temporary files.
            let _ = fs::remove_dir_all(folder);
        }
        leave();
    })
}

/// Where a signal is ending the process, waits for that; what fails meanwhile is not worth a word.
pub(crate) fn wait_if_begun() {
    while BEGUN.load(Ordering::SeqCst) {
        thread::park();
    }
}

/// From now on a signal asks for an end in good order, and a second one ends the process.
pub(crate) fn or_stop(stop: impl Fn() + Send + Sync + 'static) -> anyhow::Result<()> {
    let asked = AtomicBool::new(false);
    signals::watch(move || {
        if asked.swap(true, Ordering::Relaxed) {
            leave();
        }
        stop();
    })
}

/// Whether a child process was ended by a signal that all of a terminal's processes get.
#[cfg(unix)]
pub(crate) fn ended(child: ExitStatus) -> bool {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    use std::os::unix::process::ExitStatusExt as _;

    let signal = child.signal();
    signal.is_some_and(|signal| [SIGINT, SIGTERM, SIGHUP].contains(&signal))
}

/// Whether a child process was ended by a signal that all of a terminal's processes get.
#[cfg(not(unix))]
pub(crate) fn ended(_: ExitStatus) -> bool {
    false
}

/// Ends the process at once, with the terminal as it was.
pub(crate) fn leave() -> ! {
    terminal::give_back();
    // With stderr gone there is nobody left to tell.
    let _ = writeln!(io::stderr().lock(), "{}", Interrupted::default());
    process::exit(EXIT_CODE.into())
}
