//! The folder that a training leaves: what was trained, its checkpoints, its metrics.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};

use super::checkpoint::Checkpoint;
use super::files::Files;
use super::identity::Identity;
use super::midway::Midway;
use super::place;
use super::retention::LastTwoAndBest;
use super::steps::Learning;
use super::trouble::Trouble;
use crate::cli::{LoaderKind, TrainArgs};
use crate::data::Pictures;
use crate::note::note;

const IDENTITY: &str = "training.json";
/// What this trainer and burn-train put into the folder.
const OURS: [&str; 5] = [IDENTITY, "checkpoint", "train", "valid", "experiment.log"];

/// A folder for one training.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) folder: PathBuf,
    /// How many epochs are complete: the last whose checkpoint is, or those before a place in the
    /// middle of one.
    pub(super) epoch: usize,
    /// Where to go on in the middle of the epoch after.
    pub(super) midway: Option<Midway>,
    /// No other training has the folder as long as this lives; the system lets go of it with the process.
    _lock: Option<File>,
}

impl Kept {
    /// Opens or makes the folder, and finds where to go on.
    pub(super) fn open(
        args: &TrainArgs,
        folder: &Path,
        pictures: [&Pictures; 2],
    ) -> anyhow::Result<Self> {
        let shown = folder.display();
        ensure!(
            folder.is_dir() || !folder.exists(),
            "--out {shown} is a file; choose a folder, or a name that is still free"
        );
        let identity = Identity::of(&args.setup, pictures);
        let cannot = || format!("cannot make the folder {shown}");
        if args.resume {
            let lock = folder.is_dir().then(|| lock(folder)).transpose()?;
            let kept = Self::resume(args, folder, &identity)?;
            return Ok(Self {
                _lock: lock,
                ..kept
            });
        }
        fs::create_dir_all(folder).with_context(cannot)?;
        let lock = lock(folder)?;
        expect_free(folder)?;
        let kept = Self {
            _lock: Some(lock),
            ..Self::at(folder, (0, None))
        };
        fs::create_dir_all(kept.checkpoints()).with_context(cannot)?;
        kept.tidy()?;
        identity.write(&folder.join(IDENTITY))?;
        Ok(kept)
    }

    fn resume(args: &TrainArgs, folder: &Path, identity: &Identity) -> anyhow::Result<Self> {
        let shown = folder.display();
        let kept = Self::at(folder, farthest(folder)?);
        ensure!(
            kept.is_begun(),
            "{shown} holds no checkpoint; leave --resume out to begin"
        );
        let file = folder.join(IDENTITY);
        identity.expect(&file)?;
        let kept = kept.for_loader(args.loader.loader)?;
        let (done, wanted) = (kept.epoch, args.epochs);
        let epochs = if done == 1 { "epoch" } else { "epochs" };
        ensure!(
            done < wanted.get(),
            "{shown} was trained for {done} {epochs}, and --epochs {wanted} asks for no more; \
             choose a higher number"
        );
        if let Some([then, now]) = identity.other_rate(&file)? {
            note(&format!(
                "--lr {now} from here on; until here it was {then}"
            ));
        }
        kept.tidy()?;
        Ok(kept)
    }

    /// Burn's loader begins with an epoch.
    fn for_loader(self, kind: LoaderKind) -> anyhow::Result<Self> {
        let (LoaderKind::Burn, Some(midway)) = (kind, &self.midway) else {
            return Ok(self);
        };
        let (name, epoch) = (midway.name(), midway.state.epoch() + 1);
        let folder = self.checkpoints();
        let whole = last_epoch(&folder)?;
        ensure!(
            whole > 0,
            "--loader burn cannot go on in the middle of an epoch, and {} holds {name} alone; leave \
             --loader burn out",
            folder.display()
        );
        note(&format!(
            "--loader burn begins with an epoch: what {name} holds of epoch {epoch} is trained again"
        ));
        Ok(Self {
            epoch: whole,
            midway: None,
            ..self
        })
    }

    fn at(folder: &Path, (epoch, midway): (usize, Option<Midway>)) -> Self {
        Self {
            folder: folder.to_owned(),
            epoch,
            midway,
            _lock: None,
        }
    }

    fn tidy(&self) -> anyhow::Result<()> {
        let checkpoints = self.checkpoints();
        place::tidy(&checkpoints)
            .with_context(|| format!("cannot tidy the folder {}", checkpoints.display()))
    }

    /// The folder of checkpoints.
    pub(super) fn checkpoints(&self) -> PathBuf {
        place::of(&self.folder)
    }

    /// Where to go on from.
    fn last(&self) -> Checkpoint {
        match &self.midway {
            Some(midway) => midway.checkpoint(),
            None => Checkpoint::Epoch {
                folder: self.checkpoints(),
                epoch: self.epoch,
            },
        }
    }

    /// Fails where the checkpoint to go on from is damaged, or does not fit the network.
    pub(super) fn try_out(&self, model: &Learning, title: &str) -> anyhow::Result<()> {
        if self.is_begun() {
            self.last().check(model, title)?;
        }
        Ok(())
    }

