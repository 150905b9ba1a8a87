//! Bad input is refused with one sentence that names the setting, its value and the way out.

use std::panic::{AssertUnwindSafe, catch_unwind};

use burn_prefetch::{ConfigError, DataLoaderBuilder};
use burn_prefetch_tests::{
    Numbers, capture_logs, chunks, for_each_worker_count, guarded, loader, logged, pass,
};
use log::Level;

type Builder = DataLoaderBuilder<usize, Vec<usize>>;

fn refused(builder: Builder) -> ConfigError {
    match builder.try_build(Numbers(10)) {
        Ok(loader) => panic!("accepted: {}", loader.effective_config()),
        Err(error) => error,
    }
}

/// One sentence, as errors are written: lower case, no full stop, one line; with these words.
fn assert_sentence(text: &str, words: &[&str]) {
    assert!(
        !text.contains('\n') && !text.ends_with('.'),
        "not one sentence: {text}"
    );
    assert!(
        !text.starts_with(char::is_uppercase),
        "errors start small: {text}"
    );
    for word in words {
        assert!(text.contains(word), "`{word}` is missing in: {text}");
    }
}

fn assert_refused(build: impl Fn() -> Builder, setting: &str, value: &str) {
    let sentence = refused(build()).to_string();
    assert_sentence(&sentence, &[setting, value]);
    let way_out = &sentence[sentence.find(value).map_or(0, |at| at + value.len())..];
    assert!(
        way_out.split_whitespace().count() > 3,
        "no way out after the value: {sentence}"
    );
    let panic = catch_unwind(AssertUnwindSafe(|| build().build(Numbers(10)).num_items()));
    let panic = panic.expect_err("build panics where try_build refuses");
    let text = panic
        .downcast_ref::<String>()
        .expect("the panic has a sentence");
    assert!(
        text.contains(&sentence),
        "build says `{text}`, try_build `{sentence}`"
    );
}

#[test]
fn a_batch_of_no_items() {
    for_each_worker_count(|workers| {
        assert_refused(|| loader(workers).batch_size(0), "batch_size", "0");
    });
}

#[test]
fn workers_beyond_reason() {
    guarded(|| {
        for workers in [1_000_000, usize::MAX] {
            assert_refused(|| loader(workers), "num_workers", &workers.to_string());
        }
    });
}

#[test]
fn parts_that_are_none_or_beyond_reason() {
    for_each_worker_count(|workers| {
        assert_refused(
            || loader(workers).parts_per_batch(0),
            "parts_per_batch",
            "0",
        );
        let most = usize::MAX;
        let beyond = || loader(workers).batch_size(4).parts_per_batch(most);
        assert_refused(beyond, "parts_per_batch", &most.to_string());
    });
}

#[test]
fn reason_has_room_for_big_machines_and_big_windows() {
    guarded(|| {
        assert!(loader(512).try_build(Numbers(10)).is_ok());
        let window = loader(4)
            .batch_size(3)
            .prefetch(usize::MAX)
            .build(Numbers(10));
        assert_eq!(pass(window.as_ref()), chunks(10, 3));
        let factor = loader(4)
            .batch_size(3)
            .prefetch_factor(usize::MAX)
            .build(Numbers(10));
        assert_eq!(pass(factor.as_ref()), chunks(10, 3));
        let batch = loader(4).batch_size(usize::MAX).build(Numbers(10));
        assert_eq!(pass(batch.as_ref()), chunks(10, 10));
    });
}

#[test]
fn more_parts_than_items_are_as_many_as_items() {
    for_each_worker_count(|workers| {
        let loader = loader(workers)
            .batch_size(3)
            .parts_per_batch(64)
            .build(Numbers(10));
        assert_eq!(pass(loader.as_ref()), chunks(10, 3));
    });
}

#[test]
fn a_refused_slice_names_both_ends_and_what_would_do() {
    for_each_worker_count(|workers| {
        let loader = loader(workers).try_build(Numbers(10)).unwrap();
        for (start, end, way_out) in [(5, 20, "10"), (8, 3, "slice(3, 8)"), (21, 22, "10")] {
            let error = loader
                .try_slice(start, end)
                .expect_err("refused")
                .to_string();
            assert_sentence(&error, &[&format!("slice({start}, {end})"), way_out]);
        }
    });
}

#[test]
fn drop_last_with_fewer_items_than_a_batch_is_an_empty_pass_and_one_warning() {
    for_each_worker_count(|workers| {
        capture_logs();
        // A number that no other test of this process uses.
        let batch_size = 12_340 + workers;
        let loader = loader(workers)
            .batch_size(batch_size)
            .drop_last(true)
            .build(Numbers(7));
        for _ in 0..3 {
            assert!(pass(loader.as_ref()).is_empty());
        }
        assert_eq!(loader.num_items(), 0);
        let said = logged(&batch_size.to_string());
        assert_eq!(said.len(), 1, "{said:?}");
        assert_eq!(said[0].level, Level::Warn);
        assert!(
            said[0].text.contains("drop_last") && said[0].text.contains('7'),
            "{said:?}"
        );
    });
}

#[test]
fn settings_that_need_workers_are_reported_as_ignored_without_them() {
    guarded(|| {
        let builders: [(&str, Builder); 2] = [
            ("prefetch_factor", loader(0).prefetch_factor(2)),
            ("prefetch", loader(0).prefetch(3)),
        ];
        for (setting, builder) in builders {
            let loader = builder
                .batch_size(3)
                .try_build(Numbers(10))
                .expect("not an error");
            assert_eq!(pass(&loader), chunks(10, 3));
            let config = loader.effective_config();
            let ignored: Vec<_> = config.ignored.iter().map(|one| one.setting).collect();
            assert_eq!(ignored, [setting]);
            let shown = config.to_string();
            for words in [setting, &config.ignored[0].why] {
                assert!(shown.contains(words), "`{words}` is missing in: {shown}");
            }
        }
    });
}

#[test]
fn settings_in_force_are_not_reported_as_ignored() {
    guarded(|| {
        for workers in [1, 2, 4, 8] {
            let builder = loader(workers).batch_size(3).prefetch_factor(2);
            let config = builder.try_build(Numbers(10)).unwrap().effective_config();
            assert!(config.ignored.is_empty(), "{config}");
            assert_eq!((config.batch_size, config.num_workers), (Some(3), workers));
        }
    });
}
