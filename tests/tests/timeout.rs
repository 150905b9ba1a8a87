//! A `next()` that waits too long is one error that says what every worker does; the stuck are replaced.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use burn::data::dataloader::DataLoader;
use burn::data::dataloader::batcher::Batcher;
use burn::data::dataset::DatasetError;
use burn::tensor::Device;
use burn_prefetch::{
    DataLoaderBuilder, Doing, LoadError, PrefetchDataLoader, Stage, WorkerReport, Workers, context,
};
use burn_prefetch_tests::{
    Collect, Gate, Guarded, Hooked, Kept, LiveThreads, Numbers, Record, Tally, Traces, Waits,
    capture_logs, cause, chunks, eventually, expect_crew, failure, for_each_case, for_each_crew,
    indices, is_exhausted, late, logged, once_it_waits, outcomes, pass, timed_out,
};
use log::Level;

/// Long enough for a busy machine to give every thread its turn.
const LIMIT: Duration = Duration::from_millis(100);

/// More than any crew here has stuck and at hand.
const LEN: usize = 40;

type Builder = DataLoaderBuilder<Guarded, Kept>;

/// The epoch of the item that the calling thread fetches.
fn epoch() -> usize {
    context().expect("this is user code").epoch
}

/// A loader whose items stop at a gate: those of the first epoch at one, of the second at the next,
/// and so on; after the last gate they pass.
struct Stuck {
    gates: Vec<Arc<Gate>>,
    traces: Traces,
    /// Those that were inside an item and have not ended.
    threads: LiveThreads,
    loader: PrefetchDataLoader<Kept>,
    crew: Workers,
}

impl Stuck {
    fn new(workers: usize, epochs: usize) -> Self {
        Self::with(workers, epochs, |builder| builder)
    }

    fn with(workers: usize, epochs: usize, set: impl FnOnce(Builder) -> Builder) -> Self {
        let gates: Vec<_> = (0..epochs).map(|_| Gate::closed()).collect();
        let (traces, threads) = (Traces::none(), LiveThreads::default());
        let (blocked, seen) = (gates.clone(), threads.clone());
        let data = traces.dataset(LEN, move |_| {
            seen.enter();
            if let Some(gate) = blocked.get(epoch()) {
                gate.wait();
            }
        });
        let builder = traces.builder().num_workers(workers).prefetch(2 * workers);
        let loader = set(builder.timeout(LIMIT)).try_build(data);
        let loader = loader.expect("the settings are good");
        let crew = loader.workers();
        Self {
            gates,
            traces,
            threads,
            loader,
            crew,
        }
    }

    /// Reads the next epoch once all workers are stuck in it: what came.
    fn time_out(&self, epoch: usize) -> DatasetError {
        let iterator = self.loader.iter();
        self.gates[epoch].wait_for_waiting(self.crew.num_workers());
        late(iterator)
    }

    fn expect_threads(&self, count: usize) {
        eventually("the number of threads", || self.threads.now() == count);
    }

    /// Lets every worker come back; nothing is left then but the crew.
    fn come_back(&self) {
        self.gates.iter().for_each(|gate| gate.open());
        expect_crew(&self.crew, self.crew.num_workers(), 0);
        self.traces.wait_for_no_items();
    }
}

fn assert_whole(loader: &PrefetchDataLoader<Kept>) {
    let found: Vec<_> = pass(loader).iter().flat_map(indices).collect();
    assert_eq!(found, (0..LEN).collect::<Vec<_>>());
}

#[test]
fn one_next_waits_so_long_and_its_error_is_the_last_item() {
    for_each_crew(|workers| {
        let stuck = Stuck::with(workers, 1, |builder| builder.start_epoch(0));
        let iterator = stuck.loader.iter();
        stuck.gates[0].wait_for_waiting(workers);
        let asked = Instant::now();
        // It is the last item: `failure` asks for more.
        let error = failure(iterator);
        assert!(asked.elapsed() >= LIMIT, "only {:?}", asked.elapsed());
        let LoadError::Timeout { at, after, .. } = cause(&error) else {
            panic!("{error}")
        };
        assert_eq!(*after, LIMIT);
        assert_eq!((at.stage, at.epoch, at.batch), (Stage::Wait, 0, 0));
        assert_eq!((at.index, at.worker), (None, None));
        assert_eq!(cause(&error).place(), at);
        let text = error.to_string();
        assert!(
            text.contains("waiting failed in epoch 0, batch 0") && text.contains("100ms"),
            "{text}"
        );
        stuck.come_back();
    });
}

