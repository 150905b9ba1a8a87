//! Any loader and any iterator may be run ahead by a thread: the same items in order, so far and no further.

use std::error::Error;
use std::iter::from_fn;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use burn::data::dataloader::batcher::Batcher;
use burn::data::dataloader::{DataLoader, DataLoaderBuilder as BurnBuilder};
use burn::data::dataloader::{DataLoaderIterator, Progress};
use burn::data::dataset::{Dataset, DatasetError};
use burn::tensor::Device;
use burn_prefetch::{LoadError, Prefetch};
use burn_prefetch_tests::{
    Alive, Broken, Collect, Fault, Gate, Hooked, Lead, LiveThreads, Numbers, Placed, Tally, Token,
    Traces, Unreadable, cause, chunks, eventually, failure, for_each_case, for_each_worker_count,
    guarded, indices, late, loader, outcomes, pass,
};

const LEN: usize = 40;
const SIZE: usize = 4;
const BATCHES: usize = LEN / SIZE;

const WINDOWS: [usize; 4] = [0, 1, 2, 8];

type Lists = Arc<dyn DataLoader<Vec<usize>>>;

/// Burn's own loader, which makes each batch inside `next()`.
fn burns(data: impl Dataset<usize> + 'static) -> Lists {
    burns_builder(Collect).build(data)
}

fn burns_builder<O: Send + Clone + std::fmt::Debug + 'static>(
    batcher: impl Batcher<usize, O> + 'static,
) -> BurnBuilder<usize, O> {
    BurnBuilder::new(batcher).batch_size(SIZE)
}

fn ours(workers: usize) -> Lists {
    loader(workers).batch_size(SIZE).build(Numbers(LEN))
}

fn over<O: Send + 'static>(inner: &Arc<dyn DataLoader<O>>, ahead: usize) -> Arc<dyn DataLoader<O>> {
    Prefetch::over(Arc::clone(inner)).prefetch(ahead).build()
}

#[test]
fn the_same_batches_in_the_same_order() {
    for_each_case(WINDOWS, |workers, prefetch| {
        for inner in [burns(Numbers(LEN)), ours(workers)] {
            let ahead = over(&inner, prefetch);
            assert_eq!(ahead.num_items(), LEN);
            for _ in 0..3 {
                assert_eq!(pass(ahead.as_ref()), chunks(LEN, SIZE));
            }
            let twice = over(&ahead, prefetch);
            assert_eq!(pass(twice.as_ref()), chunks(LEN, SIZE));
        }
    });
}

#[test]
fn epochs_are_counted_as_the_inner_loader_counts() {
    for_each_worker_count(|workers| {
        let both: [fn(usize) -> Lists; 2] = [
            |_| burns_builder(Collect).shuffle(5).build(Numbers(LEN)),
            |workers| {
                loader(workers)
                    .batch_size(SIZE)
                    .shuffle(5)
                    .build(Numbers(LEN))
            },
        ];
        for shuffled in both {
            let (plain, ahead) = (shuffled(workers), over(&shuffled(workers), 2));
            for _ in 0..4 {
                assert_eq!(pass(ahead.as_ref()), pass(plain.as_ref()));
            }
        }
    });
}

/// Whoever calls `iter()` first has the earlier epoch, whichever thread is faster.
#[test]
fn passes_at_a_time_are_the_epochs_in_the_order_of_their_iters() {
    for_each_case(WINDOWS, |workers, prefetch| {
        let shuffled = || {
            loader(workers)
                .batch_size(SIZE)
                .shuffle(5)
                .build(Numbers(LEN))
        };
        let (plain, ahead) = (shuffled(), over(&shuffled(), prefetch));
        for _ in 0..100 {
            let expected = [(); 3].map(|()| pass(plain.as_ref()));
            let (first, second) = (ahead.iter(), ahead.iter());
            drop(ahead.iter());
            let second: Vec<_> = second.map(Result::unwrap).collect();
            let first: Vec<_> = first.map(Result::unwrap).collect();
            assert_eq!([first, second], expected[..2]);
        }
    });
}

