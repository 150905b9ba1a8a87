//! A training that is kept can go on; what does not fit is refused and changes nothing.

use std::fs;
use std::path::Path;

use crate::support::{printed, refused, text};

pub(crate) fn small<'a>(out: &'a Path, more: &[&'a str]) -> Vec<&'a str> {
    let few = [
        "train",
        "--images",
        "64",
        "--batch-size",
        "16",
        "--out",
        text(out),
    ];
    [&few, more].concat()
}

pub(crate) fn files(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder.join("checkpoint")).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_training_goes_on_after_its_last_checkpoint() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("run");
    printed(&small(&out, &["--epochs", "1"]));
    let kept = files(&out);
    let manifest = "manifest-1.json";
    assert_eq!(
        kept,
        [manifest, "model-1.bpk", "optim-1.bpk", "scheduler-1.bpk"]
    );
    let text = printed(&small(&out, &["--epochs", "2", "--resume"]));
    assert!(
        !text.contains("epoch 1:") && text.contains("\nepoch 2: loss "),
        "{text}"
    );
    assert!(text.contains("test accuracy after epoch 2:"), "{text}");
    assert!(files(&out).contains(&"model-2.bpk".to_owned()));
}

#[test]
fn what_does_not_fit_is_refused_and_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("run");
    let none = refused(&small(&out, &["--resume"]));
    assert!(none.contains("holds no checkpoint"), "{none}");
    assert!(!out.exists());
    printed(&small(&out, &["--epochs", "1"]));
    let before = files(&out);
    for (more, wanted) in [
        (&["--epochs", "2"][..], "go on with --resume"),
        (&["--epochs", "1", "--resume"], "choose a higher number"),
        (
            &["--epochs", "2", "--resume", "--model", "resnet20"],
            "choose --model resnet8",
        ),
    ] {
        let said = refused(&small(&out, more));
        assert!(said.contains(wanted), "{said}");
    }
    assert_eq!(files(&out), before);
}

#[test]
fn a_checkpoint_of_another_model_is_told_by_its_weights_too() {
    let dir = tempfile::tempdir().unwrap();
    let [small_net, other] = ["small", "other"].map(|name| dir.path().join(name));
    printed(&small(&small_net, &["--epochs", "1"]));
    let deep = ["--epochs", "1", "--model", "resnet20"];
    printed(&small(&other, &deep));
    let file = "checkpoint/model-1.bpk";
    fs::copy(other.join(file), small_net.join(file)).unwrap();
    // With its manifest, the file is told by its checksum already.
    fs::remove_file(small_net.join("checkpoint/manifest-1.json")).unwrap();
    let said = refused(&small(&small_net, &["--epochs", "2", "--resume"]));
    assert!(said.contains("another model than ResNet-8"), "{said}");
}

#[test]
fn a_folder_that_cannot_be_made_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    let said = refused(&small(&file.join("run"), &[]));
    assert!(said.contains("cannot make the folder"), "{said}");
    for more in [&[][..], &["--resume"]] {
        let said = refused(&small(&file, more));
        assert!(said.contains("is a file; choose a folder"), "{said}");
    }
}
