//! What is in the folder of checkpoints, by its names.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::checkpoint::{MANIFEST, PARTS};
use super::manifest::is_unfinished;

/// A folder of one in the middle of an epoch; epoch, from 1, and batch stand behind.
pub(super) const MIDWAY: &str = "step-";
/// Where one is written before it gets its name.
pub(super) const UNFINISHED: &str = "step.new";
/// Where one is removed.
pub(super) const REMOVED: &str = "step.old";

/// The folder of checkpoints in that of a training.
pub(super) fn of(training: &Path) -> PathBuf {
    training.join("checkpoint")
}

/// Names and paths; nothing where there is no folder.
fn entries(folder: &Path) -> io::Result<Vec<(String, PathBuf)>> {
    let list = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        list => list?,
    };
    list.map(|entry| {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        Ok((name, entry.path()))
    })
    .collect()
}

/// The epochs of which any part is there.
pub(super) fn epochs(folder: &Path) -> io::Result<BTreeSet<usize>> {
    let names = entries(folder)?.into_iter();
    Ok(names.filter_map(|(name, _)| epoch(&name)).collect())
}

fn epoch(name: &str) -> Option<usize> {
    let (name, ending) = name.rsplit_once('.')?;
    let (part, number) = name.split_once('-')?;
    let is_part = ending == "bpk" && PARTS.contains(&part);
    let is_manifest = ending == "json" && part == MANIFEST;
    (is_part || is_manifest).then(|| number.parse().ok())?
}

/// The folders of those in the middle of epochs.
pub(super) fn midway(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = entries(folder)?;
    found.retain(|(name, _)| name.starts_with(MIDWAY));
    Ok(found.into_iter().map(|(_, path)| path).collect())
}

/// Removes what a process that was killed was writing or removing.
pub(super) fn tidy(folder: &Path) -> io::Result<()> {
    for (name, path) in entries(folder)? {
        if is_unfinished(&name) {
            fs::remove_file(path)?;
        } else if name == UNFINISHED || name == REMOVED {
            fs::remove_dir_all(path)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_what_is_there_and_what_was_left_unfinished() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path();
        assert!(epochs(&folder.join("nowhere")).unwrap().is_empty());
        tidy(&folder.join("nowhere")).unwrap();
        let [kept, left] = [
            ["model-2.bpk", "optim-10.bpk", "other-3.bpk", "model-x.bpk"].as_slice(),
            &["model-4.bpk.77-0.tmp", "optim-4.bpk.unfinished"],
        ];
        for file in kept.iter().chain(left) {
            fs::write(folder.join(file), "").unwrap();
        }
        for name in [UNFINISHED, REMOVED, "step-1-2"] {
            fs::create_dir(folder.join(name)).unwrap();
        }
        assert_eq!(epochs(folder).unwrap(), BTreeSet::from([2, 10]));
        assert_eq!(midway(folder).unwrap(), [folder.join("step-1-2")]);
        tidy(folder).unwrap();
        assert_eq!(fs::read_dir(folder).unwrap().count(), 5);
    }
}
