//! What a contender tells its parent: figures, or why there are none.

use anyhow::{Context as _, bail};
use serde::{Deserialize, Serialize};

use super::Run;
use crate::sentence;

/// The last thing that a child process prints.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Answer {
    Figures(Box<Run>),
    /// In one sentence: the parent is the one that says it.
    Error(String),
}

impl Answer {
    pub(super) fn of(done: anyhow::Result<Run>) -> Self {
        match done {
            Ok(run) => Self::Figures(Box::new(run)),
            Err(error) => Self::Error(sentence::of(error.as_ref())),
        }
    }

    /// Reads what a child process printed.
    pub(crate) fn read(printed: &[u8]) -> anyhow::Result<Run> {
        match serde_json::from_slice(printed).context("its process printed no figures")? {
            Self::Figures(run) => Ok(*run),
            Self::Error(why) => bail!(why),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_arrives_as_what_it_was() {
        let answer = Answer::of(Err(anyhow::anyhow!("no such file").context("cannot read x")));
        let printed = serde_json::to_vec(&answer).unwrap();
        let error = Answer::read(&printed).unwrap_err();
        assert_eq!(format!("{error:#}"), "cannot read x: no such file");
        assert!(
            Answer::read(b"")
                .unwrap_err()
                .to_string()
                .contains("no figures")
        );
    }
}
