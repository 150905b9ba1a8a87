//! Where the system refuses threads the calling thread does the work, and the log says so.
//!
//! The system is made to refuse them in a process of its own.

use std::hint::black_box;
use std::sync::Arc;
use std::thread::{self, Builder};
use std::time::Duration;

use burn::data::dataloader::DataLoader;
use burn_prefetch::{DataLoaderBuilder, LoadError, Prefetch, PrefetchDataLoader, Workers, context};
use burn_prefetch_tests::{
    Child, Collect, Gate, Hooked, LIMIT, Numbers, Tally, alone, capture_logs, chunks, expect_crew,
    for_each_crew, guarded, late, loader, loader_threads, logged, once_it_waits, outcomes, pass,
    role,
};
use log::Level;

const LEN: usize = 20;

/// No machine has so many addresses, so no thread gets its stack.
const NO_STACK: &str = "1000000000000000";

type Settings = DataLoaderBuilder<usize, Vec<usize>>;

/// Runs `test` once more for every number of workers, where no thread can be started.
fn alone_in_the_process(test: &'static str) {
    for_each_crew(move |workers| {
        let _alone = alone();
        let child = Child::new(test, &workers.to_string());
        let ended = child.env("RUST_MIN_STACK", NO_STACK).run();
        assert_eq!(ended.code, Some(0), "{}", ended.said);
    });
}

/// The number of workers, in a process where no thread can be started.
fn crew_of_the_child() -> Option<usize> {
    let workers = role()?.parse().expect("it is a number");
    let refused = Builder::new().spawn(|| ());
    assert!(refused.is_err(), "this process is to have no threads");
    capture_logs();
    Some(workers)
}

/// Numbers that must be fetched here.
fn fetched_here() -> Hooked<impl Fn(usize) + Send + Sync> {
    let here = thread::current().id();
    Hooked::new(LEN, move |_| {
        assert_eq!(thread::current().id(), here);
        assert_eq!(context().expect("this is user code").worker, None);
    })
}

/// One warning so far for each pass of `passes`: there is no point in trying the other workers.
fn assert_warned(passes: usize, workers: usize) {
    let said = logged("could not be started");
    assert_eq!(said.len(), passes, "{said:?}");
    for line in said {
        assert_eq!(line.level, Level::Warn);
        let words = format!("worker 0 of {workers}");
        assert!(line.text.contains(&words), "{line:?}");
        assert!(line.text.contains("going on with 0"), "{line:?}");
    }
}

#[test]
fn a_pass_is_complete_on_the_calling_thread() {
    let Some(workers) = crew_of_the_child() else {
        return alone_in_the_process("a_pass_is_complete_on_the_calling_thread");
    };
    let builder = loader(workers).batch_size(3).shuffle(5);
    let expected = loader(0).batch_size(3).shuffle(5).build(Numbers(LEN));
    let loader = builder.try_build(fetched_here()).unwrap();
    assert_warned(0, workers);
    for epoch in 1..=3 {
        assert_eq!(pass(&loader), pass(expected.as_ref()));
        assert_warned(epoch, workers);
        expect_crew(&loader.workers(), 0, 0);
    }
    assert_eq!(loader_threads(), [""; 0]);
}

#[test]
fn whatever_the_settings() {
    let Some(workers) = crew_of_the_child() else {
        return alone_in_the_process("whatever_the_settings");
    };
    let settings: [fn(Settings) -> Settings; 8] = [
        |builder| builder.prefetch(0),
        |builder| builder.prefetch(7).parts_per_batch(3),
        |builder| builder.batched(),
        |builder| builder.in_order(false),
        |builder| builder.persistent_workers(false),
        |builder| builder.warm_next_epoch(true),
        |builder| builder.timeout(LIMIT).stall_warning(None),
        |builder| builder.shutdown_grace(Duration::ZERO),
    ];
    for set in settings {
        let builder = set(loader(workers).batch_size(3));
        let loader = builder.try_build(fetched_here()).unwrap();
        for _ in 0..2 {
            assert_eq!(pass(&loader), chunks(LEN, 3));
            assert_eq!(loader.workers().alive(), 0);
        }
        let (one, two) = (loader.iter(), loader.iter());
        assert!(one.zip(two).all(|(one, two)| one.unwrap() == two.unwrap()));
        assert_eq!(loader.iter().take(2).count(), 2);
    }
}

#[test]
fn an_item_may_read_another_pass() {
    let Some(workers) = crew_of_the_child() else {
        return alone_in_the_process("an_item_may_read_another_pass");
    };
    let crew = Workers::new(workers);
    let builder = || DataLoaderBuilder::new(Collect).workers(&crew);
    let mut loader = builder().build(fetched_here());
    for _ in 0..2 {
        let data = Hooked::new(5, move |_| assert!(!pass(loader.as_ref()).is_empty()));
        loader = builder().batch_size(2).build(data);
    }
    assert_eq!(pass(loader.as_ref()), chunks(5, 2));
    expect_crew(&crew, 0, 0);
}

#[test]
fn the_calling_thread_is_prepared_once() {
    let Some(workers) = crew_of_the_child() else {
        return alone_in_the_process("the_calling_thread_is_prepared_once");
    };
    let prepared = Tally::new(Vec::new());
    let noted = Arc::clone(&prepared);
    let builder = loader(workers).worker_init(move |worker| {
        noted.update(|prepared| prepared.push(worker));
        Ok(())
    });
    let loader = builder.build(fetched_here());
    for _ in 0..3 {
        assert_eq!(pass(loader.as_ref()), chunks(LEN, 1));
    }
    assert_eq!(prepared.now(), [None]);
}