#[test]
fn the_error_names_the_batch_that_was_waited_for() {
    for_each_crew(|workers| {
        let gate = Gate::closed();
        let blocked = Arc::clone(&gate);
        let data = Hooked::new(30, move |index| {
            if index >= 9 {
                blocked.wait();
            }
        });
        let builder = DataLoaderBuilder::new(Collect).num_workers(workers);
        let loader = builder.batch_size(3).timeout(LIMIT).start_epoch(5);
        let loader = loader.build(data);
        let mut iterator = loader.iter();
        let before: Vec<_> = iterator.by_ref().take(3).map(Result::unwrap).collect();
        assert_eq!(before, chunks(9, 3));
        let error = failure(iterator);
        let at = cause(&error).place();
        assert_eq!((at.epoch, at.batch), (5, 3));
        gate.open();
    });
}

#[test]
fn every_next_has_all_of_the_time() {
    for_each_crew(|workers| {
        const WAIT: Duration = Duration::from_millis(100);
        let data = Waits {
            len: 6,
            slow: 6,
            wait: WAIT,
        };
        let builder = DataLoaderBuilder::new(Collect).num_workers(workers);
        // All of it takes six waits, one batch after the other; one `next()` may take five.
        let loader = builder.prefetch(0).timeout(5 * WAIT).build(data);
        assert_eq!(pass(loader.as_ref()), chunks(6, 1));
    });
}

#[test]
fn every_worker_is_listed_with_its_item() {
    for_each_crew(|workers| {
        let stuck = Stuck::with(workers, 1, |builder| {
            builder.batch_size(2).parts_per_batch(2)
        });
        let error = stuck.time_out(0);
        let report = timed_out(&error);
        assert_eq!(report.disowned_before, 0);
        let numbers: Vec<_> = report.workers.iter().map(|one| one.worker).collect();
        assert_eq!(numbers, (0..workers).collect::<Vec<_>>());
        let mut found = Vec::new();
        for one in &report.workers {
            let Doing::Fetching {
                epoch,
                batch,
                index: Some(index),
                here,
            } = one.doing
            else {
                panic!("{one}")
            };
            assert_eq!((epoch, batch, here), (0, index / 2, true), "{one}");
            assert!(one.at_least >= LIMIT, "{one}");
            assert!(one.disowned, "{one}");
            let words = format!("in index {index} of batch {batch} of epoch 0 for");
            assert!(error.to_string().contains(&words), "{words}: {error}");
            found.push(index);
        }
        found.sort_unstable();
        assert_eq!(found, (0..workers).collect::<Vec<_>>());
        stuck.come_back();
    });
}

#[test]
fn an_idle_worker_is_listed_and_kept() {
    for_each_crew(|workers| {
        let stuck = Stuck::with(workers, 1, |builder| builder.prefetch(1));
        let iterator = stuck.loader.iter();
        stuck.gates[0].wait_for_waiting(1);
        let error = failure(iterator);
        let report = timed_out(&error);
        assert_eq!(report.workers.len(), workers);
        let is_idle = |one: &&WorkerReport| one.doing == Doing::Idle;
        let (idle, busy): (Vec<&WorkerReport>, Vec<_>) = report.workers.iter().partition(is_idle);
        assert_eq!((idle.len(), busy.len()), (workers - 1, 1));
        assert!(busy[0].disowned && idle.iter().all(|one| !one.disowned));
        assert_eq!(stuck.crew.disowned(), 1);
        for one in idle {
            let text = error.to_string();
            let (_, list) = text.split_once("idle: ").expect("the idle are listed");
            assert!(list.contains(&one.worker.to_string()), "{text}");
        }
        stuck.come_back();
    });
}

