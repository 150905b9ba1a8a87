//! The folder that a training leaves: what was trained, its checkpoints, its metrics.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use burn::module::Module as _;
use burn::store::ModuleRecord;
use burn::train::checkpoint::FileCheckpointer;
use serde::{Deserialize, Serialize};

use super::midway::{Files, Midway};
use super::steps::Learning;
use crate::cli::{LoaderKind, TrainArgs, flag_of};
use crate::data::Pictures;
use crate::destination::Destination;

/// A checkpoint is these three files, with the epoch and `.bpk` behind.
const FILES: [&str; 3] = ["model", "optim", "scheduler"];
const IDENTITY: &str = "training.json";

/// What a checkpoint must have in common with a training that goes on from it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Identity {
    /// As on the command line.
    model: String,
    classes: usize,
}

/// A folder for one training.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) folder: PathBuf,
    /// How many epochs are complete: the last whose checkpoint is, or those before a place in the
    /// middle of one.
    pub(super) epoch: usize,
    /// Where to go on in the middle of the epoch after.
    pub(super) midway: Option<Midway>,
}

impl Kept {
    /// Opens or makes the folder, and finds where to go on.
    pub(super) fn open(
        args: &TrainArgs,
        folder: &Path,
        pictures: &Pictures,
    ) -> anyhow::Result<Self> {
        let shown = folder.display();
        let wanted = Identity {
            model: flag_of(&args.setup.model),
            classes: pictures.classes,
        };
        let (epoch, midway) = farthest(folder, args.loader.loader)?;
        let file = folder.join(IDENTITY);
        if args.resume {
            ensure!(
                epoch > 0 || midway.is_some(),
                "{shown} holds no checkpoint; leave --resume out to begin"
            );
            wanted.expect(&file)?;
            let epochs = args.epochs;
            ensure!(
                epoch < epochs.get(),
                "{shown} was trained for {epoch} epochs, and --epochs {epochs} asks for no more; \
                 choose a higher number"
            );
        } else {
            ensure!(
                epoch == 0 && midway.is_none(),
                "{shown} holds checkpoints of an earlier training; go on with --resume, or choose \
                 another folder"
            );
            fs::create_dir_all(folder.join("checkpoint"))
                .with_context(|| format!("cannot make the folder {shown}"))?;
            let json = serde_json::to_string_pretty(&wanted).context("cannot write as JSON")?;
            Destination::to(&file)?.write(&json)?;
        }
        Ok(Self {
            folder: folder.to_owned(),
            epoch,
            midway,
        })
    }

    /// Fails where the checkpoint does not fit the network; burn-train would panic.
    pub(super) fn try_out(&self, model: &Learning, title: &str) -> anyhow::Result<()> {
        let file = match &self.midway {
            Some(midway) => midway.file(FILES[0]),
            None if self.epoch == 0 => return Ok(()),
            None => checkpoint(&self.folder, FILES[0], self.epoch),
        };
        let shown = file.display();
        let record = ModuleRecord::load(&file).ok();
        let record = record.with_context(|| format!("{shown} is damaged: it is no checkpoint"))?;
        if model.clone().try_load_record(record).is_err() {
            bail!("{shown} is a checkpoint of another model than {title}");
        }
        Ok(())
    }

    /// burn-train's own files, the first of which to be read may be from the middle of an epoch:
    /// the model, the optimizer, the scheduler.
    pub(super) fn files(&self) -> [Files; 3] {
        let folder = checkpoints(&self.folder);
        FILES.map(|name| Files {
            inner: FileCheckpointer::new(&folder, name),
            first: self.midway.as_ref().map(|midway| midway.file(name)),
        })
    }

    /// Whether there is something to go on from.
    pub(super) fn is_begun(&self) -> bool {
        self.epoch > 0 || self.midway.is_some()
    }
}

impl Identity {
    fn expect(&self, file: &Path) -> anyhow::Result<()> {
        let shown = file.display();
        let text = fs::read(file).with_context(|| format!("cannot read {shown}"))?;
        let found: Self =
            serde_json::from_slice(&text).with_context(|| format!("{shown} is damaged"))?;
        ensure!(
            found == *self,
            "{shown} says {} with {} classes, and this training is of {} with {}; choose --model {} \
             and the same data, or another folder",
            found.model,
            found.classes,
            self.model,
            self.classes,
            found.model
        );
        Ok(())
    }
}

fn checkpoint(folder: &Path, name: &str, epoch: usize) -> PathBuf {
    checkpoints(folder).join(format!("{name}-{epoch}.bpk"))
}

/// The folder of checkpoints, burn-train's and those in the middle of epochs.
pub(super) fn checkpoints(folder: &Path) -> PathBuf {
    folder.join("checkpoint")
}

/// How many epochs are complete, and what stands beyond them, unless Burn's loader is to go on,
/// which begins with an epoch.
fn farthest(folder: &Path, kind: LoaderKind) -> anyhow::Result<(usize, Option<Midway>)> {
    let epoch = last_epoch(folder)?;
    let midway = Midway::last(&checkpoints(folder))?;
    let beyond = midway.filter(|midway| midway.state.epoch() >= epoch);
    Ok(match beyond {
        Some(midway) if kind == LoaderKind::Prefetch => (midway.state.epoch(), Some(midway)),
        Some(_) | None => (epoch, None),
    })
}

/// The highest epoch with all files; 0 where there is none.
fn last_epoch(folder: &Path) -> anyhow::Result<usize> {
    let checkpoints = checkpoints(folder);
    if !checkpoints.is_dir() {
        return Ok(0);
    }
    let entries = fs::read_dir(&checkpoints)
        .with_context(|| format!("cannot list the folder {}", checkpoints.display()))?;
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let epochs = names.filter_map(|name| {
        let number = name.strip_prefix("model-")?.strip_suffix(".bpk")?;
        number.parse().ok()
    });
    let whole = |epoch: &usize| {
        FILES
            .iter()
            .all(|name| checkpoint(folder, name, *epoch).is_file())
    };
    Ok(epochs.filter(whole).max().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_epoch_is_the_highest_with_all_its_files() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(last_epoch(dir.path()).unwrap(), 0);
        fs::create_dir(dir.path().join("checkpoint")).unwrap();
        for epoch in [2, 9, 10] {
            for name in FILES {
                fs::write(checkpoint(dir.path(), name, epoch), "").unwrap();
            }
        }
        fs::write(checkpoint(dir.path(), "model", 11), "").unwrap();
        assert_eq!(last_epoch(dir.path()).unwrap(), 10);
    }
}
