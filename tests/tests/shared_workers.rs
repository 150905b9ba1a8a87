//! Several loaders may have one crew: its threads in all, for any of them, as long as anybody holds it.

use std::panic::catch_unwind;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use burn::data::dataloader::DataLoader;
use burn::tensor::Tensor;
use burn_prefetch::{DataLoaderBuilder, PrefetchDataLoader, PrefetchIterator, Workers};
use burn_prefetch_tests::{
    Broken, Collect, Fault, Gate, Guarded, Hooked, Kept, LiveThreads, Numbers, Rows, Tally, Traces,
    Turns, alone, cause, chunks, eventually, expect_crew, expect_loader_threads, failure,
    for_each_case, for_each_crew, for_each_worker_count, guarded, indices, loader_threads,
    once_it_waits, pass, threads_begun_here,
};

const TRAIN: usize = 60;
const VALID: usize = 21;

fn numbers(crew: &Workers) -> DataLoaderBuilder<usize, Vec<usize>> {
    DataLoaderBuilder::new(Collect).workers(crew)
}

/// Training and validation, of other items and other batches.
struct Both {
    train: PrefetchDataLoader<Kept>,
    valid: PrefetchDataLoader<Tensor<1>>,
    traces: Traces,
}

impl Both {
    fn on(crew: &Workers) -> Self {
        let traces = Traces::none();
        let train: DataLoaderBuilder<Guarded, Kept> = traces.builder().workers(crew).batch_size(4);
        let valid = DataLoaderBuilder::new(Rows).workers(crew).batch_size(2);
        Self {
            train: train
                .try_build(traces.dataset(TRAIN, |_| {}))
                .expect("the settings are good"),
            valid: valid
                .try_build(Numbers(VALID))
                .expect("the settings are good"),
            traces,
        }
    }
}

fn assert_trained(batches: impl Iterator<Item = Kept>) {
    let found: Vec<_> = batches.flat_map(|batch| indices(&batch)).collect();
    assert_eq!(found, (0..TRAIN).collect::<Vec<_>>());
}

fn assert_validated(batches: impl Iterator<Item = Tensor<1>>) {
    let rows = |batch: Tensor<1>| {
        batch
            .into_data()
            .try_to_vec::<f32>()
            .expect("they are floats")
    };
    let found: Vec<_> = batches.flat_map(rows).collect();
    let expected: Vec<_> = (0_u16..).map(f32::from).take(VALID).collect();
    assert_eq!(found, expected);
}

#[test]
fn training_and_validation_have_one_set_of_threads() {
    for_each_worker_count(|workers| {
        let _alone = alone();
        let crew = Workers::new(workers);
        let both = Both::on(&crew);
        assert_eq!((crew.num_workers(), crew.alive()), (workers, 0));
        for _ in 0..5 {
            assert_trained(pass(&both.train).into_iter());
            assert_validated(pass(&both.valid).into_iter());
            assert_eq!((crew.alive(), crew.disowned()), (workers, 0));
        }
        expect_loader_threads(workers);
        let names: Vec<_> = (0..workers)
            .map(|worker| format!("prefetch-{worker}"))
            .collect();
        assert_eq!(loader_threads(), names);
        let config = both.valid.effective_config();
        assert_eq!((config.num_workers, config.shared_workers), (workers, true));
        drop(both.train);
        both.traces.wait_for_none();
        assert_validated(pass(&both.valid).into_iter());
        drop((both.valid, crew));
        expect_loader_threads(0);
    });
}

#[test]
fn both_are_whole_when_they_are_read_in_step_or_one_inside_the_other() {
    for_each_worker_count(|workers| {
        let _alone = alone();
        let both = Both::on(&Workers::new(workers));
        let (mut train, mut valid) = (both.train.iter(), both.valid.iter());
        let (mut trained, mut validated) = (Vec::new(), Vec::new());
        for _ in 0..TRAIN {
            trained.extend(train.next().map(Result::unwrap));
            validated.extend(valid.next().map(Result::unwrap));
        }
        assert_trained(trained.into_iter());
        assert_validated(validated.into_iter());
        let steps = both.train.iter().zip(both.valid.iter());
        assert_eq!(steps.count(), VALID.div_ceil(2));
        let mut outer = both.train.iter();
        let first = outer.next().unwrap().unwrap();
        assert_validated(pass(&both.valid).into_iter());
        let rest = outer.map(Result::unwrap);
        assert_trained([first].into_iter().chain(rest));
        expect_loader_threads(workers);
    });
}

