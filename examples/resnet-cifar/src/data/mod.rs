//! Pictures: where they come from, what they are called, how they are normalised.

mod cifar;
mod download;
mod draw;
mod folder;
mod list;
mod norm;
mod shapes;

use std::borrow::Cow;
use std::convert::Infallible;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use anyhow::{Context as _, ensure};
use burn::data::dataset::DatasetError;

use crate::cli::{Architecture, Setup, Workload};
use crate::misuse::misuse;

pub(crate) use draw::Drawn;
use folder::Folder;
pub(crate) use folder::Unreadable;
pub(crate) use norm::Norm;

/// Channels of a picture: red, green, blue, one plane after the other.
pub(crate) const CHANNELS: usize = 3;
/// Height and width of the pictures in memory, CIFAR's and drawn ones.
pub(crate) const SIDE: usize = 32;
/// Height and width for networks that were made for photographs.
const PHOTOGRAPH: usize = 224;

/// Where the pictures come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    /// Ten shapes, drawn from a seed.
    Shapes,
    /// A folder with CIFAR's binary files or with pictures.
    Dir(PathBuf),
}

/// Which part of a data set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Split {
    Train,
    Test,
}

/// Whose files are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    User,
    /// They were drawn for this comparison; figures made with them say so.
    Drawn,
}

/// Labelled 8-bit pictures of one size.
#[derive(Debug)]
pub(crate) struct Pictures {
    /// What figures made with these pictures are shown under.
    pub(crate) name: String,
    pub(crate) classes: usize,
    pub(crate) norm: Norm,
    /// Height and width.
    pub(crate) side: usize,
    /// What of the data folder is no part of them, if anything, in words.
    pub(crate) left_out: Option<String>,
    store: Store,
}

#[derive(Debug)]
enum Store {
    Memory(Memory),
    Folder(Folder),
}

/// Pictures of [`SIDE`] in memory, all bytes of one after the other.
#[derive(Debug, Default)]
struct Memory {
    pixels: Vec<u8>,
    labels: Vec<u8>,
}

impl Source {
    pub(crate) fn as_arg(&self) -> &OsStr {
        match self {
            Self::Shapes => OsStr::new("shapes"),
            Self::Dir(dir) => dir.as_os_str(),
        }
    }
}

impl FromStr for Source {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(match text {
            "shapes" => Self::Shapes,
            dir => Self::Dir(PathBuf::from(dir)),
        })
    }
}

impl Split {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Train => "training",
            Self::Test => "test",
        }
    }
}

impl Pictures {
    pub(crate) fn len(&self) -> usize {
        match &self.store {
            Store::Memory(memory) => memory.labels.len(),
            Store::Folder(folder) => folder.len(),
        }
    }

    /// The picture at `index`, plane after plane, and its label.
    ///
    /// # Errors
    ///
    /// Where a file cannot be read as a picture; the error names it.
    ///
    /// # Panics
    ///
    /// Panics where `index` is not below [`len`](Self::len).
    pub(crate) fn get(&self, index: usize) -> Result<(Cow<'_, [u8]>, usize), DatasetError> {
        match &self.store {
            Store::Memory(memory) => {
                let (picture, label) = memory.get(index);
                Ok((Cow::Borrowed(picture), label))
            }
            Store::Folder(folder) => {
                let (picture, label) = folder.get(index, self.side)?;
                Ok((Cow::Owned(picture), label))
            }
        }
    }

    /// A checksum of what is in memory, or of the names of the files: it tells other pictures, and
    /// not that a file has changed.
    pub(crate) fn crc32(&self) -> u32 {
        match &self.store {
            Store::Memory(memory) => {
                crc32fast::hash(&memory.pixels) ^ crc32fast::hash(&memory.labels)
            }
            Store::Folder(folder) => folder.crc32(),
        }
    }

    /// Bytes of one picture and its class.
    pub(crate) fn item_bytes(&self) -> usize {
        CHANNELS * self.side * self.side + 1
    }
}

impl Memory {
    const PICTURE: usize = CHANNELS * SIDE * SIDE;

    fn get(&self, index: usize) -> (&[u8], usize) {
        let picture = &self.pixels[index * Self::PICTURE..][..Self::PICTURE];
        (picture, usize::from(self.labels[index]))
    }
}

/// The pictures that `setup` names, as far as this workload reads them.
#[derive(Debug)]
pub(crate) struct Request<'a> {
    pub(crate) setup: &'a Setup,
    pub(crate) workload: Workload,
    pub(crate) owner: Owner,
}

impl Request<'_> {
    /// Reads, draws or lists one part of the data.
    pub(crate) fn load(&self, split: Split) -> anyhow::Result<Arc<Pictures>> {
        let setup = self.setup;
        let pictures = match (&setup.data, setup.download) {
            (_, Some(set)) => download::fetch(set, split, self.side())?,
            (Source::Shapes, None) => self.shapes(split)?,
            (Source::Dir(dir), None) => self
                .dir(dir, split)
                .with_context(|| format!("cannot use the data folder {}", dir.display()))?,
        };
        Ok(Arc::new(pictures))
    }

    fn shapes(&self, split: Split) -> anyhow::Result<Pictures> {
        self.expect_side("drawn shapes")?;
        let count = self.images();
        let count = match split {
            Split::Train => count,
            Split::Test => count.div_ceil(8),
        };
        Ok(shapes::pictures(self.setup.seed, count, split))
    }

    fn dir(&self, dir: &Path, split: Split) -> anyhow::Result<Pictures> {
        ensure!(
            dir.is_dir(),
            "there is no such folder; --data takes one with CIFAR's binary files or with pictures, or the \
             word shapes"
        );
        let files = self.workload.files();
        if files.is_none() && cifar::detect(dir)?.is_some() {
            self.expect_side("CIFAR's binary files")?;
            return cifar::read(dir, split);
        }
        folder::read(dir, split, &self.of_files(files))
    }

    fn of_files(&self, endings: Option<&'static [&'static str]>) -> list::Kind {
        list::Kind {
            endings: endings.unwrap_or(&folder::ANY),
            side: self.side(),
            owner: self.owner,
        }
    }

    fn expect_side(&self, what: &str) -> anyhow::Result<()> {
        let side = self.setup.size.unwrap_or(SIDE);
        if side != SIDE {
            misuse!(
                "--size {side} cannot be had: {what} have {SIDE} × {SIDE} pixels; leave --size out"
            );
        }
        Ok(())
    }

    /// How many pictures are drawn for training.
    pub(crate) fn images(&self) -> usize {
        let default = if self.workload.files().is_some() {
            1_024
        } else {
            8_192
        };
        self.setup.images.map_or(default, Into::into)
    }

    /// The side that pictures from files are brought to.
    fn side(&self) -> usize {
        let photographs =
            self.workload == Workload::Jpeg || self.setup.model == Architecture::Resnet18;
        let default = if photographs { PHOTOGRAPH } else { SIDE };
        self.setup.size.unwrap_or(default)
    }
}
