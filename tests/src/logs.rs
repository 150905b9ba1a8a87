//! What the loader says in the log.

use std::sync::{Mutex, Once, PoisonError};

use log::{Level, LevelFilter, Log, Metadata};

/// One line of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// How bad it is.
    pub level: Level,
    /// What is said.
    pub text: String,
}

static LINES: Mutex<Vec<Record>> = Mutex::new(Vec::new());

struct Recorder;

impl Log for Recorder {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("burn_prefetch")
    }

    fn log(&self, record: &log::Record<'_>) {
        if self.enabled(record.metadata()) {
            LINES
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(Record {
                    level: record.level(),
                    text: record.args().to_string(),
                });
        }
    }

    fn flush(&self) {}
}

/// Listens from now on to what `burn_prefetch` and its engine log in this process.
///
/// # Panics
///
/// When another logger was installed first.
pub fn capture_logs() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        log::set_logger(&Recorder).expect("no other logger is installed in this process");
        log::set_max_level(LevelFilter::Trace);
    });
}

/// The lines so far whose text contains `words`.
#[must_use]
pub fn logged(words: &str) -> Vec<Record> {
    let lines = LINES.lock().unwrap_or_else(PoisonError::into_inner);
    lines
        .iter()
        .filter(|line| line.text.contains(words))
        .cloned()
        .collect()
}