#[test]
fn a_worker_that_gets_on_is_kept() {
    for_each_crew(|workers| {
        let gate = Gate::closed();
        let blocked = Arc::clone(&gate);
        let data = Hooked::new(usize::MAX / 2, move |index| {
            if index == 0 {
                blocked.wait();
            }
            (0..1_000).for_each(|_| std::hint::spin_loop());
        });
        let builder = DataLoaderBuilder::new(Collect).num_workers(workers);
        // Nobody takes anything: the others go from item to item all the time.
        let loader = builder.prefetch(usize::MAX).timeout(3 * LIMIT);
        let loader = loader.try_build(data).unwrap();
        let iterator = loader.iter();
        gate.wait_for_waiting(1);
        let error = failure(iterator);
        let report = timed_out(&error);
        for one in &report.workers {
            let is_stuck = matches!(one.doing, Doing::Fetching { index: Some(0), .. });
            assert_eq!(one.disowned, is_stuck, "{one}");
            assert!(is_stuck || one.at_least < 3 * LIMIT, "{one}");
        }
        assert_eq!(loader.workers().disowned(), 1);
        gate.open();
        expect_crew(&loader.workers(), workers, 0);
    });
}

/// A batch that waits at a gate in the batcher, in the first epoch.
struct Stacks(Arc<Gate>);

impl Batcher<usize, Vec<usize>> for Stacks {
    fn batch(&self, items: Vec<usize>, _: &Device) -> Vec<usize> {
        if epoch() == 0 {
            self.0.wait();
        }
        items
    }
}

#[test]
fn a_worker_stuck_in_the_batcher_is_listed_and_replaced() {
    for_each_crew(|workers| {
        let gate = Gate::closed();
        let builder = DataLoaderBuilder::new(Stacks(Arc::clone(&gate))).num_workers(workers);
        let builder = builder.batch_size(2).prefetch(workers).timeout(LIMIT);
        let loader = builder.try_build(Numbers(LEN)).unwrap();
        let iterator = loader.iter();
        gate.wait_for_waiting(workers);
        let error = failure(iterator);
        let mut found = Vec::new();
        for one in &timed_out(&error).workers {
            let Doing::Assembling { epoch, batch, here } = one.doing else {
                panic!("{one}")
            };
            assert_eq!((epoch, here, one.disowned), (0, true, true), "{one}");
            assert!(one.at_least >= LIMIT, "{one}");
            found.push(batch);
        }
        found.sort_unstable();
        assert_eq!(found, (0..workers).collect::<Vec<_>>());
        assert!(error.to_string().contains("assembling batch 0 of epoch 0"));
        expect_crew(&loader.workers(), workers, workers);
        assert_eq!(pass(&loader), chunks(LEN, 2));
        gate.open();
        expect_crew(&loader.workers(), workers, 0);
    });
}

#[test]
fn a_worker_stuck_in_get_many_is_listed_with_its_batch() {
    for_each_crew(|workers| {
        let stuck = Stuck::with(workers, 1, |builder| builder.batch_size(4).batched());
        let error = stuck.time_out(0);
        let mut found = Vec::new();
        for one in &timed_out(&error).workers {
            let Doing::Fetching { batch, index, .. } = one.doing else {
                panic!("{one}")
            };
            assert_eq!((index, one.disowned), (None, true));
            found.push(batch);
        }
        found.sort_unstable();
        assert_eq!(found, (0..workers).collect::<Vec<_>>());
        assert_whole(&stuck.loader);
        stuck.come_back();
    });
}

#[test]
fn the_next_pass_has_all_workers_while_the_stuck_are_inside() {
    for_each_crew(|workers| {
        let stuck = Stuck::new(workers, 2);
        stuck.time_out(0);
        assert_eq!(stuck.crew.disowned(), workers, "all of them, and at once");
        let next = stuck.loader.iter();
        // As many items at a time as ever, beside those of the first pass.
        stuck.gates[1].wait_for_waiting(workers);
        expect_crew(&stuck.crew, workers, workers);
        assert_eq!(stuck.threads.now(), 2 * workers);
        stuck.gates[1].open();
        let found: Vec<_> = next.flat_map(|batch| indices(&batch.unwrap())).collect();
        assert_eq!(found, (0..LEN).collect::<Vec<_>>());
        assert_whole(&stuck.loader);
        stuck.come_back();
        stuck.expect_threads(workers);
        let Stuck {
            traces,
            threads,
            loader,
            crew,
            ..
        } = stuck;
        drop((loader, crew));
        assert_eq!(threads.now(), 0, "those that are left are joined");
        traces.wait_for_none();
    });
}

