//! One checkpoint: its files, and whether they are those that were written.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow, bail, ensure};
use burn::module::Module as _;
use burn::optim::OptimizerRecord;
use burn::optim::lr_scheduler::LrSchedulerRecord;
use burn::store::ModuleRecord;

use super::manifest::Manifest;
use super::steps::Learning;

/// What burn-train keeps, in its order: each has a file.
pub(super) const PARTS: [&str; 3] = ["model", "optim", "scheduler"];
pub(super) const MANIFEST: &str = "manifest";

/// Where a checkpoint is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Checkpoint {
    /// At the end of an epoch, from 1: files beside those of other epochs.
    Epoch { folder: PathBuf, epoch: usize },
    /// In the middle of an epoch: a folder of its own.
    Midway(PathBuf),
}

impl Checkpoint {
    /// The file of one of the [`PARTS`].
    pub(super) fn file(&self, part: &str) -> PathBuf {
        match self {
            Self::Epoch { folder, epoch } => folder.join(format!("{part}-{epoch}.bpk")),
            Self::Midway(folder) => folder.join(format!("{part}.bpk")),
        }
    }

    pub(super) fn manifest(&self) -> PathBuf {
        match self {
            Self::Epoch { folder, epoch } => folder.join(format!("{MANIFEST}-{epoch}.json")),
            Self::Midway(folder) => folder.join(format!("{MANIFEST}.json")),
        }
    }

    fn folder(&self) -> &Path {
        match self {
            Self::Epoch { folder, .. } | Self::Midway(folder) => folder,
        }
    }

    /// Whether it was finished, as far as names tell: a checkpoint without a manifest was written
    /// by an older version.
    pub(super) fn is_there(&self) -> bool {
        self.manifest().is_file() || PARTS.iter().all(|part| self.file(part).is_file())
    }

    /// Fails where a file is not what was written, or not of this network; burn-train would panic,
    /// or learn from what is left.
    pub(super) fn check(&self, model: &Learning, title: &str) -> anyhow::Result<()> {
        self.check_files()
            .map_err(|damage| anyhow!("{damage:#}; {}", self.way_out()))?;
        let file = self.file(PARTS[0]);
        let record = ModuleRecord::load(&file).ok();
        let record = record.with_context(|| format!("{} cannot be read", file.display()))?;
        if model.clone().try_load_record(record).is_err() {
            bail!(
                "{} is a checkpoint of another model than {title}",
                file.display()
            );
        }
        Ok(())
    }

    /// Fails where this file is not what was written down, if anything was; the others are
    /// [checked](Self::check) once it is known that the training goes on from here.
    pub(super) fn check_one(&self, name: &str) -> anyhow::Result<()> {
        let manifest = Manifest::read(&self.manifest());
        let checked = manifest.and_then(|manifest| match manifest {
            Some(manifest) => manifest.check_one(self.folder(), name),
            None => Ok(()),
        });
        checked.map_err(|damage| anyhow!("{damage:#}; {}", self.way_out()))
    }

    /// Whether there is a manifest; then all that it names is there and as it was.
    fn checked(&self) -> anyhow::Result<bool> {
        let place = self.manifest();
        let Some(manifest) = Manifest::read(&place)? else {
            return Ok(false);
        };
        for part in PARTS.map(|part| self.file(part)) {
            let name = part.file_name().unwrap_or_default().to_string_lossy();
            ensure!(
                manifest.files.contains_key(&*name),
                "{} does not belong to {name}",
                place.display()
            );
        }
        manifest.check(self.folder())?;
        Ok(true)
    }

    fn check_files(&self) -> anyhow::Result<()> {
        if self.checked()? {
            return Ok(());
        }
        let [model, optimizer, scheduler] = PARTS.map(|part| self.file(part));
        for file in [&model, &optimizer, &scheduler] {
            ensure!(file.is_file(), "{} is missing", file.display());
        }
        let damaged = |file: &Path| format!("{} is damaged: it is no checkpoint", file.display());
        let read = ModuleRecord::load(&model).ok();
        read.with_context(|| damaged(&model))?;
        let read = OptimizerRecord::load(&optimizer).ok();
        read.with_context(|| damaged(&optimizer))?;
        let read = LrSchedulerRecord::load(&scheduler).ok();
        read.with_context(|| damaged(&scheduler))?;
        Ok(())
    }

    /// What helps where it is damaged.
    fn way_out(&self) -> String {
        let what = match self {
            Self::Epoch { folder, epoch } => folder.join(format!("*-{epoch}.*")),
            Self::Midway(folder) => folder.clone(),
        };
        format!(
            "remove {} to go on from the checkpoint before it, or begin again in another folder",
            what.display()
        )
    }
}
