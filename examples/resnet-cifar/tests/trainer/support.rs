//! Running the trainer as a user would.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

/// Pictures of a record file of CIFAR-10 have this many bytes, after one label byte.
pub(crate) const PICTURE: usize = 3072;

/// The trainer with these arguments, run to its end.
pub(crate) fn trainer(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_resnet-cifar"))
        .args(args)
        .output()
        .unwrap()
}

/// The one row that a contender prints.
pub(crate) fn contender(args: &[&str]) -> Value {
    let output = trainer(&[&["contender"], args].concat());
    assert!(
        output.status.success(),
        "{args:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A count in a row.
pub(crate) fn count(row: &Value, field: &str) -> u64 {
    row[field]
        .as_u64()
        .unwrap_or_else(|| panic!("no {field} in {row}"))
}

/// What a run that must fail says: one line, with exit code 1 and nothing on standard output.
pub(crate) fn refused(args: &[&str]) -> String {
    sentence(args, 1)
}

/// The same of a command line that means nothing, whose exit code is 2.
pub(crate) fn misused(args: &[&str]) -> String {
    sentence(args, 2)
}

fn sentence(args: &[&str], code: i32) -> String {
    let output = trainer(args);
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{args:?}: {text}");
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(text.starts_with("error: "), "{text}");
    text
}

/// What a run that must succeed prints.
pub(crate) fn printed(args: &[&str]) -> String {
    let output = trainer(args);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

/// Writes `count` flat pictures of `side` × `side` as files with this ending, in two classes.
pub(crate) fn draw_folder(folder: &Path, count: u8, (side, ending): (u32, &str)) {
    for number in 0..count {
        let class = folder.join(["dark", "light"][usize::from(number % 2)]);
        fs::create_dir_all(&class).unwrap();
        let value = number / 2 + 128 * (number % 2);
        let picture = image::RgbImage::from_pixel(side, side, image::Rgb([value, 99, 255 - value]));
        picture
            .save(class.join(format!("{number:03}.{ending}")))
            .unwrap();
    }
}

/// A path as an argument.
pub(crate) fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}
