//! What went wrong in a pass, as the loader says it.

use burn::data::dataset::DatasetError;
use burn_prefetch::{CrewReport, LoadError};

/// The loader's own error behind Burn's.
///
/// # Panics
///
/// When there is none.
#[must_use]
pub fn cause(error: &DatasetError) -> &LoadError {
    LoadError::of(error).expect("Burn's error wraps the loader's")
}

/// The error that must come next, and be the last item.
///
/// # Panics
///
/// When a batch comes, or the end, or anything after the error.
pub fn failure<O>(mut iterator: impl Iterator<Item = Result<O, DatasetError>>) -> DatasetError {
    let next = iterator.next().expect("the pass is not over");
    let error = next.err().expect("the pass fails");
    assert!(iterator.next().is_none(), "a pass that failed is over");
    assert!(iterator.next().is_none(), "a pass that failed stays over");
    error
}

/// The timeout that must come next, and be the last item.
///
/// # Panics
///
/// As [`failure`] does, and when the failure is another.
pub fn late<O>(iterator: impl Iterator<Item = Result<O, DatasetError>>) -> DatasetError {
    let error = failure(iterator);
    let is_timeout = matches!(cause(&error), LoadError::Timeout { .. });
    assert!(is_timeout, "not a timeout: {error}");
    error
}

/// What every worker did when the time was over.
///
/// # Panics
///
/// When the failure is another.
#[must_use]
pub fn timed_out(error: &DatasetError) -> &CrewReport {
    let LoadError::Timeout { crew, .. } = cause(error) else {
        panic!("not a timeout: {error}")
    };
    crew
}

/// Whether nobody was served because too many threads had been given up.
#[must_use]
pub fn is_exhausted(error: &DatasetError) -> bool {
    matches!(cause(error), LoadError::Exhausted { .. })
}
