//! The bytes of batches alive keep within a budget; what a loader counts is what happened.

use std::sync::Arc;
use std::time::Duration;

use burn::data::dataloader::DataLoader;
use burn::data::dataloader::batcher::Batcher;
use burn::data::dataset::{Dataset, DatasetError};
use burn::tensor::Device;
use burn_prefetch::{
    Auto, ConfigError, DataLoaderBuilder, Decision, Fraction, Knob, MemoryBudget,
    PrefetchDataLoader, Why,
};
use burn_prefetch_tests::{
    Alive, Child, Hooked, Numbers, Token, capture_logs, chunks, eventually, for_each_worker_count,
    guarded, loader, logged, pass, role,
};

/// The bytes of a batch of four numbers.
const BATCH: u64 = 32;

type Builder = DataLoaderBuilder<usize, Vec<usize>>;

fn sized(builder: Builder) -> Builder {
    builder.batch_size(4).max_batch_bytes(BATCH)
}

fn measured(builder: Builder) -> Builder {
    let size = |batch: &Vec<usize>| size_of_val(batch.as_slice());
    builder.batch_size(4).batch_bytes(size)
}

fn build(builder: Builder) -> PrefetchDataLoader<Vec<usize>> {
    builder
        .try_build(Numbers(400))
        .expect("the settings are good")
}

fn all_returned(budget: &MemoryBudget) {
    eventually("every byte comes back", || {
        let stats = budget.stats();
        (stats.used.now, stats.readers) == (0, 0)
    });
}

#[test]
fn a_budget_of_two_batches_is_two_batches() {
    for_each_worker_count(|workers| {
        for builder in [sized(loader(workers)), measured(loader(workers))] {
            let loader = build(builder.prefetch(8).memory_budget(2 * BATCH));
            for _ in 0..2 {
                assert_eq!(pass(&loader), chunks(400, 4));
            }
            let stats = loader.stats();
            let budget = stats.budget.expect("it has one");
            assert!(budget.used.most <= 2 * BATCH, "{workers}: {stats:?}");
            assert_eq!((budget.limit, budget.overshoot), (2 * BATCH, 0));
            assert!(stats.batches.most <= 2 && stats.bytes.most <= 2 * BATCH);
            assert_eq!((stats.batches.now, stats.bytes.now), (0, 0));
            assert_eq!(stats.largest_batch, Some(BATCH));
            assert_eq!((stats.waits.count, stats.errors), (200, 0));
        }
    });
}

#[test]
fn loaders_that_share_a_budget_share_its_bytes() {
    for_each_worker_count(|workers| {
        let budget = MemoryBudget::new(2 * BATCH);
        let build = || build(sized(loader(workers)).prefetch(8).memory_budget(&budget));
        let (one, other) = (build(), build());
        let unread = one.iter();
        let pairs = one.iter().zip(other.iter());
        assert_eq!(pairs.count(), 100);
        assert_eq!(pass(&other), chunks(400, 4));
        let most = budget.stats().used.most;
        assert!(most <= 2 * BATCH + 2 * BATCH, "three readers, {most} bytes");
        drop(unread);
        drop((one, other));
        all_returned(&budget);
    });
}

/// It runs with one batch alive, and one line in the log says so.
#[test]
fn a_budget_below_one_batch_says_so_once() {
    capture_logs();
    for_each_worker_count(|workers| {
        // A number that no other test has.
        let bytes = 17 + workers as u64;
        let builder = sized(loader(workers)).prefetch(8).memory_budget(bytes);
        let loader = build(builder);
        for _ in 0..2 {
            assert_eq!(pass(&loader), chunks(400, 4));
        }
        let budget = loader.stats().budget.expect("it has one");
        assert_eq!((budget.used.most, loader.stats().batches.most), (BATCH, 1));
        let said = logged(&format!(
            "memory_budget is {bytes} bytes, but one batch takes 32"
        ));
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].text.contains("use a budget of two batches"));
    });
}

#[test]
fn items_count_while_a_batch_is_made_of_them() {
    for_each_worker_count(|workers| {
        let budget = MemoryBudget::new(1_000);
        let builder = sized(loader(workers)).item_bytes(100);
        let loader = build(builder.prefetch(8).memory_budget(&budget));
        assert_eq!(pass(&loader), chunks(400, 4));
        // Two in the making: 2 × (4 × 100 + 32); a finished one has its 32 only.
        let most = budget.stats().used.most;
        assert!((432..=1_000).contains(&most), "{most}");
        all_returned(&budget);
    });
}

