//! What cannot be waited for, and threads with two sets of settings, are refused with one sentence.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use burn_prefetch::{
    ConfigError, DataLoaderBuilder, EffectiveConfig, PrefetchDataLoader, WindowConfig, Workers,
    WorkersBuilder,
};
use burn_prefetch_tests::{
    Collect, Counting, Numbers, alone, capture_logs, chunks, expect_loader_threads, for_each_case,
    for_each_crew, for_each_worker_count, guarded, loader, logged, pass,
};

const DAY: Duration = Duration::from_hours(24);
const SECOND: Duration = Duration::from_secs(1);

type Builder = DataLoaderBuilder<usize, Vec<usize>>;

/// A setting by name, and how it is given.
type Set<'a> = (&'a str, fn(Builder) -> Builder);

fn on(workers: &Workers) -> Builder {
    DataLoaderBuilder::new(Collect).workers(workers)
}

fn built(builder: Builder) -> PrefetchDataLoader<Vec<usize>> {
    builder.try_build(Numbers(10)).expect("accepted")
}

fn config(builder: Builder) -> EffectiveConfig {
    built(builder).effective_config()
}

/// The text of the panic.
fn panics<T>(body: impl FnOnce() -> T) -> String {
    let outcome = catch_unwind(AssertUnwindSafe(|| drop(body())));
    let panic = outcome.expect_err("it panics");
    let text = panic.downcast_ref::<String>();
    text.expect("the panic has a sentence").clone()
}

/// One sentence, as errors are written, that names the setting with its value and then the way out.
fn assert_sentence(error: &ConfigError, (names, way_out): (&str, &str)) {
    let sentence = error.to_string();
    assert!(
        !sentence.contains('\n') && !sentence.ends_with('.'),
        "{sentence}"
    );
    let rest = sentence.strip_prefix(names);
    let rest = rest.unwrap_or_else(|| panic!("`{names}` is missing in: {sentence}"));
    assert!(
        rest.contains(way_out),
        "`{way_out}` is missing in: {sentence}"
    );
}

/// `try_build` returns the error, `build` panics with its sentence, and neither has begun anything.
fn assert_refused(builder: impl Fn() -> Builder, error: &ConfigError, words: (&str, &str)) {
    let data = Arc::new(Counting::new(10));
    let refused = builder().try_build(Arc::clone(&data));
    assert_eq!(refused.err().as_ref(), Some(error));
    let panic = panics(|| builder().build(Arc::clone(&data)));
    assert_eq!(panic, error.to_string());
    assert!(data.untouched());
    assert_eq!(
        Arc::strong_count(&data),
        1,
        "who is refused keeps no dataset"
    );
    expect_loader_threads(0);
    assert_sentence(error, words);
}

/// The same for threads that are made by themselves.
fn assert_refused_threads(builder: impl Fn() -> WorkersBuilder, error: &ConfigError) {
    assert_eq!(builder().try_build().err().as_ref(), Some(error));
    assert_eq!(panics(|| builder().build()), error.to_string());
}

#[test]
fn a_timeout_of_zero() {
    for_each_worker_count(|workers| {
        let _alone = alone();
        let (zero, words) = (Duration::ZERO, ("timeout is 0 s", "leave it out"));
        let error = ConfigError::TimeoutZero;
        assert_refused(|| loader(workers).timeout(zero), &error, words);
        let crew = Workers::new(workers);
        assert_refused(|| on(&crew).timeout(zero), &error, words);
        if workers > 0 {
            built(loader(workers).timeout(Duration::from_nanos(1)));
        }
    });
}

#[test]
fn a_stall_of_zero() {
    for_each_worker_count(|workers| {
        let _alone = alone();
        let words = ("stall_warning is 0 s", "None for no warning");
        let builder = || loader(workers).stall_warning(Duration::ZERO);
        assert_refused(builder, &ConfigError::StallWarningZero, words);
    });
}

#[test]
fn a_grace_beyond_a_day() {
    for_each_worker_count(|workers| {
        let _alone = alone();
        for grace in [DAY + Duration::from_nanos(1), Duration::MAX] {
            let error = ConfigError::GraceTooLong { grace };
            let names = format!("shutdown_grace is {grace:?}");
            let builder = || loader(workers).shutdown_grace(grace);
            assert_refused(builder, &error, (&names, "leave it out"));
            assert_refused_threads(|| Workers::builder(workers).shutdown_grace(grace), &error);
        }
    });
}

