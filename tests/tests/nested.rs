//! A dataset or batcher may read another loader on the same crew, however deep, with one worker too.

use std::error::Error;
use std::iter::successors;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use burn::data::dataloader::DataLoader;
use burn::data::dataloader::batcher::Batcher;
use burn::data::dataset::{Dataset, DatasetError};
use burn::tensor::Device;
use burn_prefetch::{
    DataLoaderBuilder, Doing, LoadError, PrefetchDataLoader, Stage, Workers, context, rng,
};
use burn_prefetch_tests::{
    Broken, Collect, Fault, Gate, Hooked, LiveThreads, Numbers, Tally, Traces, Unreadable, cause,
    chunks, eventually, expect_crew, failure, for_each_case, for_each_crew, for_each_worker_count,
    indices, late, pass, timed_out,
};
use rand_core::Rng;

const LIMIT: Duration = Duration::from_millis(100);

type Numbered = Arc<dyn DataLoader<Vec<usize>>>;

fn builder(crew: &Workers) -> DataLoaderBuilder<usize, Vec<usize>> {
    DataLoaderBuilder::new(Collect).workers(crew)
}

/// A dataset whose items are sums of whole passes.
#[derive(Clone)]
struct Sums {
    len: usize,
    of: Numbered,
}

impl Dataset<usize> for Sums {
    fn get(&self, index: usize) -> Result<usize, DatasetError> {
        let mut sum = index;
        for batch in self.of.iter() {
            sum += batch?.iter().sum::<usize>();
        }
        Ok(sum)
    }

    fn len(&self) -> usize {
        self.len
    }
}

/// `depth` loaders, each of whose items reads a whole pass of the next; the innermost has the
/// numbers below 6.
fn deep(crew: &Workers, depth: usize, prefetch: Option<usize>) -> Numbered {
    let builder = || {
        let builder = builder(crew).batch_size(2);
        match prefetch {
            Some(batches) => builder.prefetch(batches),
            None => builder,
        }
    };
    let mut loader = builder().build(Numbers(6));
    for _ in 1..depth {
        loader = builder().build(Sums { len: 6, of: loader });
    }
    loader
}

#[test]
fn three_deep_on_one_crew() {
    let windows = [None, Some(0), Some(1), Some(7)];
    for_each_case(windows, |workers, prefetch| {
        let crew = Workers::new(workers);
        // 15, then six times that and 15, and so on: each item has the sum of a pass below it.
        let sums = |below: usize| (0..6).map(move |index| index + below);
        for (depth, below) in [(1, 0), (2, 15), (3, 6 * 15 + 15)] {
            let found = pass(deep(&crew, depth, prefetch).as_ref());
            let expected: Vec<_> = sums(below).collect();
            assert_eq!(found.concat(), expected, "{depth} deep, {prefetch:?}");
        }
        assert_eq!(crew.alive(), workers);
    });
}

#[test]
fn three_deep_on_threads_that_end_with_the_last_reader() {
    for_each_worker_count(|workers| {
        let crew = Workers::builder(workers).persistent(false).build();
        let loader = deep(&crew, 3, None);
        for _ in 0..3 {
            assert_eq!(pass(loader.as_ref()).len(), 3);
            expect_crew(&crew, 0, 0);
        }
    });
}

#[test]
fn each_depth_on_a_crew_of_its_own() {
    for_each_worker_count(|workers| {
        let crews = [(); 3].map(|()| Workers::new(workers));
        let mut loader = builder(&crews[0]).build(Numbers(6));
        for crew in &crews[1..] {
            loader = builder(crew).build(Sums { len: 6, of: loader });
        }
        let expected: Vec<_> = (0..6).map(|index| vec![index + 105]).collect();
        assert_eq!(pass(loader.as_ref()), expected);
        assert!(crews.iter().all(|crew| crew.disowned() == 0));
    });
}

#[test]
fn several_readers_of_nested_loaders_at_a_time() {
    for_each_worker_count(|workers| {
        let crew = Workers::new(workers);
        let loader = deep(&crew, 3, None);
        let other = builder(&crew).build(Numbers(60));
        let mut unread = loader.iter();
        for (one, two) in loader.iter().zip(other.iter()) {
            assert!(one.is_ok() && two.is_ok());
        }
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| assert_eq!(pass(loader.as_ref()).len(), 3));
            }
        });
        assert_eq!(unread.by_ref().map(Result::unwrap).count(), 3);
    });
}

