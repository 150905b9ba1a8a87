//! Drawn pictures as files in a folder of their own, for workloads that decode.

use std::env;
use std::fs;
use std::io::{self, Cursor};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use image::{ImageFormat, RgbImage};
use tempfile::TempDir;

use super::{CHANNELS, Request, SIDE, Source, Split, shapes};
use crate::{interrupt, progress};

/// Photographs are larger than what a network takes; so are these.
const JPEG_SIDE: usize = 256;
const PREFIX: &str = "resnet-cifar-drawn-";

/// A folder of drawn pictures; removed when dropped, and by Ctrl-C.
#[derive(Debug)]
pub(crate) struct Drawn(TempDir);

impl Drawn {
    /// The folder that a parent process drew and can no longer remove; `None` where these pictures
    /// are somebody's own.
    pub(crate) fn left_by(source: &Source) -> Option<PathBuf> {
        let Source::Dir(folder) = source else {
            return None;
        };
        let named = folder.file_name()?.to_string_lossy().starts_with(PREFIX);
        (named && folder.parent()? == env::temp_dir()).then(|| folder.clone())
    }

    /// A folder that is there and that Ctrl-C removes, or neither.
    fn empty() -> io::Result<Self> {
        let held = interrupt::hold();
        let dir = tempfile::Builder::new().prefix(PREFIX).tempdir()?;
        held.remove(dir.path().to_owned());
        Ok(Self(dir))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Draws the training pictures of a workload that reads files; `None` where it reads none, or
    /// the user's.
    pub(crate) fn of(request: &Request) -> anyhow::Result<Option<Self>> {
        let Some(endings) = request.workload.files() else {
            return Ok(None);
        };
        if request.setup.data != Source::Shapes {
            return Ok(None);
        }
        let drawn = Self::empty().context("cannot make a folder for the drawn pictures")?;
        drawn
            .fill(request, endings[0])
            .context("cannot write the drawn pictures")?;
        Ok(Some(drawn))
    }

    fn fill(&self, request: &Request, ending: &str) -> io::Result<()> {
        let (side, format) = match ending {
            "png" => (SIDE, ImageFormat::Png),
            _ => (JPEG_SIDE, ImageFormat::Jpeg),
        };
        let train = self.path().join("train");
        let names = shapes::names();
        for name in &names {
            let _held = interrupt::hold();
            fs::create_dir_all(train.join(name))?;
        }
        let count = request.images();
        let drawing = shapes::draw(request.setup.seed, side, Split::Train);
        let bar = progress::bar("drawing pictures", count as u64);
        for (number, (picture, label)) in drawing.take(count).enumerate() {
            let class = train.join(&names[usize::from(label)]);
            let file = class.join(format!("{number:06}.{ending}"));
            let bytes = encode(&picture, side, format)?;
            let held = interrupt::hold();
            fs::write(file, bytes)?;
            drop(held);
            bar.inc(1);
        }
        bar.finish_and_clear();
        Ok(())
    }
}

impl Drop for Drawn {
    fn drop(&mut self) {
        let _held = interrupt::hold();
        // What cannot be removed stays in the folder for temporary files.
        let _ = fs::remove_dir_all(self.path());
    }
}

/// Planes as the bytes of a file.
fn encode(planes: &[u8], side: usize, format: ImageFormat) -> io::Result<Vec<u8>> {
    let plane = side * side;
    let pixels = (0..plane).flat_map(|at| (0..CHANNELS).map(move |channel| channel * plane + at));
    let pixels = pixels.map(|at| planes[at]).collect();
    let side = u32::try_from(side).map_err(io::Error::other)?;
    let picture = RgbImage::from_raw(side, side, pixels);
    let picture = picture.ok_or_else(|| io::Error::other("a picture lacks pixels"))?;
    let mut file = Cursor::new(Vec::new());
    picture
        .write_to(&mut file, format)
        .map_err(io::Error::other)?;
    Ok(file.into_inner())
}
