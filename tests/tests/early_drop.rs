//! A pass that is left early leaves nothing behind, waits for nobody, and spoils no later pass.

use std::sync::Arc;

use burn::data::dataloader::batcher::Batcher;
use burn::tensor::Device;
use burn_prefetch::DataLoaderBuilder;
use burn_prefetch_tests::{
    Alive, Gate, GuardedNumbers, Hooked, Keep, Numbers, Tally, alone, capture_logs, chunks,
    eventually, expect_loader_threads, for_each_worker_count, loader, logged, open_files, pass,
};

#[test]
fn a_thousand_passes_left_early_leave_nothing_behind() {
    for_each_worker_count(|workers| {
        let _alone = alone();
        let files = open_files();
        let (items, batches) = (Alive::none(), Alive::none());
        let data = GuardedNumbers {
            len: 60,
            alive: Arc::clone(&items),
        };
        let builder = DataLoaderBuilder::new(Keep(Arc::clone(&batches))).num_workers(workers);
        let loader = builder.batch_size(3).build(data);
        for round in 0..1_000 {
            let taken = round % 4;
            for (number, batch) in loader.iter().take(taken).enumerate() {
                let first = batch.unwrap().0.first().map(|item| item.index);
                assert_eq!(first, Some(3 * number), "a batch of a pass that was left");
            }
        }
        items.wait_for_none();
        batches.wait_for_none();
        expect_loader_threads(workers);
        assert_eq!(pass(loader.as_ref()).len(), 20);
        drop(loader);
        assert_eq!((items.now(), batches.now()), (0, 0));
        expect_loader_threads(0);
        assert_eq!(open_files(), files);
    });
}

#[test]
fn the_same_where_workers_do_not_outlive_a_pass() {
    for_each_worker_count(|workers| {
        let _alone = alone();
        let items = Alive::none();
        let data = GuardedNumbers {
            len: 60,
            alive: Arc::clone(&items),
        };
        let builder = DataLoaderBuilder::new(Keep(Alive::none())).num_workers(workers);
        let loader = builder.batch_size(3).persistent_workers(false).build(data);
        for round in 0..200 {
            assert_eq!(loader.iter().take(round % 4).count(), round % 4);
        }
        items.wait_for_none();
        expect_loader_threads(0);
        assert_eq!(pass(loader.as_ref()).len(), 20);
    });
}

#[test]
fn dropping_a_reader_waits_for_no_item() {
    for_each_worker_count(|workers| {
        let _alone = alone();
        let gate = Gate::closed();
        let blocked = Arc::clone(&gate);
        let data = Hooked::new(40, move |index| {
            if index >= 2 {
                blocked.wait();
            }
        });
        let loader = loader(workers).batch_size(2).build(data);
        let mut iterator = loader.iter();
        assert_eq!(iterator.next().unwrap().unwrap(), [0, 1]);
        if workers > 0 {
            gate.wait_for_waiting(1);
        }
        drop(iterator);
        gate.open();
        assert_eq!(
            pass(loader.as_ref()),
            chunks(40, 2),
            "the next pass is whole and its own"
        );
    });
}

#[test]
fn a_full_window_is_dropped_too() {
    for_each_worker_count(|workers| {
        let _alone = alone();
        let (items, batches) = (Alive::none(), Alive::none());
        let data = GuardedNumbers {
            len: 60,
            alive: Arc::clone(&items),
        };
        let builder = DataLoaderBuilder::new(Keep(Arc::clone(&batches))).num_workers(workers);
        let loader = builder.batch_size(3).prefetch(5).build(data);
        let mut iterator = loader.iter();
        let held = iterator.next().unwrap().unwrap();
        if workers > 0 {
            eventually("the window is full", || batches.now() == 6);
        }
        drop(iterator);
        eventually("only the batch in hand is left", || {
            batches.now() == 1 && items.now() == 3
        });
        drop(held);
        batches.wait_for_none();
        items.wait_for_none();
    });
}

/// A batch that must be used: dropped unread, it panics.
#[derive(Debug)]
struct MustBeUsed {
    used: bool,
}

impl Drop for MustBeUsed {
    fn drop(&mut self) {
        if !self.used {
            // Once is enough: a second panic of the same thread would end the process.
            self.used = true;
            panic!("nobody used this batch");
        }
    }
}

/// Makes such batches, and counts them.
#[derive(Debug)]
struct Demanding(Arc<Tally<usize>>);

impl Batcher<usize, MustBeUsed> for Demanding {
    fn batch(&self, _: Vec<usize>, _: &Device) -> MustBeUsed {
        self.0.update(|made| *made += 1);
        MustBeUsed { used: false }
    }
}

#[test]
fn a_panic_in_the_drop_of_an_unread_batch_is_logged() {
    const WORDS: &str = "nobody used this batch";
    for_each_worker_count(|workers| {
        let _alone = alone();
        capture_logs();
        let made = Tally::new(0);
        let builder = DataLoaderBuilder::new(Demanding(Arc::clone(&made)));
        let loader = builder.num_workers(workers).prefetch(3).build(Numbers(30));
        let unread = if workers > 0 { 3 } else { 0 };
        for _ in 0..10 {
            let before = logged(WORDS).len();
            made.update(|made| *made = 0);
            let mut iterator = loader.iter();
            iterator.next().unwrap().unwrap().used = true;
            // The one that was used, and those that are dropped with the reader.
            made.wait_until(|&made| made == 1 + unread);
            drop(iterator);
            let all = || logged(WORDS).len() == before + unread;
            eventually("each of them is logged", all);
        }
        let use_it = |batch: Result<MustBeUsed, _>| batch.unwrap().used = true;
        assert_eq!(loader.iter().map(use_it).count(), 30, "the loader works on");
    });
}