#[test]
fn no_batches_and_one_batch() {
    for_each_case(WINDOWS, |workers, prefetch| {
        for len in [0, 1, SIZE] {
            let own: Lists = loader(workers).batch_size(SIZE).build(Numbers(len));
            for inner in [burns(Numbers(len)), own] {
                let ahead = over(&inner, prefetch);
                assert_eq!(pass(ahead.as_ref()), chunks(len, SIZE));
            }
        }
    });
}

#[test]
fn progress_is_that_of_the_batches_returned() {
    for_each_case(WINDOWS, |workers, prefetch| {
        let short: Lists = loader(workers).batch_size(SIZE).build(Numbers(LEN - 1));
        for inner in [burns(Numbers(LEN - 1)), short] {
            let ahead = over(&inner, prefetch);
            let mut iterator = ahead.iter();
            for batch in 0..=BATCHES {
                let progress = iterator.progress();
                let processed = (SIZE * batch).min(LEN - 1);
                assert_eq!(
                    (progress.items_processed, progress.items_total),
                    (processed, LEN - 1)
                );
                assert_eq!(progress.is_completed(), batch == BATCHES);
                assert_eq!(iterator.next().is_some(), batch < BATCHES);
            }
            assert!(iterator.progress().is_completed());
        }
    });
}

#[test]
fn slices_and_copies_are_those_of_the_inner_loader() {
    for_each_worker_count(|workers| {
        let own = burn_prefetch::DataLoaderBuilder::new(Placed).num_workers(workers);
        let own: Arc<dyn DataLoader<_>> = own.batch_size(SIZE).build(Numbers(LEN));
        for inner in [burns_builder(Placed).build(Numbers(LEN)), own] {
            let ahead = over(&inner, 2);
            let device = Device::flex().autodiff();
            let moved = ahead.to_device(&device);
            for (batch, expected) in pass(moved.as_ref()).into_iter().zip(chunks(LEN, SIZE)) {
                assert_eq!(batch.0, expected);
                assert_eq!(batch.1.is_autodiff(), device.is_autodiff());
            }
            let slice = moved.slice(7, 20);
            assert_eq!(slice.num_items(), 13);
            let (found, expected) = (pass(slice.as_ref()), pass(inner.slice(7, 20).as_ref()));
            let lists = |batches: &[(Vec<usize>, Device)]| -> Vec<Vec<usize>> {
                batches.iter().map(|batch| batch.0.clone()).collect()
            };
            assert_eq!(lists(&found), lists(&expected));
            assert!(found.iter().all(|batch| batch.1.is_autodiff()));
        }
    });
}

/// Fails as Burn's datasets do.
struct Failing;

impl Dataset<usize> for Failing {
    fn get(&self, index: usize) -> Result<usize, DatasetError> {
        if index == 13 {
            return Err(DatasetError::new(Unreadable { index }));
        }
        Ok(index)
    }

    fn len(&self) -> usize {
        LEN
    }
}

#[test]
fn an_error_of_the_inner_loader_is_its_own_and_at_its_place() {
    for_each_case(WINDOWS, |workers, prefetch| {
        let ahead = over(&burns(Failing), prefetch);
        for _ in 0..2 {
            let mut iterator = ahead.iter();
            let before: Vec<_> = iterator.by_ref().take(3).map(Result::unwrap).collect();
            assert_eq!(before, chunks(12, SIZE));
            let error = iterator.next().unwrap().unwrap_err();
            let own = error.source().and_then(|own| own.downcast_ref());
            assert_eq!(own, Some(&Unreadable { index: 13 }));
        }
        let broken = Broken {
            len: LEN,
            at: 13,
            fault: Fault::Error,
        };
        let inner: Lists = loader(workers).batch_size(SIZE).build(broken);
        let ahead = over(&inner, prefetch);
        for epoch in 0..3 {
            let error = failure(ahead.iter().skip(3));
            let at = cause(&error).place();
            assert_eq!((at.epoch, at.batch, at.index), (epoch, 3, Some(13)));
        }
    });
}

