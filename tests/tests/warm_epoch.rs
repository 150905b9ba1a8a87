//! The next epoch begins while the last batches of one are being used: in the same window, as it would be.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use burn::data::dataloader::DataLoader;
use burn::tensor::Device;
use burn_prefetch::{
    DataLoaderBuilder, Doing, PrefetchDataLoader, PrefetchIterator, Stage, WorkerReport, Workers,
    context,
};
use burn_prefetch_tests::{
    Batches, Collect, Gate, Hooked, LiveThreads, Numbers, Tally, Traces, cause, chunks, eventually,
    expect_crew, failure, for_each_case, for_each_crew, indices, late, loader, outcomes, pass,
    timed_out,
};

const SIZE: usize = 2;
const BATCHES: usize = 12;
const LEN: usize = SIZE * BATCHES;

type Builder = DataLoaderBuilder<usize, Vec<usize>>;
type Loader = PrefetchDataLoader<Vec<usize>>;

fn warm(workers: usize) -> Builder {
    loader(workers).batch_size(SIZE).warm_next_epoch(true)
}

/// What was begun in which epoch, and how many batches were asked for in all.
#[derive(Clone, Debug, Default)]
struct Begun {
    batches: BTreeSet<(usize, usize)>,
    gets: BTreeMap<(usize, usize), usize>,
    asked: usize,
    most: usize,
}

impl Begun {
    /// By how many batches the workers lead, whichever epoch they belong to.
    fn lead(&self) -> usize {
        self.batches.len().saturating_sub(self.asked)
    }

    fn of_epoch(&self, epoch: usize) -> usize {
        self.batches.range((epoch, 0)..(epoch + 1, 0)).count()
    }
}

/// Counts the batches begun of one loader that is read by one iterator at a time.
#[derive(Clone)]
struct Gauge(Arc<Tally<Begun>>);

impl Gauge {
    fn new() -> Self {
        Self(Tally::new(Begun::default()))
    }

    fn data(&self) -> Hooked<impl Fn(usize) + Send + Sync + use<>> {
        let own = Arc::clone(&self.0);
        Hooked::new(LEN, move |index| {
            let at = context().expect("this is user code");
            own.update(|begun| {
                begun.batches.insert((at.epoch, at.batch));
                *begun.gets.entry((at.epoch, index)).or_default() += 1;
                begun.most = begun.most.max(begun.lead());
            });
        })
    }

    /// Reads so many batches, and notes each call of `next()` before it is made.
    fn take<O, E: std::fmt::Debug>(
        &self,
        iterator: &mut dyn Iterator<Item = Result<O, E>>,
        count: usize,
    ) -> Vec<O> {
        let next = |_| {
            self.0.update(|begun| begun.asked += 1);
            iterator
                .next()
                .expect("there is one more")
                .expect("it loads")
        };
        (0..count).map(next).collect()
    }

    /// How often that item was fetched for that epoch.
    fn gets(&self, epoch: usize, index: usize) -> usize {
        let gets = self.0.now().gets;
        gets.get(&(epoch, index)).copied().unwrap_or_default()
    }
}

/// Gives the workers every occasion to do more than they may.
fn keep_busy(crew: &Workers) {
    let other = DataLoaderBuilder::new(Collect).workers(crew);
    assert_eq!(pass(other.build(Numbers(200)).as_ref()).len(), 200);
}

#[test]
fn the_first_batches_of_the_next_epoch_are_begun_within_the_window() {
    for_each_case([0, 1, 2, 3, 16], |workers, prefetch| {
        if workers == 0 {
            return;
        }
        let gauge = Gauge::new();
        let loader = warm(workers).prefetch(prefetch).try_build(gauge.data());
        let loader = loader.unwrap();
        for epoch in 0..4 {
            let mut iterator = loader.iter();
            gauge.take(&mut iterator, BATCHES - 1);
            keep_busy(&loader.workers());
            gauge.take(&mut iterator, 1);
            let reached = prefetch.min(BATCHES);
            gauge
                .0
                .wait_until(|begun| begun.of_epoch(epoch + 1) == reached);
            keep_busy(&loader.workers());
            let begun = gauge.0.now();
            assert_eq!(begun.of_epoch(epoch + 1), reached);
            assert_eq!(begun.of_epoch(epoch + 2), 0, "only the next");
            assert!(iterator.next().is_none());
        }
        // Fewer than the window where an epoch has fewer.
        assert!(gauge.0.now().most <= prefetch, "{}", gauge.0.now().most);
    });
}

