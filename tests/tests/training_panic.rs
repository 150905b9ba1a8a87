//! A training loop that panics, or a process that ends, while every worker is inside an item, does so cleanly.

use std::fmt::Debug;
use std::iter::repeat_with;
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any, set_hook, take_hook};
use std::process::exit;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Once, OnceLock};
use std::thread::{self, park, yield_now};
use std::time::Duration;

use burn::data::dataloader::DataLoader;
use burn::data::dataloader::batcher::Batcher;
use burn::tensor::Device;
use burn_prefetch::{DataLoaderBuilder, Prefetch, PrefetchDataLoader, Workers, context};
use burn_prefetch_tests::{
    Child, Collect, Ended, Gate, Guarded, Hooked, Kept, LIMIT, LiveThreads, Numbers, Tally, Traces,
    alone, capture_logs, eventually, expect_crew, expect_loader_threads, for_each_crew,
    for_each_worker_count, indices, late, logged, pass, role,
};

/// More than any crew here has at hand.
const LEN: usize = 80;

/// Items in a batch, each of them a part: a worker that takes one wakes another for the next,
/// however cheap the items were so far.
const BATCH: usize = 8;

/// As long as the end of a loader may wait here for items that do not come.
const GRACE: Duration = Duration::from_millis(50);

/// What the training loop panics with.
#[derive(Debug, PartialEq, Eq)]
struct Diverged;

/// The panics of this process so far, on whatever thread.
fn panics() -> usize {
    static PANICS: AtomicUsize = AtomicUsize::new(0);
    static COUNTED: Once = Once::new();
    COUNTED.call_once(|| {
        let usual = take_hook();
        set_hook(Box::new(move |info| {
            PANICS.fetch_add(1, Ordering::SeqCst);
            usual(info);
        }));
    });
    PANICS.load(Ordering::SeqCst)
}

/// Runs a training loop that diverges; its panic must come out, and be the only one.
fn diverges(training: impl FnOnce()) {
    let before = panics();
    let outcome = catch_unwind(AssertUnwindSafe(training));
    let panic = outcome.expect_err("the training loop panics");
    assert_eq!(panic.downcast_ref(), Some(&Diverged));
    assert_eq!(panics() - before, 1, "one panic, on all threads together");
}

type Builder = DataLoaderBuilder<Guarded, Kept>;

/// A loader whose items stop at a gate, in the first epoch, after those of the first two batches.
/// Without workers nothing stops.
struct Training {
    gate: Arc<Gate>,
    traces: Traces,
    threads: LiveThreads,
    workers: usize,
}

impl Training {
    fn new(workers: usize) -> Self {
        Self {
            gate: Gate::closed(),
            traces: Traces::none(),
            threads: LiveThreads::default(),
            workers,
        }
    }

    fn loader(&self, set: impl FnOnce(Builder) -> Builder) -> PrefetchDataLoader<Kept> {
        let (gate, threads) = (Arc::clone(&self.gate), self.threads.clone());
        let data = self.traces.dataset(LEN, move |index| {
            let at = context().expect("this is user code");
            if at.worker.is_none() {
                return;
            }
            threads.enter();
            if at.epoch == 0 && index >= 2 * BATCH {
                gate.wait();
            }
        });
        let builder = self.traces.builder().num_workers(self.workers);
        let builder = builder.batch_size(BATCH).parts_per_batch(BATCH).prefetch(4);
        set(builder)
            .try_build(data)
            .expect("these settings are good")
    }

    /// Trains until all workers are inside an item, and then diverges.
    fn diverge(&self, mut batches: impl Iterator<Item = Vec<usize>>) {
        assert_eq!(batches.next(), Some((0..BATCH).collect()));
        self.gate.wait_for_waiting(self.workers);
        panic_any(Diverged);
    }

    fn assert_nothing_is_left(self) {
        self.gate.open();
        self.traces.wait_for_none();
        eventually("all threads end", || self.threads.now() == 0);
        expect_loader_threads(0);
    }
}

/// The indices of each batch.
fn read<E: Debug>(
    iterator: impl Iterator<Item = Result<Kept, E>>,
) -> impl Iterator<Item = Vec<usize>> {
    iterator.map(|batch| indices(&batch.expect("every batch loads")))
}

fn assert_whole(loader: &PrefetchDataLoader<Kept>) {
    let found: Vec<_> = pass(loader).iter().flat_map(indices).collect();
    assert_eq!(found, (0..LEN).collect::<Vec<_>>());
}

