//! Which tensors a batch holds, so that they can be moved.

use crate::burn::{Basic, Tensor};

/// A batch whose tensors can be moved to a device after a plain `Batcher` has made it: what
/// `pin_memory` needs to know of it.
///
/// `#[derive(StagedBatch)]` implements it for structs whose fields are tensors, values without tensors,
/// and other such structs; `#[staged(skip)]` leaves a field alone.
///
/// ```
/// use burn::tensor::{Int, Tensor};
/// use burn_prefetch::StagedBatch;
///
/// #[derive(StagedBatch)]
/// struct Batch {
///     images: Tensor<4>,
///     labels: Tensor<1, Int>,
///     #[staged(skip)]
///     paths: Vec<std::path::PathBuf>,
/// }
/// ```
pub trait StagedBatch {
    /// Shows every tensor to the visitor, in one order.
    fn visit<V: TensorVisitor>(&mut self, visitor: &mut V);
}

/// Whoever moves a batch's tensors.
pub trait TensorVisitor {
    /// Takes one tensor, and may put another in its place.
    fn tensor<const D: usize, K: Basic>(&mut self, tensor: &mut Tensor<D, K>);
}

impl<const D: usize, K: Basic> StagedBatch for Tensor<D, K> {
    fn visit<V: TensorVisitor>(&mut self, visitor: &mut V) {
        visitor.tensor(self);
    }
}

impl<T: StagedBatch> StagedBatch for Option<T> {
    fn visit<V: TensorVisitor>(&mut self, visitor: &mut V) {
        if let Some(inner) = self {
            inner.visit(visitor);
        }
    }
}

impl<T: StagedBatch> StagedBatch for Box<T> {
    fn visit<V: TensorVisitor>(&mut self, visitor: &mut V) {
        (**self).visit(visitor);
    }
}

impl<T: StagedBatch> StagedBatch for Vec<T> {
    fn visit<V: TensorVisitor>(&mut self, visitor: &mut V) {
        for inner in self {
            inner.visit(visitor);
        }
    }
}

impl<T: StagedBatch, const N: usize> StagedBatch for [T; N] {
    fn visit<V: TensorVisitor>(&mut self, visitor: &mut V) {
        for inner in self {
            inner.visit(visitor);
        }
    }
}

/// No tensors here.
macro_rules! without_tensors {
    ($($kind:ty),*) => {
        $(impl StagedBatch for $kind {
            fn visit<V: TensorVisitor>(&mut self, _visitor: &mut V) {}
        })*
    };
}

without_tensors!((), bool, char, String, std::path::PathBuf);
without_tensors!(
    u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize, f32, f64
);

macro_rules! tuples {
    ($($name:ident $place:tt),*) => {
        impl<$($name: StagedBatch),*> StagedBatch for ($($name,)*) {
            fn visit<V: TensorVisitor>(&mut self, visitor: &mut V) {
                $(self.$place.visit(visitor);)*
            }
        }
    };
}

tuples!(A 0);
tuples!(A 0, B 1);
tuples!(A 0, B 1, C 2);
tuples!(A 0, B 1, C 2, D 3);
