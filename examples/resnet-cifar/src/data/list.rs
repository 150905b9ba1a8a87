//! The files of a folder, one folder a class, and what is none of them.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};

use super::{Owner, Split, cifar};

/// Where a folder has no part for testing, every so many pictures are one.
const HELD_OUT: usize = 8;

/// Which files of a folder, and what becomes of them.
#[derive(Debug)]
pub(super) struct Kind {
    pub(super) endings: &'static [&'static str],
    pub(super) side: usize,
    pub(super) owner: Owner,
}

/// Files and their classes, sorted: the order is the same on every machine.
#[derive(Debug)]
pub(super) struct List {
    pub(super) classes: Vec<String>,
    pub(super) files: Vec<(PathBuf, String)>,
    /// What is neither a class nor a picture in one.
    others: Vec<PathBuf>,
}

impl List {
    /// The part's own folder, or every file but each eighth, or each eighth.
    pub(super) fn of(dir: &Path, split: Split, kind: &Kind) -> anyhow::Result<Self> {
        let [train, test] = ["train", "test"].map(|part| dir.join(part));
        if !train.is_dir() {
            ensure!(!test.is_dir(), "it has a folder test but none called train");
            return Self::all(dir, kind)?.part(split);
        }
        let list = Self::all(&train, kind)?;
        if split == Split::Train {
            return Ok(list);
        }
        ensure!(test.is_dir(), "it has a folder train but none called test");
        let held_out = Self::all(&test, kind)?;
        for class in &held_out.classes {
            let known = list.classes.contains(class);
            ensure!(
                known,
                "test has the class {class}, which train does not have"
            );
        }
        Ok(Self {
            classes: list.classes,
            ..held_out
        })
    }

    fn all(dir: &Path, kind: &Kind) -> anyhow::Result<Self> {
        let (mut files, mut others) = (Vec::new(), Vec::new());
        for class in entries(dir)? {
            if !class.is_dir() {
                others.push(class);
                continue;
            }
            let name = class.file_name().unwrap_or_default().to_string_lossy();
            let (pictures, rest): (Vec<_>, Vec<_>) = entries(&class)?
                .into_iter()
                .partition(|file| kind.holds(file));
            if pictures.is_empty() && rest.is_empty() {
                others.push(class.clone());
            }
            others.extend(rest);
            files.extend(
                pictures
                    .into_iter()
                    .map(|file| (file, name.clone().into_owned())),
            );
        }
        if files.is_empty() {
            bail!("{}", kind.none_in(dir));
        }
        let mut classes: Vec<String> = files.iter().map(|(_, class)| class.clone()).collect();
        classes.dedup();
        Ok(Self {
            classes,
            files,
            others,
        })
    }

    fn part(self, split: Split) -> anyhow::Result<Self> {
        let count = self.files.len();
        ensure!(
            split == Split::Train || count >= HELD_OUT,
            "it holds {count} pictures, and every {HELD_OUT}th is kept to test on; put {HELD_OUT} or \
             more there, or make folders train and test in it"
        );
        let numbered = self.files.into_iter().enumerate();
        let chosen =
            numbered.filter(|(at, _)| (at % HELD_OUT == HELD_OUT - 1) == (split == Split::Test));
        Ok(Self {
            files: chosen.map(|(_, file)| file).collect(),
            ..self
        })
    }

    /// In words, if there is anything.
    pub(super) fn left_out(&self) -> Option<String> {
        let first = self.others.first()?.display();
        let count = self.others.len();
        Some(match count {
            1 => format!("{first} is left out: it is no picture in a folder of its class"),
            _ => format!(
                "{first} and {} more are left out: they are no pictures in a folder of their class",
                count - 1
            ),
        })
    }
}

impl Kind {
    fn holds(&self, file: &Path) -> bool {
        let ending = file.extension().unwrap_or_default();
        let known = self
            .endings
            .iter()
            .any(|known| ending.eq_ignore_ascii_case(known));
        known && !file.is_dir()
    }

    /// Why there is nothing to read, and what may have been meant.
    fn none_in(&self, dir: &Path) -> String {
        let shown = dir.display();
        let files = match self.endings {
            [one] => format!("*.{one}"),
            several => format!("*.{{{}}}", several.join(", ")),
        };
        let none = format!("{shown} holds no pictures");
        if cifar::detect(dir).is_ok_and(|found| found.is_some()) {
            return format!(
                "{none} in CLASS/{files}, only CIFAR's binary files; leave --workload out"
            );
        }
        if let Some(below) = cifar::below(dir) {
            let below = below.display();
            return format!("{none}, but {below} holds CIFAR's binary files; give that to --data");
        }
        format!("{none}; put them in CLASS/{files}, one folder for each class")
    }
}

/// What is in a folder, sorted by name, hidden files left out.
fn entries(dir: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let list = || fs::read_dir(dir)?.map(|entry| Ok(entry?.path())).collect();
    let list: std::io::Result<Vec<PathBuf>> = list();
    let mut list = list.with_context(|| format!("cannot list the folder {}", dir.display()))?;
    let hidden = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default();
        name.as_encoded_bytes().starts_with(b".")
    };
    list.retain(|path| !hidden(path));
    list.sort();
    Ok(list)
}
