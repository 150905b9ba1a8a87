//! A table with its question above it, on standard output.

use std::fmt::Display;
use std::io::{self, Write};

use comfy_table::{CellAlignment, Table, presets};

/// A table that is being filled.
#[derive(Debug)]
pub struct Report {
    title: String,
    table: Table,
}

impl Report {
    /// A table with `columns` as its header.
    #[must_use]
    pub fn new(title: impl Into<String>, columns: &[&str]) -> Self {
        let mut table = Table::new();
        table
            .load_style(presets::ASCII_MARKDOWN)
            .set_header(columns.to_vec());
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        Self {
            title: title.into(),
            table,
        }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: &[&dyn Display]) {
        self.table
            .add_row(cells.iter().map(ToString::to_string).collect::<Vec<_>>());
    }

    /// Writes the title and the table.
    ///
    /// # Errors
    ///
    /// If standard output cannot be written to.
    pub fn print(&self) -> io::Result<()> {
        writeln!(io::stdout().lock(), "\n{}\n{}", self.title, self.table)
    }
}
