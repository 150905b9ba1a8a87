//! Whatever is built, read, left, shared, nested, stuck and dropped, in whatever order: nothing is left of it.

use std::collections::BTreeSet;
use std::env;
use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread::{self, Builder};
use std::time::Duration;

use burn::data::dataloader::DataLoader;
use burn::data::dataset::DatasetError;
use burn_prefetch::{DataLoaderBuilder, Prefetch, PrefetchDataLoader, Workers};
use burn_prefetch_tests::{
    Dice, Guarded, Kept, Sky, WORKERS, Weather, eventually, expect_loader_threads, guarded, indices,
};

/// In all, for any number of workers.
const SCHEDULES: u64 = 1_000;

/// The seed of the one schedule to run, where it is set.
const ONLY: &str = "BURN_PREFETCH_STORM_SEED";

/// How many things happen in a schedule before its end.
const STEPS: usize = 16;

/// So many loaders read each other, at most.
const DEEPEST: usize = 3;

/// Nobody waits long for those that are stuck.
const MOMENT: Duration = Duration::from_millis(1);

type Loader = PrefetchDataLoader<Kept>;
type Settings = DataLoaderBuilder<Guarded, Kept>;
type Batches = Box<dyn Iterator<Item = Result<Kept, DatasetError>> + Send>;

/// What a pass must be.
#[derive(Clone)]
struct Promise {
    range: Range<usize>,
    batch_size: usize,
    num_items: usize,
    /// Whether the numbers come in their own order.
    in_sequence: bool,
    calm: bool,
}

/// A loader, and how many loaders deep it reads.
#[derive(Clone)]
struct Built {
    loader: Arc<Loader>,
    depth: usize,
    promise: Promise,
}

/// A pass that is being read.
struct Pass {
    batches: Batches,
    promise: Promise,
    seen: BTreeSet<usize>,
    number: usize,
    failed: bool,
}

impl Pass {
    fn new(of: &Built, batches: Batches) -> Self {
        Self {
            batches,
            promise: of.promise.clone(),
            seen: BTreeSet::new(),
            number: 0,
            failed: false,
        }
    }

    /// Reads what comes next, if anything does, and checks that it may.
    fn advance(&mut self) -> bool {
        match self.batches.next() {
            Some(Ok(batch)) => self.check(&indices(&batch)),
            Some(Err(error)) => {
                assert!(!self.promise.calm, "nothing can have gone wrong: {error}");
                assert!(!self.failed, "one error is enough: {error}");
                self.failed = true;
            }
            None => {
                let whole = self.seen.len() == self.promise.num_items;
                assert!(whole || self.failed, "not whole: {:?}", self.seen);
                return false;
            }
        }
        true
    }

    fn check(&mut self, batch: &[usize]) {
        let (range, size) = (&self.promise.range, self.promise.batch_size);
        assert!(!self.failed, "nothing comes after an error: {batch:?}");
        assert!((1..=size).contains(&batch.len()), "{batch:?}");
        if self.promise.in_sequence {
            let first = range.start + self.number * size;
            let expected: Vec<_> = (first..range.end).take(size).collect();
            assert_eq!(batch, expected);
        }
        for &index in batch {
            assert!(range.contains(&index), "{index} is not in {range:?}");
            assert!(self.seen.insert(index), "{index} came twice");
        }
        self.number += 1;
    }

    fn read(mut self) {
        while self.advance() {}
        assert!(!self.advance(), "a pass that is over stays over");
    }
}

/// Workers, and whether they outlive passes.
#[derive(Clone)]
struct Crew {
    workers: Workers,
    persistent: bool,
}

/// All there is in one schedule.
struct World {
    dice: Dice,
    workers: usize,
    weather: Weather,
    sky: Arc<Sky>,
    /// What most loaders share.
    crew: Crew,
    /// Handles that are kept to the end.
    crews: Vec<Crew>,
    loaders: Vec<Built>,
    passes: Vec<Pass>,
}

impl World {
    fn new(seed: u64, workers: usize) -> Self {
        let mut dice = Dice::new(seed);
        let weather = dice.pick(&Weather::ALL);
        let sky = Sky::new(seed, weather);
        let persistent = !dice.one_in(4);
        let crew = Workers::builder(workers).persistent(persistent);
        let crew = crew.shutdown_grace(MOMENT).worker_init(sky.init());
        let crew = Crew {
            workers: crew.build(),
            persistent,
        };
        Self {
            dice,
            workers,
            weather,
            sky,
            crews: vec![crew.clone()],
            crew,
            loaders: Vec::new(),
            passes: Vec::new(),
        }
    }