/// Nor does whoever takes its place begin anything of a pass that is lost.
#[test]
fn what_a_stuck_worker_brings_is_dropped_and_nothing_more_is_begun() {
    for_each_crew(|workers| {
        for _ in 0..10 {
            let begun = Tally::new(0);
            let (traces, gate) = (Traces::none(), Gate::closed());
            let (counted, blocked) = (Arc::clone(&begun), Arc::clone(&gate));
            let data = traces.dataset(LEN, move |_| {
                counted.update(|begun| *begun += 1);
                blocked.wait();
            });
            let builder = traces.builder().num_workers(workers).prefetch(2 * workers);
            let loader = builder.timeout(LIMIT / 5).try_build(data).unwrap();
            let iterator = loader.iter();
            gate.wait_for_waiting(workers);
            late(iterator);
            gate.open();
            expect_crew(&loader.workers(), workers, 0);
            assert_eq!(begun.now(), workers);
            assert_eq!(traces.batches.peak(), 0, "nobody wants these batches");
            traces.wait_for_no_items();
        }
    });
}

#[test]
fn a_loader_goes_without_waiting_for_whom_it_gave_up() {
    for_each_crew(|workers| {
        let day = Duration::from_hours(24);
        let stuck = Stuck::with(workers, 1, |builder| builder.shutdown_grace(day));
        stuck.time_out(0);
        let Stuck {
            gates,
            traces,
            threads,
            loader,
            crew,
        } = stuck;
        drop((loader, crew));
        assert_eq!(threads.now(), workers, "it did not wait for these");
        assert_eq!(traces.datasets.now(), 1, "whoever is inside keeps it");
        gates[0].open();
        traces.wait_for_none();
        eventually("all threads end", || threads.now() == 0);
    });
}

/// All workers are stuck for a third one, which is not read.
#[test]
fn two_readers_whose_time_is_over_together_give_each_worker_up_once() {
    for_each_crew(|workers| {
        let crew = Workers::new(workers);
        let gate = Gate::closed();
        let blocked = Arc::clone(&gate);
        let builder = || DataLoaderBuilder::new(Collect).workers(&crew);
        let stuck = builder().prefetch(workers);
        let stuck = stuck.build(Hooked::new(LEN, move |_| blocked.wait()));
        let unread = stuck.iter();
        gate.wait_for_waiting(workers);
        let impatient = builder().timeout(LIMIT).build(Numbers(LEN));
        thread::scope(|scope| {
            let read = || outcomes(impatient.iter());
            let readers = [scope.spawn(read), scope.spawn(read)];
            let ends = readers.map(|reader| reader.join().unwrap().pop());
            // Whoever looks second may find new workers, who serve it.
            let errors: Vec<_> = ends.into_iter().filter_map(|end| end?.err()).collect();
            assert!(!errors.is_empty());
            for error in &errors {
                assert_eq!(timed_out(error).workers.len(), workers);
            }
        });
        assert_eq!(crew.disowned(), workers);
        assert_eq!(pass(impatient.as_ref()), chunks(LEN, 1));
        gate.open();
        assert_eq!(
            unread.count(),
            LEN,
            "the stuck bring what they were sent for"
        );
        expect_crew(&crew, workers, 0);
    });
}