#[test]
fn a_window_that_is_learned_holds_over_both_epochs() {
    for_each_crew(|workers| {
        let gauge = Gauge::new();
        let loader = warm(workers).try_build(gauge.data()).unwrap();
        for epoch in 0..5 {
            let mut iterator = loader.iter();
            gauge.take(&mut iterator, BATCHES);
            gauge.0.wait_until(|begun| begun.of_epoch(epoch + 1) > 0);
            keep_busy(&loader.workers());
        }
        let most = gauge.0.now().most;
        assert!(most <= 2 * workers, "{most} ahead");
    });
}

#[test]
fn items_and_batches_alive_stay_within_the_bound_and_the_one_in_hand() {
    let cases = [(1, true), (2, true), (1, false), (2, false)];
    for_each_case(cases, |workers, (factor, in_order)| {
        if workers == 0 {
            return;
        }
        let traces = Traces::none();
        let builder = traces.builder().num_workers(workers).batch_size(SIZE);
        let builder = builder.prefetch_factor(factor).in_order(in_order);
        let loader = builder.warm_next_epoch(true);
        let loader = loader.build(traces.dataset(LEN, |_| {}));
        for _ in 0..10 {
            assert_eq!(loader.iter().map(Result::unwrap).count(), BATCHES);
        }
        let allowed = factor * workers + 1;
        assert!(
            traces.batches.peak() <= allowed,
            "{} of {allowed}",
            traces.batches.peak()
        );
        assert!(traces.items.peak() <= allowed * SIZE);
        drop(loader);
        traces.wait_for_none();
    });
}

/// What the first epochs are, by another loader that does not begin them before their time.
fn reference(epochs: usize) -> Vec<Batches> {
    let loader = loader(0).batch_size(SIZE).shuffle(3).build(Numbers(LEN));
    (0..epochs).map(|_| pass(loader.as_ref())).collect()
}

fn shuffled(workers: usize) -> Loader {
    let built = warm(workers).shuffle(3).try_build(Numbers(LEN));
    built.expect("the settings are good")
}

#[test]
fn the_epochs_are_the_same_as_without() {
    let windows = [None, Some(0), Some(1), Some(5), Some(100)];
    for_each_case(windows, |workers, prefetch| {
        if workers == 0 {
            return;
        }
        let mut builder = warm(workers).shuffle(3);
        if let Some(batches) = prefetch {
            builder = builder.prefetch(batches);
        }
        let loader = builder.try_build(Numbers(LEN)).unwrap();
        for (epoch, expected) in reference(5).iter().enumerate() {
            assert_eq!(loader.epoch(), epoch);
            assert_eq!(pass(&loader), *expected);
        }
        assert_eq!(loader.epoch(), 5, "what is begun is not counted");
    });
}

#[test]
fn as_they_finish_they_are_the_same_too() {
    for_each_crew(|workers| {
        let loader = warm(workers).shuffle(3).in_order(false);
        let loader = loader.build(Numbers(LEN));
        for mut expected in reference(5) {
            let mut found = pass(loader.as_ref());
            found.sort_unstable();
            expected.sort_unstable();
            assert_eq!(found, expected);
        }
    });
}

#[test]
fn epochs_of_few_batches_or_none() {
    for_each_crew(|workers| {
        for len in 0..5 {
            let loader = warm(workers).prefetch(4).build(Numbers(len));
            for _ in 0..10 {
                assert_eq!(pass(loader.as_ref()), chunks(len, SIZE));
            }
        }
    });
}

#[test]
fn progress_is_that_of_one_epoch() {
    for_each_crew(|workers| {
        let loader = shuffled(workers);
        for _ in 0..3 {
            let mut iterator = loader.iter();
            for batch in 0..=BATCHES {
                let progress = iterator.progress();
                assert_eq!(progress.items_processed, SIZE * batch);
                assert_eq!(progress.is_completed(), batch == BATCHES);
                assert_eq!(iterator.next().is_some(), batch < BATCHES);
            }
        }
    });
}

