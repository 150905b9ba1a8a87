//! Tells the program which compiler and which Burn it was built with; reports name them.

use std::io::{self, Write as _};
use std::process::Command;
use std::{env, fs};

const LOCK: &str = "../../Cargo.lock";

fn main() -> io::Result<()> {
    let compiler = env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let version = Command::new(compiler).arg("--version").output()?.stdout;
    let version = String::from_utf8_lossy(&version);
    let lock = fs::read_to_string(LOCK)?;
    let mut out = io::stdout().lock();
    writeln!(out, "cargo::rerun-if-changed={LOCK}")?;
    writeln!(out, "cargo::rustc-env=RUSTC_VERSION={}", version.trim())?;
    writeln!(
        out,
        "cargo::rustc-env=BURN_VERSION={}",
        locked(&lock, "burn")
    )
}

/// The version of a package in a lock file.
fn locked<'a>(lock: &'a str, package: &str) -> &'a str {
    let name = format!("name = \"{package}\"");
    let mut after = lock.lines().skip_while(|line| *line != name).skip(1);
    let version = after
        .next()
        .and_then(|line| line.strip_prefix("version = "));
    version.map_or("unknown", |version| version.trim_matches('"'))
}
