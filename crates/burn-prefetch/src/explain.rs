//! How a loader is doing, in words that a person can act on.

use std::fmt::Write;
use std::time::Duration;

use burn_prefetch_engine::Stats;

use crate::advice::{Frame, Sight, next};
use crate::effective::{WindowConfig, count};

/// An item that takes so many times the usual one is worth a word.
const OUTLIER: u32 = 20;

/// What is bounded by what, what waits for what, and what to change next.
pub(crate) fn explain(stats: &Stats, frame: &Frame) -> String {
    let mut lines = vec![bounds(stats, frame)];
    lines.extend(budget(stats));
    if stats.waits.count == 0 {
        lines.push("Nothing was read yet: look again after some batches.".to_owned());
        return lines.join("\n");
    }
    let sight = Sight::of(stats, frame);
    lines.push(waits(stats, &sight));
    lines.extend(ceiling(stats, &sight));
    lines.extend(errors(stats, frame));
    lines.push(format!("Next: {}", next(stats, &sight)));
    lines.extend(outlier(stats, &sight));
    lines.join("\n")
}

fn bounds(stats: &Stats, frame: &Frame) -> String {
    let (most, bytes) = (stats.batches.most, stats.bytes.most);
    // What is known of the iterators is that one alone cannot have had so many.
    let bound = match frame.window {
        WindowConfig::Inline | WindowConfig::Batches(0) => 1,
        WindowConfig::Batches(batches) => batches,
        WindowConfig::Learned { most } => most,
    };
    let several = most > bound as u64;
    let mut text = format!("Bounded: {}", frame.window);
    if several {
        text.push_str(" for each iterator");
    }
    let were = if most == 1 { "was" } else { "were" };
    // Writing into a text does not fail.
    let _ = write!(text, "; at most {most} {were}");
    if several {
        text.push_str(", of several iterators or of threads that were given up");
    }
    if bytes > 0 {
        let _ = write!(text, ", with {}", amount(bytes));
    }
    let largest = stats.largest_batch.filter(|bytes| *bytes > 0 && !several);
    if let Some(largest) = largest {
        let all = largest.saturating_mul(most + 1);
        let _ = write!(
            text,
            "; with the one in use ({most} + 1) × {} = {}",
            amount(largest),
            amount(all)
        );
    }
    text.push('.');
    text
}

fn budget(stats: &Stats) -> Option<String> {
    let budget = stats.budget.as_ref()?;
    let mut text = format!(
        "Budget: {} of {} in use, {} at most; iterators: {}; {} for room.",
        amount(budget.used.now),
        amount(budget.limit),
        amount(budget.used.most),
        budget.readers,
        count(budget.refused, "wait", "waits")
    );
    if budget.overshoot > 0 {
        let _ = write!(
            text,
            " Batches larger than the 64 before them took it {} beyond.",
            amount(budget.overshoot)
        );
    }
    Some(text)
}

fn waits(stats: &Stats, sight: &Sight) -> String {
    let waits = &stats.waits;
    let each = |whole: Duration| whole.div_f64(real(waits.count));
    let mut text = format!(
        "Waits: {:.0} % of batches were ready; next() waited {:.1?} in all, {:.0} % of the time, 99 of \
         100 times no longer than {:.1?}, at most {:.1?}.",
        waits.readiness() * 100.0,
        waits.sum,
        waits.share() * 100.0,
        waits.p99,
        waits.max,
    );
    if !waits.first.is_zero() {
        let _ = write!(
            text,
            " Of that, {:.1?} for the first batches of passes.",
            waits.first
        );
    }
    let _ = write!(
        text,
        " A batch takes {:.1?} to fetch and {:.1?} to assemble.",
        each(sight.fetch),
        each(sight.assemble)
    );
    text
}

/// How fast the workers could be, if they did nothing else.
fn ceiling(stats: &Stats, sight: &Sight) -> Option<String> {
    let work = (sight.fetch + sight.assemble).as_secs_f64() / real(stats.waits.count);
    if work <= 0.0 {
        return None;
    }
    let workers = sight.frame.num_workers;
    let rate = real(workers.max(1) as u64) / work;
    let who = match workers {
        0 => "the calling thread makes".to_owned(),
        1 => "1 worker makes".to_owned(),
        more => format!("{more} workers make"),
    };
    Some(format!(
        "Ceiling: {who} {rate:.0} batches a second at most."
    ))
}