#[test]
fn an_iter_that_never_comes_costs_the_window_and_goes_with_the_loader() {
    for_each_crew(|workers| {
        const WINDOW: usize = 3;
        let (traces, threads, begun) = (Traces::none(), LiveThreads::default(), Tally::new(0));
        let (seen, counted) = (threads.clone(), Arc::clone(&begun));
        let data = traces.dataset(LEN, move |_| {
            seen.enter();
            counted.update(|begun| *begun += 1);
        });
        let builder = traces.builder().num_workers(workers).batch_size(SIZE);
        let loader = builder.prefetch(WINDOW).warm_next_epoch(true);
        let loader = loader.try_build(data).unwrap();
        assert_eq!(pass(&loader).len(), BATCHES);
        begun.wait_until(|&begun| begun == LEN + WINDOW * SIZE);
        keep_busy(&loader.workers());
        assert_eq!(begun.now(), LEN + WINDOW * SIZE);
        assert_eq!(traces.batches.now(), WINDOW);
        drop(loader);
        assert_eq!((traces.items.now(), traces.batches.now()), (0, 0));
        assert_eq!((traces.datasets.now(), threads.now()), (0, 0));
    });
}

#[test]
fn another_epoch_may_be_set_when_the_next_has_begun() {
    for_each_crew(|workers| {
        let traces = Traces::none();
        let builder = traces.builder().num_workers(workers).batch_size(SIZE);
        let loader = builder.shuffle(3).prefetch(3).warm_next_epoch(true);
        let loader = loader.try_build(traces.dataset(LEN, |_| {})).unwrap();
        let expected = reference(8);
        let read = |epoch: usize| {
            let found: Batches = pass(&loader).iter().map(indices).collect();
            assert_eq!(found, expected[epoch], "epoch {epoch}");
        };
        read(0);
        loader.set_epoch(6);
        read(6);
        read(7);
        loader.set_epoch(2);
        read(2);
        // During a pass; and one that is what has begun anyway.
        let mut open = loader.iter();
        assert!(open.next().is_some());
        loader.set_epoch(5);
        assert_eq!(open.count(), BATCHES - 1);
        read(5);
        loader.set_epoch(6);
        read(6);
        drop(loader);
        traces.wait_for_none();
    });
}

#[test]
fn what_has_begun_is_used_and_not_made_anew() {
    for_each_crew(|workers| {
        let gauge = Gauge::new();
        let loader = warm(workers).prefetch(2).try_build(gauge.data()).unwrap();
        for epoch in 0..4 {
            assert_eq!(gauge.take(&mut loader.iter(), BATCHES), chunks(LEN, SIZE));
            gauge.0.wait_until(|begun| begun.of_epoch(epoch + 1) == 2);
        }
        for epoch in 0..4 {
            assert!((0..LEN).all(|index| gauge.gets(epoch, index) == 1));
        }
    });
}

#[test]
fn a_look_at_an_epoch_leaves_what_has_begun() {
    for_each_crew(|workers| {
        let gauge = Gauge::new();
        let loader = warm(workers).prefetch(2).try_build(gauge.data()).unwrap();
        assert_eq!(pass(&loader), chunks(LEN, SIZE));
        gauge.0.wait_until(|begun| begun.of_epoch(1) == 2);
        assert_eq!(gauge.gets(1, 0), 1);
        let looked = [
            loader.peek_epoch(),
            loader.iter_epoch(1),
            loader.peek_epoch(),
        ];
        for mut look in looked {
            assert_eq!(look.next().unwrap().unwrap(), [0, 1]);
        }
        assert_eq!((gauge.gets(1, 0), loader.epoch()), (4, 1));
        assert_eq!(pass(&loader), chunks(LEN, SIZE));
        assert_eq!(gauge.gets(1, 0), 4, "the pass was there");
    });
}

#[test]
fn a_look_at_an_epoch_and_the_last_pass_of_a_loader_begin_no_other() {
    for_each_crew(|workers| {
        let (gauge, crew) = (Gauge::new(), Workers::new(workers));
        let builder = DataLoaderBuilder::new(Collect)
            .workers(&crew)
            .batch_size(SIZE);
        let loader = builder.prefetch(2).warm_next_epoch(true);
        let loader = loader.try_build(gauge.data()).unwrap();
        assert_eq!(loader.peek_epoch().count(), BATCHES);
        assert_eq!(loader.iter_epoch(5).count(), BATCHES);
        keep_busy(&crew);
        let begun = gauge.0.now();
        assert_eq!((begun.of_epoch(1), begun.of_epoch(6)), (0, 0));
        // It goes on with what has begun, and nothing follows it.
        assert_eq!(pass(&loader), chunks(LEN, SIZE));
        gauge.0.wait_until(|begun| begun.of_epoch(1) > 0);
        assert_eq!(loader.into_iter_owned().count(), BATCHES);
        keep_busy(&crew);
        assert_eq!((gauge.gets(1, 0), gauge.0.now().of_epoch(2)), (1, 0));
    });
}

