//! Where sizes are declared the budget is exact from the first batch on, although batches differ.

use std::sync::Arc;

use burn::data::dataloader::{DataLoader, batcher::Batcher};
use burn::tensor::{Device, Int, Tensor};
use burn_prefetch::{
    BatchLists, BoxError, ConfigError, DataLoaderBuilder, HostBatch, Layout, MemoryBudget, Row,
    RowBatcher, Sampler, StagedBatch, Weighted,
};
use burn_prefetch_tests::{
    Gate, Hooked, Lead, Numbers, chunks, eventually, for_each_worker_count, guarded, loader, pass,
};

const LEN: usize = 400;

/// What sample `index` takes in its batch: 10 to 70 bytes.
fn size(index: usize) -> u32 {
    10 * u32::try_from(index % 7 + 1).expect("it is small")
}

fn sizes() -> Vec<u32> {
    (0..LEN).map(size).collect()
}

fn bytes(batch: &[usize]) -> u64 {
    batch.iter().map(|index| u64::from(size(*index))).sum()
}

/// The bytes of the first batches that fit.
fn fitting(limit: u64) -> u64 {
    let sums = chunks(LEN, 4).into_iter().scan(0, |sum, batch| {
        *sum += bytes(&batch);
        Some(*sum)
    });
    sums.take_while(|sum| *sum <= limit).last().unwrap_or(0)
}

/// As many batches as fit from the first on, while nothing is read.
#[test]
fn a_batch_takes_the_sum_of_its_samples() {
    for_each_worker_count(|workers| {
        for limit in [250, 400, 1_000] {
            let fitting = fitting(limit);
            let builder = loader(workers).batch_size(4).prefetch(64);
            let builder = builder.sample_bytes(sizes()).memory_budget(limit);
            let loader = builder.try_build(Numbers(LEN)).expect("they are good");
            let mut batches = loader.iter();
            if workers > 0 {
                let used = || loader.stats().budget.map(|budget| budget.used.now);
                eventually("all that fits is made", || used() == Some(fitting));
            }
            assert_eq!(batches.by_ref().count(), 100);
            let budget = loader.stats().budget.expect("it has one");
            assert!(budget.used.most <= limit, "{limit}: {budget:?}");
            assert_eq!((budget.used.now, budget.overshoot), (0, 0));
        }
    });
}

/// Draws from the front and from the back in turn.
#[derive(Debug)]
struct Own;

impl Sampler for Own {
    fn len(&self, _epoch: usize) -> usize {
        LEN
    }

    fn at(&self, _epoch: usize, position: usize) -> usize {
        match position % 2 {
            0 => position / 2,
            _ => LEN - 1 - position / 2,
        }
    }
}

/// In any order no batch takes more than is reserved for it, which a check of each shows.
#[test]
fn sizes_follow_the_indices_in_any_order() {
    for_each_worker_count(|workers| {
        let lists: Vec<Vec<usize>> = (0..100).map(|at| (at..=at + at % 4).collect()).collect();
        let lists = BatchLists::new(lists, LEN).expect("they are good");
        let weights: Vec<f64> = (0..LEN).map(|index| f64::from(size(index))).collect();
        let weights = Weighted::new(&weights, LEN, 5).expect("they are good");
        let sized = || loader(workers).prefetch(64).sample_bytes(sizes());
        let even = || sized().batch_size(4);
        let orders = [
            even().shuffle(3),
            even().windowed_shuffle(32, 3).pad_last(true),
            even().sampler(weights),
            even().sampler(Own),
            sized().batch_sampler(lists),
        ];
        for builder in orders {
            let builder = builder
                .memory_budget(600)
                .batch_bytes(|batch| usize::try_from(bytes(batch)).expect("it is small"));
            let loader = builder.try_build(Numbers(LEN)).expect("they are good");
            for _ in 0..2 {
                assert_eq!(pass(&loader).len(), 100);
            }
            let budget = loader.stats().budget.expect("it has one");
            assert!(budget.used.most <= 600, "{budget:?}");
            assert_eq!((budget.used.now, budget.overshoot), (0, 0));
        }
    });
}

struct InRows;

impl RowBatcher<usize, Tensor<2, Int>> for InRows {
    fn layout(&self, len: usize) -> Layout {
        Layout::new()
            .slot::<u8>("bytes", [len, 12])
            .slot::<i64>("label", [len])
    }

