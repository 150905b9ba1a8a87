//! The folder that a report goes to: a page, Markdown, the rows and the charts, each whole or not
//! there.

use std::fs;
use std::io;
use std::path::Path;

use anyhow::{Context as _, ensure};

use super::{Comparison, chart, json, markdown, page, style};
use crate::destination::Destination;

/// A folder that can be written; it is made when the report is.
#[derive(Debug)]
pub(crate) struct ReportFolder<'a>(&'a Path);

impl<'a> ReportFolder<'a> {
    /// Fails at once where the folder cannot be made or written, not after the work.
    pub(crate) fn to(folder: &'a Path) -> anyhow::Result<Self> {
        let shown = folder.display();
        let other = folder.exists() && !folder.is_dir();
        ensure!(
            !other,
            "cannot write a report to {shown}: it is a file; name a folder"
        );
        try_out(folder).with_context(|| format!("cannot write a report to the folder {shown}"))?;
        Ok(Self(folder))
    }

    /// Writes all of it: first the figures, which took the time; last the page, so that what it names is
    /// there.
    pub(crate) fn write(&self, comparison: &Comparison) -> anyhow::Result<()> {
        let folder = self.0;
        fs::create_dir_all(folder)
            .with_context(|| format!("cannot make the folder {}", folder.display()))?;
        let write = |name: &str, text: &str| Destination::to(&folder.join(name))?.write(text);
        write("rows.json", &json(&comparison.rows)?)?;
        let charts = chart::all(comparison);
        for chart in &charts {
            write(&format!("{}.svg", chart.name), &style::standalone(chart))?;
        }
        write("report.md", &markdown::markdown(comparison))?;
        write("index.html", &page::page(comparison, &charts))
    }
}

/// Leaves everything as it is.
fn try_out(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return tempfile::tempfile_in(folder).map(drop);
    }
    fs::create_dir(folder)?;
    fs::remove_dir(folder)
}

#[cfg(test)]
mod tests {
    use super::super::comparison_of_test;
    use super::*;

    #[test]
    fn a_folder_is_made_when_the_report_is_written_and_not_before() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("out");
        let report = ReportFolder::to(&place).unwrap();
        assert!(!place.exists());
        report.write(&comparison_of_test()).unwrap();
        let mut names: Vec<_> = fs::read_dir(&place)
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        names.sort();
        assert_eq!(
            names,
            [
                "index.html",
                "memory.svg",
                "report.md",
                "resident.svg",
                "rows.json",
                "tradeoff.svg",
                "waits.svg"
            ]
        );
        // A second report takes the place of the first.
        ReportFolder::to(&place)
            .unwrap()
            .write(&comparison_of_test())
            .unwrap();
        assert_eq!(fs::read_dir(&place).unwrap().count(), 7);
    }

    #[test]
    fn a_place_that_cannot_be_written_is_refused_before_the_work() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        fs::write(&file, "").unwrap();
        for place in [
            file.clone(),
            file.join("out"),
            dir.path().join("no/such/out"),
        ] {
            let text = format!("{:#}", ReportFolder::to(&place).unwrap_err());
            assert!(text.contains("cannot write a report to"), "{text}");
            assert!(text.contains(&*place.to_string_lossy()), "{text}");
        }
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