#[test]
fn a_loader_outlives_the_panic_of_a_training() {
    for_each_worker_count(|workers| {
        let _alone = alone();
        let training = Training::new(workers);
        let loader = training.loader(|builder| builder);
        diverges(|| training.diverge(read(loader.iter())));
        // The workers are still inside: the reader has waited for none of them.
        training.gate.wait_for_waiting(workers);
        assert_eq!(training.traces.batches.now(), 0);
        training.gate.open();
        assert_whole(&loader);
        expect_crew(&loader.workers(), workers, 0);
        training.traces.wait_for_no_items();
        drop(loader);
        training.assert_nothing_is_left();
    });
}

/// The panic drops it, and waits for its workers no longer than it may.
#[test]
fn a_loader_may_go_with_the_panic_of_a_training() {
    for_each_worker_count(|workers| {
        let _alone = alone();
        capture_logs();
        let said = || logged("still inside the dataset").len();
        let before = said();
        let training = Training::new(workers);
        let loader = training.loader(|builder| builder.shutdown_grace(GRACE));
        diverges(|| {
            let loader = loader;
            training.diverge(read(loader.iter()));
        });
        assert_eq!(said() - before, usize::from(workers > 0));
        assert_eq!(training.threads.now(), workers, "all are inside still");
        training.assert_nothing_is_left();
    });
}

#[test]
fn so_may_an_iterator_that_owns_all_it_needs_on_a_thread_of_its_own() {
    for_each_worker_count(|workers| {
        let _alone = alone();
        let training = Training::new(workers);
        let loader = training.loader(|builder| builder.shutdown_grace(GRACE));
        let batches = loader.into_iter_owned();
        let before = panics();
        let outcome = thread::scope(|scope| {
            let reader = scope.spawn(|| training.diverge(read(batches)));
            reader.join()
        });
        let panic = outcome.expect_err("the training loop panics");
        assert_eq!(panic.downcast_ref(), Some(&Diverged));
        assert_eq!(panics() - before, 1);
        training.assert_nothing_is_left();
    });
}

/// The workers come back while the training unwinds, or have not begun, or are in the next epoch.
#[test]
fn a_training_may_panic_at_any_moment() {
    for_each_worker_count(|workers| {
        let _alone = alone();
        for taken in 0..LEN / BATCH {
            let training = Training::new(workers);
            let loader = training.loader(|builder| {
                let builder = builder.start_epoch(1).in_order(taken % 2 == 0);
                builder.warm_next_epoch(workers > 0)
            });
            let training_loop = |loader: &PrefetchDataLoader<Kept>| {
                let mut batches = read(loader.iter());
                assert_eq!(batches.by_ref().take(taken).count(), taken);
                (0..taken % 5).for_each(|_| yield_now());
                panic_any(Diverged);
            };
            diverges(|| training_loop(&loader));
            assert_eq!(pass(&loader).len(), LEN / BATCH);
            diverges(|| {
                let loader = loader;
                training_loop(&loader);
            });
            assert_eq!(training.threads.now(), 0, "its end joins its workers");
            training.assert_nothing_is_left();
        }
    });
}

#[test]
fn whatever_the_settings() {
    for_each_crew(|workers| {
        let _alone = alone();
        let settings: [fn(Builder) -> Builder; 5] = [
            |builder| builder.timeout(LIMIT),
            |builder| builder.persistent_workers(false),
            |builder| builder.warm_next_epoch(true),
            |builder| builder.prefetch(40),
            DataLoaderBuilder::batched,
        ];
        for set in settings {
            let training = Training::new(workers);
            let loader = training.loader(set);
            diverges(|| training.diverge(read(loader.iter())));
            training.gate.open();
            assert_whole(&loader);
            drop(loader);
            training.assert_nothing_is_left();
        }
    });
}

/// The next epoch has begun: it is what the next `iter()` gives.
#[test]
fn a_warm_epoch_outlives_it() {
    for_each_crew(|workers| {
        let _alone = alone();
        let training = Training::new(workers);
        let loader = training.loader(|builder| builder.warm_next_epoch(true).start_epoch(1));
        for _ in 0..3 {
            diverges(|| {
                let mut batches = read(loader.iter());
                assert_eq!(batches.by_ref().flatten().count(), LEN);
                panic_any(Diverged);
            });
        }
        assert_eq!(loader.epoch(), 4);
        assert_whole(&loader);
        drop(loader);
        training.assert_nothing_is_left();
    });
}

#[test]
fn several_passes_may_be_open() {
    for_each_worker_count(|workers| {
        let _alone = alone();
        let training = Training::new(workers);
        let loader = training.loader(|builder| builder);
        let copy = loader.try_slice(0, LEN).expect("all of it");
        diverges(|| {
            let _unread = copy.iter_epoch(2);
            let mut other = read(loader.iter_epoch(1));
            assert_eq!(other.next(), Some((0..BATCH).collect()));
            training.diverge(read(loader.iter()));
        });
        training.gate.open();
        assert_whole(&loader);
        drop((loader, copy));
        training.assert_nothing_is_left();
    });
}

