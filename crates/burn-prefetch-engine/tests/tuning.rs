//! What is decided is done while a pass runs, and changes nothing else.
#![cfg(not(shuttle))]

mod doubles;

use std::sync::Arc;
use std::time::{Duration, Instant};

use burn_prefetch_engine::{Decision, Knob, Tuner, TunerConfig, Tuning, Why};
use doubles::{Loader, Numbers};

#[test]
fn decisions_are_done_in_a_pass_that_runs_and_lose_no_batch() {
    let decision = |batch, knob, from, to| Decision {
        at: Duration::ZERO,
        batch,
        knob,
        from,
        to,
        why: Why::Starved,
    };
    let decisions = vec![
        decision(10, Knob::Window, 2, 6),
        decision(20, Knob::Workers, 1, 3),
        decision(30, Knob::Workers, 3, 2),
    ];
    let config = TunerConfig {
        window: Some(8),
        workers: Some(4),
        cores: 4,
        cpu_share: 1.0,
    };
    let tuner = Tuner::replay(config, decisions.clone());
    let mut loader = Loader::new(Numbers::new(), 1, (400, 4)).ahead(2);
    loader.account.tuning = Some(Arc::new(Tuning::new(tuner)));
    let begun = Instant::now();
    let tuning = loader.account.tuning.clone().unwrap();
    while tuning.decisions().len() < decisions.len() {
        assert!(begun.elapsed() < Duration::from_secs(30), "{tuning:?}");
        let batches: Vec<_> = loader.iter().map(Result::unwrap).collect();
        assert_eq!(batches, loader.expected());
    }
    assert_eq!(tuning.decisions(), decisions);
    assert_eq!(loader.account.dial.ahead(), Some(6));
    assert_eq!(loader.pool.size(), 2);
    let batches: Vec<_> = loader.iter().map(Result::unwrap).collect();
    assert_eq!(batches, loader.expected());
    assert!(loader.account.stats().batches.most >= 2);
}

#[test]
fn a_loader_without_workers_stays_one() {
    let loader = Loader::new(Numbers::new(), 0, (40, 4)).ahead(2);
    loader.pool.resize(4);
    loader.account.dial.set_ahead(9);
    assert_eq!(loader.iter().count(), 10);
    assert_eq!((loader.pool.size(), loader.pool.live()), (0, 0));
    assert_eq!(loader.account.stats().batches.most, 1);
}
