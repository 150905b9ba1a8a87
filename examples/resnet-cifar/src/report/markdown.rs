//! The comparison as Markdown, for pasting.

use std::fmt::Write as _;

use super::{Comparison, machine, words};
use crate::compare::headline;

/// Title, table, headline, machine and command.
pub(super) fn markdown(comparison: &Comparison) -> String {
    let Comparison { rows, swept, .. } = comparison;
    let mut text = format!("{}\n\n{}\n", words::title(rows, *swept), table(comparison));
    if let Some(headline) = headline(rows) {
        let _ = writeln!(text, "{headline}\n");
    }
    for line in words::legend(rows, *swept) {
        let _ = writeln!(text, "- {line}");
    }
    for (fact, value) in machine::facts() {
        let _ = writeln!(text, "- {fact}: {value}");
    }
    let took = words::duration(comparison.took);
    let _ = write!(
        text,
        "\nMade in {took} by:\n\n```sh\n{}\n```",
        comparison.command
    );
    text
}

fn table(comparison: &Comparison) -> String {
    let headings = words::headings(&comparison.rows);
    let mut text = format!("| {} |\n", headings.join(" | "));
    text.push_str("|---");
    text.push_str(&"|---:".repeat(headings.len() - 1));
    text.push_str("|\n");
    for (row, cells) in words::lines(&comparison.rows) {
        let cells = cells.into_iter();
        let mut cells: Vec<String> = cells.map(|cell| cell.replace('|', "\\|")).collect();
        if comparison.swept && row.on_frontier {
            cells[0].push_str(" ◆");
        }
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::comparison_of_test;
    use super::*;

    #[test]
    fn every_line_of_the_table_has_every_column() {
        let text = markdown(&comparison_of_test());
        let lines: Vec<&str> = text.lines().filter(|line| line.starts_with('|')).collect();
        assert_eq!(lines.len(), 2 + comparison_of_test().rows.len());
        for line in lines {
            assert_eq!(
                line.matches('|').count(),
                words::headings(&comparison_of_test().rows).len() + 1,
                "{line}"
            );
        }
    }
}