fn errors(stats: &Stats, frame: &Frame) -> Option<String> {
    if stats.errors == 0 && frame.disowned == 0 {
        return None;
    }
    let mut text = format!("Errors: {}", count(stats.errors, "pass", "passes"));
    text.push_str(" ended with one");
    if frame.disowned > 0 {
        let threads = count(frame.disowned as u64, "thread", "threads");
        let _ = write!(text, "; {threads} given up, not back yet");
    }
    text.push_str("; what was waited for them is among the waits.");
    Some(text)
}

/// An item that takes much longer than the others.
fn outlier(stats: &Stats, sight: &Sight) -> Option<String> {
    let slowest = stats.slowest.first()?;
    let items = stats
        .waits
        .count
        .checked_mul(sight.frame.batch_size? as u64)?;
    let usual = sight.fetch.div_f64(real(items.max(1)));
    (slowest.took > usual * OUTLIER).then(|| {
        format!(
            "Slow: index {} took {:.1?}, where an item takes {usual:.1?}.",
            slowest.index, slowest.took
        )
    })
}

#[expect(clippy::cast_precision_loss, reason = "for words, not for sums")]
fn real(count: u64) -> f64 {
    count as f64
}

/// In the unit that makes it a number of a few digits.
fn amount(bytes: u64) -> String {
    const MEBI: u64 = 1 << 20;
    match bytes {
        0..10_000 => format!("{bytes} B"),
        10_000..MEBI => format!("{:.1} KiB", real(bytes) / 1024.0),
        MEBI.. => format!("{:.2} MiB", real(bytes) / real(MEBI)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advice::Hired;
    use burn_prefetch_engine::{BudgetStats, SlowItem, WaitStats, Work, WorkerStats};

    const fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn frame(num_workers: usize) -> Frame {
        Frame {
            num_workers,
            hired: Hired::ByNumber,
            disowned: 0,
            batch_size: Some(32),
            window: match num_workers {
                0 => WindowConfig::Inline,
                _ => WindowConfig::Batches(4),
            },
            prefetch: Some(4).filter(|_| num_workers > 0),
            prefetch_factor: None,
            uploads_late: false,
            may_warm: num_workers > 0,
        }
    }

    /// 100 batches within two seconds, of which so many were ready, and `waited` for the others; two
    /// workers that fetched, assembled and slept for so many milliseconds each.
    fn stats(ready: u64, waited: u64, each: (u64, u64, u64)) -> Stats {
        let (fetch, assemble, idle) = each;
        let mut stats = Stats::default();
        stats.waits = waits(ready, waited);
        (stats.batches.now, stats.batches.most) = (2, 4);
        (stats.bytes.now, stats.bytes.most) = (2 << 20, 4 << 20);
        stats.largest_batch = Some(1 << 20);
        let mut worker = WorkerStats::default();
        worker.work = work(fetch, assemble);
        worker.idle = millis(idle);
        stats.workers = vec![worker; 2];
        stats
    }

    fn work(fetch: u64, assemble: u64) -> Work {
        let mut work = Work::default();
        work.fetch = millis(fetch);
        work.assemble = millis(assemble);
        work
    }

    fn waits(ready: u64, waited: u64) -> WaitStats {
        let mut waits = WaitStats::default();
        (waits.count, waits.ready) = (100, ready);
        (waits.sum, waits.max) = (millis(waited), millis(waited / 5));
        waits.p99 = millis(waited / 10);
        waits.elapsed = millis(2_000);
        waits
    }

    /// The line that says what to change.
    fn next_of(stats: &Stats, frame: &Frame) -> String {
        let text = explain(stats, frame);
        let next = text.lines().find_map(|line| line.strip_prefix("Next: "));
        next.expect("there is one").to_owned()
    }

    #[test]
    fn before_the_first_batch() {
        let text = explain(&Stats::default(), &frame(2));
        assert_eq!(
            text,
            "Bounded: at most 4 batches alive; at most 0 were.\n\
             Nothing was read yet: look again after some batches."
        );
    }

    #[test]
    fn without_workers() {
        let mut stats = stats(0, 500, (0, 0, 0));
        stats.workers.clear();
        stats.callers = work(400, 100);
        (stats.batches.most, stats.bytes.most) = (1, 1 << 20);
        assert_eq!(
            explain(&stats, &frame(0)),
            "Bounded: 1 batch, made when next() asks for it; at most 1 was, with 1.00 MiB; with the one in \
             use (1 + 1) × 1.00 MiB = 2.00 MiB.\n\
             Waits: 0 % of batches were ready; next() waited 500.0ms in all, 25 % of the time, 99 of \
             100 times no longer than 50.0ms, at most 100.0ms. A batch takes 4.0ms to fetch and 1.0ms to \
             assemble.\n\
             Ceiling: the calling thread makes 200 batches a second at most.\n\
             Next: num_workers(1): every batch is made while next() waits for it."
        );
        stats.waits.elapsed = millis(60_000);
        assert!(next_of(&stats, &frame(0)).starts_with("nothing."), "1 %");
    }

    #[test]
    fn when_all_is_well() {
        let stats = stats(98, 10, (200, 50, 750));
        assert_eq!(
            explain(&stats, &frame(2)),
            "Bounded: at most 4 batches alive; at most 4 were, with 4.00 MiB; with the one in use \
             (4 + 1) × 1.00 MiB = 5.00 MiB.\n\
             Waits: 98 % of batches were ready; next() waited 10.0ms in all, 0 % of the time, 99 of 100 \
             times no longer than 1.0ms, at most 2.0ms. A batch takes 4.0ms to fetch and 1.0ms to \
             assemble.\n\
             Ceiling: 2 workers make 400 batches a second at most.\n\
             Next: nothing. Batches are there when they are asked for, or almost."
        );
    }

    #[test]
    fn when_the_workers_are_busy() {
        let fetching = stats(20, 400, (900, 50, 50));
        assert_eq!(
            explain(&fetching, &frame(2)),
            "Bounded: at most 4 batches alive; at most 4 were, with 4.00 MiB; with the one in use \
             (4 + 1) × 1.00 MiB = 5.00 MiB.\n\
             Waits: 20 % of batches were ready; next() waited 400.0ms in all, 20 % of the time, 99 of \
             100 times no longer than 40.0ms, at most 80.0ms. A batch takes 18.0ms to fetch and 1.0ms to \
             assemble.\n\
             Ceiling: 2 workers make 105 batches a second at most.\n\
             Next: num_workers(3), or less work in the dataset: all 2 workers are busy."
        );
        let assembling = stats(20, 400, (50, 900, 50));
        assert_eq!(
            next_of(&assembling, &frame(2)),
            "num_workers(3) and prefetch(5), or less work in the batcher: all 2 workers are busy, and most \
             of it is assembly."
        );
    }

    #[test]
    fn when_batches_are_asked_for_in_bursts() {
        let mut stats = stats(60, 400, (200, 50, 750));
        let mut item = SlowItem::default();
        (item.index, item.took) = (17, millis(40));
        stats.slowest = vec![item];
        assert_eq!(
            explain(&stats, &frame(2)),
            "Bounded: at most 4 batches alive; at most 4 were, with 4.00 MiB; with the one in use \
             (4 + 1) × 1.00 MiB = 5.00 MiB.\n\
             Waits: 60 % of batches were ready; next() waited 400.0ms in all, 20 % of the time, 99 of \
             100 times no longer than 40.0ms, at most 80.0ms. A batch takes 4.0ms to fetch and 1.0ms to \
             assemble.\n\
             Ceiling: 2 workers make 400 batches a second at most.\n\
             Next: prefetch(8): workers sleep while next() waits, so batches are asked for in bursts \
             that 4 do not cover.\n\
             Slow: index 17 took 40.0ms, where an item takes 125.0µs."
        );
    }

    #[test]
    fn when_there_is_no_room_for_more() {
        let mut stats = stats(60, 400, (200, 50, 750));
        let mut budget = BudgetStats::default();
        budget.limit = 4 << 20;
        budget.used = stats.bytes;
        (budget.readers, budget.refused, budget.overshoot) = (1, 70, 1 << 19);
        stats.budget = Some(budget);
        assert_eq!(
            explain(&stats, &frame(2)),
            "Bounded: at most 4 batches alive; at most 4 were, with 4.00 MiB; with the one in use \
             (4 + 1) × 1.00 MiB = 5.00 MiB.\n\
             Budget: 2.00 MiB of 4.00 MiB in use, 4.00 MiB at most; iterators: 1; 70 waits for room. \
             Batches larger than the 64 before them took it 512.0 KiB beyond.\n\
             Waits: 60 % of batches were ready; next() waited 400.0ms in all, 20 % of the time, 99 of \
             100 times no longer than 40.0ms, at most 80.0ms. A batch takes 4.0ms to fetch and 1.0ms to \
             assemble.\n\
             Ceiling: 2 workers make 400 batches a second at most.\n\
             Next: a larger memory_budget, or a smaller batch_size: workers sleep since there is no \
             room for another batch."
        );
    }

    #[test]
    fn a_few_long_waits_are_waits() {
        let stats = stats(96, 800, (200, 50, 750));
        assert!(next_of(&stats, &frame(2)).starts_with("prefetch(8):"));
    }

    #[test]
    fn when_epochs_begin_slowly() {
        let mut stats = stats(98, 500, (200, 50, 750));
        stats.waits.first = millis(480);
        let text = explain(&stats, &frame(2));
        assert!(text.contains(" Of that, 480.0ms for the first batches of passes."));
        assert_eq!(
            next_of(&stats, &frame(2)),
            "warm_next_epoch(true): what is waited for is the first batch of each epoch."
        );
        let warm = Frame {
            may_warm: false,
            ..frame(2)
        };
        assert!(next_of(&stats, &warm).starts_with("nothing."));
    }

    #[test]
    fn when_there_were_errors() {
        let mut stats = stats(60, 400, (200, 50, 750));
        stats.errors = 1;
        let frame = Frame {
            disowned: 2,
            ..frame(2)
        };
        let text = explain(&stats, &frame);
        let words = "Errors: 1 pass ended with one; 2 threads given up, not back yet; what was waited for \
                     them is among the waits.";
        assert!(text.contains(words), "{text}");
        let next = next_of(&stats, &frame);
        assert!(next.starts_with("see why there were errors; after that, prefetch(8):"));
    }

    #[test]
    fn several_iterators_are_no_single_one() {
        let mut stats = stats(98, 10, (200, 50, 750));
        (stats.batches.most, stats.bytes.most) = (6, 6 << 20);
        let text = explain(&stats, &frame(2));
        let bounded = "Bounded: at most 4 batches alive for each iterator; at most 6 were, of several \
                       iterators or of threads that were given up, with 6.00 MiB.";
        assert_eq!(text.lines().next(), Some(bounded));
    }

    #[test]
    fn what_is_named_is_what_is_in_force() {
        let busy = stats(20, 400, (900, 50, 50));
        let shared = Frame {
            hired: Hired::Shared,
            ..frame(1)
        };
        let words = "Workers::new(2), or less work in the dataset: the only worker is busy.";
        assert_eq!(next_of(&busy, &shared), words);
        let auto = Frame {
            hired: Hired::Automatically,
            ..frame(2)
        };
        assert!(next_of(&busy, &auto).starts_with("a larger cpu_share or more cores, or less"));
        let bursts = stats(60, 400, (200, 50, 750));
        let late = Frame {
            uploads_late: true,
            ..frame(2)
        };
        assert!(next_of(&bursts, &late).starts_with("device_prefetch(1):"));
        let of = |batches, prefetch, prefetch_factor| {
            let frame = Frame {
                window: WindowConfig::Batches(batches),
                prefetch,
                prefetch_factor,
                ..frame(2)
            };
            let next = next_of(&bursts, &frame);
            next.split(':').next().unwrap_or_default().to_owned()
        };
        assert_eq!(of(2, None, Some(1)), "prefetch_factor(2)");
        assert_eq!(of(2, Some(4), Some(1)), "prefetch_factor(2)");
        assert_eq!(
            of(2, Some(2), Some(1)),
            "prefetch_factor(2) and prefetch(4)"
        );
        assert_eq!(of(0, Some(2), Some(0)), "prefetch_factor(1)");
        assert_eq!(of(3, Some(3), Some(4)), "prefetch(6)");
    }
}
