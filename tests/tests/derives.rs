//! The derives count and show what a batch holds, under other names of the crate and with types of one's own.

use std::collections::{BTreeMap, HashMap};
use std::marker::PhantomData;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use burn::tensor::kind::Basic;
use burn::tensor::{Device, Int, Tensor};
use burn_prefetch::{ByteCount, StagedBatch, TensorVisitor};

/// As if the crate had another name in `Cargo.toml`.
mod loading {
    pub(crate) mod fast {
        pub(crate) use burn_prefetch::{ByteCount, StagedBatch, TensorVisitor};
    }
}

/// Counts tensors, and what is in them.
#[derive(Default)]
struct Seen(usize);

impl TensorVisitor for Seen {
    fn tensor<const D: usize, K: Basic>(&mut self, tensor: &mut Tensor<D, K>) {
        self.0 += tensor.dims().iter().product::<usize>();
    }
}

fn seen(mut batch: impl StagedBatch) -> usize {
    let mut seen = Seen::default();
    batch.visit(&mut seen);
    seen.0
}

fn floats(len: usize) -> Tensor<1> {
    Tensor::zeros([len], &Device::default())
}

#[test]
fn the_crate_may_have_another_name() {
    #[derive(ByteCount, StagedBatch)]
    #[bytes(crate = loading::fast)]
    #[staged(crate = crate::loading::fast)]
    struct Batch {
        images: Tensor<1>,
    }

    let batch = Batch { images: floats(3) };
    assert_eq!(batch.byte_count(), 12);
    assert_eq!(seen(batch), 3);
}

/// Knows nothing of either trait.
struct Unknown;

#[test]
fn a_parameter_that_is_in_no_counted_field_may_be_anything() {
    #[derive(ByteCount, StagedBatch)]
    struct Batch<T, I: Iterator> {
        #[bytes(skip)]
        #[staged(skip)]
        _skipped: Option<T>,
        _kind: PhantomData<T>,
        item: I::Item,
    }

    let batch: Batch<Unknown, std::vec::IntoIter<Tensor<1>>> = Batch {
        _skipped: Some(Unknown),
        _kind: PhantomData,
        item: floats(5),
    };
    assert_eq!(batch.byte_count(), 20);
    assert_eq!(seen(batch), 5);
}

#[test]
fn a_batch_may_have_a_batch_of_its_kind_in_it() {
    #[derive(ByteCount, StagedBatch)]
    struct Chain<T> {
        value: T,
        next: Option<Box<Chain<T>>>,
    }

    let next = Chain {
        value: floats(2),
        next: None,
    };
    let chain = Chain {
        value: floats(1),
        next: Some(Box::new(next)),
    };
    assert_eq!(chain.byte_count(), 12);
    assert_eq!(seen(chain), 3);
}

#[test]
fn types_of_ones_own_may_have_any_name() {
    #[derive(ByteCount, StagedBatch)]
    #[expect(non_camel_case_types, reason = "that is what is tried")]
    struct usize(Tensor<1>);

    let own = usize(floats(4));
    assert_eq!(own.byte_count(), 16);
    assert_eq!(seen(own), 4);
}

#[test]
fn what_people_have_in_batches_is_known() {
    #[derive(ByteCount, StagedBatch)]
    struct Batch {
        by_name: HashMap<String, Tensor<1>>,
        by_number: BTreeMap<u8, Tensor<1, Int>>,
        taken: Duration,
        split: &'static str,
        paths: Vec<PathBuf>,
        #[staged(skip)]
        classes: Arc<Vec<String>>,
    }

    let labels = Tensor::zeros([1], &Device::default());
    let width = labels.dtype().size();
    let batch = Batch {
        by_name: HashMap::from([("left".to_owned(), floats(2))]),
        by_number: BTreeMap::from([(7, labels)]),
        taken: Duration::ZERO,
        split: "train",
        paths: vec![PathBuf::from("a/b")],
        classes: Arc::new(vec!["cat".to_owned()]),
    };
    let expected = 4 + 8 + 1 + width + size_of::<Duration>() + 3 + 3;
    assert_eq!(batch.byte_count(), expected);
    assert_eq!(seen(batch), 3);
}