    fn write(&self, _item: usize, _row: &mut Row<'_>) -> Result<(), BoxError> {
        Ok(())
    }

    fn upload(&self, mut batch: HostBatch, device: &Device) -> Result<Tensor<2, Int>, BoxError> {
        Ok(batch.int("bytes", device)?)
    }
}

/// Three batches begin although none has been made, from which its size could be learned.
#[test]
fn rows_of_one_layout_need_not_be_learned() {
    guarded(|| {
        let (gate, lead) = (Gate::closed(), Lead::new(4));
        let (door, count) = (Arc::clone(&gate), Arc::clone(&lead));
        let data = Hooked::new(LEN, move |index| {
            count.fetch(index);
            door.wait();
        });
        let builder = DataLoaderBuilder::staged(InRows).num_workers(4);
        let builder = builder.batch_size(4).prefetch(8).parts_per_batch(1);
        let loader = builder.memory_budget(3 * 80).try_build(data);
        let loader = loader.expect("the settings are good");
        let batches = loader.iter();
        lead.wait_for(3);
        assert_eq!(loader.stats().bytes.now, 240);
        gate.open();
        assert_eq!(batches.count(), 100);
        let budget = loader.stats().budget.expect("it has one");
        assert_eq!((budget.used.most, budget.overshoot), (240, 0));
        assert_eq!(lead.begun(), 100);
    });
}

/// Rows of 80 bytes a batch, of which less was said: what they have counts, as soon as they begin.
#[test]
fn less_than_the_rows_have_bounds_no_less() {
    for_each_worker_count(|workers| {
        let builder = || {
            let builder = DataLoaderBuilder::staged(InRows).num_workers(workers);
            builder.batch_size(4).prefetch(8).memory_budget(100)
        };
        for (builder, bytes) in [
            (builder().max_batch_bytes(1), 80),
            (builder().sample_bytes(vec![1; LEN]), 80),
            (builder().sample_bytes(vec![0; LEN]), 80),
            (builder().max_batch_bytes(90), 90),
        ] {
            let loader = builder.try_build(Numbers(LEN)).expect("they are good");
            assert_eq!(loader.iter().count(), 100);
            let budget = loader.stats().budget.expect("it has one");
            assert_eq!((budget.used.most, budget.overshoot), (bytes, 0));
        }
    });
}

/// A layout that panics does so where it can be returned.
#[test]
fn a_layout_that_panics_is_an_error_of_the_first_batch() {
    struct Panics;

    impl RowBatcher<usize, ()> for Panics {
        fn layout(&self, len: usize) -> Layout {
            assert!(len == 0, "no layout of {len}");
            Layout::new()
        }

        fn write(&self, _item: usize, _row: &mut Row<'_>) -> Result<(), BoxError> {
            Ok(())
        }

        fn upload(&self, _batch: HostBatch, _device: &Device) -> Result<(), BoxError> {
            Ok(())
        }
    }

    for_each_worker_count(|workers| {
        let builder = DataLoaderBuilder::staged(Panics).num_workers(workers);
        let loader = builder.batch_size(4).try_build(Numbers(LEN));
        let mut batches = loader.expect("the settings are good").iter_owned();
        let error = batches.next().expect("an error").unwrap_err().to_string();
        assert!(error.contains("no layout of 4"), "{error}");
    });
}

/// A plain batcher whose batches are moved: they weigh what their tensors do, on the host too.
#[test]
fn batches_that_are_moved_are_weighed() {
    #[derive(StagedBatch)]
    struct Batch {
        values: Tensor<2>,
    }

    struct Stack;

    impl Batcher<usize, Batch> for Stack {
        fn batch(&self, items: Vec<usize>, device: &Device) -> Batch {
            let values = Tensor::zeros([items.len(), 100], device);
            Batch { values }
        }
    }

    for_each_worker_count(|workers| {
        let builder = || {
            let builder = DataLoaderBuilder::new(Stack).batch_size(4);
            builder.num_workers(workers).prefetch(8)
        };
        let own = |batch: &Batch| 10 * batch.values.dims()[0];
        for (builder, bytes) in [
            (builder().pin_memory(true), 1_600),
            (builder().pin_memory(false), 1_600),
            (builder().batch_bytes(own).pin_memory(true), 40),
            (builder().max_batch_bytes(1_600).pin_memory(true), 1_600),
        ] {
            let loader = builder.memory_budget(2 * bytes).try_build(Numbers(LEN));
            let loader = loader.expect("the settings are good");
            assert_eq!(loader.iter().count(), 100);
            let stats = loader.stats();
            assert_eq!(stats.largest_batch, Some(bytes));
            assert!(
                stats.batches.most <= 2 && stats.bytes.most <= 2 * bytes,
                "{stats:?}"
            );
        }
    });
}

