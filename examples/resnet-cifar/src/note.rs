//! What the user should know, and what stops nothing.

use std::io::{self, Write as _};

/// One line on standard error.
pub(crate) fn note(what: &str) {
    // With stderr gone there is nobody left to tell, and the work goes on without.
    let _ = writeln!(io::stderr().lock(), "note: {what}");
}