/// A number, and what its item or its row of a batch holds.
type Held = (usize, Token);

/// Items that are as large as their rows in a batch.
struct Rows(Arc<Alive>);

impl Dataset<Held> for Rows {
    fn get(&self, index: usize) -> Result<Held, DatasetError> {
        Ok((index, self.0.token()))
    }

    fn len(&self) -> usize {
        400
    }
}

impl Batcher<Held, Vec<Held>> for Rows {
    /// Has its items until all of the batch is there.
    fn batch(&self, items: Vec<Held>, _device: &Device) -> Vec<Held> {
        let rows = items.iter().map(|(index, _)| (*index, self.0.token()));
        rows.collect()
    }
}

/// README, "I have X MB": with a batch in use, and items beside the tensors that are made of them.
#[test]
fn what_one_has_is_never_exceeded() {
    /// Bytes of an item, and of its row.
    const ROW: usize = 100;
    const OWN: usize = 2_760;
    for_each_worker_count(|workers| {
        let in_use = 4 * ROW;
        let rest = OWN - in_use;
        let alive = rest / (2 * 4 * ROW);
        let settings: [fn(_, _) -> _; 2] = [
            |builder: DataLoaderBuilder<Held, Vec<Held>>, (_, alive)| builder.prefetch(alive),
            |builder, (rest, _)| {
                let builder = builder.memory_budget(rest as u64);
                let builder = builder.max_batch_bytes(4 * ROW as u64);
                builder.item_bytes(ROW as u64)
            },
        ];
        for set in settings {
            let rows = Alive::none();
            let builder = DataLoaderBuilder::new(Rows(Arc::clone(&rows))).num_workers(workers);
            let builder = set(builder.batch_size(4), (rest, alive));
            let loader = builder.try_build(Rows(Arc::clone(&rows)));
            let loader = loader.expect("the settings are good");
            for _ in 0..3 {
                // Each is in use until it is counted, and dropped before the next is asked for.
                let all = loader
                    .iter()
                    .map(|batch| batch.expect("all are there").len());
                assert_eq!(all.sum::<usize>(), 400);
            }
            assert!(rows.peak() * ROW <= OWN, "{workers}: {}", rows.peak());
            rows.wait_for_none();
        }
    });
}

#[test]
fn errors_panics_and_early_drops_give_every_byte_back() {
    for_each_worker_count(|workers| {
        let budget = MemoryBudget::new(3 * BATCH);
        for bad in [0, 5, 17] {
            let data = Hooked::new(40, move |index| assert!(index != bad, "bad"));
            let builder = sized(loader(workers)).memory_budget(&budget);
            let loader = builder.try_build(data).expect("the settings are good");
            assert!(loader.iter().any(|batch| batch.is_err()));
            assert_eq!(loader.stats().errors, 1);
            assert!(loader.explain().contains("Budget: "));
            drop(loader.iter());
        }
        all_returned(&budget);
        assert!(budget.stats().used.most <= 3 * BATCH);
    });
}

#[test]
fn what_is_changed_while_an_epoch_runs_loses_no_batch_and_no_order() {
    guarded(|| {
        let builder = sized(loader(1)).prefetch(1).memory_budget(4 * BATCH);
        let loader = build(builder);
        let control = loader.control();
        let mut batches = Vec::new();
        for (number, batch) in loader.iter().enumerate() {
            batches.push(batch.expect("every batch loads"));
            match number {
                10 => control.set_prefetch(3),
                20 => control.set_num_workers(3).expect("there are some"),
                30 => control.set_memory_budget(2 * BATCH).expect("there is one"),
                40 => control.set_num_workers(1).expect("there are some"),
                50 => control.set_prefetch(0),
                _ => {}
            }
        }
        assert_eq!(batches, chunks(400, 4));
        assert_eq!((control.num_workers(), control.window()), (1, Some(0)));
        eventually("two workers leave", || loader.workers().alive() == 1);
        let stats = loader.stats();
        assert!((1..=3).contains(&stats.batches.most), "{stats:?}");
    });
}

