//! Every thread that makes batches is prepared once, before its first item; a failure is told to all.

use std::error::Error;
use std::fmt;
use std::iter::successors;
use std::sync::Arc;
use std::thread::{self, ThreadId};
use std::time::Duration;

use burn::data::dataloader::{DataLoader, DataLoaderIterator};
use burn::data::dataset::DatasetError;
use burn_prefetch::{
    BoxError, DataLoaderBuilder, Doing, LoadError, PrefetchDataLoader, Stage, Workers, context,
};
use burn_prefetch_tests::{
    Collect, Gate, Hooked, Numbers, Tally, cause, chunks, expect_crew, failure, for_each_case,
    for_each_crew, for_each_worker_count, late, loader, once_it_waits, pass, timed_out,
};

const LEN: usize = 40;

const LIMIT: Duration = Duration::from_millis(100);

type Loader = PrefetchDataLoader<Vec<usize>>;

/// A thread, and the worker that it is.
type Who = (ThreadId, Option<usize>);

/// Who was prepared.
#[derive(Clone, Debug)]
struct Prepared(Arc<Tally<Vec<Who>>>);

impl Prepared {
    fn nobody() -> Self {
        Self(Tally::new(Vec::new()))
    }

    /// Prepares the calling thread.
    ///
    /// # Panics
    ///
    /// When that was done before.
    fn note(&self, worker: Option<usize>) {
        let here = thread::current().id();
        self.0.update(|all| {
            assert!(all.iter().all(|(thread, _)| *thread != here), "once more");
            all.push((here, worker));
        });
    }

    fn threads(&self) -> Vec<ThreadId> {
        self.0.now().iter().map(|(thread, _)| *thread).collect()
    }

    /// As which workers, sorted.
    fn workers(&self) -> Vec<Option<usize>> {
        let mut workers: Vec<_> = self.0.now().iter().map(|(_, worker)| *worker).collect();
        workers.sort_unstable();
        workers
    }

    /// An item that needs a prepared thread.
    fn need(&self) {
        let here = thread::current().id();
        let worker = context().expect("this is user code").worker;
        let all = self.0.now();
        assert!(
            all.contains(&(here, worker)),
            "{here:?}, {worker:?}: {all:?}"
        );
    }

    fn init(&self) -> impl Fn(Option<usize>) -> Result<(), BoxError> + Send + Sync + 'static {
        let own = self.clone();
        move |worker| {
            own.note(worker);
            Ok(())
        }
    }

    fn data(&self) -> Hooked<impl Fn(usize) + Send + Sync + use<>> {
        let own = self.clone();
        Hooked::new(LEN, move |_| own.need())
    }
}

/// The workers of a pool of so many; of a pool of none, the one calling thread.
fn everybody(workers: usize) -> Vec<Option<usize>> {
    match workers {
        0 => vec![None],
        _ => (0..workers).map(Some).collect(),
    }
}

#[test]
fn every_thread_is_prepared_once_before_its_first_item() {
    for_each_worker_count(|workers| {
        let own = Prepared::nobody();
        let loader = loader(workers).worker_init(own.init());
        let loader = loader.try_build(own.data()).unwrap();
        assert_eq!(own.workers(), [], "building starts nothing");
        for _ in 0..5 {
            assert_eq!(pass(&loader), chunks(LEN, 1));
        }
        // A thread that found no work may still be at it.
        own.0.wait_until(|all| all.len() == workers.max(1));
        assert_eq!(own.workers(), everybody(workers));
        let here = thread::current().id();
        assert_eq!(own.threads().contains(&here), workers == 0);
    });
}

#[test]
fn threads_that_are_shared_are_prepared_once_for_all_loaders() {
    for_each_worker_count(|workers| {
        let own = Prepared::nobody();
        let crew = Workers::builder(workers).worker_init(own.init()).build();
        let builder = || DataLoaderBuilder::new(Collect).workers(&crew);
        let (one, two) = (builder().build(own.data()), builder().build(own.data()));
        for _ in 0..3 {
            assert_eq!(pass(one.as_ref()), pass(two.slice(0, LEN).as_ref()));
        }
        own.0.wait_until(|all| all.len() == workers.max(1));
        assert_eq!(own.workers(), everybody(workers));
    });
}

