//! A training in the middle of an epoch, kept so that it goes on with the next batch.

use std::fs;
use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, ensure};
use burn::module::Module;
use burn::optim::ModuleOptimizer;
use burn::optim::lr_scheduler::module_lr_scheduler::ModuleLrScheduler;
use burn::train::checkpoint::Checkpoint as Record;
use burn_prefetch::LoaderState;

use super::checkpoint::Checkpoint;
use super::manifest::{Manifest, write_whole};
use super::place::{self, MIDWAY, REMOVED, UNFINISHED};
use super::schedule::Schedule;
use super::trouble::Trouble;
use crate::loader::Ours;

const STATE: &str = "loader.json";

/// What is kept: the folder and where the loader stands. A folder of this name is whole.
#[derive(Debug)]
pub(super) struct Midway {
    folder: PathBuf,
    pub(super) state: LoaderState,
}

impl Midway {
    /// The one that is farthest on, if there is any.
    pub(super) fn last(checkpoints: &Path) -> anyhow::Result<Option<Self>> {
        let folders = place::midway(checkpoints)
            .with_context(|| format!("cannot list the folder {}", checkpoints.display()))?;
        let mut last: Option<Self> = None;
        for folder in folders {
            let found = Self::read(folder)?;
            found.expect_name()?;
            let place = |midway: &Self| (midway.state.epoch(), midway.state.batch());
            if last.as_ref().is_none_or(|last| place(last) < place(&found)) {
                last = Some(found);
            }
        }
        Ok(last)
    }

    fn read(folder: PathBuf) -> anyhow::Result<Self> {
        let file = folder.join(STATE);
        let shown = file.display();
        let way_out = || {
            format!(
                "remove the folder {} to go on from before",
                folder.display()
            )
        };
        Checkpoint::Midway(folder.clone()).check_one(STATE)?;
        let text =
            fs::read(&file).with_context(|| format!("{shown} cannot be read; {}", way_out()))?;
        let state = serde_json::from_slice(&text)
            .with_context(|| format!("{shown} is damaged; {}", way_out()))?;
        Ok(Self { folder, state })
    }

    /// What is in it is what its name says.
    fn expect_name(&self) -> anyhow::Result<()> {
        let (name, state) = (self.name(), &self.state);
        let own = name_of(state);
        ensure!(
            name == own,
            "{} holds what belongs into {own}; remove the folder to go on from before",
            self.folder.display()
        );
        Ok(())
    }

    pub(super) fn checkpoint(&self) -> Checkpoint {
        Checkpoint::Midway(self.folder.clone())
    }

    /// Its folder's own name.
    pub(super) fn name(&self) -> String {
        let name = self.folder.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }
}

/// Keeps a training every so many steps.
#[derive(Debug, Clone)]
pub(super) struct Saver {
    pub(super) checkpoints: PathBuf,
    pub(super) every: NonZeroUsize,
    pub(super) loader: Arc<Ours>,
    pub(super) schedule: Schedule,
    pub(super) trouble: Trouble,
}

impl Saver {
    /// Called after each step: the loader stands after the batch that the step was made with.
    pub(super) fn after_step(&self, model: &impl Module, optimizer: &ModuleOptimizer) {
        let state = self.loader.state();
        let step = state.epoch() * self.loader.num_batches() + state.batch();
        // The end of an epoch has a checkpoint of its own.
        if state.batch() == 0 || !step.is_multiple_of(self.every.get()) {
            return;
        }
        if let Err(error) = self.save(&state, (step, model, optimizer)) {
            self.trouble.stop(error);
        }
    }

