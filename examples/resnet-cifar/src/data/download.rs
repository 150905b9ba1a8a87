//! CIFAR, fetched once by Burn's own source into the user's cache folder.

use anyhow::{anyhow, ensure};
use burn_dataset::vision::{CifarDataset, CifarType};

use super::folder::Folder;
use super::{Pictures, Split, Store};
use crate::cli::Download;
use crate::quiet;

impl Download {
    fn title(self) -> &'static str {
        match self {
            Self::Cifar10 => "CIFAR-10",
            Self::Cifar100 => "CIFAR-100",
        }
    }

    fn classes(self) -> usize {
        match self {
            Self::Cifar10 => 10,
            Self::Cifar100 => 100,
        }
    }

    fn kind(self) -> CifarType {
        match self {
            Self::Cifar10 => CifarType::Cifar10,
            Self::Cifar100 => CifarType::Cifar100,
        }
    }
}

/// One part of the data set; the first call fetches it.
pub(super) fn fetch(set: Download, split: Split, side: usize) -> anyhow::Result<Pictures> {
    let title = set.title();
    let wanted = match split {
        Split::Train => 50_000,
        Split::Test => 10_000,
    };
    let dataset = quiet::catch(|| {
        let source = CifarDataset::new(set.kind());
        match split {
            Split::Train => source.train(),
            Split::Test => source.test(),
        }
    });
    let dataset = dataset.map_err(|why| {
        anyhow!(
            "cannot fetch {title} ({}); get its binary files from \
             https://www.cs.toronto.edu/~kriz/cifar.html and give their folder to --data",
            quiet::reason(&why)
        )
    })?;
    let folder = Folder::of_dataset(dataset);
    let found = folder.len();
    ensure!(
        found == wanted,
        "{title} in the cache folder has {found} {} pictures instead of {wanted}: an earlier fetch \
         was cut off; remove burn-dataset/{} from the cache folder (~/.cache) and fetch again",
        split.name(),
        title.to_lowercase().replace('-', ""),
    );
    let norm = folder.norm(side)?;
    let part = split.name();
    Ok(Pictures {
        name: format!("{title}, {found} {part} records in PNG files"),
        classes: set.classes(),
        norm,
        side,
        left_out: None,
        store: Store::Folder(folder),
    })
}
