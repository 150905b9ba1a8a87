//! Running the trainer as a user would.

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
