//! What a sampler of the user's own does wrong in the middle of an epoch is an error at its place.
#![cfg(not(shuttle))]

mod doubles;

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use burn_prefetch_engine::{
    BatchLimit, BatchLists, BatchSampler, BatchSizes, Buckets, ClassBalanced, LoadError, Mixture,
    Order, OrderError, Plan, Remainder, Sampler, Stage, Standing, Subset, Weighted,
    WeightedWithoutReplacement, Windowed, context,
};
use doubles::{Loader, Numbers};

const WORKERS: [usize; 5] = [0, 1, 2, 4, 8];

/// The index is the position, up to what is not in the data, or panics.
struct Wrong {
    beyond: usize,
    panics: usize,
}

impl Sampler for Wrong {
    fn len(&self, _epoch: usize) -> usize {
        40
    }

    fn at(&self, _epoch: usize, position: usize) -> usize {
        assert!(position != self.panics, "no index for {position}");
        if position >= self.beyond {
            position + 1_000
        } else {
            position
        }
    }
}

fn loader(workers: usize, sampler: Wrong) -> Loader {
    let size = NonZeroUsize::MIN.saturating_add(3);
    let plan = Plan::new(Order::sampled(sampler, 40), size, Remainder::Keep);
    Loader::new(Numbers::new(), workers, (40, 4)).plan(plan)
}

#[test]
fn an_index_beyond_the_data_stands_at_its_place() {
    for workers in WORKERS {
        for parts in [1, 2, 4] {
            let wrong = Wrong {
                beyond: 14,
                panics: 99,
            };
            let mut pass = loader(workers, wrong).parts(parts).iter();
            assert_eq!(pass.by_ref().take(3).filter_map(Result::ok).count(), 3);
            let error = pass.next().unwrap().unwrap_err();
            let at = error.place();
            assert_eq!((at.batch, at.index, at.stage), (3, None, Stage::Order));
            let LoadError::Order { source, .. } = &error else {
                panic!("{error}")
            };
            let beyond = OrderError::Beyond {
                position: 14,
                index: 1_014,
                len: 40,
            };
            assert_eq!(*source, beyond);
            let text = error.to_string();
            assert!(text.starts_with("choosing an index failed in epoch 0, batch 3"));
            assert!(pass.next().is_none());
        }
    }
}

#[test]
fn a_panic_in_a_sampler_stands_at_its_place() {
    for workers in WORKERS {
        let wrong = Wrong {
            beyond: 99,
            panics: 9,
        };
        let outcomes: Vec<_> = loader(workers, wrong).parts(4).iter().collect();
        assert_eq!(outcomes.len(), 3);
        let error = outcomes[2].as_ref().unwrap_err();
        assert!(error.to_string().contains("no index for 9"), "{error}");
        let at = error.place();
        assert_eq!((at.batch, at.index, at.stage), (2, None, Stage::Order));
    }
}

/// The second of three batches is empty, the third has an index beyond the data.
struct Holes(usize);

impl BatchSampler for Holes {
    fn sizes(&self, _epoch: usize) -> BatchSizes {
        BatchSizes::each([4, self.0, 4])
    }

    fn at(&self, _epoch: usize, batch: usize, place: usize) -> usize {
        if (batch, place) == (2, 3) { 12 } else { place }
    }
}

#[test]
fn a_batch_of_no_items_stands_at_its_place() {
    for workers in WORKERS {
        let plan = Plan::sampled(Holes(0), 12);
        assert_eq!(plan.check(0), Err(OrderError::EmptyBatch { batch: 1 }));
        let loader = Loader::new(Numbers::new(), workers, (12, 4)).plan(plan);
        let outcomes: Vec<_> = loader.iter().collect();
        assert_eq!(outcomes.len(), 2);
        let error = outcomes[1].as_ref().unwrap_err();
        assert_eq!(error.place().batch, 1);
        assert!(
            error.to_string().contains("batch 1 has no items"),
            "{error}"
        );
    }
}

#[test]
fn an_index_beyond_the_data_in_a_batch_stands_at_its_place() {
    for workers in WORKERS {
        let plan = Plan::sampled(Holes(2), 12);
        let loader = Loader::new(Numbers::new(), workers, (12, 4))
            .plan(plan)
            .parts(4);
        let error = loader.iter().find_map(Result::err).unwrap();
        assert_eq!(error.place().batch, 2);
        let words = "place 3 of batch 2 is index 12, and the data has 12 items";
        assert!(error.to_string().ends_with(words), "{error}");
    }
}

#[test]
fn a_batch_knows_what_of_it_is_padding() {
    for workers in WORKERS {
        let seen = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&seen);
        let source = Numbers::assembling(move |_| {
            count.fetch_add(context().unwrap().padding, SeqCst);
            Ok(())
        });
        let size = NonZeroUsize::new(4).unwrap();
        let plan = Plan::new(Order::sequential(10), size, Remainder::Pad);
        let mut pass = Loader::new(source, workers, (10, 4)).plan(plan).iter();
        let batches: Vec<_> = pass.by_ref().map(Result::unwrap).collect();
        assert_eq!(batches[2], [8, 9, 0, 1]);
        assert_eq!((seen.load(SeqCst), pass.items_returned()), (2, 10));
        assert_eq!(pass.padding(), 2);
    }
}