#[test]
fn owned_and_borrowed_passes_in_turn_are_the_epochs_in_turn() {
    for_each_crew(|workers| {
        let loader = shuffled(workers);
        let owned = |pass: PrefetchIterator<'_, Vec<usize>>| -> Batches {
            pass.map(Result::unwrap).collect()
        };
        let expected = reference(6);
        for epoch in (0..6).step_by(2) {
            assert_eq!(pass(&loader), expected[epoch]);
            assert_eq!(owned(loader.iter_owned()), expected[epoch + 1]);
        }
    });
}

#[test]
fn a_pass_left_early_is_followed_by_the_next_epoch() {
    for_each_crew(|workers| {
        let traces = Traces::none();
        let builder = traces.builder().num_workers(workers).batch_size(SIZE);
        let loader = builder.shuffle(3).prefetch(4).warm_next_epoch(true);
        let loader = loader.try_build(traces.dataset(LEN, |_| {})).unwrap();
        let expected = reference(2 * BATCHES);
        for taken in 0..BATCHES {
            let found: Batches = loader
                .iter()
                .take(taken)
                .map(|batch| indices(&batch.unwrap()))
                .collect();
            assert_eq!(found, expected[2 * taken][..taken]);
            traces.wait_for_no_items();
            let found: Batches = pass(&loader).iter().map(indices).collect();
            assert_eq!(found, expected[2 * taken + 1], "after {taken} batches");
        }
        drop(loader);
        traces.wait_for_none();
    });
}

#[test]
fn two_passes_at_a_time_are_two_epochs() {
    for_each_crew(|workers| {
        let loader = shuffled(workers);
        let expected = reference(9);
        for epoch in (0..9).step_by(3) {
            let (mut left, mut right) = (Vec::new(), Vec::new());
            for (one, two) in loader.iter().zip(loader.iter()) {
                left.push(one.unwrap());
                right.push(two.unwrap());
            }
            assert_eq!((&left, &right), (&expected[epoch], &expected[epoch + 1]));
            assert_eq!(pass(&loader), expected[epoch + 2]);
        }
    });
}

#[test]
fn several_threads_read_one_loader() {
    for_each_crew(|workers| {
        let loader = warm(workers).build(Numbers(LEN));
        std::thread::scope(|scope| {
            let read =
                || (0..20).for_each(|_| assert_eq!(pass(loader.as_ref()), chunks(LEN, SIZE)));
            for _ in 0..4 {
                scope.spawn(read);
            }
        });
    });
}

#[test]
fn copies_begin_their_own_next_epochs() {
    for_each_crew(|workers| {
        let gauge = Gauge::new();
        let whole = warm(workers).prefetch(2).try_build(gauge.data()).unwrap();
        let copies = [whole.to_device(&Device::flex()), whole.slice(0, LEN)];
        let read = |loader: &dyn DataLoader<_>| assert_eq!(pass(loader), chunks(LEN, SIZE));
        read(&whole);
        for copy in &copies {
            read(copy.as_ref());
        }
        let all = |index| move |begun: &Begun| begun.gets.get(&(1, index)) == Some(&3);
        gauge.0.wait_until(all(2 * SIZE - 1));
        keep_busy(&whole.workers());
        assert_eq!(gauge.gets(1, 2 * SIZE), 0);
        for copy in &copies {
            read(copy.as_ref());
        }
        read(&whole);
        assert!((0..LEN).all(|index| gauge.gets(1, index) == 3));
        let part = whole.slice(4, 10);
        for _ in 0..5 {
            assert_eq!(pass(part.as_ref()), [[4, 5], [6, 7], [8, 9]]);
        }
    });
}

