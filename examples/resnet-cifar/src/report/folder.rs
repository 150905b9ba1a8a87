//! The folder that a report goes to: a page, Markdown, the rows and the charts, each whole or not
//! there.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};

use super::{Comparison, chart, json, markdown, page, style};
use crate::destination::{Destination, Prepared};

const ROWS: &str = "rows.json";
const MARKDOWN: &str = "report.md";
const PAGE: &str = "index.html";

/// A folder that can be written; it is made when the report is.
#[derive(Debug)]
pub(crate) struct ReportFolder<'a>(&'a Path);

impl<'a> ReportFolder<'a> {
    /// Fails at once where the folder or a file of it cannot be made or written, not after the work.
    pub(crate) fn to(folder: &'a Path) -> anyhow::Result<Self> {
        let shown = folder.display();
        let other = folder.exists() && !folder.is_dir();
        ensure!(
            !other,
            "cannot write a report to {shown}: it is a file; name a folder"
        );
        let report = Self(folder);
        try_out(folder)
            .map_err(anyhow::Error::from)
            .and_then(|()| report.try_out_files())
            .with_context(|| format!("cannot write a report to the folder {shown}"))?;
        Ok(report)
    }

    /// Every file that it will hold.
    pub(crate) fn files(&self) -> impl Iterator<Item = PathBuf> {
        let all = [ROWS, MARKDOWN, PAGE].into_iter().chain(chart::FILES);
        all.map(|name| self.0.join(name))
    }

    /// Writes all of it or, as far as it can be known before, nothing: each file is there beside its
    /// place before the first one takes it.
    pub(crate) fn write(&self, comparison: &Comparison) -> anyhow::Result<()> {
        let folder = self.0;
        let made = !folder.is_dir();
        fs::create_dir_all(folder)
            .with_context(|| format!("cannot make the folder {}", folder.display()))?;
        let written = self.fill(comparison);
        if made && written.is_err() {
            // Only where nothing is in it.
            let _ = fs::remove_dir(folder);
        }
        written
    }

    fn fill(&self, comparison: &Comparison) -> anyhow::Result<()> {
        let texts = texts(comparison)?;
        let place = |(name, text): (String, String)| (self.0.join(name), text);
        let files: Vec<(PathBuf, String)> = texts.into_iter().map(place).collect();
        let files = files
            .iter()
            .map(|(place, text)| Destination::to(place)?.prepare(text));
        let mut files = files.collect::<anyhow::Result<Vec<_>>>()?;
        // What can still fail goes first; the page last, so that what it names is there.
        files.sort_by_key(|file| !file.is_unwritten());
        files.into_iter().try_for_each(Prepared::appear)
    }

    fn try_out_files(&self) -> anyhow::Result<()> {
        let mut files = self.files().filter(|_| self.0.is_dir());
        files.try_for_each(|file| Destination::to(&file).map(drop))
    }
}

/// The name and the content of each file.
fn texts(comparison: &Comparison) -> anyhow::Result<Vec<(String, String)>> {
    let charts = chart::all(comparison);
    let mut all = vec![(ROWS.to_owned(), json(&comparison.rows)?)];
    let drawn = charts.iter();
    all.extend(drawn.map(|chart| (format!("{}.svg", chart.name), style::standalone(chart))));
    all.push((MARKDOWN.to_owned(), markdown::markdown(comparison)));
    all.push((PAGE.to_owned(), page::page(comparison, &charts)));
    Ok(all)
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
    fn the_files_are_those_that_were_announced() {
        let texts = texts(&comparison_of_test()).unwrap();
        let report = ReportFolder(Path::new("out"));
        let mut announced: Vec<PathBuf> = report.files().collect();
        let mut written: Vec<PathBuf> = texts.iter().map(|(name, _)| report.0.join(name)).collect();
        announced.sort();
        written.sort();
        assert_eq!(announced, written);
    }

    #[test]
    fn a_folder_in_the_place_of_a_file_is_found_before_the_work() {
        let dir = tempfile::tempdir().unwrap();
        for place in ReportFolder(dir.path()).files() {
            fs::create_dir(&place).unwrap();
            let text = format!("{:#}", ReportFolder::to(dir.path()).unwrap_err());
            assert!(text.contains(&*place.to_string_lossy()), "{text}");
            fs::remove_dir(&place).unwrap();
        }
        assert!(ReportFolder::to(dir.path()).is_ok());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_report_that_cannot_be_whole_leaves_the_one_of_before() {
        let dir = tempfile::tempdir().unwrap();
        let report = ReportFolder::to(dir.path()).unwrap();
        for place in report.files() {
            fs::write(&place, "before").unwrap();
        }
        let full = dir.path().join(PAGE);
        fs::remove_file(&full).unwrap();
        std::os::unix::fs::symlink("/dev/full", &full).unwrap();
        let text = format!("{:#}", report.write(&comparison_of_test()).unwrap_err());
        assert!(text.contains("index.html"), "{text}");
        for place in report.files().filter(|place| *place != full) {
            assert_eq!(fs::read_to_string(&place).unwrap(), "before", "{place:?}");
        }
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 7);
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
