//! Which window and how many workers a loader needs, decided from what was measured.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Less waiting than this share of the time is none.
const HARDLY: f64 = 0.01;

/// A reader that waits for more than this share of the time has use for another worker.
const OFTEN: f64 = 0.05;

/// One more worker is worth keeping where batches come faster by this share.
const GAIN: f64 = 0.05;

/// So many looks without waiting, one after the other, and a smaller window is tried.
const CALM: usize = 8;

/// After a change so many looks pass before its effect is judged.
const SETTLING: usize = 2;

/// What may be decided, and how far.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TunerConfig {
    /// Batches alive: the most that may ever be; `None` leaves the window as it is.
    pub window: Option<usize>,
    /// Workers: the most that may ever be; `None` leaves them as they are.
    pub workers: Option<usize>,
    /// How many cores there are,
    pub cores: usize,
    /// and which share of them workers may be busy with.
    pub cpu_share: f64,
}

/// What was measured since the last look.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Facts {
    /// When this is, since the loader was built.
    pub at: Duration,
    /// Batches returned since then.
    pub batch: u64,
    /// How long it is since the last look.
    pub passed: Duration,
    /// Batches returned since the last look.
    pub returned: u64,
    /// How much of the time `next()` waited.
    pub waited: Duration,
    /// How much the workers worked, all together.
    pub busy: Duration,
    /// How often `next()` found nothing although every batch of the window had been ready before.
    pub starved: u64,
    /// How often the budget had no room.
    pub refused: u64,
    /// How many batches may be alive.
    pub window: usize,
    /// How many workers there are.
    pub workers: usize,
}

/// What a decision changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Knob {
    /// How many batches may be alive.
    Window,
    /// How many workers there are.
    Workers,
}

/// Why something was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Why {
    /// `next()` found nothing although the window had been full of finished batches.
    Starved,
    /// For a while nobody waited, so that fewer may be enough.
    Calm,
    /// `next()` waited, and the workers had no place to spare.
    Waiting,
    /// One more worker had brought nothing.
    NoGain,
}

/// One decision, as it can be listed, kept and taken again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// When, since the loader was built.
    pub at: Duration,
    /// After how many batches.
    pub batch: u64,
    /// What is changed.
    pub knob: Knob,
    /// What it was.
    pub from: usize,
    /// What it is.
    pub to: usize,
    /// Why.
    pub why: Why,
}

/// Decides. No thread, no lock, no clock: whoever looks brings the time along.
///
/// It comes to rest: a window is never again made as small as one that was too small, and a worker
/// that brought nothing is not hired twice, so that there are only so many decisions to take.
#[derive(Clone, Debug)]
pub struct Tuner {
    config: TunerConfig,
    decisions: Vec<Decision>,
    /// The largest window that was too small.
    too_small: usize,
    /// The window that was given up for a smaller one.
    enough: Option<usize>,
    /// The most workers that brought something.
    useful: usize,
    /// Batches a second before a worker was added, until that is judged.
    before: Option<f64>,
    calm: usize,
    /// Looks to be left out.
    settling: usize,
    waiting: usize,
    replayed: Option<std::collections::VecDeque<Decision>>,
}

impl Tuner {
    /// One that has decided nothing.
    #[must_use]
    pub fn new(config: TunerConfig) -> Self {
        Self {
            config,
            decisions: Vec::new(),
            too_small: 0,
            enough: None,
            useful: usize::MAX,
            before: None,
            calm: 0,
            settling: 1,
            waiting: 0,
            replayed: None,
        }
    }

    /// One that takes these decisions again, each after as many batches as then, and no other.
    #[must_use]
    pub fn replay(config: TunerConfig, decisions: Vec<Decision>) -> Self {
        Self {
            replayed: Some(decisions.into()),
            ..Self::new(config)
        }
    }

    /// Whether a decision that is taken again is due after so many batches.
    pub(crate) fn is_due(&self, batch: u64) -> bool {
        let next = self.replayed.as_ref().and_then(|left| left.front());
        next.is_some_and(|next| next.batch <= batch)
    }

    /// Whether decisions are taken again.
    pub(crate) fn replays(&self) -> bool {
        self.replayed.is_some()
    }

