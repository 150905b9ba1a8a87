//! The comparison: each contender in its own process, one after the other, and one table.

use std::env;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, ensure};
use indicatif::HumanDuration;

use crate::cli::{CompareArgs, LoaderArgs, LoaderKind, RunArgs};
use crate::data::{self, Split};
use crate::run::{self, Row};
use crate::table;

/// Runs the contenders, prints the table and, where asked, writes the JSON file.
pub(crate) fn compare(args: &CompareArgs) -> anyhow::Result<()> {
    let file = args.json.as_deref().map(Replacement::open).transpose()?;
    // Every process reads its own data; data that cannot be used is refused here, once.
    drop(data::load(&args.run.setup, Split::Train)?);
    let started = Instant::now();
    let mut rows = Vec::new();
    for contender in contenders() {
        rows.push(spawn(&args.run, &contender)?);
    }
    let mut out = io::stdout().lock();
    let took = HumanDuration(started.elapsed());
    write!(out, "{}\nAll of it took {took}.\n", table::render(&rows))
        .context("cannot print the table")?;
    if let Some(file) = file {
        let json = serde_json::to_string_pretty(&rows).context("cannot write the rows as JSON")?;
        file.write(&json)?;
    }
    Ok(())
}

/// Burn's loader as it is, then ours under three bounds.
fn contenders() -> [LoaderArgs; 4] {
    let ours = LoaderArgs {
        loader: LoaderKind::Prefetch,
        prefetch_factor: None,
        prefetch: None,
    };
    [
        LoaderArgs {
            loader: LoaderKind::Burn,
            ..ours.clone()
        },
        LoaderArgs {
            prefetch_factor: Some(2),
            ..ours.clone()
        },
        LoaderArgs {
            prefetch_factor: Some(1),
            ..ours.clone()
        },
        LoaderArgs {
            prefetch: Some(2),
            ..ours
        },
    ]
}

fn spawn(args: &RunArgs, contender: &LoaderArgs) -> anyhow::Result<Row> {
    let name = run::name(contender);
    let program = env::current_exe().context("cannot find this program's own file")?;
    let output = Command::new(program)
        .arg("contender")
        .args(args.to_args())
        .args(contender.to_args())
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot start the process of {name}"))?;
    ensure!(
        output.status.success(),
        "the process of {name} ended with {}",
        output.status
    );
    serde_json::from_slice(&output.stdout)
        .with_context(|| format!("the process of {name} printed no row"))
}

/// A file that appears whole or not at all: written beside its place, then moved into it.
#[derive(Debug)]
struct Replacement {
    place: PathBuf,
    beside: PathBuf,
    file: Option<File>,
}

impl Replacement {
    /// Fails at once where the place cannot be written, not after the work.
    fn open(place: &Path) -> anyhow::Result<Self> {
        ensure!(
            !place.is_dir(),
            "cannot write {}: it is a folder",
            place.display()
        );
        let name = place
            .file_name()
            .with_context(|| format!("{} names no file", place.display()))?;
        let mut beside = name.to_owned();
        beside.push(format!(".{}.part", std::process::id()));
        let beside = place.with_file_name(beside);
        let file =
            File::create(&beside).with_context(|| format!("cannot write {}", place.display()))?;
        Ok(Self {
            place: place.to_owned(),
            beside,
            file: Some(file),
        })
    }

    fn write(mut self, text: &str) -> anyhow::Result<()> {
        let context = || format!("cannot write {}", self.place.display());
        if let Some(mut file) = self.file.take() {
            writeln!(file, "{text}")
                .and_then(|()| file.sync_all())
                .with_context(context)?;
        }
        fs::rename(&self.beside, &self.place).with_context(context)
    }
}

impl Drop for Replacement {
    fn drop(&mut self) {
        // After a rename there is nothing left to remove; before it, an unfinished file is worth
        // no message.
        let _ = fs::remove_file(&self.beside);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_appears_whole_or_not_at_all() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("rows.json");
        drop(Replacement::open(&place).unwrap());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
        Replacement::open(&place).unwrap().write("[]").unwrap();
        assert_eq!(fs::read_to_string(&place).unwrap(), "[]\n");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_place_that_cannot_be_written_is_refused_before_the_work() {
        let dir = tempfile::tempdir().unwrap();
        assert!(Replacement::open(dir.path()).is_err());
        let text = Replacement::open(&dir.path().join("no/such/rows.json"))
            .unwrap_err()
            .to_string();
        assert!(text.contains("rows.json"), "{text}");
    }

    #[test]
    fn the_contenders_are_burns_loader_and_three_bounds() {
        let names = contenders().map(|contender| run::name(&contender));
        assert_eq!(
            names,
            [
                "Burn's loader",
                "prefetch_factor(2)",
                "prefetch_factor(1)",
                "prefetch(2)"
            ]
        );
    }
}
