//! For any settings a pass is the chunks of an order, and the order that of a loader without workers.

use std::sync::Arc;

use burn::data::dataloader::{DataLoader, DataLoaderIterator};
use burn_prefetch::DataLoaderBuilder;
use burn_prefetch_tests::{
    Alive, Batches, GuardedNumbers, Keep, Numbers, chunks, guarded, loader, pass,
};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

/// Everything a user may set, and when they stop.
#[derive(Clone, Debug)]
struct Case {
    len: usize,
    batch_size: usize,
    workers: usize,
    prefetch: Option<usize>,
    factor: Option<usize>,
    parts: Option<usize>,
    drop_last: bool,
    batched: bool,
    persistent: bool,
    seed: Option<u64>,
    epoch: usize,
    stop_after: usize,
}

fn cases() -> impl Strategy<Value = Case> {
    let shape = (0..=200_usize, 1..=17_usize, 0..=4_usize);
    let ahead = (
        proptest::option::of(0..=6_usize),
        proptest::option::of(1..=3_usize),
        proptest::option::of(1..=9_usize),
    );
    let switches = any::<[bool; 3]>();
    let passes = (
        proptest::option::of(any::<u64>()),
        0..1_000_usize,
        0..=30_usize,
    );
    (shape, ahead, switches, passes).prop_map(|(shape, ahead, switches, passes)| {
        let (len, batch_size, workers) = shape;
        let (prefetch, factor, parts) = ahead;
        let [drop_last, batched, persistent] = switches;
        let (seed, epoch, stop_after) = passes;
        Case {
            len,
            batch_size,
            workers,
            prefetch,
            factor,
            parts,
            drop_last,
            batched,
            persistent,
            seed,
            epoch,
            stop_after,
        }
    })
}

impl Case {
    /// What decides the batches.
    fn order<I: Send + 'static, O: Send + 'static>(
        &self,
        builder: DataLoaderBuilder<I, O>,
    ) -> DataLoaderBuilder<I, O> {
        let builder = builder
            .batch_size(self.batch_size)
            .drop_last(self.drop_last);
        let builder = builder.start_epoch(self.epoch);
        if let Some(seed) = self.seed {
            builder.shuffle(seed)
        } else {
            builder
        }
    }

    /// What must not.
    fn road<I: Send + 'static, O: Send + 'static>(
        &self,
        mut builder: DataLoaderBuilder<I, O>,
    ) -> DataLoaderBuilder<I, O> {
        builder = builder
            .num_workers(self.workers)
            .persistent_workers(self.persistent);
        if let Some(prefetch) = self.prefetch {
            builder = builder.prefetch(prefetch);
        }
        if let Some(factor) = self.factor {
            builder = builder.prefetch_factor(factor);
        }
        if let Some(parts) = self.parts {
            builder = builder.parts_per_batch(parts);
        }
        if self.batched {
            builder.batched()
        } else {
            builder
        }
    }

    fn full_batches(&self) -> usize {
        self.len / self.batch_size
    }

    fn batches(&self) -> usize {
        if self.drop_last {
            self.full_batches()
        } else {
            self.len.div_ceil(self.batch_size)
        }
    }

    fn items(&self) -> usize {
        if self.drop_last {
            self.full_batches() * self.batch_size
        } else {
            self.len
        }
    }
}

fn check(case: impl Fn(Case) -> Result<(), TestCaseError> + Send + 'static) {
    guarded(move || {
        let config = Config {
            cases: 150,
            failure_persistence: None,
            ..Config::default()
        };
        if let Err(failure) = TestRunner::new(config).run(&cases(), case) {
            panic!("{failure}");
        }
    });
}

#[test]
fn a_pass_is_the_chunks_of_an_order() {
    check(|case| {
        let builder = case.road(case.order(loader(0)));
        let ours = builder
            .try_build(Numbers(case.len))
            .map_err(|error| TestCaseError::fail(format!("refused: {error}")))?;
        prop_assert_eq!(
            (ours.num_batches(), ours.num_items()),
            (case.batches(), case.items())
        );

        let batches = pass(&ours);
        let order = batches.concat();
        let expected: Vec<_> = order
            .chunks(case.batch_size)
            .map(<[usize]>::to_vec)
            .collect();
        prop_assert_eq!(&batches, &expected);
        prop_assert_eq!((batches.len(), order.len()), (case.batches(), case.items()));

        let mut items = order.clone();
        items.sort_unstable();
        items.dedup();
        prop_assert_eq!(items.len(), case.items(), "an item came twice");
        prop_assert!(items.last().is_none_or(|&last| last < case.len));
        if case.seed.is_none() {
            prop_assert_eq!(&batches, &chunks(case.items(), case.batch_size));
        }
        Ok(())
    });
}

#[test]
fn neither_road_nor_early_stops_change_the_order() {
    check(|case| {
        let model = case.order(loader(0)).build(Numbers(case.len));
        let ours = case.road(case.order(loader(0))).build(Numbers(case.len));
        for stop_after in [case.stop_after, 0, usize::MAX] {
            let expected: Vec<_> = pass(model.as_ref()).into_iter().take(stop_after).collect();
            prop_assert_eq!(read(&case, ours.as_ref(), stop_after)?, expected);
        }
        Ok(())
    });
}

/// So many batches of a pass, with a look at its counts before each.
fn read(
    case: &Case,
    loader: &dyn DataLoader<Vec<usize>>,
    stop_after: usize,
) -> Result<Batches, TestCaseError> {
    let mut iterator = loader.iter();
    let mut found = Vec::new();
    while found.len() < stop_after {
        check_counts(case, iterator.as_ref(), &found)?;
        let Some(batch) = iterator.next() else { break };
        found.push(batch.expect("every batch loads"));
    }
    check_counts(case, iterator.as_ref(), &found)?;
    Ok(found)
}

/// After these batches: how many are left, and the progress.
fn check_counts(
    case: &Case,
    iterator: &dyn DataLoaderIterator<Vec<usize>>,
    found: &[Vec<usize>],
) -> Result<(), TestCaseError> {
    let left = case.batches() - found.len();
    let (least, most) = iterator.size_hint();
    prop_assert!(least <= left && most.is_none_or(|most| left <= most));
    let progress = iterator.progress();
    let processed: usize = found.iter().map(Vec::len).sum();
    prop_assert_eq!(progress.items_processed, processed);
    prop_assert_eq!(progress.items_total, case.items());
    prop_assert_eq!(progress.is_completed(), left == 0);
    Ok(())
}

#[test]
fn nothing_outlives_the_loader() {
    check(|case| {
        let (items, batches) = (Alive::none(), Alive::none());
        let data = GuardedNumbers {
            len: case.len,
            alive: Arc::clone(&items),
        };
        let builder = DataLoaderBuilder::new(Keep(Arc::clone(&batches)));
        let loader = case.road(case.order(builder)).build(data);
        let taken = loader.iter().take(case.stop_after).count();
        prop_assert_eq!(taken, case.stop_after.min(case.batches()));
        drop(loader);
        items.wait_for_none();
        batches.wait_for_none();
        Ok(())
    });
}