    /// Somebody sets this: from now on nothing is decided about it.
    pub fn leave(&mut self, knob: Knob) {
        match knob {
            Knob::Window => self.config.window = None,
            Knob::Workers => self.config.workers = None,
        }
        if let Some(left) = &mut self.replayed {
            left.retain(|decision| decision.knob != knob);
        }
        // What a worker brings is not judged any more.
        self.before = self.before.filter(|_| knob != Knob::Workers);
    }

    /// Whether something may be decided about this.
    #[must_use]
    pub fn has(&self, knob: Knob) -> bool {
        match knob {
            Knob::Window => self.config.window.is_some(),
            Knob::Workers => self.config.workers.is_some(),
        }
    }

    /// What has been decided, in order.
    #[must_use]
    pub fn decisions(&self) -> &[Decision] {
        &self.decisions
    }

    /// Decides what to change, if anything; at most one thing at a time.
    pub fn look(&mut self, facts: &Facts) -> Option<Decision> {
        let decided = match &mut self.replayed {
            Some(left) => {
                let due = left.front().is_some_and(|next| next.batch <= facts.batch);
                due.then(|| left.pop_front()).flatten()
            }
            None => self.decide(facts).map(|(knob, to, why)| Decision {
                at: facts.at,
                batch: facts.batch,
                knob,
                from: match knob {
                    Knob::Window => facts.window,
                    Knob::Workers => facts.workers,
                },
                to,
                why,
            }),
        };
        self.decisions.extend(decided);
        decided
    }

    fn decide(&mut self, facts: &Facts) -> Option<(Knob, usize, Why)> {
        if self.settling > 0 {
            self.settling -= 1;
            return None;
        }
        let decided = self
            .judge(facts)
            .or_else(|| self.widen(facts))
            .or_else(|| self.hire(facts))
            .or_else(|| self.narrow(facts));
        if decided.is_some() {
            self.settling = SETTLING;
            (self.calm, self.waiting) = (0, 0);
        }
        decided
    }

    /// Sends the worker home that was hired last, if batches come no faster.
    fn judge(&mut self, facts: &Facts) -> Option<(Knob, usize, Why)> {
        let before = self.before.take()?;
        if rate(facts) >= before * (1.0 + GAIN) || facts.workers <= 1 {
            return None;
        }
        self.useful = facts.workers - 1;
        Some((Knob::Workers, self.useful, Why::NoGain))
    }

    fn widen(&mut self, facts: &Facts) -> Option<(Knob, usize, Why)> {
        let most = self.config.window?;
        if facts.starved == 0 || facts.refused > 0 || facts.window >= most {
            return None;
        }
        self.too_small = self.too_small.max(facts.window);
        let doubled = facts.window.max(1).saturating_mul(2);
        let to = self.enough.take().unwrap_or(doubled).min(most);
        (to > facts.window).then_some((Knob::Window, to, Why::Starved))
    }

    fn hire(&mut self, facts: &Facts) -> Option<(Knob, usize, Why)> {
        let most = self.config.workers?.min(self.useful);
        let waits = share(facts.waited, facts.passed) > OFTEN;
        self.waiting = if waits && facts.starved == 0 {
            self.waiting + 1
        } else {
            0
        };
        let more = facts.workers + 1;
        let busy = share(facts.busy, facts.passed) / count(self.config.cores.max(1));
        let then = busy * count(more) / count(facts.workers.max(1));
        let affordable = then <= self.config.cpu_share;
        if self.waiting < SETTLING || facts.refused > 0 || more > most || !affordable {
            return None;
        }
        self.before = Some(rate(facts));
        Some((Knob::Workers, more, Why::Waiting))
    }

    fn narrow(&mut self, facts: &Facts) -> Option<(Knob, usize, Why)> {
        self.config.window?;
        let calm = facts.starved == 0 && share(facts.waited, facts.passed) < HARDLY;
        self.calm = if calm { self.calm + 1 } else { 0 };
        let to = facts.window - (facts.window / 4).max(1).min(facts.window);
        // What was never widened is the design's own choice.
        if self.calm < CALM || self.too_small == 0 || to <= self.too_small {
            return None;
        }
        self.enough = Some(facts.window);
        Some((Knob::Window, to, Why::Calm))
    }
}

