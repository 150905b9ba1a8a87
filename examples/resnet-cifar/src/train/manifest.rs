//! The checksums of a checkpoint's files, written when all of them are there.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use serde::{Deserialize, Serialize};

/// What an unfinished file is called until it is whole.
const UNFINISHED: &str = "unfinished";

/// The files of one checkpoint, by name, in the folder of the manifest itself.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Manifest {
    pub(super) files: BTreeMap<String, Sum>,
}

/// What is known of a file's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Sum {
    bytes: u64,
    crc32: u32,
}

impl Sum {
    pub(super) fn of(content: &[u8]) -> Self {
        Self {
            bytes: content.len() as u64,
            crc32: crc32fast::hash(content),
        }
    }
}

impl Manifest {
    /// `None` where there is none.
    pub(super) fn read(place: &Path) -> anyhow::Result<Option<Self>> {
        let shown = place.display();
        match fs::read(place) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(|| format!("cannot read {shown}")),
            Ok(text) => serde_json::from_slice(&text)
                .map(Some)
                .with_context(|| format!("{shown} is damaged")),
        }
    }

    pub(super) fn write(&self, place: &Path) -> io::Result<()> {
        write_whole(place, &serde_json::to_vec_pretty(self)?).map(drop)
    }

    /// Fails where a file is missing or has become another one.
    pub(super) fn check(&self, folder: &Path) -> anyhow::Result<()> {
        let mut names = self.files.keys();
        names.try_for_each(|name| self.check_one(folder, name))
    }

    /// The same of one file; one that is not named has nothing to be held against.
    pub(super) fn check_one(&self, folder: &Path, name: &str) -> anyhow::Result<()> {
        let Some(sum) = self.files.get(name) else {
            return Ok(());
        };
        let file = folder.join(name);
        let shown = file.display();
        ensure!(file.is_file(), "{shown} is missing");
        let content = fs::read(&file).with_context(|| format!("cannot read {shown}"))?;
        ensure!(
            Sum::of(&content) == *sum,
            "{shown} is damaged: its checksum is not the one that was written down"
        );
        Ok(())
    }
}

/// Writes a file that is there whole or not at all, also when the machine stops.
pub(super) fn write_whole(place: &Path, content: &[u8]) -> io::Result<Sum> {
    let unfinished = beside(place);
    let write = || {
        let mut file = File::create(&unfinished)?;
        file.write_all(content)?;
        file.sync_all()?;
        fs::rename(&unfinished, place)
    };
    let written = write();
    if written.is_err() {
        // It is the first failure that counts.
        let _ = fs::remove_file(&unfinished);
    }
    written.map(|()| Sum::of(content))
}

fn beside(place: &Path) -> PathBuf {
    let mut name = place.file_name().unwrap_or_default().to_owned();
    name.push(".");
    name.push(UNFINISHED);
    place.with_file_name(name)
}

/// Whether a file of this name was left by a process that was killed while it wrote.
pub(super) fn is_unfinished(name: &str) -> bool {
    // Burn's own way of writing leaves `model-1.bpk.PID-N.tmp`.
    let burns = name.contains(".bpk.").then_some("tmp");
    let ending = name.rsplit_once('.').map(|(_, ending)| ending);
    ending.is_some() && [burns, Some(UNFINISHED)].contains(&ending)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_bit_and_a_missing_file_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("manifest.json");
        assert_eq!(Manifest::read(&place).unwrap(), None);
        let mut manifest = Manifest::default();
        for (name, content) in [("one", b"same"), ("two", b"four")] {
            let sum = write_whole(&dir.path().join(name), content).unwrap();
            manifest.files.insert(name.to_owned(), sum);
        }
        manifest.write(&place).unwrap();
        let manifest = Manifest::read(&place).unwrap().unwrap();
        manifest.check(dir.path()).unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 3);
        fs::write(dir.path().join("two"), b"fouq").unwrap();
        let said = manifest.check(dir.path()).unwrap_err().to_string();
        assert!(said.contains("two is damaged"), "{said}");
        fs::remove_file(dir.path().join("one")).unwrap();
        let said = manifest.check(dir.path()).unwrap_err().to_string();
        assert!(said.ends_with("one is missing"), "{said}");
        fs::write(&place, "{").unwrap();
        let said = Manifest::read(&place).unwrap_err().to_string();
        assert!(said.ends_with("manifest.json is damaged"), "{said}");
    }

    #[test]
    fn what_was_being_written_is_told_by_its_name() {
        for name in ["model-1.bpk.unfinished", "optim-12.bpk.4711-0.tmp"] {
            assert!(is_unfinished(name), "{name}");
        }
        for name in ["model-1.bpk", "notes.tmp", "step-1-2"] {
            assert!(!is_unfinished(name), "{name}");
        }
    }
}
