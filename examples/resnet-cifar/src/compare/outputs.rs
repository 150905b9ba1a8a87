//! Where the results of a comparison go, besides standard output.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::ensure;

use crate::cli::CompareArgs;
use crate::destination::Destination;
use crate::misuse::misuse;
use crate::report::{self, Comparison, ReportFolder};
use crate::sentence;

/// The places; all of them are tried before the work.
pub(super) struct Outputs<'a> {
    json: Option<Destination<'a>>,
    plot: Option<Destination<'a>>,
    report: Option<ReportFolder<'a>>,
}

impl<'a> Outputs<'a> {
    pub(super) fn of(args: &'a CompareArgs) -> anyhow::Result<Self> {
        let file = |place: &'a Option<_>| place.as_deref().map(Destination::to).transpose();
        let outputs = Self {
            json: file(&args.json)?,
            plot: file(&args.plot)?,
            report: args.report.as_deref().map(ReportFolder::to).transpose()?,
        };
        outputs.are_apart(args)?;
        Ok(outputs)
    }

    /// Writes everything that was asked for, whatever became of the rest: the rows are minutes of
    /// work.
    pub(super) fn write(
        &self,
        comparison: &Comparison,
        printed: anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let json = self.json.as_ref().map(|file| {
            let text = report::json(&comparison.rows)?;
            file.write(&text)
        });
        let plot = self.plot.as_ref();
        let plot = plot.map(|file| file.write(&report::plot(comparison)));
        let report = self.report.as_ref().map(|folder| folder.write(comparison));
        let all = [json, plot, report].into_iter().flatten();
        let faults = all.chain([printed]).filter_map(Result::err);
        let faults: Vec<String> = faults.map(|fault| sentence::of(fault.as_ref())).collect();
        ensure!(faults.is_empty(), "{}", faults.join("; "));
        Ok(())
    }

    /// Whether no result takes the place of another.
    fn are_apart(&self, args: &CompareArgs) -> anyhow::Result<()> {
        let mut places: Vec<(String, PathBuf)> = Vec::new();
        for (flag, file) in [("--json", &args.json), ("--plot", &args.plot)] {
            if let Some(file) = file {
                places.push((format!("{flag} {}", file.display()), file.clone()));
            }
        }
        if let (Some(folder), Some(report)) = (&args.report, &self.report) {
            let flag = format!("--report {}", folder.display());
            let files = report.files().chain([folder.clone()]);
            places.extend(files.map(|file| (flag.clone(), file)));
        }
        let mut known: Vec<(String, PathBuf)> = Vec::new();
        for (flag, place) in places {
            let Some(file) = identity(&place) else {
                continue;
            };
            if let Some((other, _)) = known.iter().find(|(_, known)| *known == file) {
                let file = file.display();
                misuse!("{other} and {flag} both write {file}; give each a place of its own");
            }
            known.push((flag, file));
        }
        Ok(())
    }
}

/// The one name of a file, or of one that is still to be made, behind links and dots; `None` of what
/// takes any number of texts: a pipe, a device.
fn identity(place: &Path) -> Option<PathBuf> {
    if let Ok(found) = fs::canonicalize(place) {
        let plain = found.is_file() || found.is_dir();
        return plain.then_some(found);
    }
    let target = fs::read_link(place).map(|target| in_folder_of(place, &target));
    let place = target.as_deref().unwrap_or(place);
    let folder = fs::canonicalize(in_folder_of(place, Path::new("."))).ok()?;
    Some(folder.join(place.file_name()?))
}

fn in_folder_of(place: &Path, other: &Path) -> PathBuf {
    place.parent().unwrap_or(Path::new("")).join(other)
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::cli::Cli;

    /// What is said of these places, or nothing; `{}` stands for the folder.
    fn said(dir: &Path, places: &[&str]) -> String {
        let dir = dir.to_str().unwrap();
        let words = places.iter().map(|word| word.replace("{}", dir));
        let words = ["resnet-cifar".to_owned()].into_iter().chain(words);
        let args = Cli::parse_from(words).compare;
        Outputs::of(&args).map_or_else(|error| format!("{error:#}"), |_| String::new())
    }

    #[test]
    fn a_place_for_two_results_is_refused_however_it_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let here = dir.path();
        fs::create_dir(here.join("out")).unwrap();
        for places in [
            ["--json", "{}/a", "--plot", "{}/a"],
            ["--json", "{}/a", "--plot", "{}/./a"],
            ["--json", "{}/a", "--plot", "{}/out/../a"],
            ["--json", "{}/a", "--report", "{}/a"],
            ["--json", "{}/out/rows.json", "--report", "{}/out"],
            ["--plot", "{}/out/tradeoff.svg", "--report", "{}/out"],
        ] {
            let said = said(here, &places);
            assert!(
                said.contains("give each a place of its own"),
                "{places:?}: {said}"
            );
            assert!(
                said.contains(places[0]) && said.contains(places[2]),
                "{said}"
            );
        }
        assert_eq!(fs::read_dir(here).unwrap().count(), 1);
    }

    #[test]
    fn places_of_their_own_are_taken() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("out")).unwrap();
        let apart = ["--json", "{}/a", "--plot", "{}/b", "--report", "{}/out"];
        assert_eq!(said(dir.path(), &apart), "");
        let inside = [
            "--json", "{}/out/a", "--plot", "{}/out/b", "--report", "{}/out",
        ];
        assert_eq!(said(dir.path(), &inside), "");
    }

    #[cfg(unix)]
    #[test]
    fn a_link_is_the_file_behind_it_and_a_device_takes_any_number() {
        let dir = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("a", dir.path().join("link")).unwrap();
        let linked = ["--json", "{}/a", "--plot", "{}/link"];
        // To a file that is still to be made, then to one that is there.
        for _ in 0..2 {
            let said = said(dir.path(), &linked);
            assert!(said.contains("a place of its own"), "{said}");
            fs::write(dir.path().join("a"), "").unwrap();
        }
        assert_eq!(
            said(dir.path(), &["--json", "/dev/null", "--plot", "/dev/null"]),
            ""
        );
    }
}