#[test]
fn both_are_whole_on_two_threads() {
    for_each_worker_count(|workers| {
        let _alone = alone();
        let both = Both::on(&Workers::new(workers));
        thread::scope(|scope| {
            let train = || (0..20).for_each(|_| assert_trained(pass(&both.train).into_iter()));
            let valid = || (0..20).for_each(|_| assert_validated(pass(&both.valid).into_iter()));
            scope.spawn(train);
            scope.spawn(valid);
        });
        expect_loader_threads(workers);
        both.traces.wait_for_no_items();
    });
}

#[test]
fn many_loaders_that_are_kept_and_never_read_hold_nobody_up() {
    for_each_worker_count(|workers| {
        let _alone = alone();
        let crew = Workers::new(workers);
        let others: Vec<_> = (0..10)
            .map(|_| numbers(&crew).build(Numbers(TRAIN)))
            .collect();
        let unread: Vec<_> = others.iter().map(|loader| loader.iter()).collect();
        let read = numbers(&crew).build(Numbers(TRAIN));
        assert_eq!(pass(read.as_ref()), chunks(TRAIN, 1));
        for iterator in unread {
            let found: Vec<_> = iterator.map(Result::unwrap).collect();
            assert_eq!(found, chunks(TRAIN, 1));
        }
        expect_loader_threads(workers);
    });
}

const SLOW_BATCHES: usize = 16;
const BATCH: usize = 8;
const SLOW: usize = SLOW_BATCHES * BATCH;

/// As in `fairness`, between two loaders: the first has 16 slow batches queued, of which the workers
/// are inside the first. When the second asks they may finish that batch, and one more item each.
#[test]
fn a_queue_of_one_loader_does_not_stand_before_the_other() {
    for_each_worker_count(|workers| {
        let _alone = alone();
        let crew = Workers::new(workers);
        let turns = Turns::none();
        let slow = turns.clone();
        let queued = numbers(&crew).batch_size(BATCH).parts_per_batch(8);
        let queued = queued.prefetch(SLOW_BATCHES);
        let queued = queued.build(Hooked::new(SLOW, move |_| slow.take()));
        let valid = DataLoaderBuilder::new(Rows)
            .workers(&crew)
            .batch_size(BATCH);
        let valid = valid.build(Numbers(VALID));
        let unread = queued.iter();
        turns.wait_for(workers);
        thread::scope(|scope| {
            let second = once_it_waits(scope, || {
                let batch = valid.iter().next().unwrap().unwrap();
                assert_eq!(batch.dims(), [BATCH]);
            });
            turns.permit(BATCH + workers);
            second.join().expect("the second loader is served");
        });
        assert!(turns.done() <= BATCH + workers);
        turns.permit(usize::MAX);
        let found: Vec<_> = unread.map(Result::unwrap).collect();
        assert_eq!(found, chunks(SLOW, BATCH));
    });
}

/// All workers stopped in a loader of their own; the first to come back is alone with what is there.
struct Stopped {
    crew: Workers,
    gates: Vec<Arc<Gate>>,
    _unread: PrefetchIterator<'static, Vec<usize>>,
}

impl Stopped {
    fn new(workers: usize) -> Self {
        let crew = Workers::new(workers);
        let gates: Vec<_> = (0..workers).map(|_| Gate::closed()).collect();
        let blocked = gates.clone();
        let data = Hooked::new(workers, move |index| blocked[index].wait());
        let stopping = numbers(&crew).prefetch(workers).try_build(data);
        let unread = stopping.expect("the settings are good").into_iter_owned();
        for gate in &gates {
            gate.wait_for_waiting(1);
        }
        Self {
            crew,
            gates,
            _unread: unread,
        }
    }

    /// A loader that notes its name at every item.
    fn noting(&self, name: char, notes: &Arc<Tally<String>>) -> PrefetchDataLoader<Vec<usize>> {
        let notes = Arc::clone(notes);
        let data = Hooked::new(TRAIN, move |_| notes.update(|notes| notes.push(name)));
        let builder = numbers(&self.crew).prefetch(6);
        let built = builder
            .stall_warning(Duration::from_millis(1))
            .try_build(data);
        built.expect("the settings are good")
    }

    fn come_back(&self) {
        self.gates.iter().for_each(|gate| gate.open());
        expect_crew(&self.crew, self.crew.num_workers(), 0);
    }
}

