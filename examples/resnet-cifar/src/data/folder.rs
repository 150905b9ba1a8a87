//! A folder of pictures, one folder a class, through Burn's `ImageFolderDataset`.

use std::error::Error;
use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use burn::data::dataset::{Dataset as _, DatasetError};
use burn_dataset::vision::{Annotation, ImageDatasetItem, ImageFolderDataset, PixelData};
use image::imageops::{self, FilterType};
use image::{ImageBuffer, Luma, Rgb};

use super::list::{Kind, List};
use super::{CHANNELS, Norm, Owner, Pictures, Split, Store};
use crate::quiet;

/// What Burn's folders hold.
pub(super) const ANY: [&str; 4] = ["png", "jpg", "jpeg", "bmp"];
/// How many pictures the norm is measured on.
const SAMPLE: usize = 64;
/// The listed pictures; each is decoded when it is asked for.
pub(crate) struct Folder {
    dataset: ImageFolderDataset,
    /// In the order of the dataset; empty where the dataset was listed by Burn.
    paths: Vec<PathBuf>,
}

/// A file that is no picture.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {path} as a picture: {why}; replace the file, or take it out of the folder")]
pub(crate) struct Unreadable {
    path: String,
    why: String,
}

impl Unreadable {
    /// The one among the causes of an error, which all of its words are about.
    pub(crate) fn among<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Self> {
        let mut cause = Some(error);
        while let Some(error) = cause {
            if let Some(found) = error.downcast_ref() {
                return Some(found);
            }
            cause = error.source();
        }
        None
    }
}

/// Lists one part of a folder.
pub(super) fn read(dir: &Path, split: Split, kind: &Kind) -> anyhow::Result<Pictures> {
    let list = List::of(dir, split, kind)?;
    let (classes, count) = (list.classes.len(), list.files.len());
    let left_out = list.left_out();
    let folder = list.open()?;
    let endings = kind.endings[0].to_uppercase();
    let files = match kind.endings.len() {
        4 => "files".to_owned(),
        _ => format!("{endings} files").replace("JPG", "JPEG"),
    };
    let name = match kind.owner {
        Owner::Drawn => "drawn shapes".to_owned(),
        Owner::User => dir
            .file_name()
            .unwrap_or(dir.as_os_str())
            .to_string_lossy()
            .into_owned(),
    };
    let part = split.name();
    Ok(Pictures {
        name: format!("{name}, {count} {part} records in {files}"),
        classes,
        norm: folder.norm(kind.side)?,
        side: kind.side,
        left_out,
        store: Store::Folder(folder),
    })
}

impl List {
    fn open(self) -> anyhow::Result<Folder> {
        let paths = self.files.iter().map(|(path, _)| path.clone()).collect();
        let dataset = ImageFolderDataset::new_classification_with_items(self.files, &self.classes)
            .map_err(|error| anyhow!("Burn's image folder refused it: {error}"))?;
        Ok(Folder { dataset, paths })
    }
}

impl Folder {
    pub(super) fn of_dataset(dataset: ImageFolderDataset) -> Self {
        Self {
            dataset,
            paths: Vec::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.dataset.len()
    }

    /// Of the names, each with its class, wherever the folder is.
    pub(super) fn crc32(&self) -> u32 {
        let mut sum = crc32fast::Hasher::new();
        for path in &self.paths {
            for part in path.iter().rev().take(2) {
                sum.update(part.as_encoded_bytes());
                sum.update(b"/");
            }
        }
        sum.finalize()
    }

    /// The picture at `index`, decoded, in planes of `side` × `side`, and its label.
    pub(super) fn get(&self, index: usize, side: usize) -> Result<(Vec<u8>, usize), DatasetError> {
        // Burn's folder panics on a file that is no picture; here the file gets its name.
        let item = quiet::catch(|| self.dataset.get(index));
        let item = item.map_err(|why| self.undecodable(index, &why))??;
        let label = match item.annotation {
            Annotation::Label(label) => label,
            Annotation::MultiLabel(_)
            | Annotation::BoundingBoxes(_)
            | Annotation::SegmentationMask(_) => {
                return Err(self.unreadable(index, "it has no class".to_owned()));
            }
        };
        let planes = planes(item, side);
        let planes = planes.ok_or_else(|| self.unreadable(index, "it has no pixels".to_owned()))?;
        Ok((planes, label))
    }

    /// The panic was an `unwrap`'s; the decoder says it in words.
    fn undecodable(&self, index: usize, panic: &str) -> DatasetError {
        let path = self.paths.get(index);
        let error = path.and_then(|path| image::open(path).err());
        let why = error.map_or_else(
            || quiet::reason(panic).to_owned(),
            |error| error.to_string().trim_end_matches('.').to_owned(),
        );
        self.unreadable(index, why)
    }

    fn unreadable(&self, index: usize, why: String) -> DatasetError {
        let path = self.paths.get(index).map(|path| path.display().to_string());
        let path = path.unwrap_or_else(|| format!("picture {index}"));
        DatasetError::new(Unreadable { path, why })
    }

    /// Of pictures spread over the whole folder.
    pub(super) fn norm(&self, side: usize) -> anyhow::Result<Norm> {
        let mut pixels = Vec::new();
        for index in (0..self.len()).step_by(self.len().div_ceil(SAMPLE).max(1)) {
            pixels.extend(self.get(index, side)?.0);
        }
        Ok(Norm::measure(&pixels, side * side))
    }
}

impl fmt::Debug for Folder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Folder")
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}