/// The second reader has no timeout, waits for what the stuck ones bring, and gets it from them: a
/// batch from each, or one batch of which each has a part. They end then, though there is more to do.
#[test]
fn a_result_that_another_reader_waits_for_is_not_lost() {
    for_each_case([false, true], |workers, one_batch| {
        if workers == 0 {
            return;
        }
        let parts = if one_batch { workers } else { 1 };
        let (crew, gate, begun) = (
            Workers::new(workers),
            Gate::closed(),
            Tally::new(Vec::new()),
        );
        let (blocked, noted) = (Arc::clone(&gate), Arc::clone(&begun));
        let data = Hooked::new(3 * workers, move |index| {
            noted.update(|begun| begun.push((index, thread::current().id())));
            if index < workers {
                blocked.wait();
            }
        });
        let builder = || DataLoaderBuilder::new(Collect).workers(&crew);
        let patient = builder().batch_size(parts).parts_per_batch(parts);
        let patient = patient.prefetch(workers).try_build(data).unwrap();
        let impatient = builder().timeout(LIMIT).build(Numbers(LEN));
        let waiting = patient.iter_owned();
        gate.wait_for_waiting(workers);
        thread::scope(|scope| {
            let reader = once_it_waits(scope, || waiting.map(Result::unwrap).collect());
            let error = failure(impatient.iter());
            for one in &timed_out(&error).workers {
                let elsewhere = matches!(one.doing, Doing::Fetching { here: false, .. });
                assert!(elsewhere && one.disowned, "{one}");
            }
            assert!(error.to_string().contains("of another iterator"), "{error}");
            assert_eq!(pass(impatient.as_ref()), chunks(LEN, 1));
            assert_eq!(crew.disowned(), workers);
            gate.open();
            let found: Vec<_> = reader.join().unwrap();
            assert_eq!(found, chunks(3 * workers, parts));
        });
        expect_crew(&crew, workers, 0);
        let begun = begun.now();
        assert_eq!(begun.len(), 3 * workers, "nothing is fetched twice");
        for (_, stuck) in begun.iter().filter(|(index, _)| *index < workers) {
            let all = begun.iter().filter(|(_, thread)| thread == stuck);
            assert_eq!(all.count(), 1, "who was given up begins nothing more");
        }
    });
}

/// Its pass began when all workers were stuck, and nothing begins after they were given up.
#[test]
fn who_waits_already_is_served_by_those_in_their_places() {
    for_each_crew(|workers| {
        let (crew, gate) = (Workers::new(workers), Gate::closed());
        let blocked = Arc::clone(&gate);
        let builder = || DataLoaderBuilder::new(Collect).workers(&crew);
        let stuck = builder().prefetch(workers);
        let stuck = stuck.build(Hooked::new(LEN, move |_| blocked.wait()));
        let unread = stuck.iter();
        gate.wait_for_waiting(workers);
        let patient = builder().stall_warning(None).build(Numbers(LEN));
        let impatient = builder().timeout(LIMIT).build(Numbers(LEN));
        thread::scope(|scope| {
            let reader = once_it_waits(scope, || pass(patient.as_ref()));
            late(impatient.iter());
            assert_eq!(reader.join().unwrap(), chunks(LEN, 1));
        });
        assert_eq!((crew.alive(), crew.disowned()), (workers, workers));
        gate.open();
        assert_eq!(unread.count(), LEN);
        expect_crew(&crew, workers, 0);
    });
}

/// Two loaders on the same workers. The items of the first one's first pass stop at a gate each,
/// those of its second at one for all; then they pass. The second loader has no timeout.
struct Shared {
    crew: Workers,
    first: Vec<Arc<Gate>>,
    second: Arc<Gate>,
    impatient: Arc<dyn DataLoader<Vec<usize>>>,
    patient: Arc<dyn DataLoader<Vec<usize>>>,
    /// Batches made for the second loader.
    made: Arc<Tally<usize>>,
}

struct Counted(Arc<Tally<usize>>);

impl Batcher<usize, Vec<usize>> for Counted {
    fn batch(&self, items: Vec<usize>, _: &Device) -> Vec<usize> {
        self.0.update(|made| *made += 1);
        items
    }
}

impl Shared {
    fn new(workers: usize) -> Self {
        let crew = Workers::new(workers);
        let first: Vec<_> = (0..workers).map(|_| Gate::closed()).collect();
        let (second, made) = (Gate::closed(), Tally::new(0));
        let (gates, gate) = (first.clone(), Arc::clone(&second));
        let data = Hooked::new(LEN, move |index| match epoch() {
            0 => gates[index].wait(),
            1 => gate.wait(),
            _ => {}
        });
        let impatient = DataLoaderBuilder::new(Collect).workers(&crew);
        let impatient = impatient.prefetch(2 * workers).timeout(LIMIT).build(data);
        let patient = DataLoaderBuilder::new(Counted(Arc::clone(&made))).workers(&crew);
        // Nor does it look about by itself while it waits.
        let patient = patient.prefetch(4).stall_warning(None);
        let patient = patient.build(Numbers(LEN));
        Self {
            crew,
            first,
            second,
            impatient,
            patient,
            made,
        }
    }