#[test]
fn a_sampler_is_asked_for_the_length_of_every_epoch() {
    struct Growing;
    impl Sampler for Growing {
        fn len(&self, epoch: usize) -> usize {
            4 * epoch
        }

        fn at(&self, epoch: usize, position: usize) -> usize {
            39 - position - epoch
        }
    }
    let size = NonZeroUsize::new(4).unwrap();
    let plan = Plan::new(Order::sampled(Growing, 40), size, Remainder::Keep);
    for workers in WORKERS {
        let loader = Loader::new(Numbers::new(), workers, (40, 4)).plan(plan.clone());
        assert!(loader.iter().next().is_none());
        let mut pass = loader.warm().resume(1, Standing::default());
        assert_eq!(
            pass.by_ref().map(Result::unwrap).collect::<Vec<_>>(),
            [[38, 37, 36, 35]]
        );
        // Without workers nothing is warm.
        if let Some(next) = pass.take_next() {
            assert_eq!(next.map(Result::unwrap).collect::<Vec<_>>().len(), 2);
        } else {
            assert_eq!(workers, 0);
        }
    }
}

/// One plan of each kind, over 100 items.
fn all_plans() -> Result<Vec<Plan>, OrderError> {
    let weights: Vec<_> = (0..100_u8).map(|index| f64::from(index % 4)).collect();
    let labels: Vec<_> = (0..100).map(|index| index % 7 / 3).collect();
    let lengths: Vec<_> = (0..100).map(|index| 1 + index * 37 % 100).collect();
    let orders: [Order; 8] = [
        Order::shuffled(100, 7),
        Windowed::new(100, 8, 7).into(),
        Subset::new((0..50).map(|index| index * 2), 100)?
            .shuffled(7)
            .into(),
        Weighted::new(&weights, 90, 7)?.into(),
        WeightedWithoutReplacement::new(weights, 60, 7)?.into(),
        ClassBalanced::new(&labels, 90, 7)?.into(),
        Mixture::new(&[60, 40], &[1.0, 4.0], 90, 7)?.into(),
        Order::shuffled(100, 7).slice(10, 80, 100),
    ];
    let size = NonZeroUsize::MIN.saturating_add(6);
    let cuts = [Remainder::Keep, Remainder::Drop, Remainder::Pad];
    let mut plans: Vec<_> = (orders.into_iter())
        .flat_map(|order| cuts.map(|remainder| Plan::new(order.clone(), size, remainder)))
        .collect();
    plans.push(
        BatchLists::new([vec![1, 2], vec![99], vec![5; 9]], 100)?
            .shuffled(7)
            .into(),
    );
    let budget = BatchLimit::Budget(size.saturating_mul(size).saturating_mul(size));
    for remainder in cuts {
        let bounds = Buckets::even_bounds(&lengths, 4);
        plans.push(
            Buckets::new(&lengths, &bounds, budget, remainder)?
                .shuffled(7)
                .into(),
        );
    }
    Ok(plans)
}

#[test]
fn every_order_is_the_same_for_any_workers_parts_and_resumption() {
    for plan in all_plans().unwrap() {
        let expected = Loader::new(Numbers::new(), 0, (1, 1)).plan(plan.clone());
        let expected = [0, 3].map(|epoch| expected.expected_of(epoch));
        assert!(expected[0] != expected[1], "{plan:?}");
        for (workers, parts) in WORKERS.into_iter().zip([1, 3, 2, 5, 4]) {
            let loader = Loader::new(Numbers::new(), workers, (1, 1)).plan(plan.clone());
            let loader = loader.parts(parts).ahead(workers);
            for (epoch, expected) in [0, 3].into_iter().zip(&expected) {
                let begin = expected.len() / 3;
                let mut pass = loader.resume(epoch, Standing::before(begin));
                let batches: Vec<_> = pass.by_ref().map(Result::unwrap).collect();
                assert_eq!(batches, expected[begin..], "{plan:?}");
                assert_eq!(pass.items_returned(), plan.num_items(epoch));
            }
        }
    }
}

#[test]
fn every_order_has_an_identity_of_its_own() {
    let plans = all_plans().unwrap();
    let again = all_plans().unwrap();
    let identities: Vec<_> = plans.iter().map(Plan::identity).collect();
    assert!(
        identities
            .iter()
            .eq(again.iter().map(Plan::identity).collect::<Vec<_>>().iter())
    );
    let mut distinct = identities;
    // Each order stands there under three cuts, which are not a part of it; buckets differ by them.
    distinct.dedup();
    assert_eq!(distinct.len(), 8 + 1 + 3);
    let names: std::collections::BTreeSet<_> = distinct.iter().map(|one| one.name).collect();
    assert_eq!(names.len(), 9, "the slice is a shuffle too: {names:?}");
}