#[test]
fn threads_that_take_the_place_of_stuck_ones_are_prepared_too() {
    for_each_crew(|workers| {
        let (own, gate) = (Prepared::nobody(), Gate::closed());
        let (prepared, blocked) = (own.clone(), Arc::clone(&gate));
        let data = Hooked::new(LEN, move |_| {
            prepared.need();
            if context().expect("this is user code").epoch == 0 {
                blocked.wait();
            }
        });
        let builder = loader(workers).worker_init(own.init()).timeout(LIMIT);
        let loader = builder.prefetch(2 * workers).try_build(data).unwrap();
        let iterator = loader.iter();
        gate.wait_for_waiting(workers);
        late(iterator);
        assert_eq!(pass(&loader), chunks(LEN, 1));
        own.0.wait_until(|all| all.len() == 2 * workers);
        let twice: Vec<_> = (0..workers).flat_map(|worker| [Some(worker); 2]).collect();
        assert_eq!(own.workers(), twice);
        gate.open();
        expect_crew(&loader.workers(), workers, 0);
    });
}

#[test]
fn threads_that_end_with_the_reader_are_prepared_for_every_pass() {
    for_each_crew(|workers| {
        let own = Prepared::nobody();
        let builder = loader(workers).worker_init(own.init());
        let loader = builder.persistent_workers(false);
        let loader = loader.try_build(own.data()).unwrap();
        for pass_number in 1..=5 {
            assert_eq!(pass(&loader), chunks(LEN, 1));
            expect_crew(&loader.workers(), 0, 0);
            assert_eq!(own.threads().len(), pass_number * workers);
        }
    });
}

#[test]
fn every_thread_that_calls_next_without_workers_is_prepared_once() {
    for_each_worker_count(|threads| {
        let own = Prepared::nobody();
        let loader = loader(0).worker_init(own.init()).build(own.data());
        let copy = loader.slice(0, LEN);
        let read = || {
            for loader in [&loader, &copy, &loader] {
                assert_eq!(pass(loader.as_ref()), chunks(LEN, 1));
            }
        };
        thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(read);
            }
        });
        assert_eq!(own.workers(), vec![None; threads]);
    });
}

/// A reader on a worker's thread does its work itself: on its own crew as the worker that it is, on
/// another as a guest.
#[test]
fn a_worker_that_reads_another_loader_is_prepared_for_that_too() {
    for_each_crew(|workers| {
        for inner_workers in [0, 1, 3] {
            let (outer, inner) = (Prepared::nobody(), Prepared::nobody());
            let guest = inner.clone();
            let data = Hooked::new(6, move |_| {
                // Its context's worker is the number that this thread has, wherever it has it.
                let here = thread::current().id();
                assert!(guest.threads().contains(&here));
            });
            let nested = loader(inner_workers).worker_init(inner.init()).build(data);
            let own = outer.clone();
            let data = Hooked::new(LEN, move |_| {
                own.need();
                assert_eq!(pass(nested.as_ref()), chunks(6, 1));
            });
            let loader = loader(workers).worker_init(outer.init()).build(data);
            assert_eq!(pass(loader.as_ref()), chunks(LEN, 1));
            outer.0.wait_until(|all| all.len() == workers);
            inner.0.wait_until(|all| {
                let own = all.iter().filter(|(_, worker)| worker.is_some());
                own.count() == inner_workers
            });
            let all = inner.0.now();
            let guests = all.iter().filter(|(_, worker)| worker.is_none());
            let guests: Vec<_> = guests.map(|(thread, _)| *thread).collect();
            assert!(guests.len() <= workers && (inner_workers > 0 || !guests.is_empty()));
            assert!(guests.iter().all(|guest| outer.threads().contains(guest)));
        }
    });
}

#[test]
fn a_worker_that_reads_a_loader_of_its_own_crew_is_prepared_once() {
    for_each_worker_count(|workers| {
        let own = Prepared::nobody();
        let crew = Workers::builder(workers).worker_init(own.init()).build();
        let builder = || DataLoaderBuilder::new(Collect).workers(&crew);
        let inner = builder().build(own.data());
        let prepared = own.clone();
        let data = Hooked::new(9, move |_| {
            prepared.need();
            assert_eq!(pass(inner.as_ref()), chunks(LEN, 1));
        });
        assert_eq!(pass(builder().build(data).as_ref()), chunks(9, 1));
        own.0.wait_until(|all| all.len() == workers.max(1));
        assert_eq!(own.workers(), everybody(workers));
    });
}

/// The user's own error.
#[derive(Debug, PartialEq, Eq)]
struct NoLicence;

impl fmt::Display for NoLicence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no licence")
    }
}

impl Error for NoLicence {}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Error,
    Panic,
}

/// A crew whose threads cannot be prepared, until that is mended.
struct Unlicensed {
    crew: Workers,
    mended: Arc<Tally<bool>>,
    tried: Arc<Tally<Vec<ThreadId>>>,
}

