//! How much a bench does: enough to measure, or just enough to show that it runs.

use std::env;

/// The size of a bench run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// A few hundred milliseconds; the figures mean nothing.
    Quick,
    /// Long enough for the figures to mean something.
    Full,
}

impl Effort {
    /// What the command line asks for: full under `cargo bench`, quick with `--quick` or under `cargo test`
    /// (cargo passes `--bench` only where it is to be measured).
    #[must_use]
    pub fn from_args() -> Self {
        let args: Vec<String> = env::args().skip(1).collect();
        let has = |flag: &str| args.iter().any(|arg| arg == flag);
        if has("--bench") && !has("--quick") {
            Self::Full
        } else {
            Self::Quick
        }
    }

    /// The arguments that make another bench program run with this effort.
    #[must_use]
    pub fn as_args(self) -> &'static [&'static str] {
        match self {
            Self::Quick => &["--quick"],
            Self::Full => &["--bench"],
        }
    }

    /// `quick` or `full`, whichever this run is.
    pub fn pick<T>(self, quick: T, full: T) -> T {
        match self {
            Self::Quick => quick,
            Self::Full => full,
        }
    }
}
