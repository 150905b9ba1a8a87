//! The terminal while burn-train's dashboard has it: which keys are signals, and how it is given back.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use crossterm::cursor::Show;
use crossterm::event::DisableMouseCapture;
use crossterm::execute;
use crossterm::terminal::{self, LeaveAlternateScreen};

/// Whether the dashboard has the terminal.
static TAKEN: AtomicBool = AtomicBool::new(false);
/// Whether Ctrl-C is a signal again.
static SIGNALS: AtomicBool = AtomicBool::new(false);

/// From now on the dashboard has the terminal.
pub(crate) fn is_taken() {
    TAKEN.store(true, Ordering::SeqCst);
}

/// The dashboard has given it back.
pub(crate) fn is_free() {
    TAKEN.store(false, Ordering::SeqCst);
}

/// Makes Ctrl-C a signal as soon as the dashboard, which reads every key and has no use for this
/// one, has set the terminal up.
pub(crate) fn let_ctrl_c_through() {
    let is_set_up = terminal::is_raw_mode_enabled().unwrap_or(false);
    if !is_set_up || SIGNALS.swap(true, Ordering::SeqCst) {
        return;
    }
    // Where it cannot be set, `q` still ends the training.
    #[cfg(unix)]
    let _ = signals_but_no_stop();
}

#[cfg(unix)]
fn signals_but_no_stop() -> rustix::io::Result<()> {
    use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, tcgetattr, tcsetattr};

    // No key has it.
    const NONE: u8 = 0;
    let stdin = rustix::stdio::stdin();
    let mut settings = tcgetattr(stdin)?;
    settings.local_modes |= LocalModes::ISIG;
    // Whoever is stopped, or dumps core, cannot give the terminal back first.
    for key in [SpecialCodeIndex::VSUSP, SpecialCodeIndex::VQUIT] {
        settings.special_codes[key] = NONE;
    }
    tcsetattr(stdin, OptionalActions::Now, &settings)
}

/// Gives the terminal back, for a process that ends before the dashboard could.
pub(crate) fn give_back() {
    if !TAKEN.swap(false, Ordering::SeqCst) {
        return;
    }
    // With the terminal gone there is nothing to give back.
    let _ = terminal::disable_raw_mode();
    let _ = execute!(
        io::stdout(),
        DisableMouseCapture,
        LeaveAlternateScreen,
        Show
    );
}