impl Unlicensed {
    fn new(workers: usize, fault: Fault) -> Self {
        let (mended, tried) = (Tally::new(false), Tally::new(Vec::new()));
        let (licence, noted) = (Arc::clone(&mended), Arc::clone(&tried));
        let crew = Workers::builder(workers).worker_init(move |_| {
            noted.update(|tried| tried.push(thread::current().id()));
            match fault {
                _ if licence.now() => Ok(()),
                Fault::Error => Err(Box::new(NoLicence)),
                Fault::Panic => panic!("no licence"),
            }
        });
        Self {
            crew: crew.build(),
            mended,
            tried,
        }
    }

    fn loader(&self) -> Loader {
        let builder = DataLoaderBuilder::new(Collect).workers(&self.crew);
        builder
            .try_build(Numbers(LEN))
            .expect("the settings are good")
    }
}

fn assert_unprepared(error: &DatasetError, workers: usize) {
    let LoadError::Init { at, source } = cause(error) else {
        panic!("{error}")
    };
    assert_eq!((at.stage, at.index), (Stage::Start, None));
    match at.worker {
        Some(worker) => assert!(worker < workers),
        None => assert_eq!(
            workers, 0,
            "a worker failed, and the error does not say which"
        ),
    }
    assert!(source.to_string().contains("no licence"), "{source}");
    for words in ["starting a worker failed", "no licence"] {
        assert!(error.to_string().contains(words), "{error}");
    }
}

#[test]
fn who_cannot_be_prepared_fails_every_pass_until_that_is_mended() {
    for_each_case([Fault::Error, Fault::Panic], |workers, fault| {
        let unlicensed = Unlicensed::new(workers, fault);
        let (one, two) = (unlicensed.loader(), unlicensed.loader());
        let slice = one.slice(3, 9);
        for _ in 0..3 {
            // None of them is asked before all have begun.
            for iterator in [one.iter(), two.iter(), slice.iter()] {
                let error = failure(iterator);
                assert_unprepared(&error, workers);
                assert_eq!(cause(&error).place().batch, 0);
            }
            expect_crew(&unlicensed.crew, 0, 0);
        }
        let failed = unlicensed.tried.now();
        unlicensed.mended.update(|mended| *mended = true);
        for loader in [&one, &two] {
            assert_eq!(pass(loader), chunks(LEN, 1));
        }
        let since = unlicensed.tried.now().split_off(failed.len());
        assert!(!since.is_empty());
        let again = since.iter().any(|thread| failed.contains(thread));
        assert_eq!(again, workers == 0, "another thread tries, if there is one");
        assert_eq!(unlicensed.crew.alive(), workers);
    });
}

#[test]
fn the_users_error_is_behind_the_loaders() {
    for_each_worker_count(|workers| {
        let unlicensed = Unlicensed::new(workers, Fault::Error);
        let error = failure(unlicensed.loader().iter());
        let LoadError::Init { source, .. } = cause(&error) else {
            panic!("{error}")
        };
        assert_eq!(source.downcast_ref(), Some(&NoLicence));
        let first: &(dyn Error + 'static) = cause(&error);
        let mut chain = successors(Some(first), |&error| error.source());
        let own = chain.find_map(|error| error.downcast_ref::<NoLicence>());
        assert_eq!(own, Some(&NoLicence), "{error:?}");
    });
}

/// All of them wait for threads that are still being prepared.
#[test]
fn readers_that_wait_already_are_told() {
    for_each_crew(|workers| {
        let gate = Gate::closed();
        let blocked = Arc::clone(&gate);
        let crew = Workers::builder(workers).worker_init(move |_| {
            blocked.wait();
            Err(Box::new(NoLicence))
        });
        let crew = crew.build();
        let builder = || DataLoaderBuilder::new(Collect).workers(&crew);
        // They do not look about by themselves while they wait.
        let loaders = [(); 3].map(|()| builder().stall_warning(None).build(Numbers(LEN)));
        thread::scope(|scope| {
            let wait = |loader| once_it_waits(scope, move || failure(iter(loader)));
            let readers = loaders.each_ref().map(wait);
            gate.wait_for_waiting(workers);
            gate.open();
            for reader in readers {
                assert_unprepared(&reader.join().unwrap(), workers);
            }
        });
        expect_crew(&crew, 0, 0);
    });
}

fn iter(loader: &Arc<dyn DataLoader<Vec<usize>>>) -> Box<dyn DataLoaderIterator<Vec<usize>> + '_> {
    loader.iter()
}