    fn run(mut self) {
        self.build();
        for _ in 0..STEPS {
            self.one_step();
        }
        self.end();
    }

    fn one_step(&mut self) {
        match self.dice.below(12) {
            0 | 1 => self.build(),
            2 | 3 => self.begin(),
            4 => self.advance(),
            5 => self.read_two(),
            6 => self.leave_one(),
            7 => self.slice(),
            8 => self.run_ahead(),
            9 => self.part_with_a_loader(),
            10 => drop(self.dice.take(&mut self.passes)),
            _ => self.sky.let_go(),
        }
    }

    /// A loader with whatever settings may go together.
    fn build(&mut self) {
        let inner = self.loader().filter(|inner| inner.depth < DEEPEST);
        let inner = inner.filter(|_| self.dice.one_in(3));
        let depth = inner.as_ref().map_or(1, |inner| inner.depth + 1);
        let dice = &mut self.dice;
        let len = dice.below(17);
        let data = self.sky.dataset(len, inner.map(|inner| inner.loader));
        let (batch_size, shuffled, in_order) = (1 + dice.below(4), dice.one_in(3), !dice.one_in(3));
        let (builder, persistent) = self.staffed();
        let builder = builder.batch_size(batch_size).in_order(in_order);
        let builder = if shuffled {
            builder.shuffle(7)
        } else {
            builder
        };
        let builder = builder.warm_next_epoch(persistent && self.dice.one_in(2));
        let builder = self.ahead(builder);
        let builder = self.patient(builder);
        let loader = Arc::new(builder.try_build(data).expect("these settings go together"));
        if self.dice.one_in(4) {
            self.crews.push(Crew {
                workers: loader.workers(),
                persistent,
            });
        }
        let promise = Promise {
            range: 0..len,
            batch_size,
            num_items: loader.num_items(),
            in_sequence: in_order && !shuffled,
            calm: self.sky.is(Weather::Calm),
        };
        self.loaders.push(Built {
            loader,
            depth,
            promise,
        });
    }

    /// With the workers that most share, or with its own; whether they outlive passes.
    fn staffed(&mut self) -> (Settings, bool) {
        let builder = self.sky.traces.builder();
        if !self.dice.one_in(3) {
            let builder = builder.workers(&self.crew.workers);
            return (builder, self.crew.persistent);
        }
        let persistent = !self.dice.one_in(4);
        let builder = builder.num_workers(self.workers).shutdown_grace(MOMENT);
        let builder = builder.persistent_workers(persistent);
        (builder.worker_init(self.sky.init()), persistent)
    }

    fn ahead(&mut self, builder: Settings) -> Settings {
        let dice = &mut self.dice;
        let builder = match dice.below(3) {
            0 => builder,
            1 => builder.prefetch(dice.pick(&[0, 1, 2, 5, 40])),
            _ => builder.prefetch_factor(dice.pick(&[1, 2])),
        };
        match dice.below(4) {
            0 => builder.batched(),
            1 => builder.parts_per_batch(1 + dice.below(4)),
            2 => builder.drop_last(true),
            _ => builder,
        }
    }

    fn patient(&mut self, builder: Settings) -> Settings {
        let dice = &mut self.dice;
        let builder = match dice.below(3) {
            0 => builder.stall_warning(None),
            1 => builder.stall_warning(MOMENT),
            _ => builder,
        };
        let hurries = self.sky.is(Weather::Hurry) && dice.one_in(2);
        if hurries || self.sky.is(Weather::Stuck) {
            builder.timeout(MOMENT * dice.pick(&[1, 2, 4]))
        } else {
            builder
        }
    }

    /// One of the loaders.
    fn loader(&mut self) -> Option<Built> {
        let count = self.loaders.len();
        (count > 0).then(|| self.loaders[self.dice.below(count)].clone())
    }

    fn begin(&mut self) {
        let Some(of) = self.loader() else { return };
        if self.dice.one_in(4) {
            of.loader.set_epoch(self.dice.below(3));
        }
        let batches = Box::new(of.loader.iter_owned());
        self.passes.push(Pass::new(&of, batches));
    }

    fn advance(&mut self) {
        let Some(mut pass) = self.dice.take(&mut self.passes) else {
            return;
        };
        if (0..self.dice.below(6)).all(|_| pass.advance()) {
            self.passes.push(pass);
        }
    }

