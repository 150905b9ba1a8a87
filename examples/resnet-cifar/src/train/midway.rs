//! A training in the middle of an epoch, kept so that it goes on with the next batch.

use std::fs::{self, File};
use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use burn::module::Module;
use burn::optim::ModuleOptimizer;
use burn::optim::lr_scheduler::module_lr_scheduler::ModuleLrScheduler;
use burn::train::Interrupter;
use burn::train::checkpoint::{Checkpoint, Checkpointer, CheckpointerError, FileCheckpointer};
use burn_prefetch::LoaderState;

use super::schedule::Schedule;
use crate::loader::Ours;

/// The folder of one in the folder of checkpoints, with epoch and batch behind.
const NAME: &str = "step-";
/// Where one is written before it gets its name.
const UNFINISHED: &str = "step.new";
/// Where one is removed.
const REMOVED: &str = "step.old";
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
        let mut last: Option<Self> = None;
        for folder in all(checkpoints)? {
            let found = Self::read(folder)?;
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
        let text = fs::read(&file).with_context(|| format!("cannot read {shown}"))?;
        let state = serde_json::from_slice(&text).with_context(|| format!("{shown} is damaged"))?;
        Ok(Self { folder, state })
    }

    /// The file of that name in a checkpoint of burn-train's.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.bpk"))
    }
}

/// All folders of this kind.
fn all(checkpoints: &Path) -> anyhow::Result<Vec<PathBuf>> {
    if !checkpoints.is_dir() {
        return Ok(Vec::new());
    }
    let shown = checkpoints.display();
    let cannot = || format!("cannot list the folder {shown}");
    let mut found = Vec::new();
    for entry in fs::read_dir(checkpoints).with_context(cannot)? {
        let entry = entry.with_context(cannot)?;
        if entry.file_name().to_string_lossy().starts_with(NAME) {
            found.push(entry.path());
        }
    }
    Ok(found)
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

/// Whom to tell that nothing can be written; Burn's handle knows no `Debug`.
#[derive(Clone)]
pub(super) struct Trouble(pub(super) Interrupter);

impl std::fmt::Debug for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Trouble")
    }
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
            let error = CheckpointerError::Unknown(format!("{error:#}"));
            self.trouble.0.fail(error);
        }
    }

    /// The folder gets its name when all is in it; only then those before it go.
    fn save(
        &self,
        state: &LoaderState,
        (step, model, optimizer): (usize, &impl Module, &ModuleOptimizer),
    ) -> anyhow::Result<()> {
        let before = all(&self.checkpoints)?;
        let unfinished = self.checkpoints.join(UNFINISHED);
        let name = format!("{NAME}{}-{}", state.epoch(), state.batch());
        let place = self.checkpoints.join(name);
        let write = || -> anyhow::Result<()> {
            remove_if_there(&unfinished)?;
            fs::create_dir_all(&unfinished)?;
            let file = |name: &str| unfinished.join(format!("{name}.bpk"));
            settled(model).into_record().save(file("model"))?;
            optimizer.to_record().save(file("optim"))?;
            let schedule = ModuleLrScheduler::from(self.schedule.clone().at(step));
            schedule.to_record().save(file("scheduler"))?;
            serde_json::to_writer(File::create(unfinished.join(STATE))?, state)?;
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

/// burn-train's files, but that the first to be read may be one from the middle of an epoch.
pub(super) struct Files {
    pub(super) inner: FileCheckpointer,
    pub(super) first: Option<PathBuf>,
}

impl<R: Checkpoint> Checkpointer<R> for Files {
    fn save(&self, epoch: usize, record: R) -> Result<(), CheckpointerError> {
        self.inner.save(epoch, record)
    }

    fn delete(&self, epoch: usize) -> Result<(), CheckpointerError> {
        Checkpointer::<R>::delete(&self.inner, epoch)
    }

    fn restore(&self, epoch: usize) -> Result<R, CheckpointerError> {
        match &self.first {
            Some(file) => R::load(file.clone()),
            None => self.inner.restore(epoch),
        }
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
            let folder = place.join(format!("{NAME}{epoch}-{batch}"));
            fs::create_dir(&folder).unwrap();
            let state = format!("{{\"version\":1,\"epoch\":{epoch},\"batch\":{batch}}}");
            fs::write(folder.join(STATE), state).unwrap();
        }
        fs::create_dir(place.join(UNFINISHED)).unwrap();
        fs::create_dir(place.join(REMOVED)).unwrap();
        let last = Midway::last(place).unwrap().unwrap();
        assert_eq!((last.state.epoch(), last.state.batch()), (2, 10));
        assert_eq!(last.file("model"), place.join("step-2-10/model.bpk"));
        fs::write(place.join("step-2-9").join(STATE), "{").unwrap();
        let said = Midway::last(place).unwrap_err().to_string();
        assert!(said.ends_with("loader.json is damaged"), "{said}");
    }
}