/// The first threads are prepared, those that take their places are not.
#[test]
fn readers_are_told_too_when_it_is_a_replacement_that_fails() {
    for_each_crew(|workers| {
        let (tried, gate) = (Tally::new(0), Gate::closed());
        let (counted, blocked) = (Arc::clone(&tried), Arc::clone(&gate));
        let crew = Workers::builder(workers).worker_init(move |_| {
            let before = counted.update(|tried| {
                *tried += 1;
                *tried - 1
            });
            if (workers..2 * workers).contains(&before) {
                return Err(Box::new(NoLicence));
            }
            Ok(())
        });
        let crew = crew.build();
        let builder = || DataLoaderBuilder::new(Collect).workers(&crew);
        let stuck = builder().prefetch(workers);
        let stuck = stuck.build(Hooked::new(LEN, move |_| blocked.wait()));
        let unread = stuck.iter();
        gate.wait_for_waiting(workers);
        let patient = builder().stall_warning(None).build(Numbers(LEN));
        let impatient = builder().timeout(LIMIT).build(Numbers(LEN));
        thread::scope(|scope| {
            let parked = once_it_waits(scope, || failure(patient.iter()));
            late(impatient.iter());
            assert_unprepared(&parked.join().unwrap(), workers);
        });
        tried.wait_until(|&tried| tried == 2 * workers);
        expect_crew(&crew, 0, workers);
        assert_unprepared(&failure(unread), workers);
        assert_eq!(pass(patient.as_ref()), chunks(LEN, 1));
        assert_eq!(pass(impatient.as_ref()), chunks(LEN, 1));
        gate.open();
        expect_crew(&crew, workers, 0);
    });
}

/// A crew whose first threads stop at a gate while they are prepared, and then end as `outcome` says.
fn slow_to_start(workers: usize, outcome: fn() -> Result<(), BoxError>) -> (Arc<Gate>, Workers) {
    let (gate, tried) = (Gate::closed(), Tally::new(0));
    let blocked = Arc::clone(&gate);
    let crew = Workers::builder(workers).worker_init(move |_| {
        let number = tried.update(|tried| {
            *tried += 1;
            *tried
        });
        if number > workers {
            return Ok(());
        }
        blocked.wait();
        outcome()
    });
    (gate, crew.build())
}

#[test]
fn a_thread_that_is_not_prepared_in_time_is_listed_and_replaced() {
    for_each_crew(|workers| {
        // What comes of it when it comes too late is nobody's concern.
        for outcome in [|| Ok(()), || Err(Box::new(NoLicence).into())] {
            let (gate, crew) = slow_to_start(workers, outcome);
            let builder = DataLoaderBuilder::new(Collect).workers(&crew);
            let loader = builder.timeout(LIMIT).build(Numbers(LEN));
            let iterator = loader.iter();
            gate.wait_for_waiting(workers);
            let error = late(iterator);
            let report = timed_out(&error);
            assert_eq!(report.workers.len(), workers);
            assert!(
                report
                    .workers
                    .iter()
                    .all(|one| one.doing == Doing::Starting)
            );
            assert!(
                error.to_string().contains("worker 0 in worker_init for"),
                "{error}"
            );
            assert_eq!(pass(loader.as_ref()), chunks(LEN, 1));
            expect_crew(&crew, workers, workers);
            let other = loader.slice(0, LEN);
            let mut open = other.iter();
            assert_eq!(open.next().unwrap().unwrap(), [0]);
            gate.open();
            expect_crew(&crew, workers, 0);
            assert_eq!(open.map(Result::unwrap).count(), LEN - 1);
            assert_eq!(pass(loader.as_ref()), chunks(LEN, 1));
        }
    });
}

/// Some cannot be prepared; the others might do the work, and are not asked to.
#[test]
fn one_that_cannot_be_prepared_is_enough() {
    for_each_crew(|workers| {
        let crew = Workers::builder(workers).worker_init(move |worker| {
            if worker == Some(workers - 1) {
                return Err(Box::new(NoLicence));
            }
            Ok(())
        });
        let crew = crew.build();
        let builder = DataLoaderBuilder::new(Collect).workers(&crew);
        // More than the others have done before it is told of.
        let loader = builder.build(Numbers(usize::MAX));
        for _ in 0..3 {
            let mut iterator = loader.iter();
            let error = iterator.find_map(Result::err).expect("it is told of");
            assert_unprepared(&error, workers);
            assert!(iterator.next().is_none());
            expect_crew(&crew, workers - 1, 0);
        }
    });
}