    /// To their ends, each on a thread of its own.
    fn read_two(&mut self) {
        self.begin();
        let two = [(); 2].map(|()| self.dice.take(&mut self.passes));
        thread::scope(|scope| {
            for pass in two.into_iter().flatten() {
                scope.spawn(|| pass.read());
            }
        });
    }

    /// Passes that borrow the loader, and are not read to their ends.
    fn leave_one(&mut self) {
        let Some(of) = self.loader() else { return };
        let taken = self.dice.below(4);
        let read = match self.dice.below(3) {
            0 => of.loader.iter().take(taken).count(),
            1 => of.loader.peek_epoch().take(taken).count(),
            _ => of.loader.iter_epoch(9).take(taken).count(),
        };
        assert!(read <= taken && (read == taken || read <= of.loader.num_batches()));
    }

    fn slice(&mut self) {
        let Some(of) = self.loader() else { return };
        let end = self.dice.below(of.loader.num_items() + 1);
        let start = self.dice.below(end + 1);
        let slice = of.loader.try_slice(start, end).expect("within the loader");
        let first = of.promise.range.start;
        let promise = Promise {
            range: first + start..first + end,
            num_items: slice.num_items(),
            ..of.promise
        };
        self.loaders.push(Built {
            loader: Arc::new(slice),
            depth: of.depth,
            promise,
        });
    }

    /// A pass on a thread of its own, ahead of its reader.
    fn run_ahead(&mut self) {
        let Some(of) = self.loader() else { return };
        let ahead = Prefetch::over(of.loader.iter_owned()).prefetch(self.dice.below(3));
        let batches = ahead.into_iter();
        let batches =
            batches.map(|batch| batch.unwrap_or_else(|error| Err(DatasetError::new(error))));
        self.passes.push(Pass::new(&of, Box::new(batches)));
    }

    /// It is dropped, or becomes its next pass.
    fn part_with_a_loader(&mut self) {
        let Some(of) = self.dice.take(&mut self.loaders) else {
            return;
        };
        if self.dice.one_in(2) {
            return;
        }
        let copy = of.loader.try_slice(0, of.loader.num_items());
        let pass = copy.expect("within the loader").into_iter_owned();
        self.passes.push(Pass::new(&of, Box::new(pass)));
    }

    /// Lets all of it go, in any order; what is left is what was there before.
    fn end(mut self) {
        while let Some(pass) = self.dice.take(&mut self.passes) {
            if self.dice.one_in(2) {
                pass.read();
            }
            self.dice
                .one_in(4)
                .then(|| self.dice.take(&mut self.loaders));
        }
        self.sky.clear_up();
        for crew in &self.crews {
            expect_recovery(&self.sky, crew);
        }
        self.loaders.clear();
        for crew in &self.crews {
            eventually("everybody is in place", || self.is_whole(crew));
        }
        drop((self.crews, self.crew));
        self.sky.traces.wait_for_none();
        expect_loader_threads(0);
        eventually("all threads end", || self.sky.threads.now() == 0);
    }

    fn is_whole(&self, crew: &Crew) -> bool {
        let alive = if crew.persistent { self.workers } else { 0 };
        // One that could not be prepared is not missed before the next pass.
        let in_place = crew.workers.alive() == alive || self.weather == Weather::Init;
        in_place && crew.workers.disowned() == 0
    }
}

/// The next pass is whole again, at the latest when all that were stuck have come back.
fn expect_recovery(sky: &Arc<Sky>, crew: &Crew) {
    let builder = sky.traces.builder().workers(&crew.workers);
    let loader = builder.try_build(sky.dataset(20, None)).expect("accepted");
    // A thread that failed a moment ago may tell the first pass of that.
    eventually("a whole pass", || loader.iter().flatten().count() == 20);
}

#[test]
fn a_thousand_schedules_leave_nothing_behind() {
    let only = env::var(ONLY).ok();
    let only = only.map(|seed| seed.parse().expect("a seed is a number"));
    let seeds = only.map_or(0..SCHEDULES, |seed| seed..seed + 1);
    for seed in seeds {
        let workers = WORKERS[1 + usize::try_from(seed % 4).expect("it is small")];
        // Whatever fails is told with the name of its thread.
        let name = format!("schedule {seed}, {workers} workers");
        let run = move || guarded(move || World::new(seed, workers).run());
        let schedule = Builder::new().name(name).spawn(run).expect("there is room");
        if let Err(panic) = schedule.join() {
            resume_unwind(panic);
        }
    }
}
