//! A state of another loader, version or file is refused with one sentence, and changes nothing.

use burn_prefetch::{BatchLists, ConfigError, LoaderState, StateError, Subset, Weighted};
use burn_prefetch_tests::{
    Builder, Numbers, for_each_case, for_each_worker_count, guarded, loader,
};

type Set = fn(Builder) -> Builder;

fn saved(builder: Builder) -> LoaderState {
    let loader = builder.try_build(Numbers(10)).expect("it is a loader");
    let mut batches = loader.iter_owned();
    assert!(batches.next().is_some_and(|batch| batch.is_ok()));
    batches.state()
}

fn refused(state: &LoaderState, builder: Builder, len: usize) -> String {
    let loader = builder.try_build(Numbers(len)).expect("it is a loader");
    loader.set_epoch(3);
    let before = loader.state();
    let error = loader.restore(state).expect_err("it is another loader");
    assert_eq!(
        (loader.epoch(), loader.state()),
        (3, before),
        "nothing has changed"
    );
    let sentence = error.to_string();
    assert!(
        !sentence.contains('\n') && !sentence.ends_with('.'),
        "{sentence}"
    );
    sentence
}

fn subset(indices: [usize; 3]) -> Subset {
    Subset::new(indices, 10).expect("they are there")
}

fn weighted(seed: u64) -> Weighted {
    Weighted::new(&[1.0; 10], 5, seed).expect("they are weights")
}

/// What is said, what was saved, and what it is restored in.
const fn differences() -> [(&'static str, Set, Set); 9] {
    [
        (
            "with the shuffle's seed 7, and this loader has 8",
            |b| b.shuffle(7),
            |b| b.shuffle(8),
        ),
        (
            "with the order shuffled, and this loader has sequential",
            |b| b.shuffle(7),
            |b| b,
        ),
        (
            "with a batch size of 2, and this loader has 3",
            |b| b.batch_size(2),
            |b| b.batch_size(3),
        ),
        (
            "with a batch size of 1, and this loader has none",
            |b| b,
            |b| b.batch_sampler(BatchLists::new([[1]], 10).expect("it is there")),
        ),
        (
            "with the seed 4, and this loader has 5",
            |b| b.seed(4),
            |b| b.seed(5),
        ),
        (
            "with a last batch that is kept, and this loader has dropped",
            |b| b,
            |b| b.drop_last(true),
        ),
        (
            "with a last batch that is dropped, and this loader has padded",
            |b| b.drop_last(true),
            |b| b.pad_last(true),
        ),
        (
            "under another subset order",
            |b| b.sampler(subset([1, 2, 3])),
            |b| b.sampler(subset([1, 2, 4])),
        ),
        (
            "under another weighted order",
            |b| b.sampler(weighted(1)),
            |b| b.sampler(weighted(2)),
        ),
    ]
}

#[test]
fn the_difference_is_named() {
    for_each_case(differences(), |workers, (words, was, is)| {
        let state = saved(was(loader(workers)));
        let mut said = refused(&state, is(loader(workers)), 10);
        if words.contains("has none") {
            // What is named first is the kind of order.
            assert!(said.contains("the order sequential"), "{said}");
            said = words.to_owned();
        }
        assert!(said.contains(words), "{said}");
        let same = was(loader(workers)).try_build(Numbers(10)).unwrap();
        same.restore(&state).expect("it is the same loader");
    });
}

#[test]
fn other_data_is_named() {
    for_each_worker_count(|workers| {
        let state = saved(loader(workers));
        let said = refused(&state, loader(workers), 11);
        assert!(
            said.contains("a data length of 10, and this loader has 11"),
            "{said}"
        );
    });
}

#[test]
fn what_does_not_matter_to_the_order_may_differ() {
    for_each_worker_count(|workers| {
        let state = saved(loader(workers).shuffle(7).batch_size(2));
        let others: [Set; 5] = [
            |b| b.num_workers(3),
            |b| b.prefetch(9).prefetch_factor(1),
            |b| b.parts_per_batch(2),
            |b| b.batched(),
            |b| b.in_order(false),
        ];
        for other in others {
            let loader = other(loader(workers).shuffle(7).batch_size(2));
            let loader = loader.try_build(Numbers(10)).unwrap();
            loader.restore(&state).expect("the batches are the same");
        }
    });
}

/// What is in the state's text, what is there instead, and what is said.
const GARBAGE: [(&str, &str, &str); 7] = [
    (
        "\"version\":1",
        "\"version\":2",
        "format version 2, and this release reads version 1",
    ),
    ("\"version\":1,", "", "format version 0"),
    (
        "\"batch\":1",
        "\"batch\":6",
        "at batch 6 of epoch 0, which has 5 batches",
    ),
    (
        "\"missing\":[]",
        "\"missing\":[1]",
        "batch 1 is said to be missing",
    ),
    (
        "\"missing\":[]",
        "\"missing\":[0,0]",
        "batch 0 stands out of turn",
    ),
    (
        "\"rng_version\":1",
        "\"rng_version\":9",
        "the random numbers' version 9",
    ),
    (
        "\"order_version\":1",
        "\"order_version\":8",
        "the order's version 8",
    ),
];

#[test]
fn garbage_is_refused() {
    guarded(|| {
        let builder = || loader(2).batch_size(2);
        let state = serde_json::to_string(&saved(builder())).unwrap();
        let read = |text: &str| serde_json::from_str::<LoaderState>(text);
        assert_eq!(read(&state).unwrap(), saved(builder()));
        for (old, new, words) in GARBAGE {
            assert!(state.contains(old), "{old} is missing in: {state}");
            let said = refused(&read(&state.replace(old, new)).unwrap(), builder(), 10);
            assert!(said.contains(words), "{said}");
        }
        assert!(refused(&read("{}").unwrap(), builder(), 10).contains("format version 0"));
        for garbage in [
            "",
            "[1",
            "\"state\"",
            "{\"version\":-1}",
            "{\"version\":1,\"epoch\":\"x\"}",
        ] {
            assert!(read(garbage).is_err(), "{garbage}");
        }
    });
}

#[test]
fn the_builder_refuses_it_too() {
    for_each_worker_count(|workers| {
        let state = saved(loader(workers).shuffle(7));
        let other = loader(workers).shuffle(8).restore(state.clone());
        let error = other.try_build(Numbers(10)).expect_err("another seed");
        let ConfigError::State(StateError::Differs { what, .. }) = &error else {
            panic!("{error}")
        };
        assert_eq!(*what, "the shuffle's seed");
        assert!(error.to_string().contains("start_epoch"), "{error}");
        let same = loader(workers).shuffle(7).restore(state);
        assert_eq!(same.try_build(Numbers(10)).unwrap().epoch(), 0);
    });
}
