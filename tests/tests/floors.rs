//! Imports point down: the table of floors in `ARCHITECTURE.md` is true.

use std::fs;
use std::path::{Path, PathBuf};

use burn_prefetch_tests::{Source, complaints};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Every `.rs` file below `folder`, under its name in the table.
fn collect(krate: &str, folder: &Path, below: &str, into: &mut Vec<Source>) {
    for entry in fs::read_dir(folder)
        .expect("the folder is listed")
        .flatten()
    {
        let (path, file) = (
            entry.path(),
            entry.file_name().to_string_lossy().into_owned(),
        );
        if path.is_dir() {
            collect(krate, &path, &format!("{below}/{file}"), into);
        } else if let Some(stem) = file.strip_suffix(".rs") {
            let module = if stem == "mod" {
                below.to_owned()
            } else {
                format!("{below}/{stem}")
            };
            let text = fs::read_to_string(&path).expect("the file is text");
            into.push(Source {
                name: format!("{krate}{module}"),
                text,
            });
        }
    }
}

#[test]
fn every_file_has_its_row_and_uses_only_lower_floors() {
    let mut sources = Vec::new();
    let crates = fs::read_dir(repository().join("crates")).expect("the crates are listed");
    for krate in crates.flatten() {
        let name = krate.file_name().to_string_lossy().into_owned();
        collect(&name, &krate.path().join("src"), "", &mut sources);
    }
    // The shop window shows what the rooms have; it is no room.
    sources.retain(|source| !source.name.ends_with("/lib"));
    assert!(
        sources.len() > 10,
        "only {} files were found",
        sources.len()
    );
    let architecture = fs::read_to_string(repository().join("ARCHITECTURE.md"))
        .expect("ARCHITECTURE.md is at the top");
    let found = complaints(&architecture, &sources);
    assert!(found.is_empty(), "\n{}\n", found.join("\n"));
}