/// Whoever has the lock reads a pass; whoever wants it waits, and cannot help.
#[test]
fn an_item_may_hold_a_lock_while_it_reads_a_pass() {
    let windows = [None, Some(0), Some(1), Some(16)];
    for_each_case(windows, |workers, prefetch| {
        let crew = Workers::new(workers);
        let inner = deep(&crew, 2, prefetch);
        let lock = Mutex::new(0);
        let data = Hooked::new(24, move |_| {
            let mut passes = lock.lock().unwrap_or_else(PoisonError::into_inner);
            assert_eq!(pass(inner.as_ref()).len(), 3);
            *passes += 1;
        });
        let outer = builder(&crew).batch_size(3).prefetch(8).build(data);
        assert_eq!(pass(outer.as_ref()), chunks(24, 3));
    });
}

#[test]
fn a_batcher_may_read_a_pass() {
    struct Reads(Numbered);
    impl Batcher<usize, Vec<usize>> for Reads {
        fn batch(&self, items: Vec<usize>, _: &Device) -> Vec<usize> {
            let below = pass(self.0.as_ref()).concat().iter().sum::<usize>();
            items.into_iter().map(|item| item + below).collect()
        }
    }
    for_each_worker_count(|workers| {
        let crew = Workers::new(workers);
        let inner = DataLoaderBuilder::new(Reads(deep(&crew, 1, None))).workers(&crew);
        let outer = Reads(inner.build(Numbers(6)));
        let outer = DataLoaderBuilder::new(outer).workers(&crew).batch_size(4);
        let found = pass(outer.build(Numbers(10)).as_ref());
        let expected: Vec<_> = (0..10).map(|index| index + 105).collect();
        assert_eq!(found.concat(), expected);
    });
}

/// What an item knows before and after it reads a pass, and the random numbers that it draws.
fn knows(inner: Option<Numbered>) -> impl Fn() -> [u64; 4] + Send + Sync {
    move || {
        let before = context().expect("this is user code");
        let first = [rng().next_u64(), rng().next_u64()];
        if let Some(inner) = &inner {
            assert_eq!(pass(inner.as_ref()).len(), 3);
            // One that is not read to its end, and one more inside it.
            let mut open = inner.iter();
            assert!(open.next().is_some());
            assert_eq!(pass(inner.as_ref()).len(), 3);
        }
        assert_eq!(context(), Some(before));
        [first[0], first[1], rng().next_u64(), rng().next_u64()]
    }
}

struct Draws<F>(F);

impl<F: Fn() -> [u64; 4] + Send + Sync> Dataset<[u64; 4]> for Draws<F> {
    fn get(&self, index: usize) -> Result<[u64; 4], DatasetError> {
        let at = context().expect("this is user code");
        assert_eq!(at.index, Some(index));
        Ok((self.0)())
    }

    fn len(&self) -> usize {
        20
    }
}

impl<F: Fn() -> [u64; 4] + Send + Sync> Batcher<[u64; 4], Vec<[u64; 4]>> for Draws<F> {
    fn batch(&self, mut items: Vec<[u64; 4]>, _: &Device) -> Vec<[u64; 4]> {
        assert_eq!(context().expect("this is user code").index, None);
        items.push((self.0)());
        items
    }
}

/// Inside the pass that an item reads, the context is that of the inner item; it draws too.
struct Checks;

impl Dataset<usize> for Checks {
    fn get(&self, index: usize) -> Result<usize, DatasetError> {
        let at = context().expect("this is user code");
        assert_eq!(at.index, Some(index));
        let _ = rng().next_u64();
        Ok(index)
    }

    fn len(&self) -> usize {
        6
    }
}

#[test]
fn an_item_and_a_batch_have_their_own_context_and_numbers_again_after_an_inner_pass() {
    for_each_worker_count(|workers| {
        let crew = Workers::new(workers);
        let epochs = |inner: Option<Numbered>| {
            let (items, batches) = (knows(inner.clone()), knows(inner));
            let builder = DataLoaderBuilder::new(Draws(batches)).workers(&crew);
            let loader = builder.batch_size(3).shuffle(4).start_epoch(2);
            let loader = loader.build(Draws(items));
            [pass(loader.as_ref()), pass(loader.as_ref())]
        };
        let alone = epochs(None);
        assert_ne!(alone[0], alone[1]);
        let inner = builder(&crew).batch_size(2).shuffle(9).build(Checks);
        assert_eq!(epochs(Some(inner)), alone);
    });
}

