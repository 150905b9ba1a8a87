//! The binary files of CIFAR-10 and CIFAR-100, checked while they are read.
//!
//! A record is its label bytes (CIFAR-10: one; CIFAR-100: coarse, then fine) and then 1,024 red,
//! 1,024 green and 1,024 blue bytes, row by row; a file is records and nothing else. A shorter
//! file than the official one is fine as long as its records are whole. Format:
//! <https://www.cs.toronto.edu/~kriz/cifar.html>.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};

use crate::note::note;

use super::{Memory, Norm, Pictures, SIDE, Split, Store};

/// What the records of one data set look like.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Format {
    name: &'static str,
    /// The highest label of each label byte; the last one is the class.
    labels: &'static [u8],
    train: &'static [&'static str],
    test: &'static str,
}

const CIFAR_10: Format = Format {
    name: "CIFAR-10",
    labels: &[9],
    train: &[
        "data_batch_1.bin",
        "data_batch_2.bin",
        "data_batch_3.bin",
        "data_batch_4.bin",
        "data_batch_5.bin",
    ],
    test: "test_batch.bin",
};

const CIFAR_100: Format = Format {
    name: "CIFAR-100",
    labels: &[19, 99],
    train: &["train.bin"],
    test: "test.bin",
};

/// Of all 50,000 training pictures of CIFAR-10 (the often seen .2023 .1994 .2010 averages the
/// deviation of each picture by itself).
const CIFAR_10_NORM: Norm = Norm {
    mean: [0.491_40, 0.482_16, 0.446_53],
    std: [0.247_03, 0.243_49, 0.261_59],
};

/// Reads one part of the data set in `dir`; any of CIFAR-10's five training files may be absent,
/// not all.
pub(super) fn read(dir: &Path, split: Split) -> anyhow::Result<Pictures> {
    let format = detect(dir)?.context("it holds no files of CIFAR")?;
    let files = files(dir, format, split)?;
    let mut memory = Memory::default();
    for file in &files {
        if !file.is_file() {
            // Whoever waits for a pipe that nobody writes should know.
            note(&format!(
                "{} is no plain file; it is read to its end",
                file.display()
            ));
        }
        let bytes = fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
        parse(format, &bytes, &mut memory)
            .with_context(|| format!("{} is damaged", file.display()))?;
    }
    let norm = if format == CIFAR_10 {
        CIFAR_10_NORM
    } else {
        Norm::measure(&memory.pixels, SIDE * SIDE)
    };
    let (name, count, files) = (format.name, memory.labels.len(), files.len());
    let part = split.name();
    let highest = format.labels.last().copied();
    Ok(Pictures {
        name: format!("{name}, {count} {part} records in {files} file(s)"),
        classes: highest.map_or(0, |highest| usize::from(highest) + 1),
        norm,
        side: SIDE,
        left_out: None,
        store: Store::Memory(memory),
    })
}

/// The first folder in `dir` that holds binary files of either; whoever gave `dir` may have meant it.
pub(super) fn below(dir: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(dir).ok()?;
    let mut folders: Vec<_> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    folders.sort();
    let holds = |folder: &PathBuf| folder.is_dir() && detect(folder).is_ok_and(|it| it.is_some());
    folders.into_iter().find(holds)
}

/// Which data set has its binary files in `dir`; `None` where there are none of either.
pub(super) fn detect(dir: &Path) -> anyhow::Result<Option<Format>> {
    let entries = fs::read_dir(dir).context("cannot list the folder")?;
    let mut names = Vec::new();
    for entry in entries {
        names.push(entry.context("cannot list the folder")?.file_name());
    }
    let has = |format: Format| {
        let mut files = format.train.iter().chain([&format.test]);
        files.any(|file| names.iter().any(|name| name == file))
    };
    match (has(CIFAR_10), has(CIFAR_100)) {
        (true, false) => Ok(Some(CIFAR_10)),
        (false, true) => Ok(Some(CIFAR_100)),
        (true, true) => {
            bail!("it holds files of CIFAR-10 and of CIFAR-100; keep them in separate folders")
        }
        (false, false) => Ok(None),
    }
}

fn files(dir: &Path, format: Format, split: Split) -> anyhow::Result<Vec<PathBuf>> {
    let wanted = match split {
        Split::Train => format.train,
        Split::Test => &[format.test],
    };
    let found: Vec<_> = wanted
        .iter()
        .map(|name| dir.join(name))
        .filter(|file| file.exists())
        .collect();
    let (name, wanted) = (format.name, wanted.join(", "));
    let missing = if wanted.contains(' ') {
        format!("none of {name}'s {wanted} is there")
    } else {
        format!("{name}'s {wanted} is missing")
    };
    ensure!(
        !found.is_empty(),
        "{missing}; get it from https://www.cs.toronto.edu/~kriz/cifar.html (binary version)"
    );
    Ok(found)
}