fn share(part: Duration, whole: Duration) -> f64 {
    if whole.is_zero() {
        return 0.0;
    }
    part.as_secs_f64() / whole.as_secs_f64()
}

fn rate(facts: &Facts) -> f64 {
    if facts.passed.is_zero() {
        return 0.0;
    }
    #[expect(clippy::cast_precision_loss, reason = "a rate needs no 53 bits")]
    let returned = facts.returned as f64;
    returned / facts.passed.as_secs_f64()
}

#[expect(clippy::cast_precision_loss, reason = "nobody has 2⁵³ cores")]
fn count(number: usize) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A loader and its reader on a clock of their own, in steps of a millisecond.
    struct World {
        /// What one worker needs for a batch, in ms, by batch.
        cost: fn(u64) -> f64,
        /// Batches asked for in one go, and the pause behind them in ms.
        burst: (u64, f64),
        /// Batches that the budget has room for.
        room: usize,
        cores: usize,
    }

    const STEADY: World = World {
        cost: |_| 10.0,
        burst: (1, 20.0),
        room: usize::MAX,
        cores: 8,
    };

    #[derive(Debug)]
    struct End {
        window: usize,
        workers: usize,
        decisions: Vec<Decision>,
        /// The share of the last tenth of the time in which the reader waited.
        waited: f64,
    }

    fn config(cores: usize) -> TunerConfig {
        TunerConfig {
            window: Some(64),
            workers: Some(cores - 1),
            cores,
            cpu_share: 1.0,
        }
    }

    /// Where a simulation stands.
    struct Run<'a> {
        world: &'a World,
        window: usize,
        workers: usize,
        made: u64,
        taken: u64,
        work: f64,
        pause: f64,
        /// Of the burst.
        left: u64,
        was_full: bool,
    }

    const MILLISECOND: Duration = Duration::from_millis(1);

    impl Run<'_> {
        fn make(&mut self, facts: &mut Facts) {
            let room = self.window.min(self.world.room) as u64;
            if self.made - self.taken >= room {
                facts.refused += u64::from(self.world.room < self.window);
                self.was_full |= self.world.room >= self.window;
                return;
            }
            self.work += count(self.workers.min(self.world.cores));
            facts.busy += MILLISECOND * u32::try_from(self.workers).expect("few");
            if self.work >= (self.world.cost)(self.made) {
                (self.made, self.work) = (self.made + 1, 0.0);
            }
        }

        fn take(&mut self, facts: &mut Facts) {
            self.pause -= 1.0;
            while self.pause <= 0.0 && self.take_one(facts) {}
        }

        fn take_one(&mut self, facts: &mut Facts) -> bool {
            if self.made == self.taken {
                facts.waited += MILLISECOND;
                facts.starved += u64::from(std::mem::take(&mut self.was_full));
                return false;
            }
            facts.returned += 1;
            (self.taken, self.left) = (self.taken + 1, self.left - 1);
            if self.left == 0 {
                (self.left, self.pause) = (self.world.burst.0, self.world.burst.1);
            }
            true
        }

        /// A tenth of a second, and a look.
        fn tenth(&mut self, at: Duration, tuner: &mut Tuner) -> Duration {
            let mut facts = Facts {
                at,
                passed: 100 * MILLISECOND,
                window: self.window,
                workers: self.workers,
                ..Facts::default()
            };
            for _ in 0..100 {
                self.make(&mut facts);
                self.take(&mut facts);
            }
            facts.batch = self.taken;
            match tuner.look(&facts) {
                Some(Decision {
                    knob: Knob::Window,
                    to,
                    ..
                }) => self.window = to,
                Some(Decision {
                    knob: Knob::Workers,
                    to,
                    ..
                }) => self.workers = to,
                None => {}
            }
            facts.waited
        }
    }

    fn run(world: &World, tuner: &mut Tuner, looks: u32) -> End {
        let mut run = Run {
            world,
            window: 2,
            workers: 1,
            made: 0,
            taken: 0,
            work: 0.0,
            pause: 0.0,
            left: world.burst.0,
            was_full: false,
        };
        let tenths = (1..=looks).map(|look| run.tenth(100 * MILLISECOND * look, tuner));
        let waited: Vec<_> = tenths.collect();
        let last = &waited[waited.len() * 9 / 10..];
        let whole = 100 * MILLISECOND * u32::try_from(last.len()).expect("few");
        End {
            window: run.window,
            workers: run.workers,
            decisions: tuner.decisions().to_vec(),
            waited: share(last.iter().sum(), whole),
        }
    }

    fn outcome(world: &World) -> End {
        let end = run(world, &mut Tuner::new(config(world.cores)), 2_000);
        // It has come to rest in the first half and was busy for a short time only.
        let last = end.decisions.last().map_or(Duration::ZERO, |last| last.at);
        assert!(last < Duration::from_secs(100), "{end:?}");
        assert!(end.decisions.len() < 24, "{end:?}");
        end
    }

    #[test]
    fn a_slow_reader_changes_nothing() {
        let end = outcome(&STEADY);
        assert!(end.decisions.is_empty(), "{end:?}");
        assert!(end.waited < 0.01, "{end:?}");
    }

    #[test]
    fn a_fast_reader_gets_as_many_workers_as_it_has_use_for() {
        let end = outcome(&World {
            burst: (1, 3.0),
            ..STEADY
        });
        assert!((4..=5).contains(&end.workers), "{end:?}");
        assert!(end.waited < OFTEN, "{end:?}");
        assert!(
            end.decisions.iter().all(|it| it.knob == Knob::Workers),
            "{end:?}"
        );
    }

    #[test]
    fn workers_stop_at_the_cores_and_at_their_share_of_them() {
        let greedy = World {
            burst: (1, 1.0),
            cost: |_| 40.0,
            ..STEADY
        };
        assert_eq!(outcome(&greedy).workers, 7);
        let modest = TunerConfig {
            cpu_share: 0.4,
            ..config(8)
        };
        let end = run(&greedy, &mut Tuner::new(modest), 2_000);
        assert_eq!(end.workers, 3, "{end:?}");
    }

    #[test]
    fn a_bursty_reader_gets_a_window_as_wide_as_its_bursts() {
        let end = outcome(&World {
            burst: (8, 200.0),
            ..STEADY
        });
        assert!((8..=16).contains(&end.window), "{end:?}");
        assert!(end.waited < 0.01, "{end:?}");
        assert!(
            end.decisions.iter().all(|it| it.knob == Knob::Window),
            "{end:?}"
        );
    }

    #[test]
    fn a_slow_quarter_is_got_over() {
        let end = outcome(&World {
            cost: |batch| if batch % 400 < 100 { 60.0 } else { 10.0 },
            ..STEADY
        });
        assert!((2..=7).contains(&end.workers), "{end:?}");
    }

    #[test]
    fn a_budget_that_is_too_small_is_not_tuned_against() {
        let end = outcome(&World {
            burst: (8, 100.0),
            room: 1,
            ..STEADY
        });
        assert_eq!((end.window, end.workers), (2, 1), "{end:?}");
    }

    #[test]
    fn a_worker_that_brings_nothing_goes_home_and_is_not_hired_again() {
        let mut tuner = Tuner::new(config(8));
        let world = World {
            // Eight cores by name, and the work of one: more threads do no more.
            cores: 1,
            burst: (1, 3.0),
            ..STEADY
        };
        let end = run(&world, &mut tuner, 2_000);
        assert_eq!(end.workers, 1, "{end:?}");
        let whys: Vec<_> = end.decisions.iter().map(|it| it.why).collect();
        assert_eq!(whys, [Why::Waiting, Why::NoGain]);
    }

    #[test]
    fn decisions_are_taken_again_after_as_many_batches() {
        let world = World {
            burst: (8, 200.0),
            ..STEADY
        };
        let first = outcome(&world);
        let kept = serde_json::to_string(&first.decisions).expect("plain values");
        let kept: Vec<Decision> = serde_json::from_str(&kept).expect("what was written");
        let mut again = Tuner::replay(config(8), kept);
        let second = run(&world, &mut again, 2_000);
        assert_eq!(second.window, first.window);
        assert_eq!(second.decisions, first.decisions);
    }
}