    /// Who writes and reads the model, the optimizer, the scheduler for burn-train.
    pub(super) fn files(&self, trouble: &Trouble) -> [Files; 3] {
        Files::all(&self.checkpoints(), &self.last(), trouble)
    }

    /// Which of them stay.
    pub(super) fn retention(&self) -> LastTwoAndBest {
        LastTwoAndBest {
            folder: self.checkpoints(),
        }
    }

    /// Whether there is something to go on from.
    pub(super) fn is_begun(&self) -> bool {
        self.epoch > 0 || self.midway.is_some()
    }

    /// What is to be done after a training that was stopped.
    pub(super) fn afterwards(&self) -> &'static str {
        match farthest(&self.folder) {
            Ok((0, None)) => "there is no checkpoint yet: begin again",
            Ok(_) | Err(_) => "go on with --resume",
        }
    }
}

/// Takes the folder for this training alone. Nothing is written for that.
fn lock(folder: &Path) -> anyhow::Result<File> {
    let shown = folder.display();
    let cannot = || format!("cannot take the folder {shown}");
    let file = File::open(folder).with_context(cannot)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => bail!(
            "{shown} is in use by another training; choose another folder for --out, or wait for its end"
        ),
        Err(TryLockError::Error(error)) => Err(error).with_context(cannot),
    }
}

/// Fails where a training that begins in this folder would write over something.
fn expect_free(folder: &Path) -> anyhow::Result<()> {
    let shown = folder.display();
    let cannot = || format!("cannot list the folder {shown}");
    let Ok(entries) = fs::read_dir(folder) else {
        return Ok(());
    };
    let mut names = Vec::new();
    for entry in entries {
        let name = entry.with_context(cannot)?.file_name();
        names.push(name.to_string_lossy().into_owned());
    }
    if names.is_empty() {
        return Ok(());
    }
    let identity = folder.join(IDENTITY);
    let foreign = names.iter().find(|name| !OURS.contains(&name.as_str()));
    let foreign = foreign.map(String::as_str);
    let unknown = Identity::read(&identity).is_err().then_some(IDENTITY);
    let known = names.iter().any(|name| name == IDENTITY);
    if let Some(name) = foreign
        .or(unknown.filter(|_| known))
        .or((!known).then(|| names[0].as_str()))
    {
        bail!("{shown} holds {name}, which is no training's; choose a folder of its own for --out");
    }
    let checkpoints = place::of(folder);
    let begun = !place::epochs(&checkpoints).with_context(cannot)?.is_empty()
        || !place::midway(&checkpoints).with_context(cannot)?.is_empty();
    ensure!(
        !begun,
        "{shown} holds checkpoints of an earlier training; go on with --resume, or choose another \
         folder"
    );
    Ok(())
}

/// How many epochs are complete, and what stands beyond them.
fn farthest(folder: &Path) -> anyhow::Result<(usize, Option<Midway>)> {
    let checkpoints = place::of(folder);
    let epoch = last_epoch(&checkpoints)?;
    let midway = Midway::last(&checkpoints)?;
    let beyond = midway.filter(|midway| midway.state.epoch() >= epoch);
    let epoch = beyond.as_ref().map_or(epoch, |midway| midway.state.epoch());
    Ok((epoch, beyond))
}

/// The highest epoch with a checkpoint; 0 where there is none.
fn last_epoch(checkpoints: &Path) -> anyhow::Result<usize> {
    let epochs = place::epochs(checkpoints)
        .with_context(|| format!("cannot list the folder {}", checkpoints.display()))?;
    let is_there = |epoch: &usize| {
        let checkpoint = Checkpoint::Epoch {
            folder: checkpoints.to_owned(),
            epoch: *epoch,
        };
        checkpoint.is_there()
    };
    Ok(epochs.into_iter().rfind(is_there).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::train::checkpoint::PARTS;

    #[test]
    fn the_last_epoch_is_the_highest_that_was_finished() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(last_epoch(dir.path()).unwrap(), 0);
        let at = |epoch| Checkpoint::Epoch {
            folder: dir.path().to_owned(),
            epoch,
        };
        for epoch in [2, 9, 10] {
            for part in PARTS {
                fs::write(at(epoch).file(part), "").unwrap();
            }
        }
        fs::write(at(11).file("model"), "").unwrap();
        assert_eq!(last_epoch(dir.path()).unwrap(), 10);
        fs::write(at(11).manifest(), "").unwrap();
        assert_eq!(last_epoch(dir.path()).unwrap(), 11);
    }
    #[test]
    fn what_can_be_done_after_a_stop_depends_on_what_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let kept = Kept::at(dir.path(), (0, None));
        assert!(kept.afterwards().ends_with("begin again"));
        let first = Checkpoint::Epoch {
            folder: kept.checkpoints(),
            epoch: 1,
        };
        fs::create_dir(kept.checkpoints()).unwrap();
        for place in [first.file("model"), first.manifest()] {
            fs::write(place, "").unwrap();
        }
        assert_eq!(kept.afterwards(), "go on with --resume");
    }
}
