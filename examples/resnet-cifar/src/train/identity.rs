//! What a checkpoint must have in common with a training that goes on from it.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, ensure};
use serde::{Deserialize, Serialize};

use crate::cli::{Setup, flag_of};
use crate::data::Pictures;
use crate::destination::Destination;

/// Written when a training begins. Folders of older versions lack what may be missing here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Identity {
    /// As on the command line.
    model: String,
    classes: usize,
    #[serde(flatten)]
    rest: Option<Rest>,
}

/// What makes the batches, and how the network learns from them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Rest {
    batch_size: usize,
    seed: u64,
    /// Of a picture.
    side: usize,
    lr: f64,
    train: Part,
    test: Part,
}

/// The pictures of one part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Part {
    name: String,
    pictures: usize,
    /// Of what is in memory, or of the names of the files.
    crc32: u32,
}

impl Part {
    fn of(pictures: &Pictures) -> Self {
        Self {
            name: pictures.name.clone(),
            pictures: pictures.len(),
            crc32: pictures.crc32(),
        }
    }
}

impl Identity {
    pub(super) fn of(setup: &Setup, [train, test]: [&Pictures; 2]) -> Self {
        Self {
            model: flag_of(&setup.model),
            classes: train.classes,
            rest: Some(Rest {
                batch_size: setup.batch_size.get(),
                seed: setup.seed,
                side: train.side,
                lr: setup.lr,
                train: Part::of(train),
                test: Part::of(test),
            }),
        }
    }

    pub(super) fn read(file: &Path) -> anyhow::Result<Self> {
        let shown = file.display();
        let text = fs::read(file).with_context(|| {
            format!("cannot read {shown}, which says what was trained; choose another folder")
        })?;
        serde_json::from_slice(&text).with_context(|| format!("{shown} is damaged"))
    }

    pub(super) fn write(&self, file: &Path) -> anyhow::Result<()> {
        let json = serde_json::to_string_pretty(self).context("cannot write as JSON")?;
        Destination::to(file)?.write(&json)
    }

    /// Fails where a training with these settings would not be the one that `file` tells of.
    pub(super) fn expect(&self, file: &Path) -> anyhow::Result<()> {
        let shown = file.display();
        let found = Self::read(file)?;
        ensure!(
            (&found.model, found.classes) == (&self.model, self.classes),
            "{shown} says {} with {} classes, and this training is of {} with {}; choose --model {} \
             and the same data, or another folder",
            found.model,
            found.classes,
            self.model,
            self.classes,
            found.model
        );
        match (&found.rest, &self.rest) {
            (Some(then), Some(now)) => now
                .expect(then)
                .with_context(|| format!("{shown} tells of another training")),
            _ => Ok(()),
        }
    }

    /// The learning rates of then and now, where they differ: that may be wanted.
    pub(super) fn other_rate(&self, file: &Path) -> anyhow::Result<Option<[f64; 2]>> {
        let found = Self::read(file)?;
        let rates = found.rest.zip(self.rest.as_ref());
        let rates = rates.map(|(then, now)| [then.lr, now.lr]);
        // What is read back may differ in its last bit.
        Ok(rates.filter(|[then, now]| (then / now - 1.0).abs() > 1e-12))
    }
}

impl Rest {
    fn expect(&self, then: &Self) -> anyhow::Result<()> {
        for (flag, then, now) in [
            ("--seed", then.seed, self.seed),
            (
                "--batch-size",
                then.batch_size as u64,
                self.batch_size as u64,
            ),
            ("--size", then.side as u64, self.side as u64),
        ] {
            ensure!(
                then == now,
                "its {flag} was {then}, and this one has {now}; give {flag} {then}, or choose another folder"
            );
        }
        for (then, now) in [(&then.train, &self.train), (&then.test, &self.test)] {
            ensure!(
                (then.pictures, &then.name) == (now.pictures, &now.name),
                "its data was {}, and this one has {}; give the same --data and --images, or choose \
                 another folder",
                then.name,
                now.name
            );
            ensure!(
                then.crc32 == now.crc32,
                "its data was {} too, but other ones; give the same --data, or choose another folder",
                then.name
            );
        }
        Ok(())
    }
}
