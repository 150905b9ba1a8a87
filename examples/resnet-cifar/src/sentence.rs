//! An error as one sentence on one line, nothing in it said twice.

use std::error::Error;
use std::fmt::Write as _;

/// What happened, then why; a cause that was told with what it caused is left out.
pub(crate) fn of(error: &(dyn Error + 'static)) -> String {
    let mut said = String::new();
    let mut cause = Some(error);
    while let Some(error) = cause {
        let words = error.to_string();
        if said.is_empty() {
            said = words;
        } else if !said.contains(&words) {
            said = format!("{said}: {words}");
        }
        cause = error.source();
    }
    on_one_line(&said)
}

/// File names may hold anything.
fn on_one_line(words: &str) -> String {
    let mut line = String::new();
    for letter in words.chars() {
        if letter.is_control() {
            // Writing into a string never fails.
            let _ = write!(line, "{}", letter.escape_default());
        } else {
            line.push(letter);
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    #[test]
    fn a_cause_is_told_once_and_a_line_break_breaks_no_line() {
        let error = anyhow!("no such\nfile").context("cannot read it: no such\nfile");
        let error = error.context("the loader gave an error");
        let said = of(error.as_ref());
        assert_eq!(
            said,
            "the loader gave an error: cannot read it: no such\\nfile"
        );
    }
}
