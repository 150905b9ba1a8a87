//! What is changed while a loader runs is in force at once, within what was set, and is what is shown.

use std::time::Duration;

use burn::data::dataloader::DataLoader;
use burn_prefetch::{
    Auto, ConfigError, DataLoaderBuilder, Decision, Knob, MemoryBudget, PrefetchDataLoader, Why,
    Workers,
};
use burn_prefetch_tests::{Collect, Numbers, chunks, eventually, guarded, loader, pass};

type Builder = DataLoaderBuilder<usize, Vec<usize>>;

fn build(builder: Builder) -> PrefetchDataLoader<Vec<usize>> {
    let built = builder.batch_size(4).try_build(Numbers(400));
    built.expect("the settings are good")
}

/// How many batches are alive once no more begin.
fn alive(loader: &PrefetchDataLoader<Vec<usize>>, expected: u64) {
    let _batches = loader.iter();
    eventually("the window is full", || {
        loader.stats().batches.now == expected
    });
}

#[test]
fn the_window_of_a_prefetch_factor_follows_the_workers() {
    guarded(|| {
        let fewer = build(loader(4).prefetch_factor(2));
        fewer.control().set_num_workers(1).expect("there are some");
        alive(&fewer, 2);
        assert_eq!(fewer.stats().batches.most, 2);
        let more = build(loader(2).prefetch_factor(2).prefetch(7));
        alive(&more, 4);
        more.control().set_num_workers(3).expect("there are some");
        alive(&more, 6);
        more.control().set_num_workers(5).expect("there are some");
        alive(&more, 7);
        more.control().set_prefetch(3);
        more.control().set_num_workers(2).expect("there are some");
        alive(&more, 3);
    });
}

#[test]
fn what_is_shown_is_what_is_in_force() {
    guarded(|| {
        let builder = loader(2).prefetch(3).max_batch_bytes(32).memory_budget(500);
        let loader = build(builder);
        let control = loader.control();
        control.set_num_workers(4).expect("there are some");
        control.set_memory_budget(999).expect("there is one");
        control.set_prefetch(7);
        let config = loader.effective_config();
        let window = config.window.to_string();
        assert_eq!(
            (config.num_workers, window.as_str(), config.memory_budget),
            (4, "at most 7 batches alive", Some(999))
        );
        assert_eq!(pass(&loader), chunks(400, 4));
        control.set_prefetch(0);
        let text = loader.explain();
        assert!(
            text.starts_with("Bounded: 1 batch, started when next()"),
            "{text}"
        );
        drop(loader);
        assert_eq!(
            (control.num_workers(), control.set_num_workers(3)),
            (0, Ok(()))
        );
        let inline = build(self::loader(0));
        inline.control().set_prefetch(5);
        assert_eq!(inline.control().window(), None);
        assert_eq!(pass(&inline), chunks(400, 4));
    });
}

#[test]
fn after_the_loader_nothing_changes_and_what_was_found_is_known() {
    guarded(|| {
        let workers = Workers::new(2);
        let budget = MemoryBudget::new(500);
        let sized = || {
            DataLoaderBuilder::new(Collect)
                .workers(&workers)
                .max_batch_bytes(32)
        };
        let one = build(sized().memory_budget(&budget));
        let control = one.control();
        control.set_num_workers(3).expect("there are some");
        control.set_prefetch(4);
        let mut batches = one.iter_owned();
        drop(one);
        // An iterator goes on, and so does what it is made with.
        control.set_num_workers(4).expect("there are some");
        assert_eq!((control.num_workers(), workers.num_workers()), (4, 4));
        assert_eq!(batches.by_ref().count(), 100);
        drop(batches);
        let other = build(sized().memory_budget(&budget));
        eventually("the control sees its end", || control.num_workers() == 0);
        assert_eq!(control.set_num_workers(5), Ok(()));
        assert_eq!(control.set_memory_budget(3), Ok(()));
        control.set_prefetch(9);
        assert_eq!((workers.num_workers(), budget.limit()), (4, 500));
        let found = control.freeze();
        assert_eq!((found.num_workers, found.prefetch), (4, Some(4)));
        assert_eq!(pass(&other), chunks(400, 4));
    });
}

