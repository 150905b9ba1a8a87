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
        let named = format!("cannot read {} as a picture: ", broken.display());
        let (_, shown) = said.split_once(&named).unwrap();
        assert!(
            shown.ends_with("; replace the file, or take it out of the folder\n"),
            "{said}"
        );
        assert!(!said.contains("unwrap"), "{said}");
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
    let named = format!("error: cannot read {} as a picture: ", broken.display());
    assert!(
        said.starts_with(&named) && !said.contains("unwrap"),
        "{said}"
    );
}

#[test]
fn a_line_break_in_a_name_breaks_no_line() {
    let dir = tempfile::tempdir().unwrap();
    draw_folder(dir.path(), 32, (32, "png"));
    fs::write(dir.path().join("dark").join("a\nb.png"), "not a picture").unwrap();
    // `refused` expects one line.
    let said = refused(&["train", "--data", text(dir.path())]);
    assert!(said.contains("dark/a\\nb.png as a picture"), "{said}");
}

#[test]
fn too_few_pictures_to_test_on_are_refused_with_their_number() {
    let dir = tempfile::tempdir().unwrap();
    draw_folder(dir.path(), 2, (32, "png"));
    let said = refused(&["train", "--data", text(dir.path())]);
    let words = "it holds 2 pictures, and every 8th is kept to test on; put 8 or more there";
    assert!(said.contains(words), "{said}");
}

#[test]
fn what_is_no_picture_in_a_folder_of_its_class_is_left_out_with_a_note() {
    let dir = tempfile::tempdir().unwrap();
    draw_folder(dir.path(), 16, (32, "png"));
    let note = || {
        let args = [
            "train",
            "--data",
            text(dir.path()),
            "--batch-size",
            "4",
            "--epochs",
            "1",
        ];
        let output = crate::support::trainer(&args);
        assert!(output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    fs::write(dir.path().join(".hidden"), "").unwrap();
    assert_eq!(note(), "");
    fs::write(dir.path().join("light/notes.txt"), "").unwrap();
    let first = dir.path().join("light/notes.txt");
    let said = format!(
        "note: {} is left out: it is no picture in a folder",
        first.display()
    );
    assert!(note().starts_with(&said), "{}", note());
    draw_folder(&dir.path().join("dark/deeper"), 2, (32, "png"));
    fs::create_dir(dir.path().join("empty")).unwrap();
    let first = dir.path().join("dark/deeper");
    let said = format!("note: {} and 2 more are left out: ", first.display());
    assert!(note().starts_with(&said), "{}", note());
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
    fs::remove_dir_all(dir.path().join("test/light")).unwrap();
    fs::remove_dir_all(dir.path().join("test/grey")).unwrap();
    let none = format!("{} holds no pictures", dir.path().join("test").display());
    assert!(refused(&["train", "--data", path]).contains(&none));
    fs::remove_dir_all(dir.path().join("test")).unwrap();
    assert!(refused(&["train", "--data", path]).contains("none called test"));
}
