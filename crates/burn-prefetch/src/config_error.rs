//! What is wrong with a setting, in one sentence that names the setting, its value and a way out.

/// A setting that cannot be used.
///
/// `try_build` and `try_slice` return it; `build` and Burn's `slice` panic with the same sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A batch without items.
    #[error("batch_size is 0, but a batch has at least one item: use batch_size(1) or more")]
    BatchSizeZero,
    /// More threads than any machine has use for.
    #[error(
        "num_workers is {num_workers}, but at most {most} are accepted: use a few less than the \
         machine has cores, or 0 to load on the calling thread"
    )]
    TooManyWorkers {
        /// The value.
        num_workers: usize,
        /// The largest value accepted.
        most: usize,
    },
    /// A batch that is fetched in no part.
    #[error(
        "parts_per_batch is 0, but a batch is fetched in at least one part: use \
         parts_per_batch(1), or leave it out to have the parts sized by what they cost"
    )]
    PartsZero,
    /// More parts than any batch can use.
    #[error(
        "parts_per_batch is {parts}, but at most {most} are accepted: use a small multiple of \
         num_workers, or leave it out to have the parts sized by what they cost"
    )]
    TooManyParts {
        /// The value.
        parts: usize,
        /// The largest value accepted.
        most: usize,
    },
    /// A slice that ends before it starts.
    #[error(
        "slice({start}, {end}) ends before it starts: give the smaller bound first, as in \
         slice({end}, {start})"
    )]
    SliceReversed {
        /// The first bound.
        start: usize,
        /// The second bound.
        end: usize,
    },
    /// A slice of items that are not there.
    #[error(
        "slice({start}, {end}) goes beyond the {num_items} items that a pass yields: use bounds \
         of at most {num_items}, which num_items() tells"
    )]
    SliceBeyond {
        /// The first bound.
        start: usize,
        /// The second bound.
        end: usize,
        /// What a pass yields.
        num_items: usize,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_sentence_names_setting_value_and_way_out() {
        let all = [
            (
                ConfigError::BatchSizeZero,
                "batch_size is 0",
                "use batch_size(1)",
            ),
            (
                ConfigError::TooManyWorkers {
                    num_workers: 9_999,
                    most: 1_024,
                },
                "num_workers is 9999",
                "or 0",
            ),
            (
                ConfigError::PartsZero,
                "parts_per_batch is 0",
                "use parts_per_batch(1)",
            ),
            (
                ConfigError::TooManyParts {
                    parts: 70_000,
                    most: 65_536,
                },
                "parts_per_batch is 70000",
                "leave it out",
            ),
            (
                ConfigError::SliceReversed { start: 8, end: 3 },
                "slice(8, 3)",
                "slice(3, 8)",
            ),
            (
                ConfigError::SliceBeyond {
                    start: 5,
                    end: 20,
                    num_items: 10,
                },
                "slice(5, 20)",
                "at most 10",
            ),
        ];
        for (error, names, offers) in all {
            let sentence = error.to_string();
            assert!(
                sentence.contains(names) && sentence.contains(offers),
                "{sentence}"
            );
        }
    }
}
