//! One row of the table.

use std::fmt;

/// What was looked at, what it showed, and what was hoped for.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Finding {
    pub(super) what: String,
    pub(super) found: String,
    pub(super) goal: &'static str,
    pub(super) verdict: Verdict,
}

/// What a row says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Holds,
    /// A goal that was not reached; it is a matter of speed or size.
    Missed,
    /// A promise that does not hold.
    Broken,
    /// Nothing is promised of it.
    Shown,
    /// This machine cannot show it.
    Skipped,
}

impl Finding {
    /// What nothing is promised of.
    pub(super) fn shown(what: impl Into<String>, found: String) -> Self {
        Self {
            what: what.into(),
            found,
            goal: "",
            verdict: Verdict::Shown,
        }
    }

    /// What this machine cannot show, and why.
    pub(super) fn skipped(what: impl Into<String>, why: &str) -> Self {
        Self {
            verdict: Verdict::Skipped,
            ..Self::shown(what, why.to_owned())
        }
    }
}

impl Verdict {
    /// Whether a goal was reached.
    pub(super) fn of(reached: bool) -> Self {
        if reached { Self::Holds } else { Self::Missed }
    }
}

impl fmt::Display for Finding {
    /// A line of a Markdown table.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = match self.verdict {
            Verdict::Holds => "holds",
            Verdict::Missed => "**missed**",
            Verdict::Broken => "**BROKEN**",
            Verdict::Shown => "",
            Verdict::Skipped => "skipped",
        };
        let (what, found, goal) = (&self.what, &self.found, self.goal);
        write!(f, "| {what} | {found} | {goal} | {verdict} |")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_four_cells() {
        let rows = [
            Finding::shown("x", "1".to_owned()),
            Finding::skipped("x", "no card"),
        ];
        for row in rows {
            assert_eq!(row.to_string().matches('|').count(), 5, "{row}");
        }
    }
}