#[test]
fn a_timeout_of_the_inner_loader_passes_through() {
    for_each_worker_count(|workers| {
        if workers == 0 {
            return;
        }
        let gate = Gate::closed();
        let blocked = Arc::clone(&gate);
        let data = Hooked::new(LEN, move |index| {
            if index == 13 {
                blocked.wait();
            }
        });
        let inner = loader(workers).timeout(Duration::from_millis(100));
        let ahead = over(&inner.build(data), 2);
        late(ahead.iter().skip(13));
        gate.open();
        assert_eq!(pass(ahead.as_ref()), chunks(LEN, 1));
    });
}

#[test]
fn as_many_are_begun_as_may_be_and_never_more() {
    for_each_case(WINDOWS, |_, prefetch| {
        let lead = Lead::new(SIZE);
        let seen = Arc::clone(&lead);
        let inner = burns(Hooked::new(LEN, move |index| seen.fetch(index)));
        let ahead = over(&inner, prefetch);
        assert_eq!(lead.begun(), 0);
        let mut iterator = ahead.iter();
        for taken in 1..=BATCHES {
            lead.ask();
            assert!(iterator.next().is_some());
            lead.wait_for(prefetch.min(BATCHES - taken));
        }
        assert!(lead.most() <= prefetch, "{}", lead.most());
    });
}

/// Items that are counted and, as Burn wants them, may be cloned.
struct Tokens(Arc<Alive>);

impl Dataset<Arc<Token>> for Tokens {
    fn get(&self, _: usize) -> Result<Arc<Token>, DatasetError> {
        Ok(Arc::new(self.0.token()))
    }

    fn len(&self) -> usize {
        LEN
    }
}

#[test]
fn items_alive_stay_within_the_bound_and_the_batch_in_hand() {
    for_each_case(WINDOWS, |_, prefetch| {
        let alive = Alive::none();
        let inner = BurnBuilder::new(Collect).batch_size(SIZE);
        let inner: Arc<dyn DataLoader<_>> = inner.build(Tokens(Arc::clone(&alive)));
        let ahead = over(&inner, prefetch);
        assert_eq!(ahead.iter().map(Result::unwrap).count(), BATCHES);
        let allowed = (prefetch.max(1) + 1) * SIZE;
        assert!(alive.peak() <= allowed, "{} of {allowed}", alive.peak());
        alive.wait_for_none();
    });
}

#[test]
fn a_thousand_passes_left_early_leave_nothing_behind() {
    for_each_worker_count(|workers| {
        let (traces, threads) = (Traces::none(), LiveThreads::default());
        let seen = threads.clone();
        let inner = traces.builder().num_workers(workers).batch_size(SIZE);
        let inner = inner.build(traces.dataset(LEN, move |_| seen.enter()));
        let ahead = over(&inner, 3);
        drop(inner);
        for round in 0..1_000 {
            let taken = round % 4;
            for (number, batch) in ahead.iter().take(taken).enumerate() {
                let first = indices(&batch.unwrap())[0];
                assert_eq!(first, SIZE * number, "a batch of a pass that was left");
            }
        }
        traces.wait_for_no_items();
        // A thread that is still in the batch of a pass that was left does not serve the next.
        let most = workers + 100;
        assert!(threads.now() < most, "{} threads", threads.now());
        assert_eq!(pass(ahead.as_ref()).len(), BATCHES);
        drop(ahead);
        traces.wait_for_none();
        eventually("all threads end", || threads.now() == 0);
    });
}

/// How many threads have ever fetched.
fn counted(threads: &Arc<Tally<Vec<thread::ThreadId>>>) -> impl Fn(usize) + Send + Sync + use<> {
    let threads = Arc::clone(threads);
    move |_| {
        let here = thread::current().id();
        threads.update(|all| {
            if !all.contains(&here) {
                all.push(here);
            }
        });
    }
}

#[test]
fn a_thread_is_kept_for_the_next_pass() {
    for_each_case(WINDOWS, |_, prefetch| {
        let threads = Tally::new(Vec::new());
        let ahead = over(&burns(Hooked::new(LEN, counted(&threads))), prefetch);
        for _ in 0..20 {
            assert_eq!(pass(ahead.as_ref()), chunks(LEN, SIZE));
        }
        // One may still be at its end while another begins the next pass.
        let used = threads.now().len();
        assert!(used <= 10, "{used} threads for 20 passes");
        assert!(!threads.now().contains(&thread::current().id()));
        let copy = ahead.slice(0, LEN);
        assert_eq!(pass(copy.as_ref()), chunks(LEN, SIZE));
        assert!(threads.now().len() <= used + 1);
    });
}