    /// Has as many given up as may be, and as many stuck in their places.
    fn exhaust(&self) -> DatasetError {
        let workers = self.crew.num_workers();
        let iterator = self.impatient.iter();
        self.first.iter().for_each(|gate| gate.wait_for_waiting(1));
        late(iterator);
        assert_eq!(self.crew.disowned(), workers);
        let iterator = self.impatient.iter();
        self.second.wait_for_waiting(workers);
        late(iterator)
    }

    fn come_back(&self) {
        self.second.open();
        self.first.iter().for_each(|gate| gate.open());
        expect_crew(&self.crew, self.crew.num_workers(), 0);
        assert_eq!(pass(self.impatient.as_ref()), chunks(LEN, 1));
        assert_eq!(pass(self.patient.as_ref()), chunks(LEN, 1));
    }
}

#[test]
fn no_more_are_given_up_than_there_are_workers() {
    for_each_crew(|workers| {
        let shared = Shared::new(workers);
        let error = shared.exhaust();
        let report = timed_out(&error);
        assert_eq!(report.disowned_before, workers);
        assert_eq!(report.workers.len(), workers);
        assert!(report.workers.iter().all(|one| !one.disowned), "{report}");
        expect_crew(&shared.crew, workers, workers);
        let refused = failure(shared.impatient.iter());
        let LoadError::Exhausted { at, disowned } = cause(&refused) else {
            panic!("{refused}")
        };
        assert_eq!((*disowned, at.stage, at.batch), (workers, Stage::Wait, 0));
        assert!(refused.to_string().contains(&format!("({workers})")));
        shared.come_back();
    });
}

/// None of these readers has a timeout: who is not refused waits for ever.
#[test]
fn beyond_that_every_reader_is_refused_at_once() {
    for_each_crew(|workers| {
        let shared = Shared::new(workers);
        let mut with_more_at_hand = shared.patient.iter();
        assert_eq!(with_more_at_hand.next().unwrap().unwrap(), [0]);
        shared.made.wait_until(|&made| made == 5);
        let parked = shared.patient.slice(7, 9);
        thread::scope(|scope| {
            let iterator = shared.impatient.iter();
            shared
                .first
                .iter()
                .for_each(|gate| gate.wait_for_waiting(1));
            late(iterator);
            let iterator = shared.impatient.iter();
            shared.second.wait_for_waiting(workers);
            let parked = once_it_waits(scope, || failure(parked.iter()));
            late(iterator);
            assert!(is_exhausted(&parked.join().unwrap()));
        });
        let refused = failure(with_more_at_hand);
        assert!(is_exhausted(&refused), "{refused}");
        assert_eq!(cause(&refused).place().batch, 1);
        for _ in 0..3 {
            assert!(is_exhausted(&failure(shared.patient.iter())));
        }
        shared.come_back();
    });
}

#[test]
fn once_one_has_come_back_whoever_is_free_serves_again() {
    for_each_crew(|workers| {
        let shared = Shared::new(workers);
        shared.exhaust();
        assert!(is_exhausted(&failure(shared.patient.iter())));
        shared.second.open();
        shared.first[0].open();
        expect_crew(&shared.crew, workers, workers - 1);
        assert_eq!(pass(shared.patient.as_ref()), chunks(LEN, 1));
        assert_eq!(pass(shared.impatient.as_ref()), chunks(LEN, 1));
        shared.come_back();
    });
}

/// Those that were left are still inside: nobody is free, but one more may be given up.
#[test]
fn once_one_has_come_back_another_is_replaced() {
    for_each_crew(|workers| {
        let shared = Shared::new(workers);
        shared.exhaust();
        shared.first[0].open();
        expect_crew(&shared.crew, workers, workers - 1);
        let seen = outcomes(shared.impatient.iter());
        if workers == 1 {
            let found: Vec<_> = seen.into_iter().map(Result::unwrap).collect();
            assert_eq!(found, chunks(LEN, 1), "the only one was replaced");
        } else {
            let end = seen.into_iter().next_back().expect("the pass is not empty");
            let error = end.expect_err("the others are stuck, and that is too many again");
            let words = ["Timeout", "Exhausted"];
            assert!(
                words.iter().any(|word| format!("{error:?}").contains(word)),
                "{error}"
            );
        }
        assert_eq!(shared.crew.disowned(), workers);
        shared.come_back();
    });
}