    /// The folder gets its name when all is in it; only then those before it go.
    fn save(
        &self,
        state: &LoaderState,
        (step, model, optimizer): (usize, &impl Module, &ModuleOptimizer),
    ) -> anyhow::Result<()> {
        let before = place::midway(&self.checkpoints)?;
        let unfinished = self.checkpoints.join(UNFINISHED);
        let place = self.checkpoints.join(name_of(state));
        let write = || -> anyhow::Result<()> {
            remove_if_there(&unfinished)?;
            fs::create_dir_all(&unfinished)?;
            let schedule = ModuleLrScheduler::from(self.schedule.clone().at(step));
            let mut folder = Unfinished::new(&unfinished);
            folder.write("model.bpk", &bytes(settled(model).into_record())?)?;
            folder.write("optim.bpk", &bytes(optimizer.to_record())?)?;
            folder.write("scheduler.bpk", &bytes(schedule.to_record())?)?;
            folder.write(STATE, &serde_json::to_vec(state)?)?;
            folder.finish()?;
            Ok(fs::rename(&unfinished, &place)?)
        };
        write().with_context(|| format!("cannot write {}", place.display()))?;
        let mut old = before.into_iter().filter(|old| *old != place);
        old.try_for_each(|old| self.remove(&old))
    }

    /// It loses its name first: half of one is none, whenever the process ends.
    fn remove(&self, old: &Path) -> anyhow::Result<()> {
        let nameless = self.checkpoints.join(REMOVED);
        let remove = || {
            remove_if_there(&nameless)?;
            fs::rename(old, &nameless)?;
            fs::remove_dir_all(&nameless)
        };
        remove().with_context(|| format!("cannot remove the folder {}", old.display()))
    }
}

/// A folder that is being written.
/// The folder of a checkpoint at this place.
fn name_of(state: &LoaderState) -> String {
    format!("{MIDWAY}{}-{}", state.epoch() + 1, state.batch())
}

struct Unfinished<'a> {
    folder: &'a Path,
    manifest: Manifest,
}

impl<'a> Unfinished<'a> {
    fn new(folder: &'a Path) -> Self {
        Self {
            folder,
            manifest: Manifest::default(),
        }
    }

    fn write(&mut self, name: &str, content: &[u8]) -> io::Result<()> {
        let sum = write_whole(&self.folder.join(name), content)?;
        self.manifest.files.insert(name.to_owned(), sum);
        Ok(())
    }

    fn finish(self) -> io::Result<()> {
        let place = Checkpoint::Midway(self.folder.to_owned()).manifest();
        self.manifest.write(&place)
    }
}

fn bytes<R: Record>(record: R) -> anyhow::Result<impl std::ops::Deref<Target = [u8]>> {
    Ok(record.checkpoint_into_bytes()?)
}

/// The model with the running means and variances of its last step. Burn keeps those of a step
/// aside until the next one begins, or until the model is to be tested, and records leave out what
/// is aside.
fn settled<M: Module>(model: &M) -> M {
    drop(model.valid());
    model.clone()
}

fn remove_if_there(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_is_the_farthest_and_what_is_unfinished_does_not_count() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path();
        assert!(Midway::last(&place.join("nowhere")).unwrap().is_none());
        for (epoch, batch) in [(2, 9), (2, 10), (1, 30)] {
            let folder = place.join(format!("{MIDWAY}{}-{batch}", epoch + 1));
            fs::create_dir(&folder).unwrap();
            let state = format!("{{\"version\":1,\"epoch\":{epoch},\"batch\":{batch}}}");
            fs::write(folder.join(STATE), state).unwrap();
        }
        fs::create_dir(place.join(UNFINISHED)).unwrap();
        fs::create_dir(place.join(REMOVED)).unwrap();
        let last = Midway::last(place).unwrap().unwrap();
        assert_eq!((last.state.epoch(), last.state.batch()), (2, 10));
        assert_eq!(last.name(), "step-3-10");
        fs::write(place.join("step-3-9").join(STATE), "{").unwrap();
        let said = Midway::last(place).unwrap_err().to_string();
        assert!(
            said.contains("loader.json is damaged; remove the folder"),
            "{said}"
        );
    }
}
