//! Counts and times of one loader while it runs.

use std::time::Duration;

use crossbeam_utils::CachePadded;
use hdrhistogram::Histogram;

use crate::stats::{Level, SlowItem, Stats, UploadStats, WaitStats, Work, WorkerStats};
use crate::sync::QuietMutex;
use crate::sync::quiet::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};

/// No wait is told from one that is longer: a day.
const LONGEST: u64 = 86_400_000_000_000;

/// So many of the slowest items are kept.
const SLOWEST: usize = 8;

/// What all passes of one loader count into. Takes no lock for a batch that is there when it is
/// asked for, and reads no clock of its own.
#[derive(Debug, Default)]
pub struct Tally {
    /// Batches that were there when they were asked for; written by readers alone.
    ready: CachePadded<AtomicU64>,
    batches: CachePadded<Gauge>,
    bytes: CachePadded<Gauge>,
    waits: QuietMutex<Waits>,
    /// Waits that were not measured, since each would show; written by readers alone.
    unmeasured: CachePadded<AtomicU64>,
    /// First that of the calling threads, then each worker's.
    work: QuietMutex<Vec<Work>>,
    /// All but the level.
    uploads: QuietMutex<UploadStats>,
    on_device: Gauge,
    reorder_depth: AtomicUsize,
    /// The window, when it was last full of finished batches; and whether that was after the last
    /// time that a reader found nothing.
    window: AtomicUsize,
    was_full: AtomicBool,
    starved: AtomicU64,
    errors: AtomicU64,
    slowest: Slowest,
}

impl Tally {
    /// Whatever has been counted so far.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let work = self.work.lock().clone();
        let mut workers = work.iter().copied();
        let callers = workers.next().unwrap_or_default();
        let idle = Duration::ZERO;
        Stats {
            waits: self.waits(),
            batches: self.batches.level(),
            bytes: self.bytes.level(),
            workers: workers.map(|work| WorkerStats { work, idle }).collect(),
            callers,
            uploads: UploadStats {
                ahead: self.on_device.level(),
                ..*self.uploads.lock()
            },
            reorder_depth: self.reorder_depth.load(Relaxed),
            errors: self.errors.load(Relaxed),
            slowest: self.slowest.list(),
            ..Stats::default()
        }
    }

    /// A batch was there.
    pub(crate) fn found(&self) {
        self.ready.fetch_add(1, Relaxed);
    }

    fn waits(&self) -> WaitStats {
        let unmeasured = self.unmeasured.load(Relaxed);
        let ready = self.ready.load(Relaxed);
        self.waits.lock().stats(ready, unmeasured)
    }

    /// A batch was made while it was asked for, as those that were measured.
    pub(crate) fn not_measured(&self) {
        self.unmeasured.fetch_add(1, Relaxed);
    }

    /// A batch was waited for, which may have been the first of its pass.
    pub(crate) fn waited(&self, wait: Duration, is_first: bool) {
        self.waits.lock().record(wait, is_first);
        if self.was_full.swap(false, Relaxed) {
            self.starved.fetch_add(1, Relaxed);
        }
    }

    /// So much more of a pass is over.
    pub(crate) fn went_on(&self, passed: Duration) {
        self.waits.lock().elapsed += passed;
    }

    /// A pass begins, which has to wait for its first batch whatever the window.
    pub(crate) fn pass(&self) {
        self.was_full.store(false, Relaxed);
    }

    /// Every batch that may be alive is finished: there is nothing to do.
    pub(crate) fn full(&self, window: usize) {
        if !self.was_full.load(Relaxed) {
            self.window.store(window, Relaxed);
            self.was_full.store(true, Relaxed);
        }
    }

    /// Sums since the loader was built.
    pub(crate) fn totals(&self) -> Totals {
        let waits = self.waits.lock();
        let (count, waited) = (waits.count(), waits.sum);
        drop(waits);
        let work = self.work.lock();
        let busy = work.iter().map(Work::sum).sum();
        Totals {
            returned: count + self.ready.load(Relaxed) + self.unmeasured.load(Relaxed),
            waited,
            busy,
            starved: self.starved.load(Relaxed),
            refused: 0,
            window: self.window.load(Relaxed),
        }
    }

    /// A batch of so many bytes, as far as is known, begins.
    pub(crate) fn begin(&self, bytes: u64) {
        self.batches.add(1);
        self.resize(0, bytes);
    }

    /// A batch alive was thought to have `before` bytes and has `now`.
    pub(crate) fn resize(&self, before: u64, now: u64) {
        if now > before {
            self.bytes.add(now - before);
        } else if before > now {
            self.bytes.sub(before - now);
        }
    }

    /// A batch of so many bytes was handed to a device.
    pub(crate) fn uploaded(&self, bytes: u64, took: Duration) {
        let mut uploads = self.uploads.lock();
        uploads.batches += 1;
        uploads.bytes += bytes;
        uploads.took += took;
        drop(uploads);
        self.on_device.add(bytes);
    }

    /// A batch is alive no more, of so many bytes in host memory and on a device.
    pub(crate) fn end(&self, bytes: u64, on_device: u64) {
        self.batches.sub(1);
        self.resize(bytes, 0);
        if on_device > 0 {
            self.on_device.sub(on_device);
        }
    }

    /// So many finished batches wait for an earlier one.
    pub(crate) fn waiting_in_line(&self, batches: usize) {
        raise(&self.reorder_depth, batches);
    }

    /// An error was returned.
    pub(crate) fn failed(&self) {
        self.errors.fetch_add(1, Relaxed);
    }

    /// A worker, or a calling thread, has worked for so long on batches like this one.
    pub(crate) fn worked(&self, worker: Option<usize>, work: Work, batches: u32) {
        let at = worker.map_or(0, |number| number + 1);
        let mut all = self.work.lock();
        if all.len() <= at {
            all.resize(at + 1, Work::default());
        }
        let own = &mut all[at];
        own.fetch += work.fetch * batches;
        own.assemble += work.assemble * batches;
        own.upload += work.upload * batches;
    }

    /// An item was fetched in so long.
    pub(crate) fn fetched(&self, index: usize, took: Duration) {
        self.slowest.add(SlowItem { index, took });
    }
}