/// Lets some time pass, by the clock of a loader that has nothing to do with the one under test.
fn let_time_pass(limit: Duration) {
    let gate = Gate::closed();
    let blocked = Arc::clone(&gate);
    let data = Hooked::new(1, move |_| blocked.wait());
    let builder = DataLoaderBuilder::new(Collect).num_workers(1);
    let clock = builder.timeout(limit).build(data);
    late(clock.iter());
    gate.open();
}

const STALL: Duration = Duration::from_millis(5);

/// The items from `first` on, as many as there are workers, each stuck and a batch of its own;
/// numbered high, so that the log tells one test's items from another's.
fn stalled(
    (crew, first): (&Workers, usize),
    set: impl FnOnce(DataLoaderBuilder<usize, Vec<usize>>) -> DataLoaderBuilder<usize, Vec<usize>>,
) -> (Arc<Gate>, PrefetchDataLoader<Vec<usize>>) {
    capture_logs();
    let (gate, end) = (Gate::closed(), first + crew.num_workers());
    let blocked = Arc::clone(&gate);
    let data = Hooked::new(end, move |_| blocked.wait());
    let builder = DataLoaderBuilder::new(Collect).workers(crew).prefetch(end);
    let all = set(builder).try_build(data).expect("the settings are good");
    let own = all.try_slice(first, end).expect("they are there");
    (gate, own)
}

fn lines(index: usize) -> Vec<Record> {
    logged(&format!("in index {index} of batch"))
}

/// Two readers wait meanwhile, of two loaders that both warn.
#[test]
fn an_item_that_stalls_is_one_line_in_the_log() {
    for_each_crew(|workers| {
        let (crew, first) = (Workers::new(workers), 1_000_000 * workers);
        let set = |builder: DataLoaderBuilder<_, _>| builder.stall_warning(STALL);
        let (gate, loader) = stalled((&crew, first), set);
        let builder = DataLoaderBuilder::new(Collect).workers(&crew);
        let other = builder.stall_warning(STALL).build(Numbers(LEN));
        let iterator = loader.iter_owned();
        gate.wait_for_waiting(workers);
        let inside: Vec<_> = (first..first + workers).collect();
        thread::scope(|scope| {
            let reader = scope.spawn(|| assert_eq!(iterator.count(), workers));
            let other = scope.spawn(|| assert_eq!(other.iter().count(), LEN));
            for &index in &inside {
                eventually("a line in the log", || !lines(index).is_empty());
            }
            let_time_pass(10 * STALL);
            gate.open();
            reader.join().unwrap();
            other.join().unwrap();
        });
        for &index in &inside {
            let said = lines(index);
            assert_eq!(said.len(), 1, "{said:?}");
            assert_eq!(said[0].level, Level::Warn);
            let words = format!("in index {index} of batch {} of epoch 0", index - first);
            assert!(said[0].text.contains(&words), "{said:?}");
            assert!(said[0].text.starts_with("worker "), "{said:?}");
        }
    });
}

#[test]
fn no_warning_where_none_is_wanted_or_nobody_waits() {
    for_each_crew(|workers| {
        let (crew, first) = (Workers::new(workers), 1_000_000 * workers + 500_000);
        let none = |builder: DataLoaderBuilder<_, _>| builder.stall_warning(None);
        let (gate, loader) = stalled((&crew, first), |builder| none(builder).timeout(10 * STALL));
        let iterator = loader.iter();
        gate.wait_for_waiting(workers);
        late(iterator);
        gate.open();
        let set = |builder: DataLoaderBuilder<_, _>| builder.stall_warning(STALL);
        let (gate, loader) = stalled((&crew, first), set);
        let unread = loader.iter();
        gate.wait_for_waiting(workers);
        let_time_pass(10 * STALL);
        drop(unread);
        gate.open();
        for index in first..first + workers {
            assert_eq!(lines(index), []);
        }
    });
}

