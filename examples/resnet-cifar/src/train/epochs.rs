//! How epochs ended: those of this training, and those that it goes on from.

use std::path::Path;

use burn::train::logger::{FileMetricLogger, MetricLogger as _};
use burn::train::metric::store::Split;

/// How an epoch ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Epoch {
    /// From 1.
    pub(super) number: usize,
    /// 0 to 100.
    pub(super) accuracy: f64,
}

/// What burn-train wrote down of the epochs up to this one, without a gap between them.
pub(super) fn past(folder: &Path, last: usize) -> Vec<Epoch> {
    let mut files = FileMetricLogger::new(folder);
    let accuracy = |number| {
        let entries = files.read_numeric("Accuracy", number, &Split::Valid).ok()?;
        // The last one is of the whole epoch.
        Some(entries.last()?.current())
    };
    let mut found: Vec<Epoch> = (1..=last).rev().map_while(along(accuracy)).collect();
    found.reverse();
    found
}

fn along(mut accuracy: impl FnMut(usize) -> Option<f64>) -> impl FnMut(usize) -> Option<Epoch> {
    move |number| {
        let accuracy = accuracy(number)?;
        Some(Epoch { number, accuracy })
    }
}

/// The last epoch of this training, and the best of all that are known.
pub(super) fn summary([past, now]: [&[Epoch]; 2]) -> Option<String> {
    let last = now.last()?;
    let all = || past.iter().chain(now);
    // Of equals the last.
    let best = all().max_by(|one, other| one.accuracy.total_cmp(&other.accuracy))?;
    let since = match all().next() {
        Some(first) if first.number > 1 => format!("since epoch {}", first.number),
        _ => "so far".to_owned(),
    };
    let best = if best == last {
        format!("the best {since}")
    } else {
        format!("best: {:.2} % after epoch {}", best.accuracy, best.number)
    };
    let (accuracy, number) = (last.accuracy, last.number);
    Some(format!(
        "test accuracy after epoch {number}: {accuracy:.2} % ({best})"
    ))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn epoch(number: usize, accuracy: f64) -> Epoch {
        Epoch { number, accuracy }
    }

    #[test]
    fn the_best_is_looked_for_among_the_epochs_before_a_resumption_too() {
        let now = [epoch(3, 10.0)];
        let said = |past: &[Epoch]| summary([past, &now]).unwrap();
        let known = [epoch(1, 30.0), epoch(2, 20.0)];
        let line = "test accuracy after epoch 3: 10.00 % (best: 30.00 % after epoch 1)";
        assert_eq!(said(&known), line);
        let worse = [epoch(1, 3.0), epoch(2, 2.0)];
        assert!(said(&worse).ends_with("(the best so far)"));
        assert!(said(&[]).ends_with("(the best since epoch 3)"));
        assert_eq!(summary([&known, &[]]), None);
    }

    #[test]
    fn what_burn_train_wrote_down_is_read_as_far_back_as_it_has_no_gap() {
        let dir = tempfile::tempdir().unwrap();
        for (number, log) in [
            (1, "1,8\n"),
            (3, "10,8\n30,8\n20,final\n"),
            (4, "5,8\n6,final\n"),
        ] {
            let folder = dir.path().join(format!("valid/epoch-{number}"));
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("Accuracy.log"), log).unwrap();
        }
        assert_eq!(past(dir.path(), 4), [epoch(3, 20.0), epoch(4, 6.0)]);
        assert_eq!(past(dir.path(), 5), []);
    }
}
