//! What is wrong with a setting, in one sentence that names the setting, its value and a way out.

use std::time::Duration;

use burn_prefetch_engine::OrderError;

use crate::state_error::StateError;

/// A setting that cannot be used.
///
/// `try_build` and `try_slice` return it; `build` and Burn's `slice` panic with the same sentence.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// Room for nothing.
    #[error(
        "memory_budget is 0 bytes, but one batch is always alive: use the bytes of two batches or \
         more, or leave it out"
    )]
    BudgetZero,
    /// No share of anything.
    #[error(
        "memory_budget is Fraction({fraction}), but a share of memory is more than 0 and at most 1: \
         use a share such as Fraction(0.1), or bytes"
    )]
    BudgetFraction {
        /// The value.
        fraction: String,
    },
    /// A share of something unknown.
    #[error(
        "memory_budget is a Fraction, but how much memory this process may use cannot be read \
         here: give the budget in bytes"
    )]
    MemoryUnknown,
    /// A bound on what nobody measures.
    #[error(
        "memory_budget is given, but nobody says how large a batch is: use max_batch_bytes(bytes), \
         sample_bytes(list), or batch_bytes(|batch| ..) to have each measured, or leave it out"
    )]
    BudgetUnweighed,
    /// A size of nothing, beside which a budget would bound nothing.
    #[error(
        "{setting} is 0, but what takes no bytes is bounded by no budget: use the bytes of the largest \
         one, or leave it out"
    )]
    SizeZero {
        /// The name of the builder's method.
        setting: &'static str,
    },
    /// Two bounds on one size.
    #[error("max_batch_bytes and sample_bytes both say how large a batch may be: use one of them")]
    SizedTwice,
    /// A list of sizes for other data.
    #[error(
        "sample_bytes has the sizes of {sizes} samples, but the dataset has {len}: give one for each \
         index"
    )]
    SampleSizes {
        /// The sizes given.
        sizes: usize,
        /// The items of the dataset.
        len: usize,
    },
    /// No room for anything ahead.
    #[error(
        "device_budget is 0 bytes, but one batch is always allowed on the device: use \
         device_prefetch(0) to upload none ahead, or the bytes of two batches or more"
    )]
    DeviceBudgetZero,
    /// No budget to change.
    #[error(
        "set_memory_budget({bytes}) is for a loader that was built without a budget: give \
         memory_budget to the builder, a large one if need be"
    )]
    NoBudget {
        /// The value.
        bytes: u64,
    },
    /// Iterators that run cannot begin or cease to have workers.
    #[error(
        "set_num_workers({to}) is for a loader with {from} workers, but while iterators run there can \
         be more or fewer, not none before or after: build the loader with num_workers(1) or more, \
         and use 1 or more here"
    )]
    WorkersFromOrToNone {
        /// How many there are.
        from: usize,
        /// The value.
        to: usize,
    },
    /// No share of the cores.
    #[error(
        "cpu_share is {share}, but a share of the cores is more than 0 and at most 1: use a share \
         such as cpu_share(0.4), or leave it out"
    )]
    CpuShare {
        /// The value.
        share: String,
    },
    /// Nobody is there whose number could be changed.
    #[error(
        "{setting} changes a loader while it runs, but without workers that persist there is nothing to \
         change: use persistent_workers(true) and num_workers(Auto) or 1 or more, or leave it out"
    )]
    AutoWithoutWorkers {
        /// What was set to be automatic.
        setting: &'static str,
    },
    /// Decisions that no loader can have taken.
    #[error(
        "a decision to be replayed sets {what} to {to}, but it can be 1 to {most}: replay what \
         decisions() gave, unchanged"
    )]
    ReplayBeyond {
        /// What it sets.
        what: String,
        /// The value.
        to: usize,
        /// The most there can be.
        most: usize,
    },
    /// Threads of several loaders are not one loader's to add to.
    #[error(
        "num_workers(Auto), which auto() sets too, is given beside workers(..), but threads that \
         loaders share are not one loader's to hire: use prefetch(Auto) alone"
    )]
    AutoBesideWorkers,
    /// A batch without items.
    #[error("batch_size is 0, but a batch has at least one item: use batch_size(1) or more")]
    BatchSizeZero,
    /// Two ways to order the data.
    #[error(
        "{one} and {other} are both given, but data has one order: leave one of them out (samplers \
         of lists and batches have a shuffled(seed) of their own)"
    )]
    TwoOrders {
        /// The name of one builder's method.
        one: &'static str,
        /// The name of the other.
        other: &'static str,
    },
    /// A setting that cuts batches, beside batches that are cut already.
    #[error(
        "{setting} is given beside batch_sampler(..), but that makes the batches: leave {setting} \
         out, and give the size to the batch sampler"
    )]
    GivenBesideBatchSampler {
        /// The name of the builder's method.
        setting: &'static str,
    },
    /// The last batch cannot be filled up and left out.
    #[error(
        "drop_last and pad_last are both true, but the last batch is either left out or filled \
         up: leave one of them out"
    )]
    DropAndPad,
    /// The order is not one for this data.
    #[error(transparent)]
    Order(#[from] OrderError),
    /// The state is not one of this loader.
    #[error(transparent)]
    State(#[from] StateError),
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
    /// A setting of threads beside threads that have been made with their own.
    #[error(
        "{setting} is given beside workers(..), but these threads have their settings already: \
         leave it out here, and give it to Workers::builder"
    )]
    GivenBesideWorkers {
        /// The name of the builder's method.
        setting: &'static str,
    },
    /// Waiting too long for threads that do not end.
    #[error(
        "shutdown_grace is {grace:?}, but at most a day is accepted: use the longest time that \
         one item may take, or leave it out for 5 s"
    )]
    GraceTooLong {
        /// The value.
        grace: Duration,
    },
    /// A wait that is over before it begins.
    #[error(
        "timeout is 0 s, but every next() may have to wait a moment: use the longest time that a \
         batch may take, or leave it out to wait for ever"
    )]
    TimeoutZero,
    /// A limit on a wait that never happens.
    #[error(
        "timeout is {timeout:?} with 0 workers, but then get runs inside next() and nobody is \
         there to stop waiting for it: use num_workers(1) or more, or Workers that have some, or \
         leave it out"
    )]
    TimeoutWithoutWorkers {
        /// The value.
        timeout: Duration,
    },
    /// A warning for everything.
    #[error(
        "stall_warning is 0 s, but every item takes a moment: use a time that no item should \
         take, or None for no warning"
    )]
    StallWarningZero,
    /// Nobody is there to begin the next epoch.
    #[error(
        "warm_next_epoch is true with 0 workers, but then batches are made inside next(): use \
         num_workers(1) or more, or Workers that have some, or leave it out"
    )]
    WarmWithoutWorkers,
    /// The threads that would begin the next epoch have ended.
    #[error(
        "warm_next_epoch is true with persistent_workers(false), but then the workers end with \
         the epoch: use persistent_workers(true), or Workers that persist, or leave one of the two \
         out"
    )]
    WarmWithoutPersistence,
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
    /// There is no driver, or no device.
    #[error(
        "no CUDA device was found: the driver's library (libcuda.so, on Windows nvcuda.dll) is not \
         there or knows none; install the NVIDIA driver, or use another device, such as Device::flex()"
    )]
    NoCuda,
    /// A device that is not there.
    #[error(
        "CUDA device {index} was asked for, but this machine has {devices}: use an index below that"
    )]
    NoSuchDevice {
        /// The index.
        index: usize,
        /// How many there are.
        devices: usize,
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

    fn assert_names_and_offers(all: &[(ConfigError, &str, &str)]) {
        for (error, names, offers) in all {
            let sentence = error.to_string();
            assert!(
                sentence.contains(names) && sentence.contains(offers),
                "{sentence}"
            );
        }
    }

    #[test]
    fn each_sentence_names_setting_value_and_way_out() {
        assert_names_and_offers(&[
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
        ]);
    }

    #[test]
    fn so_does_each_about_sizes() {
        let setting = "item_bytes";
        assert_names_and_offers(&[
            (
                ConfigError::SizeZero { setting },
                "item_bytes is 0",
                "leave it out",
            ),
            (
                ConfigError::BudgetUnweighed,
                "memory_budget is given",
                "sample_bytes(list)",
            ),
        ]);
    }

    #[test]
    fn so_does_each_about_order() {
        assert_names_and_offers(&[
            (
                ConfigError::TwoOrders {
                    one: "shuffle",
                    other: "sampler",
                },
                "shuffle and sampler are both given",
                "leave one of them out",
            ),
            (
                ConfigError::GivenBesideBatchSampler {
                    setting: "batch_size",
                },
                "batch_size is given beside batch_sampler(..)",
                "leave batch_size out",
            ),
            (
                ConfigError::DropAndPad,
                "drop_last and pad_last are both true",
                "leave one of them out",
            ),
        ]);
    }

    #[test]
    fn so_does_each_about_threads_and_waiting() {
        assert_names_and_offers(&[
            (
                ConfigError::GivenBesideWorkers {
                    setting: "num_workers",
                },
                "num_workers is given beside workers(..)",
                "leave it out here",
            ),
            (
                ConfigError::GraceTooLong {
                    grace: Duration::from_secs(100_000),
                },
                "shutdown_grace is 100000s",
                "leave it out for 5 s",
            ),
            (ConfigError::TimeoutZero, "timeout is 0 s", "leave it out"),
            (
                ConfigError::TimeoutWithoutWorkers {
                    timeout: Duration::from_secs(3),
                },
                "timeout is 3s with 0 workers",
                "use num_workers(1)",
            ),
            (
                ConfigError::StallWarningZero,
                "stall_warning is 0 s",
                "None for no warning",
            ),
            (
                ConfigError::WarmWithoutWorkers,
                "warm_next_epoch is true with 0 workers",
                "use num_workers(1)",
            ),
            (
                ConfigError::WarmWithoutPersistence,
                "warm_next_epoch is true with persistent_workers(false)",
                "use persistent_workers(true)",
            ),
        ]);
    }
}
