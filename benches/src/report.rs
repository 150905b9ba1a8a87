//! A table with its question above it, on standard output.

use std::fmt::Display;
use std::io::{self, Write};

use comfy_table::{CellAlignment, Table, presets};

use crate::Effort;

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

    /// Writes the title and the table, and under them whether the figures mean anything.
    ///
    /// # Errors
    ///
    /// If standard output cannot be written to.
    pub fn print(&self, effort: Effort) -> io::Result<()> {
        let mut out = io::stdout().lock();
        writeln!(out, "\n{}\n{}", self.title, self.table)?;
        if effort == Effort::Quick {
            writeln!(
                out,
                "A quick run: it shows that the bench works, its figures mean nothing."
            )?;
        } else if cfg!(debug_assertions) {
            writeln!(
                out,
                "Not a release build: this crate is hardly optimised, Burn is."
            )?;
        }
        Ok(())
    }
}