/// A decoded picture as planes of `side` × `side`; `None` where it has no pixels.
fn planes(item: ImageDatasetItem, side: usize) -> Option<Vec<u8>> {
    let (width, height) = (item.image_width, item.image_height);
    let pixels = bytes(item.image);
    let channels = pixels.len().checked_div(width * height)?;
    let (wide, high) = (u32::try_from(width).ok()?, u32::try_from(height).ok()?);
    let target = u32::try_from(side).ok()?;
    let triples = if channels < CHANNELS {
        let grey = pixels.chunks_exact(channels).map(|pixel| pixel[0]);
        let grey = ImageBuffer::<Luma<u8>, _>::from_raw(wide, high, grey.collect::<Vec<_>>())?;
        let grey = fit(grey, target).into_raw();
        grey.into_iter().map(|value| [value; CHANNELS]).collect()
    } else {
        let colours = pixels
            .chunks_exact(channels)
            .flat_map(|pixel| &pixel[..CHANNELS]);
        let colours = ImageBuffer::<Rgb<u8>, _>::from_raw(wide, high, colours.copied().collect())?;
        let colours = fit(colours, target).into_raw();
        colours.as_chunks::<CHANNELS>().0.to_vec()
    };
    Some(
        (0..CHANNELS)
            .flat_map(|channel| triples.iter().map(move |triple| triple[channel]))
            .collect(),
    )
}

/// The picture itself where it has the size, else the whole of it scaled.
fn fit<P>(picture: ImageBuffer<P, Vec<u8>>, side: u32) -> ImageBuffer<P, Vec<u8>>
where
    P: image::Pixel<Subpixel = u8> + 'static,
{
    if picture.dimensions() == (side, side) {
        return picture;
    }
    imageops::resize(&picture, side, side, FilterType::Triangle)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the value is clamped to a byte first"
)]
fn bytes(pixels: PixelData) -> Vec<u8> {
    match pixels {
        PixelData::U8(bytes) => bytes,
        PixelData::U16(words) => words.into_iter().map(|word| (word >> 8) as u8).collect(),
        PixelData::F32(reals) => {
            let byte = |real: f32| (real * 255.0).clamp(0.0, 255.0) as u8;
            reals.into_iter().map(byte).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(image: Vec<u8>, [width, height]: [usize; 2]) -> ImageDatasetItem {
        ImageDatasetItem {
            image: image.into(),
            image_width: width,
            image_height: height,
            annotation: Annotation::Label(0),
            image_path: String::new(),
        }
    }

    #[test]
    fn colours_become_planes_and_an_alpha_channel_is_left_out() {
        let rgb = item(vec![1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12], [2, 2]);
        assert_eq!(
            planes(rgb, 2).unwrap(),
            [1, 4, 7, 10, 2, 5, 8, 11, 3, 6, 9, 12]
        );
        let rgba = item(vec![1, 2, 3, 255], [1, 1]);
        assert_eq!(planes(rgba, 1).unwrap(), [1, 2, 3]);
    }

    #[test]
    fn grey_pictures_become_three_equal_planes() {
        assert_eq!(planes(item(vec![7], [1, 1]), 1).unwrap(), [7, 7, 7]);
        assert_eq!(planes(item(vec![7, 255], [1, 1]), 1).unwrap(), [7, 7, 7]);
    }

    #[test]
    fn another_size_is_scaled_to_the_one_asked_for() {
        let flat = item(vec![9; 6 * 4 * 3], [6, 4]);
        assert_eq!(planes(flat, 2).unwrap(), [9; 12]);
    }
}