/// They have begun in one order, and wait in another; each looks about now and then meanwhile.
#[test]
fn who_waits_longest_is_served_first() {
    let orders = [[0, 1, 2], [2, 0, 1], [1, 2, 0], [2, 1, 0]];
    for_each_case(orders, |workers, order| {
        if workers == 0 {
            return;
        }
        let _alone = alone();
        let (stopped, notes) = (Stopped::new(workers), Tally::new(String::new()));
        let mut passes = ['a', 'b', 'c'].map(|name| {
            let one = stopped.noting(name, &notes).try_slice(0, 1).unwrap();
            Some(one.into_iter_owned())
        });
        thread::scope(|scope| {
            let readers = order.map(|number| {
                let pass = passes[number].take().unwrap();
                once_it_waits(scope, || pass.flat_map(Result::unwrap).sum::<usize>())
            });
            stopped.gates[0].open();
            for reader in readers {
                assert_eq!(reader.join().unwrap(), 0);
            }
        });
        let expected: String = order.map(|number| ["a", "b", "c"][number]).concat();
        assert_eq!(notes.now(), expected);
        stopped.come_back();
    });
}

#[test]
fn where_nobody_waits_each_has_its_turn() {
    for_each_crew(|workers| {
        let _alone = alone();
        let (stopped, notes) = (Stopped::new(workers), Tally::new(String::new()));
        let loaders = ['a', 'b'].map(|name| stopped.noting(name, &notes));
        let unread = loaders.each_ref().map(DataLoader::iter);
        stopped.gates[0].open();
        let notes = notes.wait_until(|notes| notes.len() == 12);
        // Their windows are full. The turn of who has nothing to do is its successor's.
        let both_have_work = &notes[..6];
        for turns in both_have_work.as_bytes().windows(3) {
            assert!(turns.contains(&b'a') && turns.contains(&b'b'), "{notes}");
        }
        drop(unread);
        stopped.come_back();
    });
}

#[test]
fn an_error_of_one_loader_is_not_the_others() {
    for_each_worker_count(|workers| {
        let _alone = alone();
        let crew = Workers::new(workers);
        let broken = numbers(&crew).build(Broken {
            len: TRAIN,
            at: 1,
            fault: Fault::Panic,
        });
        let whole = numbers(&crew).build(Numbers(TRAIN));
        let mut found = Vec::new();
        for batch in whole.iter() {
            found.push(batch.unwrap());
            let error = failure(broken.iter().skip(1));
            assert_eq!(cause(&error).place().index, Some(1));
        }
        assert_eq!(found, chunks(TRAIN, 1));
        assert_eq!((crew.alive(), crew.disowned()), (workers, 0));
    });
}

#[test]
fn a_handle_keeps_the_threads_and_the_last_lets_them_end() {
    for_each_worker_count(|workers| {
        let _alone = alone();
        let (threads, crew) = (LiveThreads::default(), Workers::new(workers));
        let seen = threads.clone();
        let data = Hooked::new(TRAIN, move |_| seen.enter());
        let first = numbers(&crew).build(data);
        // On a thread of its own: without workers it is the reader that fetches.
        thread::scope(|scope| {
            let reader = scope.spawn(|| assert_eq!(pass(first.as_ref()), chunks(TRAIN, 1)));
            reader.join().unwrap();
        });
        let other = crew.clone();
        drop((first, crew));
        expect_loader_threads(workers);
        assert_eq!((other.num_workers(), other.alive()), (workers, workers));
        let second = numbers(&other).build(Numbers(TRAIN));
        assert_eq!(pass(second.as_ref()), chunks(TRAIN, 1));
        expect_loader_threads(workers);
        drop(second);
        expect_loader_threads(workers);
        drop(other);
        assert_eq!(threads.now(), 0, "the last handle joins them");
        expect_loader_threads(0);
    });
}

#[test]
fn a_loader_keeps_them_without_a_handle() {
    for_each_worker_count(|workers| {
        let _alone = alone();
        let loader = numbers(&Workers::new(workers)).build(Numbers(TRAIN));
        for _ in 0..3 {
            assert_eq!(pass(loader.as_ref()), chunks(TRAIN, 1));
            expect_loader_threads(workers);
        }
        drop(loader);
        expect_loader_threads(0);
    });
}

