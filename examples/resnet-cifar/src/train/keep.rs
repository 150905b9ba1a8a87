//! The folder that a training leaves: what was trained, its checkpoints, its metrics.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use burn::module::Module as _;
use burn::store::ModuleRecord;
use serde::{Deserialize, Serialize};

use crate::cli::{TrainArgs, flag_of};
use crate::data::Pictures;
use crate::destination::Destination;
use crate::model::ResNet;

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
    /// The last epoch whose checkpoint is complete; 0 before the first.
    pub(super) epoch: usize,
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
        let epoch = last_epoch(folder)?;
        let file = folder.join(IDENTITY);
        if args.resume {
            ensure!(
                epoch > 0,
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
                epoch == 0,
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
        })
    }

    /// Fails where the checkpoint does not fit the network; burn-train would panic.
    pub(super) fn try_out(&self, model: &ResNet, title: &str) -> anyhow::Result<()> {
        if self.epoch == 0 {
            return Ok(());
        }
        let file = checkpoint(&self.folder, FILES[0], self.epoch);
        let shown = file.display();
        let record = ModuleRecord::load(&file).ok();
        let record = record.with_context(|| format!("{shown} is damaged: it is no checkpoint"))?;
        if model.clone().try_load_record(record).is_err() {
            bail!("{shown} is a checkpoint of another model than {title}");
        }
        Ok(())
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
    folder
        .join("checkpoint")
        .join(format!("{name}-{epoch}.bpk"))
}

/// The highest epoch with all files; 0 where there is none.
fn last_epoch(folder: &Path) -> anyhow::Result<usize> {
    let checkpoints = folder.join("checkpoint");
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