#[test]
fn what_an_automatic_loader_found_is_known_after_a_training_has_taken_it() {
    guarded(|| {
        let loader = build(loader(1).auto());
        let (control, workers) = (loader.control(), loader.effective_config().num_workers);
        assert!(workers > 0);
        assert_eq!(loader.into_iter_owned().count(), 100);
        eventually("the control sees its end", || control.num_workers() == 0);
        let next = build(self::loader(0).frozen(control.freeze()));
        assert_eq!(next.effective_config().num_workers, workers);
    });
}

#[test]
fn what_is_set_by_hand_does_not_change_by_itself() {
    guarded(|| {
        let loader = build(loader(1).auto().cpu_share(0.5));
        let control = loader.control();
        let config = loader.effective_config();
        assert!(config.auto_workers && config.auto_window);
        assert!(
            config
                .to_string()
                .contains("while busy with no more than 0.5 of the cores")
        );
        control.set_prefetch(1);
        let config = loader.effective_config();
        assert!(config.auto_workers && !config.auto_window);
        control.set_num_workers(2).expect("there are some");
        let config = loader.effective_config();
        assert_eq!((config.auto_workers, config.cpu_share), (false, None));
    });
    // A decision of an earlier run does not win over a hand either.
    guarded(|| {
        let decisions = vec![
            decision(10, Knob::Window, 8),
            decision(20, Knob::Workers, 3),
        ];
        let loader = build(loader(2).auto().replay(decisions));
        loader.control().set_prefetch(2);
        assert_eq!(pass(&loader), chunks(400, 4));
        let control = loader.control();
        assert_eq!((control.window(), control.num_workers()), (Some(2), 3));
    });
}

fn decision(batch: u64, knob: Knob, to: usize) -> Decision {
    Decision {
        at: Duration::ZERO,
        batch,
        knob,
        from: 2,
        to,
        why: Why::Starved,
    }
}

/// Items that cost nothing and items that cost much: it is the batches that are counted.
#[test]
fn a_decision_is_taken_again_after_as_many_batches() {
    guarded(|| {
        let decisions = [
            decision(3, Knob::Window, 9),
            decision(5, Knob::Workers, 3),
            decision(60, Knob::Window, 4),
        ];
        let loader = build(loader(1).prefetch(Auto).replay(decisions));
        let control = loader.control();
        let mut batches = loader.iter();
        for returned in 1..=100 {
            batches.next().expect("there is one").expect("it loads");
            let window = match returned {
                0..3 => None,
                3..60 => Some(9),
                _ => Some(4),
            };
            assert_eq!(control.window(), window, "after {returned}");
            assert_eq!(control.num_workers(), if returned < 5 { 1 } else { 3 });
        }
        assert_eq!(control.decisions(), decisions);
    });
}

#[test]
fn decisions_that_no_loader_takes_are_one_sentence() {
    guarded(|| {
        let refused = |decision: Decision| {
            let builder = loader(1).prefetch(Auto).replay([decision]);
            let built = builder.try_build(Numbers(4)).map(|_| ());
            built.expect_err("it cannot be")
        };
        for (knob, to) in [
            (Knob::Workers, 1_025),
            (Knob::Workers, 0),
            (Knob::Window, usize::MAX),
            (Knob::Window, 0),
        ] {
            let error = refused(decision(0, knob, to));
            assert!(matches!(error, ConfigError::ReplayBeyond { .. }), "{error}");
            assert!(error.to_string().contains(&to.to_string()), "{error}");
        }
        let shared = DataLoaderBuilder::new(Collect)
            .workers(&loader_workers())
            .auto();
        let error = shared.try_build(Numbers(4)).map(|_| ());
        assert_eq!(
            error.expect_err("it cannot be"),
            ConfigError::AutoBesideWorkers
        );
    });
}

fn loader_workers() -> Workers {
    Workers::new(2)
}