/// Sizes that nothing has end no sum and no pass.
#[test]
fn sizes_without_sense_end_nothing() {
    for_each_worker_count(|workers| {
        let builder = || loader(workers).batch_size(4).prefetch(4);
        for builder in [
            builder().max_batch_bytes(u64::MAX),
            builder().max_batch_bytes(1 << 62),
            builder().batch_bytes(|_| usize::MAX),
            builder().max_batch_bytes(1).item_bytes(u64::MAX),
            builder().sample_bytes(vec![u32::MAX; LEN]),
        ] {
            let budget = MemoryBudget::new(u64::MAX);
            let loader = builder.memory_budget(&budget).try_build(Numbers(LEN));
            let loader = loader.expect("the settings are good");
            let unread = loader.iter();
            assert_eq!(pass(&loader), chunks(LEN, 4));
            drop(unread);
            eventually("every byte comes back", || budget.stats().used.now == 0);
            assert_eq!(loader.stats().bytes.now, 0);
        }
    });
}

#[test]
fn sizes_that_cannot_be_are_one_sentence() {
    guarded(|| {
        let refused = |builder: DataLoaderBuilder<usize, Vec<usize>>| {
            let built = builder.try_build(Numbers(LEN)).map(|_| ());
            built.expect_err("it cannot be")
        };
        let few = refused(loader(1).sample_bytes(vec![1, 2]));
        let (sizes_given, len) = (2, LEN);
        assert_eq!(
            few,
            ConfigError::SampleSizes {
                sizes: sizes_given,
                len
            }
        );
        assert!(few.to_string().contains("2 samples") && few.to_string().contains("400"));
        let twice = refused(loader(1).sample_bytes(sizes()).max_batch_bytes(9));
        assert_eq!(twice, ConfigError::SizedTwice);
        for (builder, setting) in [
            (loader(1).max_batch_bytes(0), "max_batch_bytes"),
            (loader(1).max_batch_bytes(9).item_bytes(0), "item_bytes"),
        ] {
            let nothing = refused(builder.memory_budget(100));
            assert_eq!(nothing, ConfigError::SizeZero { setting });
        }
        // Items are not batches.
        let unweighed = refused(loader(1).item_bytes(9).memory_budget(100));
        assert_eq!(unweighed, ConfigError::BudgetUnweighed);
        let builder = DataLoaderBuilder::staged(InRows).device_budget(0);
        let none = builder.try_build(Numbers(LEN)).map(|_| ());
        assert_eq!(
            none.expect_err("it cannot be"),
            ConfigError::DeviceBudgetZero
        );
    });
}

#[test]
fn what_was_found_is_set_from_the_start() {
    guarded(|| {
        let build = |builder: DataLoaderBuilder<usize, Vec<usize>>| {
            let built = builder.batch_size(4).try_build(Numbers(LEN));
            built.expect("the settings are good")
        };
        let found = build(loader(2));
        assert_eq!(found.control().freeze().prefetch, None);
        // Whichever is called last wins, also where the window was never changed.
        let unchanged = found.control().freeze();
        let last = build(loader(1).auto().frozen(unchanged)).effective_config();
        assert!(!last.auto_workers && !last.auto_window && last.num_workers == 2);
        let last = build(loader(1).frozen(unchanged).auto()).effective_config();
        assert!(last.auto_workers && last.auto_window);
        found.control().set_prefetch(3);
        found.control().set_num_workers(4).expect("there are some");
        let frozen = found.control().freeze();
        let config = build(loader(1).frozen(frozen)).effective_config();
        assert_eq!(
            (config.num_workers, config.window.to_string().as_str()),
            (4, "at most 3 batches alive")
        );
    });
}