#[test]
fn what_cannot_be_changed_is_one_sentence() {
    guarded(|| {
        let built = build(loader(0));
        let plain = built.control();
        let words = |error: ConfigError| error.to_string();
        let refused = plain.set_num_workers(2).expect_err("it has none");
        assert!(words(refused).contains("set_num_workers(2)"));
        let refused = plain.set_memory_budget(64).expect_err("it has none");
        assert!(words(refused).contains("set_memory_budget(64)"));
        let built = build(sized(loader(2)).memory_budget(64));
        let crewed = built.control();
        assert!(crewed.set_num_workers(0).is_err());
        assert!(crewed.set_num_workers(5_000).is_err());
        assert_eq!(crewed.set_memory_budget(0), Err(ConfigError::BudgetZero));
        assert_eq!(crewed.num_workers(), 2);
    });
}

#[test]
fn budgets_and_shares_that_are_none_are_one_sentence() {
    guarded(|| {
        let refused = |builder: Builder, names: &str| {
            let error = builder.try_build(Numbers(10)).expect_err("it is refused");
            let sentence = error.to_string();
            assert!(
                sentence.contains(names) && sentence.contains("use "),
                "{sentence}"
            );
        };
        refused(sized(loader(2)).memory_budget(0), "memory_budget is 0");
        refused(
            sized(loader(2)).memory_budget(Fraction(1.5)),
            "Fraction(1.5)",
        );
        refused(loader(2).memory_budget(64), "nobody says how large");
        refused(loader(2).auto().cpu_share(0.0), "cpu_share is 0");
        let fleeting = loader(2).auto().persistent_workers(false);
        refused(fleeting, "num_workers(Auto) changes");
        refused(loader(0).prefetch(Auto), "prefetch(Auto) changes");
    });
}

#[test]
fn a_fraction_of_the_machine_is_a_budget() {
    guarded(|| {
        let loader = build(sized(loader(2)).memory_budget(Fraction(0.1)));
        assert_eq!(pass(&loader), chunks(400, 4));
        let budget = loader.stats().budget.expect("it has one");
        assert!(budget.limit > 1 << 20, "{budget:?}");
    });
}

/// In a process of its own, which may have 3 GiB of addresses.
#[test]
fn a_fraction_of_what_the_process_may_use() {
    const ADDRESSES: usize = 3 << 30;
    let half = Fraction(0.5);
    if role().is_some() {
        let loader = build(sized(loader(2)).memory_budget(half));
        let config = loader.effective_config();
        assert_eq!(config.memory_budget, Some(ADDRESSES as u64 / 2));
        assert_eq!(pass(&loader), chunks(400, 4));
        return;
    }
    guarded(move || {
        let limited = Child::new("a_fraction_of_what_the_process_may_use", "limited");
        let ended = limited.with_addresses(ADDRESSES).run();
        assert_eq!(ended.code, Some(0), "{}", ended.said);
    });
}

#[test]
fn automatic_settings_change_no_batch_and_decisions_can_be_taken_again() {
    guarded(|| {
        let found = build(sized(loader(0)).auto());
        assert!(found.workers().num_workers() >= 1);
        for _ in 0..20 {
            assert_eq!(pass(&found), chunks(400, 4));
        }
        let to = |knob, from, to, batch| Decision {
            at: Duration::ZERO,
            batch,
            knob,
            from,
            to,
            why: Why::Starved,
        };
        let decisions = [to(Knob::Window, 2, 5, 10), to(Knob::Workers, 1, 2, 20)];
        let again = build(sized(loader(1)).auto().num_workers(1).replay(decisions));
        let control = again.control();
        eventually("the decisions are taken", || {
            assert_eq!(pass(&again), chunks(400, 4));
            control.decisions() == decisions
        });
        assert_eq!((control.window(), control.num_workers()), (Some(5), 2));
    });
}

#[test]
fn copies_are_counted_with_their_loader() {
    guarded(|| {
        let loader = Arc::new(build(measured(loader(2))));
        let copy = loader.to_device(&Device::default());
        assert_eq!(pass(&*copy), chunks(400, 4));
        let stats = loader.stats();
        assert_eq!((stats.waits.count, stats.largest_batch), (100, Some(BATCH)));
    });
}