/// As a validation beside the training.
#[test]
fn another_loader_on_the_same_workers_is_not_hurt() {
    for_each_worker_count(|workers| {
        let _alone = alone();
        let crew = Workers::new(workers);
        let builder = || DataLoaderBuilder::new(Collect).workers(&crew);
        let (one, two) = (builder().build(Numbers(LEN)), builder().build(Numbers(LEN)));
        let mut open = two.iter();
        for taken in 0..LEN {
            diverges(|| {
                let mut batches = one.iter();
                assert_eq!(batches.by_ref().take(taken).count(), taken);
                panic_any(Diverged);
            });
            let batch = open.next().expect("it has more").expect("it loads");
            assert_eq!(batch, [taken]);
        }
        assert!(open.next().is_none());
        expect_crew(&crew, workers, 0);
    });
}

/// A batch that must be used: dropped unread, it panics, and it is the loader that drops it.
struct MustBeUsed {
    used: bool,
}

impl Drop for MustBeUsed {
    fn drop(&mut self) {
        if !self.used {
            // Once is enough, wherever it is dropped.
            self.used = true;
            panic!("nobody used this batch");
        }
    }
}

struct Demanding(Arc<Tally<usize>>);

impl Batcher<usize, MustBeUsed> for Demanding {
    fn batch(&self, _: Vec<usize>, _: &Device) -> MustBeUsed {
        self.0.update(|made| *made += 1);
        MustBeUsed { used: false }
    }
}

/// Here is a second panic, of the user's own, while the first one unwinds: it is caught.
#[test]
fn batches_that_panic_when_they_are_dropped_unread_do_not_abort_the_process() {
    for_each_worker_count(|workers| {
        let _alone = alone();
        let made = Tally::new(0);
        let builder = DataLoaderBuilder::new(Demanding(Arc::clone(&made)));
        let loader = builder.num_workers(workers).prefetch(3).build(Numbers(LEN));
        let unread = if workers > 0 { 3 } else { 0 };
        let use_it = |batch: Result<MustBeUsed, _>| batch.expect("it loads").used = true;
        let before = panics();
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let mut batches = loader.iter();
            batches.next().map(use_it).expect("there is a batch");
            made.wait_until(|&made| made == 1 + unread);
            panic_any(Diverged);
        }));
        let panic = outcome.expect_err("the training loop panics");
        assert_eq!(panic.downcast_ref(), Some(&Diverged), "the first one");
        // The last of them may be on its way from the worker to the reader.
        eventually("each is dropped", || panics() - before == 1 + unread);
        assert_eq!(loader.iter().map(use_it).count(), LEN);
    });
}

/// A training loop on a worker: an item of an outer loader reads an inner one, and panics.
#[test]
fn a_loop_inside_an_item_that_panics_is_an_error_of_the_outer_pass() {
    for_each_worker_count(|workers| {
        let _alone = alone();
        let crew = Workers::new(workers);
        let builder = || DataLoaderBuilder::new(Collect).workers(&crew);
        let inner = builder().batch_size(2).build(Numbers(9));
        let data = Hooked::new(LEN, move |index| {
            let mut batches = inner.iter();
            assert!(batches.next().is_some());
            if index == 4 {
                panic_any(Diverged);
            }
        });
        let outer = builder().build(data);
        let before = panics();
        let seen: Vec<_> = outer.iter().collect();
        assert_eq!((seen.len(), panics() - before), (5, 1));
        assert!(seen[4].is_err() && seen[..4].iter().all(Result::is_ok));
        expect_crew(&crew, workers, 0);
    });
}

// What follows ends processes, each of them started for that.

/// The loader's own patience at its end; a process that takes less has not waited for that.
const USUAL_GRACE: Duration = Duration::from_secs(5);

/// A dataset that never answers, and how many workers are inside it.
fn never() -> (Arc<Tally<usize>>, Hooked<impl Fn(usize) + Send + Sync>) {
    let inside = Tally::new(0);
    let counted = Arc::clone(&inside);
    let data = Hooked::new(LEN, move |_| {
        counted.update(|inside| *inside += 1);
        loop {
            park();
        }
    });
    (inside, data)
}

/// A loader all of whose workers are inside an item for ever.
fn stuck(workers: usize) -> Arc<dyn DataLoader<Vec<usize>>> {
    let (inside, data) = never();
    let builder = DataLoaderBuilder::new(Collect).num_workers(workers);
    let loader = builder.prefetch(workers).shutdown_grace(GRACE).build(data);
    let pass = loader.iter();
    inside.wait_until(|&inside| inside == workers);
    drop(pass);
    loader
}