/// It is made for threads; without one it has nothing to give but the reason.
#[test]
fn what_runs_ahead_of_its_reader_says_why_it_cannot() {
    if crew_of_the_child().is_none() {
        return alone_in_the_process("what_runs_ahead_of_its_reader_says_why_it_cannot");
    }
    let mut ahead = Prefetch::over(0..5).into_iter();
    let error = ahead.next().expect("an error").expect_err("no thread");
    let LoadError::Dataset { source, .. } = &error else {
        panic!("{error}")
    };
    assert!(source.is::<std::io::Error>(), "{error}");
    assert!(ahead.next().is_none());
    let inner = loader(0).build(Numbers(LEN));
    let loader = Prefetch::over(inner).build();
    for _ in 0..2 {
        let seen = outcomes(loader.iter());
        assert_eq!(seen.len(), 1);
        let error = seen[0].as_ref().expect_err("no thread");
        assert!(LoadError::of(error).is_some(), "{error}");
    }
}

/// Bytes of a thread's stack, where some threads can be started.
const STACK: usize = 1 << 30;

/// What this process has beside the stacks of its threads is far less.
const ADDRESSES: usize = 5 * STACK + STACK / 2;

/// Runs `test` once more where a few threads can be started.
fn with_few_threads(test: &'static str) {
    guarded(move || {
        let _alone = alone();
        let child = Child::new(test, "few").with_addresses(ADDRESSES);
        let ended = child.env("RUST_MIN_STACK", &STACK.to_string()).run();
        assert_eq!(ended.code, Some(0), "{}", ended.said);
    });
}

#[test]
fn fewer_workers_than_wanted_do_all_of_the_work() {
    if role().is_none() {
        return with_few_threads("fewer_workers_than_wanted_do_all_of_the_work");
    }
    capture_logs();
    let loader = loader(8).batch_size(3).try_build(Numbers(LEN)).unwrap();
    for _ in 0..3 {
        assert_eq!(pass(&loader), chunks(LEN, 3));
    }
    let alive = loader.workers().alive();
    assert!((1..8).contains(&alive), "{alive}");
    let said = logged(&format!("worker {alive} of 8 could not be started"));
    assert_eq!(said.len(), 3, "{:?}", logged("worker"));
    let words = format!("going on with {alive}");
    assert!(
        said.iter().all(|line| line.text.contains(&words)),
        "{said:?}"
    );
}

/// Starts threads that do nothing until there is no room for another; what is freed afterwards is
/// too little for one.
fn take_all_room(gate: &Arc<Gate>) {
    let spare: Vec<u8> = Vec::with_capacity(STACK / 2);
    let small = || {
        let gate = Arc::clone(gate);
        let builder = Builder::new().stack_size(STACK / 32);
        builder.spawn(move || gate.wait())
    };
    while small().is_ok() {}
    drop(black_box(spare));
    assert!(Builder::new().spawn(|| ()).is_err());
}

/// A loader with one worker that is inside an item, of a pass that is read with a timeout, and no
/// room for another thread.
struct Last {
    gate: Arc<Gate>,
    fillers: Arc<Gate>,
    crew: Workers,
    impatient: PrefetchDataLoader<Vec<usize>>,
}

const TIMEOUT: Duration = Duration::from_millis(100);

impl Last {
    fn new() -> Self {
        capture_logs();
        let (gate, fillers) = (Gate::closed(), Gate::closed());
        let crew = Workers::new(1);
        let blocked = Arc::clone(&gate);
        let data = Hooked::new(LEN, move |_| {
            if context().expect("this is user code").epoch == 0 {
                blocked.wait();
            }
        });
        let builder = DataLoaderBuilder::new(Collect).workers(&crew);
        let impatient = builder
            .timeout(TIMEOUT)
            .try_build(data)
            .expect("these settings are good");
        Self {
            gate,
            fillers,
            crew,
            impatient,
        }
    }

    /// Its only worker is given up, and nobody takes its place.
    fn give_up(&self) {
        let iterator = self.impatient.iter();
        self.gate.wait_for_waiting(1);
        take_all_room(&self.fillers);
        late(iterator);
        expect_crew(&self.crew, 0, 1);
        assert_eq!(logged("could not be started").len(), 1);
    }

    fn patient(&self) -> Arc<dyn DataLoader<Vec<usize>>> {
        let builder = DataLoaderBuilder::new(Collect).workers(&self.crew);
        builder.stall_warning(None).build(Numbers(LEN))
    }

    fn come_back(&self) {
        self.gate.open();
        expect_crew(&self.crew, 0, 0);
        self.fillers.open();
    }
}

#[test]
fn the_calling_thread_takes_the_place_of_the_last_worker() {
    if role().is_none() {
        return with_few_threads("the_calling_thread_takes_the_place_of_the_last_worker");
    }
    let last = Last::new();
    last.give_up();
    for loader in [&last.patient(), &last.patient()] {
        assert_eq!(pass(loader.as_ref()), chunks(LEN, 1));
    }
    assert_eq!(pass(&last.impatient), chunks(LEN, 1));
    last.come_back();
    // There may be room again by now.
    assert_eq!(pass(&last.impatient), chunks(LEN, 1));
}

/// It waits for a worker; when there is none any more it must hear of that.
#[test]
fn so_does_one_that_waits_already() {
    if role().is_none() {
        return with_few_threads("so_does_one_that_waits_already");
    }
    let last = Last::new();
    let patient = last.patient();
    let iterator = last.impatient.iter();
    last.gate.wait_for_waiting(1);
    thread::scope(|scope| {
        let parked = once_it_waits(scope, || pass(patient.as_ref()));
        take_all_room(&last.fillers);
        late(iterator);
        expect_crew(&last.crew, 0, 1);
        assert_eq!(parked.join().unwrap(), chunks(LEN, 1));
    });
    last.come_back();
}