/// Sums of what readers and workers did.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Totals {
    pub(crate) returned: u64,
    pub(crate) waited: Duration,
    pub(crate) busy: Duration,
    /// How often a reader found nothing although the window had been full.
    pub(crate) starved: u64,
    /// How often the budget had no room.
    pub(crate) refused: u64,
    /// How many batches were alive when the window was full.
    pub(crate) window: usize,
}

/// A level that several threads change.
#[derive(Debug, Default)]
struct Gauge {
    now: AtomicU64,
    most: AtomicU64,
}

impl Gauge {
    fn add(&self, more: u64) {
        let now = self.now.fetch_add(more, Relaxed) + more;
        if now > self.most.load(Relaxed) {
            self.most.fetch_max(now, Relaxed);
        }
    }

    fn sub(&self, less: u64) {
        self.now.fetch_sub(less, Relaxed);
    }

    fn level(&self) -> Level {
        Level {
            now: self.now.load(Relaxed),
            most: self.most.load(Relaxed),
        }
    }
}

fn raise(most: &AtomicUsize, value: usize) {
    if value > most.load(Relaxed) {
        most.fetch_max(value, Relaxed);
    }
}

/// The waits that were some, in nanoseconds, to two digits; the histogram is made with the first.
#[derive(Debug, Default)]
struct Waits {
    histogram: Option<Histogram<u64>>,
    sum: Duration,
    /// Exact, as the histogram is not.
    max: Duration,
    first: Duration,
    elapsed: Duration,
}

impl Waits {
    fn record(&mut self, wait: Duration, is_first: bool) {
        let histogram = self.histogram.get_or_insert_with(|| {
            Histogram::new_with_bounds(1, LONGEST, 2).expect("the bounds are in order")
        });
        let nanos = u64::try_from(wait.as_nanos()).unwrap_or(LONGEST);
        histogram.saturating_record(nanos);
        self.sum += wait;
        self.max = self.max.max(wait);
        if is_first {
            self.first += wait;
        }
    }

    fn count(&self) -> u64 {
        self.histogram.as_ref().map_or(0, Histogram::len)
    }

    /// With so many more that were none, and so many that were as those measured.
    fn stats(&self, ready: u64, unmeasured: u64) -> WaitStats {
        let Some(histogram) = &self.histogram else {
            return WaitStats {
                count: ready + unmeasured,
                ready,
                elapsed: self.elapsed,
                ..WaitStats::default()
            };
        };
        let measured = u128::from(histogram.len());
        let waited = measured + u128::from(unmeasured);
        let count = ready + histogram.len() + unmeasured;
        let at = |per_mille: u64| {
            let rank = (u128::from(count) * u128::from(per_mille)).div_ceil(1_000);
            let rank = rank.saturating_sub(u128::from(ready)) * measured;
            let rank = u64::try_from(rank.div_ceil(waited)).unwrap_or(u64::MAX);
            if rank == 0 {
                return Duration::ZERO;
            }
            Duration::from_nanos(value_at(histogram, rank)).min(self.max)
        };
        let all = self.sum.as_nanos() * waited / measured;
        WaitStats {
            count,
            ready,
            p50: at(500),
            p95: at(950),
            p99: at(990),
            max: self.max,
            sum: Duration::from_nanos(u64::try_from(all).unwrap_or(u64::MAX)),
            first: self.first,
            elapsed: self.elapsed,
        }
    }
}

/// The value of which `rank` are no larger, counted from 1.
fn value_at(histogram: &Histogram<u64>, rank: u64) -> u64 {
    let mut seen = 0;
    for step in histogram.iter_recorded() {
        seen += step.count_since_last_iteration();
        if seen >= rank {
            return step.value_iterated_to().min(histogram.max());
        }
    }
    histogram.max()
}

