//! Every kind of order over one dataset, by name, for promises that hold for all of them.

use burn_prefetch::{
    BatchLimit, BatchLists, BatchSampler, BatchSizes, Buckets, ClassBalanced, DataLoaderBuilder,
    Mixture, Remainder, Sampler, Subset, Weighted, WeightedWithoutReplacement,
};
use std::num::NonZeroUsize;

use crate::{Collect, Numbers};

/// How many items the data of these orders has.
pub const ORDERED: usize = 40;

/// A builder over numbers.
pub type Builder = DataLoaderBuilder<usize, Vec<usize>>;

/// Sets an order.
pub type SetOrder = fn(Builder) -> Builder;

/// From the back, each index twice; a position less in every epoch.
#[derive(Clone, Copy, Debug)]
pub struct FromTheBack;

impl Sampler for FromTheBack {
    fn len(&self, epoch: usize) -> usize {
        (2 * ORDERED).saturating_sub(epoch)
    }

    fn at(&self, epoch: usize, position: usize) -> usize {
        ORDERED - 1 - (position / 2 + epoch) % ORDERED
    }
}

/// One item, then two, then three, and so on; a batch more in every epoch.
#[derive(Clone, Copy, Debug)]
pub struct Stairs;

impl BatchSampler for Stairs {
    fn sizes(&self, epoch: usize) -> BatchSizes {
        BatchSizes::each(1..=epoch + 5)
    }

    fn at(&self, epoch: usize, batch: usize, place: usize) -> usize {
        (7 * batch + place + epoch) % ORDERED
    }
}

/// Of every four items one never comes.
fn weights() -> Vec<f64> {
    (0_u8..).take(ORDERED).map(|k| f64::from(k % 4)).collect()
}

/// From 1 to 23.
fn lengths() -> Vec<usize> {
    (0..ORDERED).map(|k| 1 + 17 * k % 23).collect()
}

fn size(items: usize) -> NonZeroUsize {
    NonZeroUsize::new(items).expect("a batch has items")
}

/// The kinds of order whose batches are cut evenly, in batches of three.
#[must_use]
#[expect(
    clippy::missing_panics_doc,
    reason = "what is written here fits the data"
)]
pub fn even_orders() -> Vec<(&'static str, SetOrder)> {
    vec![
        ("sequential", |b| b),
        ("shuffled", |b| b.shuffle(7)),
        ("windowed", |b| b.windowed_shuffle(6, 7)),
        ("padded", |b| b.shuffle(7).pad_last(true)),
        ("dropped", |b| b.shuffle(7).drop_last(true)),
        ("subset", |b| {
            b.sampler(
                Subset::new([3, 1, 4, 1, 5, 9, 2, 6, 39, 5], ORDERED).expect("they are there"),
            )
        }),
        ("shuffled subset", |b| {
            let third = (0..ORDERED).step_by(3);
            b.sampler(
                Subset::new(third, ORDERED)
                    .expect("they are there")
                    .shuffled(7),
            )
        }),
        ("weighted", |b| {
            b.sampler(Weighted::new(&weights(), 50, 7).expect("they are weights"))
        }),
        ("weighted without replacement", |b| {
            let sampler = WeightedWithoutReplacement::new(weights(), 25, 7);
            b.sampler(sampler.expect("30 of them are above 0"))
        }),
        ("class-balanced", |b| {
            let labels: Vec<_> = (0..ORDERED).map(|k| k * k % 7).collect();
            b.sampler(ClassBalanced::new(&labels, 50, 7).expect("there are labels"))
        }),
        ("mixture", |b| {
            b.sampler(Mixture::new(&[10, 30], &[0.5, 0.5], 50, 7).expect("they match"))
        }),
        ("sampler of one's own", |b| b.sampler(FromTheBack)),
    ]
}

/// The kinds of order that make batches of their own.
#[must_use]
#[expect(
    clippy::missing_panics_doc,
    reason = "what is written here fits the data"
)]
pub fn batch_orders() -> Vec<(&'static str, SetOrder)> {
    vec![
        ("batch lists", |b| {
            let lists = [vec![0, 1], vec![39], vec![4, 5, 6, 7], vec![1], vec![2, 8]];
            b.batch_sampler(
                BatchLists::new(lists, ORDERED)
                    .expect("they are there")
                    .shuffled(7),
            )
        }),
        ("buckets", |b| {
            let limit = BatchLimit::Items(size(4));
            let buckets = Buckets::new(&lengths(), &[8, 16], limit, Remainder::Pad);
            b.batch_sampler(buckets.expect("bounds rise").shuffled(7))
        }),
        ("budget", |b| {
            let limit = BatchLimit::Budget(size(40));
            let buckets = Buckets::new(&lengths(), &[8, 16], limit, Remainder::Keep);
            b.batch_sampler(buckets.expect("bounds rise"))
        }),
        ("batch sampler of one's own", |b| b.batch_sampler(Stairs)),
    ]
}

/// All of them, ready to be given workers and built over [`ORDERED`] numbers.
#[must_use]
pub fn orders() -> Vec<(&'static str, SetOrder)> {
    let threes = even_orders();
    threes.into_iter().chain(batch_orders()).collect()
}

/// A builder of this order with so many workers.
#[must_use]
pub fn ordered((name, set): (&'static str, SetOrder), workers: usize) -> Builder {
    let builder = DataLoaderBuilder::new(Collect).num_workers(workers);
    let even = even_orders().iter().any(|(even, _)| *even == name);
    set(if even { builder.batch_size(3) } else { builder })
}

/// The data that they are over.
#[must_use]
pub fn ordered_data() -> Numbers {
    Numbers(ORDERED)
}