#[test]
fn an_error_of_the_next_epoch_is_at_its_place_in_it() {
    for_each_crew(|workers| {
        let data = Hooked::new(LEN, |index| {
            let epoch = context().expect("this is user code").epoch;
            assert!((epoch, index) != (1, 3), "cannot be read");
        });
        let loader = warm(workers).prefetch(4).build(data);
        assert_eq!(pass(loader.as_ref()), chunks(LEN, SIZE));
        let mut seen = outcomes(loader.iter());
        let error = seen.pop().unwrap().unwrap_err();
        let at = cause(&error).place();
        assert_eq!((at.stage, at.epoch, at.batch), (Stage::Fetch, 1, 1));
        assert_eq!(at.index, Some(3));
        assert_eq!(seen.len(), 1);
        for _ in 0..3 {
            assert_eq!(pass(loader.as_ref()), chunks(LEN, SIZE));
        }
    });
}

#[test]
fn a_pass_that_fails_begins_no_other() {
    for_each_crew(|workers| {
        let traces = Traces::none();
        let data = traces.dataset(LEN, |index| {
            let epoch = context().expect("this is user code").epoch;
            assert!((epoch, index) != (0, LEN - 1), "cannot be read");
        });
        let builder = traces.builder().num_workers(workers).batch_size(SIZE);
        let loader = builder.prefetch(4).warm_next_epoch(true).build(data);
        let seen = outcomes(loader.iter());
        assert_eq!(seen.len(), BATCHES);
        assert!(seen.last().unwrap().is_err());
        drop(seen);
        traces.wait_for_no_items();
        assert_eq!(pass(loader.as_ref()).len(), BATCHES);
    });
}

const LIMIT: Duration = Duration::from_millis(100);

/// The workers stop in what they have begun of the next epoch: this one is whole nevertheless. Not all
/// need have begun: an epoch whose items were quick wakes few.
#[test]
fn a_timeout_of_the_next_epoch_is_at_its_place_in_it() {
    for_each_crew(|workers| {
        let gate = Gate::closed();
        let blocked = Arc::clone(&gate);
        let data = Hooked::new(LEN, move |_| {
            if context().expect("this is user code").epoch == 1 {
                blocked.wait();
            }
        });
        let loader = warm(workers).prefetch(2 * workers).timeout(LIMIT);
        let loader = loader.try_build(data).unwrap();
        assert_eq!(pass(&loader), chunks(LEN, SIZE));
        gate.wait_for_waiting(1);
        let error = late(loader.iter());
        let at = cause(&error).place();
        assert_eq!((at.epoch, at.batch), (1, 0));
        let report = timed_out(&error);
        let inside = |one: &&WorkerReport| {
            matches!(
                one.doing,
                Doing::Fetching {
                    epoch: 1,
                    here: true,
                    ..
                }
            )
        };
        assert!(report.workers.iter().filter(inside).count() > 0, "{error}");
        assert!(report.workers.iter().any(|one| one.disowned), "{error}");
        assert_eq!(pass(&loader), chunks(LEN, SIZE));
        gate.open();
        expect_crew(&loader.workers(), workers, 0);
        assert_eq!(pass(&loader), chunks(LEN, SIZE));
    });
}

/// Threads that took the places of stuck ones could not be prepared, while the next epoch of another
/// loader had begun: its `iter()` tries again, as any does.
#[test]
fn an_iter_tries_again_though_its_pass_had_begun_before_threads_failed() {
    for_each_crew(|workers| {
        // How many threads may still be prepared.
        let (licences, gate) = (Tally::new(workers), Gate::closed());
        let (left, blocked) = (Arc::clone(&licences), Arc::clone(&gate));
        let crew = Workers::builder(workers).worker_init(move |_| {
            left.update(|left| {
                *left = left.checked_sub(1).ok_or("no licence")?;
                Ok(())
            })
        });
        let crew = crew.build();
        let builder = || DataLoaderBuilder::new(Collect).workers(&crew);
        let warm = builder().batch_size(SIZE).prefetch(2).warm_next_epoch(true);
        let warm = warm.try_build(Numbers(LEN)).unwrap();
        assert_eq!(pass(&warm), chunks(LEN, SIZE));
        licences.wait_until(|&left| left == 0);
        let stuck = builder().prefetch(workers).timeout(LIMIT);
        let stuck = stuck.build(Hooked::new(LEN, move |_| blocked.wait()));
        let iterator = stuck.iter();
        gate.wait_for_waiting(workers);
        let _ = failure(iterator);
        eventually("no thread can be prepared", || crew.alive() == 0);
        licences.update(|left| *left = usize::MAX);
        assert_eq!(pass(&warm), chunks(LEN, SIZE));
        gate.open();
        expect_crew(&crew, workers, 0);
    });
}
