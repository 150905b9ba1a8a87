//! How many bytes a batch has: what was said of any beforehand, and of each that is made.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use burn_prefetch_engine::{Cost, Upcoming};

use crate::burn::{Basic, Tensor};

/// What is said of batches before they are made.
#[derive(Clone, Debug, Default)]
pub(crate) struct Declared {
    pub(crate) max_batch: Option<u64>,
    pub(crate) item: Option<u64>,
    pub(crate) samples: Option<SampleBytes>,
    /// What a sample takes in its batch, where all take as much.
    pub(crate) row: Option<u64>,
}

/// What each sample takes in its batch, by its index.
#[derive(Clone)]
pub(crate) struct SampleBytes {
    each: Arc<[u32]>,
    largest: u32,
}

impl fmt::Debug for SampleBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "of {} samples, {} at most", self.len(), self.largest)
    }
}

impl SampleBytes {
    pub(crate) fn new(each: Arc<[u32]>) -> Self {
        let largest = each.iter().copied().max().unwrap_or(0);
        Self { each, largest }
    }

    pub(crate) fn len(&self) -> usize {
        self.each.len()
    }

    /// What a batch takes; at most, where its indices are not known yet.
    fn of(&self, batch: &Upcoming<'_>) -> u64 {
        let largest = || u64::from(self.largest).saturating_mul(batch.len() as u64);
        let each = |index: usize| self.each.get(index).copied().unwrap_or(self.largest);
        batch.indices().map_or_else(largest, |indices| {
            indices.map(|index| u64::from(each(index))).sum()
        })
    }
}

impl Declared {
    /// Whether the user said how large a batch is; items alone do not.
    pub(crate) fn tell_batches(&self) -> bool {
        self.max_batch.is_some() || self.samples.is_some()
    }

    /// What a batch will take, that is measured once it is made or is not; not less than its rows. Its
    /// items are alive until then.
    pub(crate) fn cost(&self, batch: &Upcoming<'_>, is_measured: bool) -> Cost {
        let of_all = |each: u64| each.saturating_mul(batch.len() as u64);
        let items = of_all(self.item.unwrap_or(0));
        let samples = || self.samples.as_ref().map(|samples| samples.of(batch));
        let said = self.max_batch.or_else(samples);
        // None is less than all.
        match said.max(self.row.map(of_all)) {
            Some(bytes) => Cost::Known(items.saturating_add(bytes)),
            None if is_measured => Cost::Learned { items },
            None => Cost::Known(items),
        }
    }
}

/// Measures a batch that is made, where the user says how.
pub(crate) struct Weigh<O>(pub(crate) Option<Measure<O>>);

type Measure<O> = Arc<dyn Fn(&O) -> usize + Send + Sync>;

impl<O> Clone for Weigh<O> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<O> fmt::Debug for Weigh<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Weigh")
    }
}

impl<O> Weigh<O> {
    pub(crate) fn new(measure: impl Fn(&O) -> usize + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(measure)))
    }

    /// The bytes of a batch; where nobody measures, what was declared.
    pub(crate) fn size(&self, batch: &O, declared: &Declared) -> Option<u64> {
        match &self.0 {
            Some(measure) => Some(measure(batch) as u64),
            None => declared.max_batch,
        }
    }
}

/// What knows how many bytes its values take: a tensor, or what is made of tensors.
///
/// Derived for a struct of such, `#[bytes(skip)]` leaves a field out;
/// [what a field may be](derive@crate::ByteCount) and what it counts is told there:
///
/// ```
/// use burn::tensor::{Int, Tensor};
/// use burn_prefetch::ByteCount;
/// # use burn::data::dataloader::batcher::Batcher;
/// # use burn::tensor::Device;
/// # use burn_prefetch::DataLoaderBuilder;
///
/// #[derive(ByteCount)]
/// struct Batch {
///     images: Tensor<4>,
///     labels: Tensor<1, Int>,
///     #[bytes(skip)]
///     paths: Vec<std::path::PathBuf>,
/// }
///
/// # struct Stack;
/// # impl Batcher<u32, Batch> for Stack {
/// #     fn batch(&self, items: Vec<u32>, device: &Device) -> Batch {
/// #         let images = Tensor::zeros([items.len(), 3, 4, 4], device);
/// #         Batch { images, labels: Tensor::zeros([items.len()], device), paths: Vec::new() }
/// #     }
/// # }
/// let loader = DataLoaderBuilder::new(Stack).batch_bytes(Batch::byte_count);
/// # let loader = loader.batch_size(2).try_build(burn::data::dataset::InMemDataset::new(vec![0, 1]));
/// # let loader = loader.expect("the settings are good");
/// # use burn::data::dataloader::DataLoader;
/// # let batch = loader.iter().next().expect("there is one").expect("it loads");
/// # let labels = batch.labels.dtype().size();
/// # assert_eq!(loader.stats().largest_batch, Some(2 * (48 * 4 + labels as u64)));
/// # assert!(batch.paths.is_empty());
/// ```
///
/// For a type of your own that is no struct, implement it:
///
/// ```
/// use burn_prefetch::ByteCount;
///
/// enum Label { Number(u32), Name(String) }
///
/// impl ByteCount for Label {
///     fn byte_count(&self) -> usize {
///         match self {
///             Self::Number(number) => number.byte_count(),
///             Self::Name(name) => name.byte_count(),
///         }
///     }
/// }
/// assert_eq!(Label::Number(7).byte_count() + Label::Name("seven".to_owned()).byte_count(), 9);
/// ```
#[diagnostic::on_unimplemented(
    message = "nothing tells how many bytes a `{Self}` has",
    label = "this is no `ByteCount`",
    note = "in a struct that derives `ByteCount`, `#[bytes(skip)]` above a field leaves it out",
    note = "for a type of your own derive or implement `ByteCount`"
)]
pub trait ByteCount {
    /// How many bytes.
    fn byte_count(&self) -> usize;
}

