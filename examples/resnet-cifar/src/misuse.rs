//! A command line that means nothing, found out behind the parser.

/// Ends the process with the exit code of the parser's own refusals.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Misuse(pub(crate) String);

/// As clap has it.
pub(crate) const EXIT_CODE: u8 = 2;

/// Returns a [`Misuse`] in these words.
macro_rules! misuse {
    ($($words:tt)*) => {
        return Err($crate::misuse::Misuse(format!($($words)*)).into())
    };
}
pub(crate) use misuse;
