//! Batchers whose batches say what went into them.

use burn::data::dataloader::batcher::Batcher;
use burn::tensor::{Device, Tensor};

use crate::gauge::{Alive, Guarded, Token};
use std::sync::Arc;

/// A batch is the list of its items.
#[derive(Clone, Copy, Debug)]
pub struct Collect;

impl<I: Send> Batcher<I, Vec<I>> for Collect {
    fn batch(&self, items: Vec<I>, _device: &Device) -> Vec<I> {
        items
    }
}

/// A batch is the list of its items; the one with this item panics.
#[derive(Clone, Copy, Debug)]
pub struct PanicOn(pub usize);

impl Batcher<usize, Vec<usize>> for PanicOn {
    fn batch(&self, items: Vec<usize>, _device: &Device) -> Vec<usize> {
        assert!(
            !items.contains(&self.0),
            "item {} cannot be stacked",
            self.0
        );
        items
    }
}

/// A batch is a tensor on the loader's device, with an item's number in each row.
#[derive(Clone, Copy, Debug)]
pub struct Rows;

impl Batcher<usize, Tensor<1>> for Rows {
    #[expect(
        clippy::cast_precision_loss,
        reason = "the numbers of a test are small"
    )]
    fn batch(&self, items: Vec<usize>, device: &Device) -> Tensor<1> {
        let rows: Vec<f32> = items.into_iter().map(|item| item as f32).collect();
        Tensor::from_floats(rows.as_slice(), device)
    }
}

/// A batch is the list of its items and the device it was made for.
#[derive(Clone, Copy, Debug)]
pub struct Placed;

impl Batcher<usize, (Vec<usize>, Device)> for Placed {
    fn batch(&self, items: Vec<usize>, device: &Device) -> (Vec<usize>, Device) {
        (items, device.clone())
    }
}

/// A batch keeps its guarded items, and is itself guarded.
#[derive(Clone, Debug)]
pub struct Keep(pub Arc<Alive>);

impl Batcher<Guarded, (Vec<Guarded>, Token)> for Keep {
    fn batch(&self, items: Vec<Guarded>, _device: &Device) -> (Vec<Guarded>, Token) {
        (items, self.0.token())
    }
}
