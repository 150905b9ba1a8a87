//! Checkpoints at the ends of epochs, as burn-train has them written and read.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context as _;
use burn::train::checkpoint::{Checkpoint as Record, Checkpointer, CheckpointerError};

use super::checkpoint::{Checkpoint, PARTS};
use super::manifest::{Manifest, write_whole};
use super::trouble::Trouble;

/// Whoever saves, deletes and restores one of the three parts; burn-train has a thread for each.
#[derive(Debug)]
pub(super) struct Files {
    part: &'static str,
    folder: PathBuf,
    /// What is to be read first, once.
    first: Checkpoint,
    /// The sums of the epochs whose parts are not all written yet.
    ledger: Arc<Mutex<BTreeMap<usize, Manifest>>>,
    trouble: Trouble,
}

impl Files {
    /// One for each of the [`PARTS`].
    pub(super) fn all(folder: &Path, first: &Checkpoint, trouble: &Trouble) -> [Self; 3] {
        let ledger = Arc::default();
        PARTS.map(|part| Self {
            part,
            folder: folder.to_owned(),
            first: first.clone(),
            ledger: Arc::clone(&ledger),
            trouble: trouble.clone(),
        })
    }

    fn place(&self, epoch: usize) -> Checkpoint {
        Checkpoint::Epoch {
            folder: self.folder.clone(),
            epoch,
        }
    }

    /// The manifest goes before any part changes, and comes when all are there.
    fn write(&self, epoch: usize, content: &[u8]) -> io::Result<()> {
        let place = self.place(epoch);
        remove_if_there(&place.manifest())?;
        let file = place.file(self.part);
        let sum = write_whole(&file, content)?;
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let mut ledger = self.ledger.lock().unwrap_or_else(PoisonError::into_inner);
        let manifest = ledger.entry(epoch).or_default();
        manifest.files.insert(name.into_owned(), sum);
        if manifest.files.len() < PARTS.len() {
            return Ok(());
        }
        let whole = ledger.remove(&epoch).unwrap_or_default();
        whole.write(&place.manifest())
    }

    /// Stops the training in the trainer's words.
    fn told<T>(&self, done: anyhow::Result<T>) -> Result<T, CheckpointerError> {
        done.map_err(|error| {
            let said = CheckpointerError::Unknown(format!("{error:#}"));
            self.trouble.stop(error);
            said
        })
    }
}

impl<R: Record> Checkpointer<R> for Files {
    fn save(&self, epoch: usize, record: R) -> Result<(), CheckpointerError> {
        let file = self.place(epoch).file(self.part);
        let write = || -> anyhow::Result<()> {
            let content = record.checkpoint_into_bytes()?;
            Ok(self.write(epoch, &content)?)
        };
        self.told(write().with_context(|| format!("cannot write {}", file.display())))
    }

    fn delete(&self, epoch: usize) -> Result<(), CheckpointerError> {
        let place = self.place(epoch);
        let file = place.file(self.part);
        let remove = || -> anyhow::Result<()> {
            remove_if_there(&place.manifest())?;
            Ok(remove_if_there(&file)?)
        };
        self.told(remove().with_context(|| format!("cannot remove {}", file.display())))
    }

    fn restore(&self, _: usize) -> Result<R, CheckpointerError> {
        R::load(self.first.file(self.part))
    }
}

fn remove_if_there(file: &Path) -> io::Result<()> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use burn::optim::lr_scheduler::LrSchedulerRecord;
    use burn::train::Interrupter;

    use super::*;

    #[test]
    fn a_checkpoint_has_its_manifest_when_all_parts_are_there_and_loses_it_first() {
        let dir = tempfile::tempdir().unwrap();
        let place = Checkpoint::Epoch {
            folder: dir.path().to_owned(),
            epoch: 3,
        };
        let trouble = Trouble::new(Interrupter::new());
        let files = Files::all(dir.path(), &place, &trouble);
        let record = || LrSchedulerRecord::new().with_scalar("step", 7);
        for file in &files {
            assert!(!place.manifest().exists());
            file.save(3, record()).unwrap();
        }
        let manifest = Manifest::read(&place.manifest()).unwrap().unwrap();
        manifest.check(dir.path()).unwrap();
        assert_eq!(manifest.files.len(), 3);
        let back: LrSchedulerRecord = files[1].restore(3).unwrap();
        assert_eq!(back.scalar::<usize>("step"), Some(7));
        Checkpointer::<LrSchedulerRecord>::delete(&files[2], 3).unwrap();
        assert!(!place.manifest().exists() && place.file("model").exists());
        assert!(trouble.take().is_none());
    }

    #[test]
    fn what_cannot_be_written_stops_the_training_with_the_files_name() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("gone");
        let place = Checkpoint::Midway(folder.clone());
        let interrupter = Interrupter::new();
        let trouble = Trouble::new(interrupter.clone());
        let [model, ..] = Files::all(&folder, &place, &trouble);
        assert!(model.save(1, LrSchedulerRecord::new()).is_err());
        assert!(interrupter.should_stop());
        let said = format!("{:#}", trouble.take().unwrap());
        assert!(said.contains("gone/model-1.bpk: No such file"), "{said}");
    }
}