#[test]
fn several_passes_at_a_time_are_independent() {
    for_each_worker_count(|workers| {
        for inner in [burns(Numbers(LEN)), ours(workers)] {
            let ahead = over(&inner, 2);
            let unread: Vec<_> = (0..5).map(|_| ahead.iter()).collect();
            for ((one, two), expected) in ahead.iter().zip(ahead.iter()).zip(chunks(LEN, SIZE)) {
                assert_eq!((one.unwrap(), two.unwrap()), (expected.clone(), expected));
            }
            let mut outer = ahead.iter();
            assert!(outer.next().is_some());
            assert_eq!(pass(ahead.as_ref()), chunks(LEN, SIZE));
            assert_eq!(outer.count(), BATCHES - 1);
            for iterator in unread {
                assert_eq!(iterator.map(Result::unwrap).count(), BATCHES);
            }
        }
    });
}

#[test]
fn a_dataset_may_read_one() {
    for_each_worker_count(|workers| {
        let ahead = over(&ours(workers), 2);
        let data = Hooked::new(9, move |_| {
            assert_eq!(pass(ahead.as_ref()), chunks(LEN, SIZE));
        });
        let outer: Lists = loader(workers).build(data);
        assert_eq!(pass(outer.as_ref()), chunks(9, 1));
        assert_eq!(pass(over(&outer, 2).as_ref()), chunks(9, 1));
    });
}

/// A loader that panics: at the start of a pass, or at one of its batches.
struct Fragile(Option<usize>);

struct FragilePass(usize, Option<usize>);

impl Iterator for FragilePass {
    type Item = Result<usize, DatasetError>;

    fn next(&mut self) -> Option<Self::Item> {
        assert_ne!(Some(self.0), self.1, "this batch is too much");
        self.0 += 1;
        (self.0 <= LEN).then(|| Ok(self.0 - 1))
    }
}

impl DataLoaderIterator<usize> for FragilePass {
    fn progress(&self) -> Progress {
        Progress::new(self.0, LEN, None)
    }
}

impl DataLoader<usize> for Fragile {
    fn iter<'a>(&'a self) -> Box<dyn DataLoaderIterator<usize> + 'a> {
        assert!(self.0.is_some(), "this pass is too much");
        Box::new(FragilePass(0, self.0))
    }

    fn num_items(&self) -> usize {
        LEN
    }

    fn to_device(&self, _: &Device) -> Arc<dyn DataLoader<usize>> {
        Arc::new(Self(self.0))
    }

    fn slice(&self, _: usize, _: usize) -> Arc<dyn DataLoader<usize>> {
        Arc::new(Self(None))
    }
}

fn assert_panicked(error: &LoadError, place: (usize, usize), words: &str) {
    let LoadError::Panic { at, message } = error else {
        panic!("{error}")
    };
    assert_eq!((at.epoch, at.batch), place);
    assert!(message.contains(words), "{message}");
}

#[test]
fn a_panic_of_the_inner_loader_is_one_error_at_its_place() {
    for_each_case(WINDOWS, |_, prefetch| {
        for at in [0, 1, 7, LEN - 1] {
            let inner: Arc<dyn DataLoader<usize>> = Arc::new(Fragile(Some(at)));
            let ahead = over(&inner, prefetch);
            for epoch in 0..3 {
                let mut seen = outcomes(ahead.iter());
                let error = seen.pop().unwrap().unwrap_err();
                assert_panicked(cause(&error), (epoch, at), "this batch is too much");
                let before: Vec<_> = seen.into_iter().map(Result::unwrap).collect();
                assert_eq!(before, (0..at).collect::<Vec<_>>());
            }
            // A copy counts its own passes.
            let error = failure(ahead.slice(0, 1).iter());
            assert_panicked(cause(&error), (0, 0), "this pass is too much");
        }
    });
}

