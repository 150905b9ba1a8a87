//! The pictures as a Burn dataset: augmented, counted, as items or written where a batch wants them.

use std::sync::Arc;

use burn::data::dataset::{Dataset, DatasetError};
use burn_prefetch::{BoxError, FetchInto, Row};

use crate::augment::Square;
use crate::cli::Workload;
use crate::data::Pictures;
use crate::extra;
use crate::gauge::{Gauge, ItemGuard};
use crate::rows::Rows;
use crate::staged;

/// One 8-bit picture, cropped and mirrored where that was asked for.
#[derive(Debug, Clone)]
pub(crate) struct PictureItem {
    pub(crate) pixels: Vec<u8>,
    pub(crate) label: usize,
    pub(crate) guard: ItemGuard,
}

/// The pictures as a Burn dataset; every item is counted.
#[derive(Debug, Clone)]
pub(crate) struct PictureDataset {
    pub(crate) pictures: Arc<Pictures>,
    /// Crop and mirror at random, as He et al. train; without it a picture comes as it is.
    pub(crate) augmented: bool,
    pub(crate) workload: Workload,
    pub(crate) gauge: Arc<Gauge>,
    /// Counts what is written into rows.
    pub(crate) rows: Arc<Rows>,
}

impl Dataset<PictureItem> for PictureDataset {
    fn get(&self, index: usize) -> Result<PictureItem, DatasetError> {
        let guard = self.gauge.start_item(self.pictures.item_bytes());
        let (picture, label) = self.pictures.get(index)?;
        let square = self.square(&picture);
        extra::spend(self.workload, index, square);
        let pixels = if self.augmented {
            square.crop_and_mirror(&mut burn_prefetch::rng())
        } else {
            picture.into_owned()
        };
        Ok(PictureItem {
            pixels,
            label,
            guard,
        })
    }

    fn len(&self) -> usize {
        self.pictures.len()
    }
}

impl FetchInto<PictureItem, DatasetError> for PictureDataset {
    fn fetch_into(&self, index: usize, row: &mut Row<'_>) -> Result<(), BoxError> {
        self.rows.start(staged::row_bytes(self.pictures.side));
        let (picture, label) = self.pictures.get(index)?;
        let square = self.square(&picture);
        extra::spend(self.workload, index, square);
        if self.augmented {
            let pixels = row.values_mut::<u8>(staged::IMAGES)?;
            square.crop_and_mirror_into(pixels, &mut burn_prefetch::rng());
        } else {
            row.write(staged::IMAGES, &picture)?;
        }
        row.write(staged::LABELS, &[staged::label(label)?])?;
        Ok(())
    }
}

impl PictureDataset {
    fn square<'a>(&self, pixels: &'a [u8]) -> Square<'a> {
        Square {
            pixels,
            side: self.pictures.side,
        }
    }
}