#[test]
fn what_needs_workers_where_there_are_none() {
    guarded(|| {
        let _alone = alone();
        let none = Workers::new(0);
        let builders: [&dyn Fn() -> Builder; 3] =
            [&|| DataLoaderBuilder::new(Collect), &|| loader(0), &|| {
                on(&none)
            }];
        for builder in builders {
            let error = ConfigError::TimeoutWithoutWorkers { timeout: SECOND };
            let words = ("timeout is 1s with 0 workers", "leave it out");
            assert_refused(|| builder().timeout(SECOND), &error, words);
            let error = ConfigError::WarmWithoutWorkers;
            let words = ("warm_next_epoch is true with 0 workers", "leave it out");
            assert_refused(|| builder().warm_next_epoch(true), &error, words);
            let unwanted = builder().warm_next_epoch(true).warm_next_epoch(false);
            assert_eq!(pass(&built(unwanted)), chunks(10, 1));
        }
    });
}

#[test]
fn a_warm_epoch_on_threads_that_end_with_the_pass() {
    for_each_crew(|workers| {
        let _alone = alone();
        let error = ConfigError::WarmWithoutPersistence;
        let names = "warm_next_epoch is true with persistent_workers(false)";
        let words = (names, "leave one of the two out");
        let own = || loader(workers).persistent_workers(false);
        assert_refused(|| own().warm_next_epoch(true), &error, words);
        let crew = Workers::builder(workers).persistent(false).build();
        assert_refused(|| on(&crew).warm_next_epoch(true), &error, words);
    });
}

/// Also where the value is what the workers have already, or the default.
#[test]
fn settings_of_threads_beside_threads_that_have_theirs() {
    let settings: [Set<'_>; 5] = [
        ("num_workers", |builder| builder.num_workers(0)),
        ("num_workers", |builder| builder.num_workers(8)),
        ("persistent_workers", |builder| {
            builder.persistent_workers(true)
        }),
        ("shutdown_grace", |builder| {
            builder.shutdown_grace(5 * SECOND)
        }),
        ("worker_init", |builder| builder.worker_init(|_| Ok(()))),
    ];
    for_each_case(settings, |workers, (setting, set)| {
        let _alone = alone();
        let crew = Workers::new(workers);
        let error = ConfigError::GivenBesideWorkers { setting };
        let names = format!("{setting} is given beside workers(..)");
        let words = (names.as_str(), "give it to Workers::builder");
        assert_refused(|| set(on(&crew)), &error, words);
        // In whichever order they are given.
        let before = || set(DataLoaderBuilder::new(Collect)).workers(&crew);
        assert_refused(before, &error, words);
        let accepted = on(&crew).batch_size(3).prefetch(4);
        assert_eq!(pass(&built(accepted)), chunks(10, 3));
    });
}

#[test]
fn threads_beyond_reason_are_refused_by_both_builders() {
    guarded(|| {
        for num_workers in [1_025, usize::MAX] {
            let most = 1_024;
            let error = ConfigError::TooManyWorkers { num_workers, most };
            assert_refused_threads(|| Workers::builder(num_workers), &error);
            assert_eq!(panics(|| Workers::new(num_workers)), error.to_string());
        }
        assert_eq!(Workers::new(1_024).num_workers(), 1_024);
        assert_eq!(config(loader(1_024)).num_workers, 1_024);
    });
}

/// The largest values that are no mistake; a pass with them is as any other.
#[test]
fn the_longest_waits_are_no_waits_at_all() {
    for_each_crew(|workers| {
        let _alone = alone();
        for limit in [DAY, Duration::MAX] {
            let builder = loader(workers).timeout(limit).stall_warning(limit);
            let builder = builder.shutdown_grace(DAY).batch_size(3);
            assert_eq!(pass(&built(builder)), chunks(10, 3));
        }
    });
}

/// It waits for nobody; and whoever is idle is not inside an item.
#[test]
fn a_grace_of_zero_blames_nobody_who_is_idle() {
    for_each_crew(|workers| {
        let _alone = alone();
        capture_logs();
        for _ in 0..20 {
            let loader = built(loader(workers).shutdown_grace(Duration::ZERO));
            assert_eq!(pass(&loader), chunks(10, 1));
        }
        assert_eq!(logged("still inside the dataset"), []);
        expect_loader_threads(0);
    });
}

fn assert_shows(config: &EffectiveConfig, lines: &[&str]) {
    let shown = config.to_string();
    for line in lines {
        assert!(
            shown.lines().any(|one| one == *line),
            "`{line}` is missing in: {shown}"
        );
    }
}

