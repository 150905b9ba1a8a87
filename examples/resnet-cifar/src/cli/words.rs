//! The words of a command line, as the parser takes them: a sweep's axes may follow `--sweep=` too.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory as _, Parser as _};

use super::Cli;
use super::axis::Setting;

const SWEEP: &str = "--sweep";

impl Cli {
    /// Reads a command line, the program's name first.
    pub(crate) fn read(words: impl Iterator<Item = OsString>) -> Result<Self, clap::Error> {
        Self::try_parse_from(words.flat_map(apart)).map_err(explained)
    }
}

/// With `=` the parser takes one value only.
fn apart(word: OsString) -> Vec<OsString> {
    let first = word.to_str().and_then(|word| word.strip_prefix(SWEEP));
    match first.and_then(|rest| rest.strip_prefix('=')) {
        Some(axis) => vec![SWEEP.into(), axis.into()],
        None => vec![word],
    }
}

/// An axis that stands elsewhere is called one.
fn explained(error: clap::Error) -> clap::Error {
    let kinds = [ContextKind::InvalidSubcommand, ContextKind::InvalidArg];
    let word = kinds.into_iter().find_map(|kind| match error.get(kind) {
        Some(ContextValue::String(word)) => word.split('\'').find(|word| is_axis(word)),
        _ => None,
    });
    match word {
        Some(word) => Cli::command().error(
            ErrorKind::UnknownArgument,
            format!(
                "'{word}' is an axis of a sweep: write all of them behind one --sweep, with nothing \
                 between, as in --sweep workers=1,2 {word}"
            ),
        ),
        None => error,
    }
}

fn is_axis(word: &str) -> bool {
    let name = word.split_once('=').map(|(name, _)| name);
    name.is_some_and(|name| Setting::ALL.iter().any(|setting| setting.name() == name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[&str]) -> Result<Cli, clap::Error> {
        let all = ["resnet-cifar"].iter().chain(words);
        Cli::read(all.map(OsString::from))
    }

    #[test]
    fn axes_may_follow_an_equals_sign() {
        for words in [
            ["--sweep=workers=1", "prefetch=2", "--steps", "9"],
            ["--sweep", "workers=1", "prefetch=2", "--steps=9"],
        ] {
            let sweep = read(&words).unwrap().compare.sweep.unwrap();
            assert_eq!(sweep.len(), 2, "{words:?}");
        }
        assert_eq!(read(&["--sweep"]).unwrap().compare.sweep, Some(vec![]));
    }

    #[test]
    fn an_axis_in_another_place_is_told_where_it_belongs() {
        for words in [
            &["prefetch=2"][..],
            &["compare", "prefetch=2"],
            &["--sweep", "workers=1", "--step-ms", "5", "prefetch=2"],
            &["compare", "--sweep=workers=1", "--steps", "5", "prefetch=2"],
        ] {
            let said = read(words).unwrap_err().to_string();
            let sentence = said.lines().next().unwrap();
            assert!(
                sentence.contains("'prefetch=2' is an axis"),
                "{words:?}: {said}"
            );
            assert!(sentence.contains("behind one --sweep"), "{said}");
        }
        // What is no axis is refused as ever.
        let said = read(&["prefetch"]).unwrap_err().to_string();
        assert!(!said.contains("an axis"), "{said}");
    }
}
