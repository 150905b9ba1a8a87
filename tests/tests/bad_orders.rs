//! An order that cannot be used is one sentence at `try_build`, before anything is fetched.

use std::sync::Arc;

use burn::data::dataloader::DataLoader;
use burn_prefetch::{
    BatchLimit, BatchLists, BatchSampler, BatchSizes, Buckets, ConfigError, Mixture, OrderError,
    Remainder, Subset, Weighted, WeightedWithoutReplacement,
};
use burn_prefetch_tests::{
    Builder, Counting, FromTheBack, Numbers, Stairs, for_each_case, guarded, loader,
};

fn assert_sentence(sentence: &str, names: &str, way_out: &str) {
    assert!(
        !sentence.contains('\n') && !sentence.ends_with('.'),
        "{sentence}"
    );
    assert!(
        sentence.contains(names),
        "`{names}` is missing in: {sentence}"
    );
    assert!(
        sentence.contains(way_out),
        "`{way_out}` is missing in: {sentence}"
    );
}

fn refused(builder: Builder) -> ConfigError {
    let data = Arc::new(Counting::new(10));
    let error = builder
        .try_build(Arc::clone(&data))
        .expect_err("it is refused");
    assert!(data.untouched());
    assert_eq!(Arc::strong_count(&data), 1);
    error
}

#[test]
fn two_orders() {
    type Set = fn(Builder) -> Builder;
    let subset = |b: Builder| b.sampler(Subset::new([1], 10).unwrap());
    let cases: [(&str, Set); 4] = [
        ("shuffle and sampler", |b| b.shuffle(1).sampler(FromTheBack)),
        ("sampler and shuffle", |b| b.sampler(FromTheBack).shuffle(1)),
        ("shuffle and windowed_shuffle", |b| {
            b.shuffle(1).windowed_shuffle(5, 1)
        }),
        ("sampler and batch_sampler", |b| {
            b.sampler(FromTheBack).batch_sampler(Stairs)
        }),
    ];
    for_each_case(cases, move |workers, (names, set)| {
        let error = refused(set(loader(workers)));
        assert_sentence(&error.to_string(), names, "leave one of them out");
        // The last of one kind counts, as for every setting.
        let twice = subset(loader(workers).sampler(FromTheBack));
        assert_eq!(twice.try_build(Counting::new(10)).unwrap().num_batches(), 1);
    });
}

#[test]
fn settings_of_batches_beside_batches() {
    type Set = fn(Builder) -> Builder;
    let cases: [(&str, Set); 3] = [
        ("batch_size", |b| b.batch_size(2)),
        ("drop_last", |b| b.drop_last(true)),
        ("pad_last", |b| b.pad_last(true)),
    ];
    for_each_case(cases, |workers, (setting, set)| {
        let error = refused(set(loader(workers).batch_sampler(Stairs)));
        let names = format!("{setting} is given beside batch_sampler(..)");
        assert_sentence(&error.to_string(), &names, "leave");
        let both = refused(loader(workers).drop_last(true).pad_last(true));
        assert_eq!(both, ConfigError::DropAndPad);
    });
}

#[test]
fn orders_for_data_of_another_length() {
    type Set = fn(Builder) -> Builder;
    let cases: [(&str, Set); 4] = [
        ("subset", |b| b.sampler(Subset::new([1, 2], 12).unwrap())),
        ("weighted", |b| {
            b.sampler(Weighted::new(&[1.0; 12], 5, 1).unwrap())
        }),
        ("mixture", |b| {
            b.sampler(Mixture::new(&[4, 8], &[1.0, 1.0], 5, 1).unwrap())
        }),
        ("batch lists", |b| {
            b.batch_sampler(BatchLists::new([[1]], 12).unwrap())
        }),
    ];
    for_each_case(cases, |workers, (what, set)| {
        let error = refused(set(loader(workers)));
        let names = format!("the {what} order is of data of 12 items, and the dataset has 10");
        assert_sentence(&error.to_string(), &names, "make it for this dataset");
    });
}

#[test]
fn a_batch_without_items_in_the_first_epoch() {
    struct Hollow;
    impl BatchSampler for Hollow {
        fn sizes(&self, epoch: usize) -> BatchSizes {
            BatchSizes::each([2, epoch, 1])
        }

        fn at(&self, _epoch: usize, _batch: usize, place: usize) -> usize {
            place
        }
    }
    for_each_case([()], |workers, ()| {
        let error = refused(loader(workers).batch_sampler(Hollow));
        assert_eq!(
            error,
            ConfigError::Order(OrderError::EmptyBatch { batch: 1 })
        );
        assert_sentence(&error.to_string(), "batch 1 has no items", "leave it out");
        let later = loader(workers).batch_sampler(Hollow).start_epoch(1);
        assert!(later.try_build(Counting::new(10)).is_ok());
    });
}

#[test]
fn what_is_wrong_with_a_sampler_is_said_when_it_is_made() {
    guarded(|| {
        let weighted = |weights: &[f64]| Weighted::new(weights, 5, 1).unwrap_err().to_string();
        assert_sentence(&weighted(&[1.0, -2.0]), "weight 1 is -2", "from 0 up");
        assert_sentence(&weighted(&[f64::NAN]), "weight 0 is NaN", "from 0 up");
        assert_sentence(&weighted(&[f64::INFINITY]), "weight 0 is inf", "finite");
        assert_sentence(
            &weighted(&[0.0, 0.0]),
            "all 2 weights are 0",
            "has to be above",
        );
        assert_sentence(&weighted(&[]), "there are no weights", "give one");
        let many = WeightedWithoutReplacement::new([1.0, 0.0], 2, 1).unwrap_err();
        assert_sentence(&many.to_string(), "2 items are to be drawn", "at most 1");
        let subset = Subset::new([3, 10], 10).unwrap_err();
        assert_sentence(
            &subset.to_string(),
            "entry 1 of the list is index 10",
            "10 items",
        );
        let lists = |lists: Vec<Vec<usize>>| BatchLists::new(lists, 10).unwrap_err().to_string();
        assert_sentence(
            &lists(vec![vec![1], vec![]]),
            "batch 1 has no items",
            "leave it out",
        );
        assert_sentence(
            &lists(vec![vec![1, 10]]),
            "place 1 of batch 0 is index 10",
            "10 items",
        );
        let budget = BatchLimit::Budget(5.try_into().unwrap());
        let buckets = Buckets::new(&[3, 9], &[], budget, Remainder::Keep).unwrap_err();
        assert_sentence(&buckets.to_string(), "item 1 counts 9", "raise it");
    });
}

/// Numbers beyond sense are refused or cost nothing.
#[test]
fn numbers_beyond_sense() {
    struct Many;

    impl BatchSampler for Many {
        fn sizes(&self, _epoch: usize) -> BatchSizes {
            BatchSizes::equal(1 << 40, 1)
        }

        fn at(&self, _epoch: usize, _batch: usize, _place: usize) -> usize {
            0
        }
    }

    guarded(|| {
        let built = loader(0).batch_sampler(Many).try_build(Numbers(1));
        let built = built.expect("it is a loader");
        assert_eq!(built.num_batches(), 1 << 40);
        let first = built.iter().next().expect("there is one");
        assert_eq!(first.expect("it loads"), [0]);
        let mixture = Mixture::new(&[usize::MAX, 1], &[1.0, 1.0], 5, 1);
        let error = mixture.expect_err("it cannot be").to_string();
        assert!(
            error.contains("more items together than can be counted"),
            "{error}"
        );
        assert_eq!(Buckets::even_bounds(&[1, 2, 3], usize::MAX), [2, 3]);
    });
}