#[test]
fn what_is_in_force_is_shown() {
    for_each_crew(|workers| {
        let set = |builder: Builder| {
            let builder = builder.timeout(3 * SECOND).stall_warning(2 * SECOND);
            config(builder.in_order(false).warm_next_epoch(true))
        };
        let own = set(loader(workers).shutdown_grace(SECOND));
        let crew = Workers::builder(workers).shutdown_grace(SECOND).build();
        for (config, shared) in [(own, ""), (set(on(&crew)), ", shared")] {
            assert_eq!(config.shared_workers, !shared.is_empty());
            assert_eq!(config.num_workers, workers);
            assert_eq!(config.timeout, Some(3 * SECOND));
            assert_eq!(config.stall_warning, Some(2 * SECOND));
            assert_eq!(config.shutdown_grace, SECOND);
            assert!(config.warm_next_epoch && config.persistent_workers && !config.in_order);
            assert!(config.ignored.is_empty(), "{config}");
            let lines = [
                &format!("num_workers: {workers}{shared}"),
                "in_order: false",
                "timeout: 3s for one next()",
                "stall_warning: after 2s in one item",
                "persistent_workers: true",
                "shutdown_grace: 1s",
                "warm_next_epoch: true",
            ];
            assert_shows(&config, &lines);
        }
    });
}

#[test]
fn the_settings_of_shared_threads_are_shown_as_theirs() {
    for_each_crew(|workers| {
        let crew = Workers::builder(workers).shutdown_grace(3 * SECOND);
        let crew = crew.persistent(false).build();
        let config = config(on(&crew).prefetch_factor(2));
        assert_eq!(config.window, WindowConfig::Batches(2 * workers));
        assert!(config.shared_workers && !config.persistent_workers);
        let lines = ["shutdown_grace: 3s", "persistent_workers: false"];
        assert_shows(&config, &lines);
    });
}

#[test]
fn without_a_word_about_them_they_are_as_promised() {
    for_each_worker_count(|workers| {
        for config in [config(loader(workers)), config(on(&Workers::new(workers)))] {
            assert_eq!(config.timeout, None);
            let warning = (workers > 0).then_some(30 * SECOND);
            assert_eq!(config.stall_warning, warning, "nobody is there to stall");
            assert_eq!(config.shutdown_grace, 5 * SECOND);
            assert!(config.in_order && !config.warm_next_epoch);
            assert_eq!(config.persistent_workers, workers > 0);
            assert!(config.ignored.is_empty(), "{config}");
        }
        let silent = config(loader(workers).stall_warning(None));
        assert_shows(&silent, &["stall_warning: none", "timeout: none"]);
    });
}

/// Without workers the loader says that it ignores the setting, and works; with some it does not.
fn assert_ignored(workers: usize, setting: &str, builder: Builder) {
    let loader = built(builder.batch_size(3));
    let config = loader.effective_config();
    let ignored: Vec<_> = config.ignored.iter().map(|one| one.setting).collect();
    let expected: &[&str] = if workers == 0 { &[setting] } else { &[] };
    assert_eq!(ignored, expected, "{setting} with {workers} workers");
    if let Some(ignored) = config.ignored.first() {
        let line = format!(
            "ignored: {setting}({}), since with 0 workers",
            ignored.value
        );
        assert!(config.to_string().contains(&line), "{config}");
        assert_eq!(pass(&loader), chunks(10, 3));
    }
}

#[test]
fn what_has_no_effect_without_workers_is_reported_and_harmless() {
    let settings: [Set<'_>; 4] = [
        ("persistent_workers", |builder| {
            builder.persistent_workers(false)
        }),
        ("persistent_workers", |builder| {
            builder.persistent_workers(true)
        }),
        ("shutdown_grace", |builder| builder.shutdown_grace(SECOND)),
        ("in_order", |builder| builder.in_order(false)),
    ];
    for_each_case(settings, |workers, (setting, set)| {
        assert_ignored(workers, setting, set(loader(workers)));
        let crew = Workers::new(workers);
        assert_ignored(workers, "prefetch", on(&crew).prefetch(3));
        assert_ignored(workers, "prefetch_factor", on(&crew).prefetch_factor(3));
    });
}

#[test]
fn a_stall_warning_that_has_no_effect_without_workers_is_reported_too() {
    for_each_worker_count(|workers| {
        let builder = loader(workers).stall_warning(SECOND);
        assert_ignored(workers, "stall_warning", builder);
    });
}