/// Appends the records in `bytes` to the pixels and labels, or names the first record (from 0)
/// that is wrong.
fn parse(format: Format, bytes: &[u8], memory: &mut Memory) -> anyhow::Result<()> {
    let record_len = format.labels.len() + Memory::PICTURE;
    let (whole, rest) = (bytes.len() / record_len, bytes.len() % record_len);
    ensure!(!bytes.is_empty(), "record 0 is missing, the file is empty");
    ensure!(
        rest == 0,
        "record {whole} is cut off after {rest} of {record_len} bytes ({} bytes in all)",
        bytes.len()
    );
    for (number, record) in bytes.chunks_exact(record_len).enumerate() {
        let (heads, picture) = record.split_at(format.labels.len());
        for (&label, &highest) in heads.iter().zip(format.labels) {
            ensure!(
                label <= highest,
                "record {number} has the label {label}, {} has 0 to {highest}",
                format.name
            );
        }
        memory.labels.extend(heads.last());
        memory.pixels.extend_from_slice(picture);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::env;
    use std::io::{self, Write as _};

    use super::*;

    const PICTURE: usize = Memory::PICTURE;

    fn memory(pictures: &Pictures) -> &Memory {
        match &pictures.store {
            Store::Memory(memory) => memory,
            Store::Folder(_) => panic!("not in memory"),
        }
    }

    fn record(heads: &[u8], fill: u8) -> Vec<u8> {
        [heads, &[fill; PICTURE]].concat()
    }

    fn folder(files: &[(&str, Vec<u8>)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (name, bytes) in files {
            fs::write(dir.path().join(name), bytes).unwrap();
        }
        dir
    }

    fn refusal(files: &[(&str, Vec<u8>)]) -> String {
        let dir = folder(files);
        format!("{:#}", read(dir.path(), Split::Train).unwrap_err())
    }

    #[test]
    fn some_of_the_five_files_are_read_in_their_order() {
        let dir = folder(&[
            ("data_batch_4.bin", record(&[9], 4)),
            (
                "data_batch_2.bin",
                [record(&[0], 2), record(&[5], 3)].concat(),
            ),
        ]);
        let pictures = read(dir.path(), Split::Train).unwrap();
        assert_eq!(memory(&pictures).labels, [0, 5, 9]);
        assert_eq!(memory(&pictures).get(2), ([4; PICTURE].as_slice(), 9));
        assert_eq!(pictures.name, "CIFAR-10, 3 training records in 2 file(s)");
        assert_eq!(pictures.norm, CIFAR_10_NORM);
    }

    #[test]
    fn cifar_100_is_told_by_its_file_and_uses_the_fine_label() {
        let dir = folder(&[("train.bin", record(&[19, 99], 7))]);
        let pictures = read(dir.path(), Split::Train).unwrap();
        assert_eq!(
            (memory(&pictures).labels.as_slice(), pictures.classes),
            ([99].as_slice(), 100)
        );
    }

    #[test]
    fn a_truncated_file_is_refused_with_file_and_record() {
        let mut bytes = [record(&[1], 0), record(&[2], 0)].concat();
        bytes.pop();
        let text = refusal(&[
            ("data_batch_1.bin", record(&[1], 0)),
            ("data_batch_3.bin", bytes),
        ]);
        assert!(
            text.contains("data_batch_3.bin") && text.contains("record 1 "),
            "{text}"
        );
        assert!(text.contains("3072 of 3073"), "{text}");
    }

    #[test]
    fn a_label_of_10_is_refused_with_file_and_record() {
        let bytes = [record(&[9], 0), record(&[10], 0)].concat();
        let text = refusal(&[("data_batch_1.bin", bytes)]);
        assert!(
            text.contains("data_batch_1.bin") && text.contains("record 1 "),
            "{text}"
        );
        assert!(text.contains("label 10"), "{text}");
    }

    #[test]
    fn a_coarse_label_of_20_is_refused() {
        let text = refusal(&[("train.bin", record(&[20, 0], 0))]);
        assert!(
            text.contains("label 20") && text.contains("0 to 19"),
            "{text}"
        );
    }

    #[test]
    fn an_empty_file_has_no_record_0() {
        let text = refusal(&[("data_batch_1.bin", Vec::new())]);
        assert!(
            text.contains("data_batch_1.bin") && text.contains("record 0"),
            "{text}"
        );
    }

    #[test]
    fn a_folder_without_such_files_is_not_cifars_and_one_with_both_is_refused() {
        assert_eq!(detect(folder(&[]).path()).unwrap(), None);
        let both = [
            ("train.bin", record(&[1, 1], 0)),
            ("data_batch_1.bin", record(&[1], 0)),
        ];
        assert!(refusal(&both).contains("separate folders"));
    }

    #[test]
    fn the_real_files_start_as_published() {
        let Some(dir) = env::var_os("CIFAR10_DIR") else {
            writeln!(io::stderr(), "skipped: CIFAR10_DIR is not set").unwrap();
            return;
        };
        let train = read(Path::new(&dir), Split::Train).unwrap();
        assert_eq!(memory(&train).labels[..10], [6, 9, 9, 4, 1, 1, 2, 7, 8, 3]);
        assert_eq!(
            memory(&train).pixels[..8],
            [59, 43, 50, 68, 98, 119, 139, 145]
        );
        let measured = Norm::measure(&memory(&train).pixels, SIDE * SIDE);
        for channel in 0..3 {
            assert!((measured.mean[channel] - CIFAR_10_NORM.mean[channel]).abs() < 0.01);
            assert!((measured.std[channel] - CIFAR_10_NORM.std[channel]).abs() < 0.01);
        }
        let test = read(Path::new(&dir), Split::Test).unwrap();
        assert_eq!(memory(&test).labels[..10], [3, 8, 8, 0, 6, 6, 1, 6, 3, 1]);
    }
}
