//! What an item costs beyond its picture, under the workloads that say so.

use std::hint::black_box;
use std::time::Duration;

use crate::augment::Square;
use crate::cli::Workload;
use crate::pause::pause;

/// An object store in the same region answers in a few milliseconds, and now and then in many.
const ANSWER: Duration = Duration::from_millis(2);
const LATE_ANSWER: Duration = Duration::from_millis(20);
const LATE: usize = 64;
/// How many crops a costly item is worth, and how many items there are for one costly.
const COSTLY_CROPS: usize = 1_000;
const COSTLY: usize = 16;

/// Waits or works as long as the workload has it for the item at `index`, whatever the loader.
pub(crate) fn spend(workload: Workload, index: usize, picture: Square) {
    match workload {
        Workload::Memory | Workload::Png | Workload::Jpeg => {}
        Workload::Waiting => pause(answer(index)),
        Workload::Uneven => {
            for _ in 0..crops(index) {
                black_box(picture.middle());
            }
        }
    }
}

fn answer(index: usize) -> Duration {
    if index.is_multiple_of(LATE) {
        LATE_ANSWER
    } else {
        ANSWER
    }
}

fn crops(index: usize) -> usize {
    if index.is_multiple_of(COSTLY) {
        COSTLY_CROPS
    } else {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_64_answers_late_and_one_of_16_is_costly() {
        assert_eq!((0..640).filter(|&at| answer(at) == LATE_ANSWER).count(), 10);
        assert_eq!((0..160).filter(|&at| crops(at) > 0).count(), 10);
    }
}
