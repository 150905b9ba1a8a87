//! What the user should know, and what stops nothing.

use std::io::{self, Write as _};

use indicatif::HumanBytes;

/// One line on standard error.
pub(crate) fn note(what: &str) {
    // With stderr gone there is nobody left to tell, and the work goes on without.
    let _ = writeln!(io::stderr().lock(), "note: {what}");
}

/// Says that a budget is too small for one batch.
pub(crate) fn of_budget(budget: u64, batch: u64) {
    let [budget, batch] = [budget, batch].map(HumanBytes);
    note(&format!(
        "a memory budget of {budget} is less than one batch takes, {batch}: one is alive at a time"
    ));
}
