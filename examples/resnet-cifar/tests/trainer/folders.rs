//! Folders of pictures: read as they are, refused with a name where they cannot be.

use std::fs;

use crate::support::{draw_folder, printed, refused, text};

#[test]
fn a_folder_is_trained_on_and_every_eighth_picture_tests() {
    let dir = tempfile::tempdir().unwrap();
    draw_folder(dir.path(), 32, (20, "png"));
    let out = printed(&[
        "train",
        "--data",
        text(dir.path()),
        "--batch-size",
        "4",
        "--epochs",
        "1",
    ]);
    let title = out.lines().next().unwrap();
    assert!(title.contains("28 training records in files"), "{title}");
    assert!(title.contains("4 test records in files"), "{title}");
    assert!(out.contains("chance: 50 %"), "{out}");
}

#[test]
fn parts_of_their_own_are_used() {
    let dir = tempfile::tempdir().unwrap();
    draw_folder(&dir.path().join("train"), 12, (32, "jpg"));
    draw_folder(&dir.path().join("test"), 6, (32, "bmp"));
    let out = printed(&[
        "train",
        "--data",
        text(dir.path()),
        "--batch-size",
        "4",
        "--epochs",
        "1",
    ]);
    let title = out.lines().next().unwrap();
    assert!(
        title.contains("12 training records") && title.contains("6 test records"),
        "{title}"
    );
}

#[test]
fn a_file_that_is_no_picture_is_named() {
    for (bytes, loader) in [
        (&b"not a picture"[..], "prefetch"),
        (&[][..], "prefetch"),
        (&[], "burn"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        draw_folder(dir.path(), 32, (32, "png"));
        let broken = dir.path().join("light").join("007.png");
        fs::write(&broken, bytes).unwrap();
        let said = refused(&["train", "--data", text(dir.path()), "--loader", loader]);
        assert!(said.contains("light/007.png as a picture"), "{said}");
    }
}

#[test]
fn a_picture_cut_off_in_the_middle_is_named() {
    let dir = tempfile::tempdir().unwrap();
    draw_folder(dir.path(), 200, (32, "bmp"));
    // Not among the few that the norm is measured on, so it is met in the middle of the training.
    let broken = dir.path().join("light").join("003.bmp");
    let whole = fs::read(&broken).unwrap();
    fs::write(&broken, &whole[..whole.len() / 2]).unwrap();
    let said = refused(&["train", "--data", text(dir.path())]);
    assert!(said.contains("light/003.bmp as a picture"), "{said}");
    assert!(said.contains("stopped by an error"), "{said}");
}

#[test]
fn parts_that_do_not_go_together_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = text(dir.path());
    draw_folder(&dir.path().join("test"), 4, (32, "png"));
    assert!(refused(&["train", "--data", path]).contains("none called train"));
    draw_folder(&dir.path().join("train"), 4, (32, "png"));
    fs::rename(dir.path().join("test/dark"), dir.path().join("test/grey")).unwrap();
    assert!(refused(&["train", "--data", path]).contains("the class grey"));
    fs::remove_dir_all(dir.path().join("test")).unwrap();
    assert!(refused(&["train", "--data", path]).contains("none called test"));
}