#[test]
fn an_iterator_may_be_run_ahead() {
    guarded(|| {
        for prefetch in WINDOWS {
            let squares = (0..LEN).map(|item| item * item);
            let ahead = Prefetch::over(squares.clone()).prefetch(prefetch);
            let found: Vec<_> = ahead.into_iter().map(Result::unwrap).collect();
            assert_eq!(found, squares.collect::<Vec<_>>());
            let mut endless = Prefetch::over(0..).prefetch(prefetch).into_iter();
            let first: Vec<usize> = endless.by_ref().take(5).map(Result::unwrap).collect();
            assert_eq!(first, [0, 1, 2, 3, 4]);
            let mut none = Prefetch::over(std::iter::empty::<u8>()).into_iter();
            assert!(none.next().is_none() && none.next().is_none());
        }
        let default: Vec<_> = Prefetch::over(0..9).into_iter().flatten().collect();
        assert_eq!(default, (0..9).collect::<Vec<_>>());
    });
}

#[test]
fn an_iterator_is_run_ahead_so_far_and_no_further() {
    guarded(|| {
        for prefetch in WINDOWS {
            let (lead, alive) = (Lead::new(1), Alive::none());
            let (seen, tokens) = (Arc::clone(&lead), Arc::clone(&alive));
            let mut next = 0;
            let endless = from_fn(move || {
                seen.fetch(next);
                next += 1;
                Some(tokens.token())
            });
            let mut ahead = Prefetch::over(endless).prefetch(prefetch).into_iter();
            for _ in 0..20 {
                lead.ask();
                drop(ahead.next());
                lead.wait_for(prefetch);
            }
            assert!(lead.most() <= prefetch, "{}", lead.most());
            assert!(alive.peak() <= prefetch.max(1) + 1, "{}", alive.peak());
            drop(ahead);
            alive.wait_for_none();
        }
    });
}

/// The iterator, its thread and what they had made go with whoever reads.
#[test]
fn an_iterator_that_is_left_early_ends() {
    guarded(|| {
        let (alive, threads) = (Alive::none(), LiveThreads::default());
        for round in 0..200 {
            let (tokens, seen) = (Arc::clone(&alive), threads.clone());
            let kept = alive.token();
            let endless = from_fn(move || {
                let _ = &kept;
                seen.enter();
                Some(tokens.token())
            });
            let ahead = Prefetch::over(endless).prefetch(round % 4);
            assert_eq!(ahead.into_iter().take(round % 3).count(), round % 3);
        }
        alive.wait_for_none();
        eventually("all threads end", || threads.now() == 0);
    });
}

#[test]
fn a_panic_of_an_iterator_is_the_last_item() {
    guarded(|| {
        for prefetch in WINDOWS {
            let fragile = (0..LEN).inspect(|&item| assert_ne!(item, 7, "seven is too much"));
            let mut ahead = Prefetch::over(fragile).prefetch(prefetch).into_iter();
            let before: Vec<_> = ahead.by_ref().take(7).map(Result::unwrap).collect();
            assert_eq!(before, [0, 1, 2, 3, 4, 5, 6]);
            let error = ahead.next().unwrap().unwrap_err();
            assert_panicked(&error, (0, 7), "seven is too much");
            assert!(ahead.next().is_none() && ahead.next().is_none());
        }
    });
}

/// A reader waits for an item that does not come; dropping another pass of it waits for nothing.
#[test]
fn dropping_a_pass_waits_for_no_item() {
    for_each_case(WINDOWS, |_, prefetch| {
        let gate = Gate::closed();
        let blocked = Arc::clone(&gate);
        let inner = burns(Hooked::new(LEN, move |index| {
            if index == SIZE {
                blocked.wait();
            }
        }));
        let ahead = over(&inner, prefetch);
        let mut iterator = ahead.iter();
        assert!(iterator.next().is_some());
        if prefetch > 0 {
            gate.wait_for_waiting(1);
        }
        drop(iterator);
        gate.open();
        assert_eq!(pass(ahead.as_ref()), chunks(LEN, SIZE));
    });
}