/// Runs `test` once more for every number of workers, to end while all of them are inside an item:
/// soon, with this exit code and so many panics.
fn ends(test: &'static str, (code, panics): (i32, usize), more: fn(&Ended)) {
    for_each_crew(move |workers| {
        let _alone = alone();
        let ended = Child::new(test, &workers.to_string()).run();
        assert_eq!(
            (ended.code, ended.panics()),
            (Some(code), panics),
            "{ended:?}"
        );
        assert!(ended.took < USUAL_GRACE, "{ended:?}");
        more(&ended);
    });
}

/// The number of workers, in a process that was started for that.
fn crew_of_the_child() -> Option<usize> {
    role().map(|role| role.parse().expect("it is a number"))
}

#[test]
fn main_may_return_while_all_workers_are_inside() {
    if let Some(workers) = crew_of_the_child() {
        drop(stuck(workers));
        return;
    }
    let test = "main_may_return_while_all_workers_are_inside";
    ends(test, (0, 0), |ended| assert!(ended.took >= GRACE));
}

#[test]
fn main_may_return_while_the_loader_is_kept_for_ever() {
    static FOR_EVER: OnceLock<Arc<dyn DataLoader<Vec<usize>>>> = OnceLock::new();
    if let Some(workers) = crew_of_the_child() {
        FOR_EVER.get_or_init(|| stuck(workers));
        return;
    }
    let test = "main_may_return_while_the_loader_is_kept_for_ever";
    ends(test, (0, 0), |_| ());
}

#[test]
fn a_process_may_exit_while_all_workers_are_inside() {
    if let Some(workers) = crew_of_the_child() {
        let _loader = stuck(workers);
        exit(17);
    }
    let test = "a_process_may_exit_while_all_workers_are_inside";
    ends(test, (17, 0), |_| ());
}

#[test]
fn an_item_may_exit_while_the_training_loop_waits() {
    if let Some(workers) = crew_of_the_child() {
        let inside = Tally::new(0);
        let data = Hooked::new(LEN, move |_| {
            let last = inside.update(|inside| {
                *inside += 1;
                *inside == workers
            });
            if last {
                exit(18);
            }
            loop {
                park();
            }
        });
        let builder = DataLoaderBuilder::new(Collect).num_workers(workers);
        let loader = builder.prefetch(workers).build(data);
        let count = loader.iter().count();
        panic!("{count} batches of items that never come");
    }
    let test = "an_item_may_exit_while_the_training_loop_waits";
    ends(test, (18, 0), |_| ());
}

/// The code of a panic, and its words and no others; an abort has no code.
#[test]
fn main_may_panic_while_all_workers_are_inside() {
    if let Some(workers) = crew_of_the_child() {
        let loader = stuck(workers);
        let _pass = loader.iter();
        panic!("the loss is not a number");
    }
    let test = "main_may_panic_while_all_workers_are_inside";
    ends(test, (101, 1), |ended| {
        assert!(ended.said.contains("the loss is not a number"), "{ended:?}");
    });
}

/// The grace, here the usual one, is for those that may still come back.
#[test]
fn nobody_waits_for_threads_that_were_given_up() {
    if let Some(workers) = crew_of_the_child() {
        let (inside, data) = never();
        let builder = DataLoaderBuilder::new(Collect).num_workers(workers);
        let builder = builder.prefetch(workers).timeout(2 * GRACE);
        let loader = builder.try_build(data).expect("these settings are good");
        let pass = loader.iter();
        inside.wait_until(|&inside| inside == workers);
        late(pass);
        assert_eq!(loader.workers().disowned(), workers);
        return;
    }
    let test = "nobody_waits_for_threads_that_were_given_up";
    ends(test, (0, 0), |_| ());
}

#[test]
fn nobody_waits_for_an_iterator_that_runs_ahead() {
    if let Some(workers) = crew_of_the_child() {
        let loader = Prefetch::over(stuck(workers)).prefetch(2).build();
        let _pass = loader.iter();
        let begun = Tally::new(false);
        let told = Arc::clone(&begun);
        let endless = repeat_with(move || {
            told.update(|begun| *begun = true);
            loop {
                park();
            }
        });
        let ahead = Prefetch::over(endless.take_while(|()| true)).into_iter();
        begun.wait_until(|&begun| begun);
        drop(ahead);
        return;
    }
    let test = "nobody_waits_for_an_iterator_that_runs_ahead";
    ends(test, (0, 0), |_| ());
}