/// The slowest items that came by, each index once.
#[derive(Debug, Default)]
struct Slowest {
    /// Whoever was faster is not looked at, in nanoseconds.
    least: AtomicU64,
    items: QuietMutex<Vec<SlowItem>>,
}

impl Slowest {
    fn add(&self, item: SlowItem) {
        let took = u64::try_from(item.took.as_nanos()).unwrap_or(u64::MAX);
        if took <= self.least.load(Relaxed) {
            return;
        }
        let mut items = self.items.lock();
        match items.iter_mut().find(|known| known.index == item.index) {
            Some(known) => known.took = known.took.max(item.took),
            None => items.push(item),
        }
        items.sort_by_key(|item| std::cmp::Reverse(item.took));
        items.truncate(SLOWEST);
        if let Some(last) = items.get(SLOWEST - 1) {
            let least = u64::try_from(last.took.as_nanos()).unwrap_or(u64::MAX);
            self.least.store(least, Relaxed);
        }
    }

    fn list(&self) -> Vec<SlowItem> {
        self.items.lock().clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const fn micros(micros: u64) -> Duration {
        Duration::from_micros(micros)
    }

    #[test]
    fn waits_and_batches_that_were_there_make_one_distribution() {
        let tally = Tally::default();
        assert_eq!(tally.stats().waits, WaitStats::default());
        for _ in 0..90 {
            tally.found();
        }
        assert_eq!(tally.stats().waits.count, 90);
        for wait in 1..=10 {
            tally.waited(micros(100 * wait), false);
        }
        let waits = tally.stats().waits;
        assert_eq!((waits.count, waits.ready), (100, 90));
        assert!((waits.readiness() - 0.9).abs() < 1e-9);
        assert_eq!((waits.p50, waits.sum), (Duration::ZERO, micros(5_500)));
        let about = |got: Duration, want: u64| {
            let (got, want) = (
                got.as_secs_f64() * 1e6,
                Duration::from_micros(want).as_secs_f64() * 1e6,
            );
            assert!((got / want - 1.0).abs() < 0.02, "{got} for {want}");
        };
        about(waits.p95, 500);
        about(waits.p99, 900);
        about(waits.max, 1_000);
    }

    #[test]
    fn what_was_not_measured_is_as_what_was() {
        let tally = Tally::default();
        tally.not_measured();
        assert_eq!(tally.stats().waits.count, 1);
        for wait in [10, 20] {
            tally.waited(micros(wait), false);
        }
        (0..5).for_each(|_| tally.not_measured());
        let waits = tally.stats().waits;
        assert_eq!((waits.count, waits.ready), (8, 0));
        assert_eq!(waits.sum, micros(120));
        assert!(
            waits.p50 < micros(11) && waits.p95 > micros(19),
            "{waits:?}"
        );
    }

    #[test]
    fn the_slowest_items_are_kept_each_once() {
        let tally = Tally::default();
        for round in 1..=3 {
            for index in 0..20 {
                tally.fetched(index, micros(10 * index as u64 + round));
            }
        }
        let slowest = tally.stats().slowest;
        let indices: Vec<_> = slowest.iter().map(|item| item.index).collect();
        assert_eq!(indices, (12..20).rev().collect::<Vec<_>>());
        assert_eq!(slowest[0].took, micros(193));
    }

    #[test]
    fn each_worker_has_its_own_time() {
        let tally = Tally::default();
        let work = Work {
            fetch: micros(3),
            assemble: micros(1),
            upload: micros(2),
        };
        tally.worked(Some(1), work, 16);
        tally.worked(None, work, 1);
        let stats = tally.stats();
        assert_eq!(stats.callers, work);
        assert_eq!(stats.workers.len(), 2);
        assert_eq!(stats.workers[0].work, Work::default());
        assert_eq!(stats.workers[1].work.fetch, micros(48));
        assert_eq!(stats.workers[1].work.sum(), micros(16 * 6));
    }

    proptest! {
        #[test]
        fn the_most_is_the_most(sizes in proptest::collection::vec((0u64..50, 0u64..50), 0..40)) {
            let tally = Tally::default();
            let (mut now, mut most) = (0, 0);
            for (thought, is) in &sizes {
                tally.begin(*thought);
                now += thought;
                most = most.max(now);
                tally.resize(*thought, *is);
                now = now + is - thought;
                most = most.max(now);
            }
            let stats = tally.stats();
            prop_assert_eq!((stats.bytes.now, stats.bytes.most), (now, most));
            prop_assert_eq!(stats.batches.now, sizes.len() as u64);
            for (_, is) in &sizes {
                tally.end(*is, 0);
            }
            let stats = tally.stats();
            prop_assert_eq!((stats.bytes.now, stats.batches.now), (0, 0));
        }
    }
}
