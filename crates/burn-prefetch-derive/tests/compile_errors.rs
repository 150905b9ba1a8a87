//! What a derive does not take is an error in the line where it stands, in one sentence.
//!
//! The compiler itself is run on small files, each with traits of its own in the place of the crate's.

use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

/// Stands in for the crate; its traits are known by `u8` alone.
const CRATE: &str = "
pub mod stand_in {
    pub use burn_prefetch_derive::{ByteCount, StagedBatch};
    pub trait ByteCount { fn byte_count(&self) -> ::core::primitive::usize; }
    pub trait TensorVisitor {}
    pub trait StagedBatch { fn visit<V: TensorVisitor>(&mut self, visitor: &mut V); }
    impl ByteCount for u8 { fn byte_count(&self) -> ::core::primitive::usize { 1 } }
    impl StagedBatch for u8 { fn visit<V: TensorVisitor>(&mut self, _visitor: &mut V) {} }
    impl<T: ByteCount> ByteCount for ::std::boxed::Box<T> {
        fn byte_count(&self) -> ::core::primitive::usize { (**self).byte_count() }
    }
    impl<T: ByteCount> ByteCount for ::core::option::Option<T> {
        fn byte_count(&self) -> ::core::primitive::usize { self.as_ref().map_or(0, T::byte_count) }
    }
}
";

/// The newest build of the derive, beside this test.
fn derive() -> PathBuf {
    let here = std::env::current_exe().expect("this test is a file");
    let folder = here.parent().expect("it is in a folder");
    let files = fs::read_dir(folder)
        .expect("the folder is listed")
        .flatten();
    let name = |path: &Path| {
        path.file_name()
            .map(|name| name.to_string_lossy().into_owned())
    };
    let is_derive = |path: &PathBuf| {
        let name = name(path).unwrap_or_default();
        name.starts_with(&format!("{DLL_PREFIX}burn_prefetch_derive-"))
            && name.ends_with(DLL_SUFFIX)
    };
    let built = |path: &PathBuf| {
        let metadata = fs::metadata(path).and_then(|metadata| metadata.modified());
        metadata.unwrap_or(SystemTime::UNIX_EPOCH)
    };
    let found = files.map(|file| file.path()).filter(is_derive);
    found.max_by_key(built).expect("the derive is built")
}

/// What the compiler says of this code, a line for each error: `4: error: ...`.
fn compiled(name: &str, code: &str) -> Result<(), String> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let file = folder.join(format!("{name}.rs"));
    fs::write(&file, format!("{code}{CRATE}")).expect("the file is written");
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc)
        .args(["--edition=2024", "--crate-type=lib", "--emit=metadata"])
        .args(["--error-format=short", "-Awarnings", "--extern"])
        .arg(format!("burn_prefetch_derive={}", derive().display()))
        .arg("--out-dir")
        .arg(folder)
        .arg(&file)
        .output()
        .expect("rustc runs");
    let said = String::from_utf8_lossy(&output.stderr);
    let lines = said.lines().filter_map(|line| {
        let (_, rest) = line.split_once(".rs:")?;
        let (line, rest) = rest.split_once(':')?;
        let (_, what) = rest.split_once(": ")?;
        Some(format!("{line}: {what}"))
    });
    if output.status.success() {
        return Ok(());
    }
    let lines = lines.collect::<Vec<_>>().join("\n");
    assert!(!lines.is_empty(), "rustc did not come to {name}: {said}");
    Err(lines)
}

/// The first line of every piece of code here is its line 1.
macro_rules! code {
    ($($line:literal)*) => { concat!($($line, "\n"),*) };
}

#[test]
fn a_field_that_is_not_known_is_an_error_at_the_field() {
    let said = compiled(
        "unknown_bytes",
        code!(
            "#[derive(stand_in::ByteCount)]"
            "#[bytes(crate = stand_in)]"
            "pub struct Batch {"
            "    pub known: u8,"
            "    pub unknown: std::time::SystemTime,"
            "}"
        ),
    );
    let said = said.expect_err("it is refused");
    assert!(said.starts_with("5: error[E0277]"), "{said}");
    let said = compiled(
        "unknown_staged",
        code!(
            "#[derive(stand_in::StagedBatch)]"
            "#[staged(crate = stand_in)]"
            "pub struct Batch("
            "    u8,"
            "    std::time::SystemTime,"
            ");"
        ),
    );
    let said = said.expect_err("it is refused");
    assert!(said.starts_with("5: error[E0277]"), "{said}");
}

#[test]
fn what_has_no_effect_is_an_error_where_it_is_said() {
    for (name, code, line, words) in [
        (
            "skipped_struct",
            code!("#[derive(stand_in::ByteCount)]" "#[bytes(skip)]" "pub struct Batch(u8);"),
            "2: ",
            "`skip` is said of a field",
        ),
        (
            "skipped_twice",
            code!("#[derive(stand_in::StagedBatch)]" "#[staged(crate = stand_in)]"
                "pub struct Batch {" "    #[staged(skip)]" "    #[staged(skip)]" "    pub x: u8," "}"),
            "5: ",
            "said twice",
        ),
        (
            "enumeration",
            code!("#[derive(stand_in::ByteCount)]" "pub enum Batch { Empty }"),
            "2: ",
            "can be derived for structs",
        ),
    ] {
        let said = compiled(name, code).expect_err("it is refused");
        assert!(said.starts_with(line) && said.contains(words), "{said}");
    }
}

#[test]
fn only_what_is_counted_has_to_be_countable() {
    let said = compiled(
        "bounds",
        code!(
            "use std::marker::PhantomData;"
            "#[derive(stand_in::ByteCount)]"
            "#[bytes(crate = crate::stand_in)]"
            "pub struct Batch<T, U, I: Iterator> {"
            "    #[bytes(skip)]"
            "    pub kind: PhantomData<T>,"
            "    pub item: I::Item,"
            "    pub value: U,"
            "}"
            "#[derive(stand_in::ByteCount)]"
            "#[bytes(crate = crate::stand_in)]"
            "pub struct Chain<T> { pub value: T, pub next: Option<Box<Chain<T>>> }"
            "pub struct Unknown;"
            "pub fn count(batch: &Batch<Unknown, u8, std::array::IntoIter<u8, 3>>) -> usize {"
            "    stand_in::ByteCount::byte_count(batch)"
            "}"
            "pub fn count_all(chain: &Chain<u8>) -> usize {"
            "    stand_in::ByteCount::byte_count(chain)"
            "}"
        ),
    );
    assert_eq!(said, Ok(()));
}

#[test]
fn names_of_ones_own_do_no_harm() {
    let said = compiled(
        "names",
        code!(
            "#![allow(non_camel_case_types)]"
            "pub struct usize; pub struct Option; pub struct Vec; pub struct Box; pub trait Sized {}"
            "#[derive(stand_in::ByteCount, stand_in::StagedBatch)]"
            "#[bytes(crate = stand_in)]"
            "#[staged(crate = stand_in)]"
            "pub struct Batch { pub r#type: u8, pub visitor: u8 }"
            "macro_rules! batch { ($name:ident { $($field:ident: $kind:ty),* }) => {"
            "    #[derive(stand_in::ByteCount, stand_in::StagedBatch)]"
            "    #[bytes(crate = stand_in)]"
            "    #[staged(crate = stand_in)]"
            "    pub struct $name { pub made: u8, $(pub $field: $kind),* }"
            "}; }"
            "batch!(Made { x: u8, batch: Batch });"
        ),
    );
    assert_eq!(said, Ok(()));
}
