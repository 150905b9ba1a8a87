//! Which tensors a batch holds, so that they can be moved.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::marker::PhantomData;

use crate::burn::{Basic, Tensor};

/// A batch whose tensors can be moved to a device after a plain `Batcher` has made it: what
/// `pin_memory` needs to know of it.
///
/// `#[derive(StagedBatch)]` implements it for structs whose fields are tensors, values without tensors,
/// and other such structs; `#[staged(skip)]` leaves a field alone.
/// [What a field may be](derive@crate::StagedBatch) is told there.
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
///     taken: Option<std::time::SystemTime>,
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "nothing tells which tensors a `{Self}` holds",
    label = "this is no `StagedBatch`",
    note = "in a struct that derives `StagedBatch`, `#[staged(skip)]` above a field leaves it alone",
    note = "for a type of your own derive or implement `StagedBatch`"
)]
pub trait StagedBatch {
    /// Shows every tensor to the visitor, in one order: that of the first time every time.
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

impl<T: StagedBatch> StagedBatch for VecDeque<T> {
    fn visit<V: TensorVisitor>(&mut self, visitor: &mut V) {
        for inner in self {
            inner.visit(visitor);
        }
    }
}

/// The values; a map that nobody changes in between has one order.
impl<K, T: StagedBatch, S> StagedBatch for HashMap<K, T, S> {
    fn visit<V: TensorVisitor>(&mut self, visitor: &mut V) {
        for inner in self.values_mut() {
            inner.visit(visitor);
        }
    }
}

/// The values.
impl<K, T: StagedBatch> StagedBatch for BTreeMap<K, T> {
    fn visit<V: TensorVisitor>(&mut self, visitor: &mut V) {
        for inner in self.values_mut() {
            inner.visit(visitor);
        }
    }
}

impl<T: ?Sized> StagedBatch for PhantomData<T> {
    fn visit<V: TensorVisitor>(&mut self, _visitor: &mut V) {}
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

without_tensors!((), bool, char, String, &'static str);
without_tensors!(std::path::PathBuf, std::time::Duration);
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