/// The addresses of a local variable in the innermost items of one thread: the least and the most.
fn depth_of_stack() -> (usize, usize) {
    use std::cell::Cell;
    thread_local!(static DEPTHS: Cell<(usize, usize)> = const { Cell::new((usize::MAX, 0)) });
    let local = 0_u8;
    let address = std::ptr::from_ref(std::hint::black_box(&local)).addr();
    DEPTHS.with(|depths| {
        let (least, most) = depths.get();
        let now = (least.min(address), most.max(address));
        depths.set(now);
        now
    })
}

/// A tenth of a thread's stack, for what must not grow with the number of items.
const SHALLOW: usize = 200 * 1024;

#[test]
fn the_stack_does_not_grow_with_the_items() {
    for_each_worker_count(|workers| {
        let crew = Workers::new(workers);
        let most = Tally::new(0);
        let measured = Arc::clone(&most);
        let data = Hooked::new(2, move |_| {
            let (from, to) = depth_of_stack();
            measured.update(|most| *most = (*most).max(to - from));
        });
        let innermost = builder(&crew).build(data);
        let inner = builder(&crew).build(Sums {
            len: 2,
            of: innermost,
        });
        let outer = builder(&crew).batch_size(16).prefetch(8).build(Sums {
            len: 2_500,
            of: inner,
        });
        assert_eq!(pass(outer.as_ref()).concat().len(), 2_500);
        let (spread, all) = (most.now(), 10_000);
        assert!(
            spread < SHALLOW,
            "{spread} bytes of stack for {all} innermost items"
        );
    });
}