impl<const D: usize, K: Basic> ByteCount for Tensor<D, K> {
    fn byte_count(&self) -> usize {
        let values: usize = self.dims().iter().product();
        values * self.dtype().size()
    }
}

/// Borrowed or boxed, and all else that is a list of values.
impl<T: ByteCount> ByteCount for [T] {
    fn byte_count(&self) -> usize {
        self.iter().map(T::byte_count).sum()
    }
}

impl<T: ByteCount> ByteCount for Vec<T> {
    fn byte_count(&self) -> usize {
        self.as_slice().byte_count()
    }
}

impl<T: ByteCount> ByteCount for VecDeque<T> {
    fn byte_count(&self) -> usize {
        self.iter().map(T::byte_count).sum()
    }
}

impl<K: ByteCount, V: ByteCount, S> ByteCount for HashMap<K, V, S> {
    fn byte_count(&self) -> usize {
        let entries = self.iter();
        entries
            .map(|(key, of)| key.byte_count() + of.byte_count())
            .sum()
    }
}

impl<K: ByteCount, V: ByteCount> ByteCount for BTreeMap<K, V> {
    fn byte_count(&self) -> usize {
        let entries = self.iter();
        entries
            .map(|(key, of)| key.byte_count() + of.byte_count())
            .sum()
    }
}

impl<T: ByteCount> ByteCount for Option<T> {
    fn byte_count(&self) -> usize {
        self.as_ref().map_or(0, T::byte_count)
    }
}

impl<T: ByteCount + ?Sized> ByteCount for Box<T> {
    fn byte_count(&self) -> usize {
        (**self).byte_count()
    }
}

/// All that it holds, as if nobody else had it: what several batches share counts in each of them.
impl<T: ByteCount + ?Sized> ByteCount for Arc<T> {
    fn byte_count(&self) -> usize {
        (**self).byte_count()
    }
}

impl<T: ByteCount, const N: usize> ByteCount for [T; N] {
    fn byte_count(&self) -> usize {
        self.as_slice().byte_count()
    }
}

impl ByteCount for str {
    fn byte_count(&self) -> usize {
        self.len()
    }
}

impl ByteCount for String {
    fn byte_count(&self) -> usize {
        self.len()
    }
}

impl ByteCount for Path {
    fn byte_count(&self) -> usize {
        self.as_os_str().len()
    }
}

impl ByteCount for PathBuf {
    fn byte_count(&self) -> usize {
        self.as_path().byte_count()
    }
}

/// 0: it is the program's, not the batch's.
impl ByteCount for &'static str {
    fn byte_count(&self) -> usize {
        0
    }
}

impl<T: ?Sized> ByteCount for PhantomData<T> {
    fn byte_count(&self) -> usize {
        0
    }
}

/// What has the same size whatever it is.
macro_rules! of_one_size {
    ($($kind:ty),*) => {
        $(impl ByteCount for $kind {
            fn byte_count(&self) -> usize {
                size_of::<$kind>()
            }
        })*
    };
}

of_one_size!((), bool, char, Duration);
of_one_size!(
    u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize, f32, f64
);

macro_rules! tuples {
    ($($name:ident $place:tt),*) => {
        impl<$($name: ByteCount),*> ByteCount for ($($name,)*) {
            fn byte_count(&self) -> usize {
                0 $(+ self.$place.byte_count())*
            }
        }
    };
}

tuples!(A 0);
tuples!(A 0, B 1);
tuples!(A 0, B 1, C 2);
tuples!(A 0, B 1, C 2, D 3);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_measures_is_what_was_declared() {
        let both = Declared {
            max_batch: Some(7),
            item: Some(10),
            ..Declared::default()
        };
        assert!(both.tell_batches() && !Declared::default().tell_batches());
        let items = Declared {
            item: Some(10),
            ..Declared::default()
        };
        assert!(!items.tell_batches());
        assert_eq!(Weigh::<u8>(None).size(&0, &both), Some(7));
        assert_eq!(Weigh::new(|_: &u8| 3).size(&0, &both), Some(3));
    }

    #[test]
    fn what_is_in_a_batch_counts_as_often_as_the_batch_has_it() {
        let shared: Arc<[u16]> = Arc::from([1, 2, 3]);
        assert_eq!([Arc::clone(&shared), shared].byte_count(), 12);
        let named = HashMap::from([("a".to_owned(), vec![0_u8; 3])]);
        assert_eq!(named.byte_count(), 4);
        assert_eq!(BTreeMap::from([(1_u32, 2_u32)]).byte_count(), 8);
        let boxed: Box<str> = "four".into();
        let kind = PhantomData::<Vec<u8>>;
        assert_eq!((boxed, "of the program", kind).byte_count(), 4);
        let queue = VecDeque::from([Some(PathBuf::from("ab")), None]);
        assert_eq!(
            (queue, Duration::ZERO).byte_count(),
            2 + size_of::<Duration>()
        );
    }
}
