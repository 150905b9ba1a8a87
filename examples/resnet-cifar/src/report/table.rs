//! The rows as a table for a terminal.

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{CellAlignment, ContentArrangement, Table};

use super::{Comparison, words};

/// A title, the table and what to know to read it.
pub(crate) fn table(comparison: &Comparison) -> String {
    let Comparison { rows, swept, .. } = comparison;
    let mut table = Table::new();
    table
        .load_style(UTF8_FULL_CONDENSED)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_header(words::headings(rows))
        .add_rows(words::lines(rows).map(|(row, mut cells)| {
            if *swept && row.on_frontier {
                cells[0].push_str(" ◆");
            }
            cells
        }));
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let (title, legend) = (words::title(rows, *swept), words::legend(rows, *swept));
    format!("{title}\n{table}\n{}", legend.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::super::comparison_of_test;
    use super::*;

    #[test]
    fn the_frontier_is_marked_where_settings_were_swept() {
        let mut comparison = comparison_of_test();
        assert!(!table(&comparison).contains('◆'));
        comparison.swept = true;
        let text = table(&comparison);
        let marked = text
            .lines()
            .filter(|line| line.contains('◆') && line.contains("ours"));
        assert_eq!(marked.count(), 1, "{text}");
        assert!(text.contains("on the frontier"));
    }
}