/// An outer error whose cause is the inner loader's, whose cause is the user's own.
fn causes(error: &DatasetError) -> Vec<&LoadError> {
    let first: &(dyn Error + 'static) = error;
    let chain = successors(Some(first), |&error| error.source());
    let found: Vec<_> = chain.filter_map(|error| error.downcast_ref()).collect();
    found
}

#[test]
fn an_inner_error_is_the_cause_of_the_outer_one() {
    for fault in [Fault::Error, Fault::Panic] {
        for_each_worker_count(move |workers| {
            let crew = Workers::new(workers);
            let inner = builder(&crew).batch_size(2).build(Broken {
                len: 6,
                at: 3,
                fault,
            });
            let outer = builder(&crew).build(Sums { len: 4, of: inner });
            for epoch in 0..3 {
                let error = failure(outer.iter());
                let found = causes(&error);
                assert_eq!(found.len(), 2, "{error:?}");
                assert_eq!(found[0].place(), cause(&error).place());
                let outer_at = found[0].place();
                assert_eq!((outer_at.stage, outer_at.epoch), (Stage::Fetch, epoch));
                assert_eq!((outer_at.batch, outer_at.index), (0, Some(0)));
                let inner_at = found[1].place();
                assert_eq!((inner_at.stage, inner_at.batch), (Stage::Fetch, 1));
                assert_eq!(inner_at.index, Some(3));
                let first: &(dyn Error + 'static) = &error;
                let mut chain = successors(Some(first), |&error| error.source());
                let own = chain.find_map(|error| error.downcast_ref::<Unreadable>());
                assert_eq!(own.is_some(), fault == Fault::Error, "{error:?}");
            }
        });
    }
}

/// A dataset that begins a pass, waits until `inside` have its items, and reads on.
struct Impatient {
    gate: Arc<Gate>,
    inside: usize,
    of: Numbered,
}

impl Dataset<usize> for Impatient {
    fn get(&self, index: usize) -> Result<usize, DatasetError> {
        let mut iterator = self.of.iter();
        if index == 0 {
            self.gate.wait_for_waiting(self.inside);
        }
        iterator.find_map(Result::err).map_or(Ok(index), Err)
    }

    fn len(&self) -> usize {
        3
    }
}

/// The first pass of the inner loader stops, in so many of its items.
fn stops(
    builder: DataLoaderBuilder<usize, Vec<usize>>,
    gate: &Arc<Gate>,
) -> PrefetchDataLoader<Vec<usize>> {
    let blocked = Arc::clone(gate);
    let data = Hooked::new(20, move |_| {
        if context().expect("this is user code").epoch == 0 {
            blocked.wait();
        }
    });
    let built = builder.timeout(LIMIT).try_build(data);
    built.expect("the settings are good")
}

#[test]
fn an_inner_timeout_is_the_cause_of_the_outer_error() {
    for_each_crew(|workers| {
        let (crew, inner_crew, gate) =
            (Workers::new(workers), Workers::new(workers), Gate::closed());
        let inner = stops(builder(&inner_crew).prefetch(workers), &gate);
        let outer = builder(&crew).prefetch(1).build(Impatient {
            gate: Arc::clone(&gate),
            inside: workers,
            of: Arc::new(inner),
        });
        let error = failure(outer.iter());
        let found = causes(&error);
        assert!(matches!(
            found[..],
            [LoadError::Dataset { .. }, LoadError::Timeout { .. }]
        ));
        assert_eq!(found[0].place().index, Some(0));
        assert_eq!((crew.disowned(), inner_crew.disowned()), (0, workers));
        assert_eq!(pass(outer.as_ref()), chunks(3, 1));
        gate.open();
        expect_crew(&inner_crew, workers, 0);
    });
}

/// On one crew: all workers but the one that waits in `next()` are stuck for it, and given up.
#[test]
fn an_inner_timeout_on_the_same_crew_gives_up_the_others() {
    for_each_crew(|workers| {
        if workers == 1 {
            return;
        }
        let (crew, gate) = (Workers::new(workers), Gate::closed());
        let inner = stops(builder(&crew).prefetch(workers - 1), &gate);
        let outer = builder(&crew).prefetch(1).build(Impatient {
            gate: Arc::clone(&gate),
            inside: workers - 1,
            of: Arc::new(inner),
        });
        let error = failure(outer.iter());
        let found = causes(&error);
        let [
            LoadError::Dataset { at, .. },
            LoadError::Timeout { crew: report, .. },
        ] = found[..]
        else {
            panic!("{error:?}")
        };
        for one in &report.workers {
            let itself = at.worker == Some(one.worker);
            let outer = matches!(
                one.doing,
                Doing::Fetching {
                    here: false,
                    index: Some(0),
                    ..
                }
            );
            assert_eq!((one.disowned, outer), (!itself, itself), "{one}");
        }
        assert_eq!(crew.disowned(), workers - 1);
        assert_eq!(pass(outer.as_ref()), chunks(3, 1));
        gate.open();
        expect_crew(&crew, workers, 0);
    });
}

/// The outer reader's time is over while its workers are inside passes of one item, of the same crew,
/// their own or another's: whoever was given up finishes the pass that it reads, and then ends.
#[test]
fn an_outer_timeout_gives_up_whoever_reads_an_inner_pass() {
    for_each_crew(|workers| {
        let (crew, gate, traces) = (Workers::new(workers), Gate::closed(), Traces::none());
        let inside = LiveThreads::default();
        let (blocked, seen) = (Arc::clone(&gate), inside.clone());
        let inner = traces.builder().workers(&crew).prefetch(0);
        let inner = inner.build(traces.dataset(1, move |_| {
            seen.enter();
            blocked.wait();
        }));
        let seen = inside.clone();
        let data = Hooked::new(20, move |_| {
            if context().expect("this is user code").epoch == 0 {
                seen.enter();
                assert_eq!(
                    pass(inner.as_ref()).iter().flat_map(indices).sum::<usize>(),
                    0
                );
            }
        });
        let outer = builder(&crew).prefetch(workers).timeout(LIMIT).build(data);
        let iterator = outer.iter();
        eventually("all are inside", || inside.now() == workers);
        let error = late(iterator);
        for one in &timed_out(&error).workers {
            let fetching = matches!(one.doing, Doing::Fetching { .. });
            assert!(fetching && one.disowned, "{one}");
        }
        assert_eq!(pass(outer.as_ref()), chunks(20, 1));
        gate.open();
        expect_crew(&crew, workers, 0);
        traces.wait_for_no_items();
        assert_eq!(pass(outer.as_ref()), chunks(20, 1));
    });
}