#[test]
fn a_stuck_part_is_one_worker() {
    for_each_crew(|workers| {
        let gate = Gate::closed();
        let (traces, blocked) = (Traces::none(), Arc::clone(&gate));
        let data = traces.dataset(LEN, move |index| {
            if epoch() == 0 && index == 3 {
                blocked.wait();
            }
        });
        let builder = traces.builder().num_workers(workers).batch_size(8);
        let loader = builder.parts_per_batch(8).prefetch(2).timeout(LIMIT);
        let loader = loader.try_build(data).unwrap();
        let iterator = loader.iter();
        gate.wait_for_waiting(1);
        let error = failure(iterator);
        for one in &timed_out(&error).workers {
            let stuck = matches!(
                one.doing,
                Doing::Fetching {
                    index: Some(3),
                    batch: 0,
                    ..
                }
            );
            assert_eq!(one.disowned, stuck, "{one}");
        }
        expect_crew(&loader.workers(), workers, 1);
        assert_whole(&loader);
        gate.open();
        expect_crew(&loader.workers(), workers, 0);
        traces.wait_for_no_items();
    });
}

/// The wait begins before the work: when it is over the worker has been inside for less.
#[test]
fn without_prefetching_too_the_pass_after_the_timeout_is_whole() {
    for_each_crew(|workers| {
        let stuck = Stuck::with(workers, 1, |builder| builder.prefetch(0));
        let error = late(stuck.loader.iter());
        let inside = timed_out(&error).workers.iter();
        let inside = inside.filter(|one| matches!(one.doing, Doing::Fetching { .. }));
        assert_eq!(inside.count(), 1, "{error}");
        assert_whole(&stuck.loader);
        stuck.come_back();
    });
}

/// The reader may begin to wait before the workers have begun.
#[test]
fn a_pass_that_is_stuck_from_its_start_is_the_only_one_lost() {
    for_each_crew(|workers| {
        let stuck = Stuck::new(workers, 1);
        late(stuck.loader.iter());
        assert_whole(&stuck.loader);
        stuck.come_back();
    });
}

#[test]
fn as_they_finish_all_others_come_before_the_error() {
    for_each_crew(|workers| {
        let (gate, traces) = (Gate::closed(), Traces::none());
        let blocked = Arc::clone(&gate);
        let data = traces.dataset(LEN, move |index| {
            if epoch() == 0 && index == 0 {
                blocked.wait();
            }
        });
        let builder = traces.builder().num_workers(workers).in_order(false);
        let loader = builder.prefetch(3).timeout(LIMIT).try_build(data).unwrap();
        let mut iterator = loader.iter();
        gate.wait_for_waiting(1);
        let others = if workers == 1 { 0 } else { LEN - 1 };
        let before: Vec<_> = iterator.by_ref().take(others).map(Result::unwrap).collect();
        let mut found: Vec<_> = before.iter().flat_map(indices).collect();
        found.sort_unstable();
        assert_eq!(found, (1..=others).collect::<Vec<_>>());
        let error = failure(iterator);
        let stuck = timed_out(&error).workers.iter().find(|one| one.disowned);
        let doing = stuck.map(|one| one.doing);
        assert!(
            matches!(doing, Some(Doing::Fetching { index: Some(0), .. })),
            "{error}"
        );
        let mut again: Vec<_> = pass(&loader).iter().flat_map(indices).collect();
        again.sort_unstable();
        assert_eq!(again, (0..LEN).collect::<Vec<_>>());
        gate.open();
        expect_crew(&loader.workers(), workers, 0);
    });
}

#[test]
fn threads_that_end_with_the_reader_end_also_when_they_were_given_up() {
    for_each_crew(|workers| {
        let stuck = Stuck::with(workers, 1, |builder| builder.persistent_workers(false));
        stuck.time_out(0);
        expect_crew(&stuck.crew, 0, workers);
        assert_whole(&stuck.loader);
        expect_crew(&stuck.crew, 0, workers);
        stuck.expect_threads(workers);
        stuck.gates[0].open();
        expect_crew(&stuck.crew, 0, 0);
        stuck.expect_threads(0);
        stuck.traces.wait_for_no_items();
    });
}