#[test]
fn the_workers_of_a_loader_may_be_shared_later() {
    for_each_worker_count(|workers| {
        let _alone = alone();
        let first = DataLoaderBuilder::new(Collect).num_workers(workers);
        let first = first.try_build(Numbers(TRAIN)).unwrap();
        let second = numbers(&first.workers()).build(Numbers(VALID));
        assert_eq!(pass(&first), chunks(TRAIN, 1));
        assert_eq!(pass(second.as_ref()), chunks(VALID, 1));
        expect_loader_threads(workers);
        assert_eq!(first.workers().alive(), workers);
        drop(first);
        assert_eq!(pass(second.as_ref()), chunks(VALID, 1));
        expect_loader_threads(workers);
        drop(second);
        expect_loader_threads(0);
    });
}

#[test]
fn no_thread_starts_before_there_is_work() {
    for_each_worker_count(|workers| {
        let _alone = alone();
        let before = threads_begun_here();
        let crew = Workers::new(workers);
        let loader = numbers(&crew).build(Numbers(TRAIN));
        let empty = numbers(&crew).build(Numbers(0));
        assert_eq!(loader.num_items() + pass(empty.as_ref()).len(), TRAIN);
        assert_eq!((crew.alive(), threads_begun_here()), (0, before));
        assert_eq!(loader.iter().count(), TRAIN);
        assert_eq!(crew.alive(), workers);
    });
}

#[test]
fn threads_that_do_not_persist_end_with_the_last_reader_of_any_loader() {
    for_each_worker_count(|workers| {
        let _alone = alone();
        let crew = Workers::builder(workers).persistent(false).build();
        let (one, two) = (
            numbers(&crew).build(Numbers(TRAIN)),
            numbers(&crew).build(Numbers(VALID)),
        );
        for _ in 0..20 {
            let (mut train, mut valid) = (one.iter(), two.iter());
            assert!(train.next().is_some() && valid.next().is_some());
            expect_loader_threads(workers);
            drop(train);
            assert_eq!(valid.by_ref().count(), VALID - 1);
            drop(valid);
            expect_loader_threads(0);
            expect_crew(&crew, 0, 0);
        }
        assert!(workers == 0 || !one_config(&crew).persistent_workers);
    });
}

fn one_config(crew: &Workers) -> burn_prefetch::EffectiveConfig {
    let loader = numbers(crew).try_build(Numbers(1));
    loader.expect("the settings are good").effective_config()
}

#[test]
fn a_crew_of_none_leaves_the_work_to_each_reader() {
    guarded(|| {
        let _alone = alone();
        let crew = Workers::new(0);
        let here = thread::current().id();
        let on_this_thread = Hooked::new(TRAIN, move |_| assert_eq!(thread::current().id(), here));
        let loader = numbers(&crew).build(on_this_thread);
        assert_eq!(pass(loader.as_ref()), chunks(TRAIN, 1));
        assert_eq!((crew.alive(), crew.disowned()), (0, 0));
        expect_loader_threads(0);
    });
}

#[test]
fn more_than_any_machine_has_use_for_are_refused() {
    guarded(|| {
        let error = Workers::builder(1_025).try_build().unwrap_err();
        let panic = catch_unwind(|| Workers::new(1_025)).unwrap_err();
        let said = panic.downcast_ref::<String>().expect("it has a sentence");
        assert_eq!(*said, error.to_string());
        for words in ["num_workers is 1025", "at most 1024", "or 0"] {
            assert!(said.contains(words), "`{words}` is missing in: {said}");
        }
        assert_eq!(Workers::new(1_024).num_workers(), 1_024);
    });
}

/// A reader that is dropped, of a loader that is dropped, takes nothing from the other loader.
#[test]
fn loaders_come_and_go_on_one_crew() {
    for_each_worker_count(|workers| {
        let _alone = alone();
        let crew = Workers::new(workers);
        let traces = Traces::none();
        let constant = numbers(&crew).build(Numbers(TRAIN));
        let mut open = constant.iter();
        for round in 0..TRAIN {
            let data = traces.dataset(VALID, |_| {});
            let passing = traces.builder().workers(&crew).build(data);
            assert_eq!(passing.iter().take(round % 4).count(), round % 4);
            drop(passing);
            assert_eq!(open.next().unwrap().unwrap(), [round]);
        }
        assert!(open.next().is_none());
        traces.wait_for_none();
        eventually("the same threads", || crew.alive() == workers);
        expect_loader_threads(workers);
    });
}
