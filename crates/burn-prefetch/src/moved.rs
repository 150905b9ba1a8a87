//! Batches that a plain `Batcher` makes on the host, and whose tensors are moved from there.

use std::collections::VecDeque;
use std::error::Error;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use burn_prefetch_engine::{BoxError, FetchError, Part, Pieces};

use crate::burn::{Basic, Batcher, DType, Dataset, Device, Tensor, TensorData};
use crate::host_batch::{Host, Parcel};
use crate::source::{Fetch, fetch_items, join_items};
use crate::stage::Stage;
use crate::staged::Work;
use crate::staged_batch::{StagedBatch, TensorVisitor};
use crate::weigh::{ByteCount, Declared, Weigh};

/// Items on their way to a batch whose tensors are in slots.
pub(crate) struct MovedWork<D, I, E, O> {
    pub(crate) dataset: D,
    pub(crate) batcher: Arc<dyn Batcher<I, O>>,
    pub(crate) fetch: Fetch,
    /// How batches are measured; else by their tensors.
    pub(crate) weigh: Weigh<O>,
    pub(crate) error: PhantomData<fn() -> E>,
}

/// A batch whose tensors are in slots, and in its own fields only where they need not be moved.
pub(crate) struct Packed<O> {
    batch: O,
    /// What it weighs.
    bytes: u64,
    parcels: Option<VecDeque<Parcel>>,
}

impl<D, I, E, O> Work for MovedWork<D, I, E, O>
where
    D: Dataset<I, E> + 'static,
    I: Send + 'static,
    E: Error + Send + Sync + 'static,
    O: StagedBatch + Send + 'static,
{
    type Piece = Vec<I>;
    type Batch = Packed<O>;
    type Output = O;

    fn open(&self, _len: usize, parts: usize) -> Pieces<Vec<I>> {
        Pieces::from_fn(parts, |_| Vec::new())
    }

    fn fetch(
        &self,
        piece: &mut Vec<I>,
        part: &mut Part<'_>,
        _stage: &Stage,
    ) -> Result<(), FetchError> {
        fetch_items(&self.dataset, self.fetch, piece, part)
    }

    fn assemble(&self, pieces: Pieces<Vec<I>>, stage: &Stage) -> Result<Packed<O>, BoxError> {
        let items = join_items(pieces);
        let Some(host_device) = stage.host_device() else {
            let mut batch = self.batcher.batch(items, stage.device());
            return Ok(Packed {
                bytes: self.weigh(&mut batch),
                batch,
                parcels: None,
            });
        };
        let batch = || self.batcher.batch(items, &host_device);
        let mut batch = on_the_host(&host_device, batch);
        let bytes = self.weigh(&mut batch);
        let mut packer = Packer {
            host: stage.host(),
            from: &host_device,
            to: stage.device(),
            parcels: VecDeque::new(),
            failure: None,
        };
        batch.visit(&mut packer);
        match packer.failure {
            Some(failure) => Err(failure),
            None => Ok(Packed {
                batch,
                bytes,
                parcels: Some(packer.parcels),
            }),
        }
    }

    fn sizes(batch: &Packed<O>) -> Vec<usize> {
        let parcels = batch.parcels.iter().flatten();
        parcels.map(Parcel::bytes).collect()
    }

    fn size(batch: &Packed<O>) -> u64 {
        batch.bytes
    }

    fn upload(&self, batch: Packed<O>, device: &Device) -> Result<O, BoxError> {
        let Packed {
            mut batch, parcels, ..
        } = batch;
        let Some(parcels) = parcels else {
            return Ok(batch);
        };
        let mut unpacker = Unpacker {
            device,
            parcels,
            failure: None,
        };
        batch.visit(&mut unpacker);
        unpacker.end()?;
        Ok(batch)
    }
}

impl<D, I, E, O: StagedBatch> MovedWork<D, I, E, O> {
    /// The bytes of a batch: as the user measures it, else of its tensors.
    fn weigh(&self, batch: &mut O) -> u64 {
        if let Some(bytes) = self.weigh.size(batch, &Declared::default()) {
            return bytes;
        }
        let mut scales = Scales(0);
        batch.visit(&mut scales);
        scales.0
    }
}

/// Adds up the bytes of tensors.
struct Scales(u64);

impl TensorVisitor for Scales {
    fn tensor<const D: usize, K: Basic>(&mut self, tensor: &mut Tensor<D, K>) {
        self.0 += tensor.byte_count() as u64;
    }
}

/// Runs a batcher on the host; a panic that names two devices is most often a tensor of its own.
fn on_the_host<O>(host: &Device, batch: impl FnOnce() -> O) -> O {
    match catch_unwind(AssertUnwindSafe(batch)) {
        Ok(batch) => batch,
        Err(thrown) => {
            let text = thrown.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| thrown.downcast_ref::<&str>().copied());
            let Some(text) = text.filter(|text| text.contains("evice")) else {
                resume_unwind(thrown)
            };
            resume_unwind(Box::new(format!(
                "{text} (with pin_memory(true) the batcher is given {host:?} and its tensors are moved \
                 later: tensors that it holds have to be made on the device that it is given)"
            )))
        }
    }
}

/// Takes the tensors of a batch to slots.
struct Packer<'a> {
    host: Host,
    from: &'a Device,
    to: &'a Device,
    parcels: VecDeque<Parcel>,
    failure: Option<BoxError>,
}

impl Packer<'_> {
    fn pack(&self, data: TensorData) -> Result<Parcel, BoxError> {
        let dtype = self.dtype(data.dtype());
        Ok(Parcel::pack(&data.convert_dtype(dtype), &self.host)?)
    }

    /// The type that a plain loader would have made: the device's own where the host's own was taken.
    fn dtype(&self, dtype: DType) -> DType {
        let (from, to) = (self.from.settings(), self.to.settings());
        if dtype == from.float_dtype.into() {
            to.float_dtype.into()
        } else if dtype == from.int_dtype.into() {
            to.int_dtype.into()
        } else {
            dtype
        }
    }
}

impl TensorVisitor for Packer<'_> {
    fn tensor<const D: usize, K: Basic>(&mut self, tensor: &mut Tensor<D, K>) {
        let device = tensor.device();
        if self.failure.is_some() {
            return;
        }
        if device != *self.from {
            let error = format!(
                "the batcher made a tensor on {device:?} although it was given {:?}: with \
                 pin_memory(true) make tensors on the device that is given, or leave pin_memory out",
                self.from
            );
            self.failure = Some(error.into());
            return;
        }
        let nothing = Tensor::empty([0; D], self.from);
        match std::mem::replace(tensor, nothing).try_into_data() {
            Ok(data) => match self.pack(data) {
                Ok(parcel) => self.parcels.push_back(parcel),
                Err(error) => self.failure = Some(error),
            },
            Err(error) => self.failure = Some(format!("{error}").into()),
        }
    }
}

/// Puts tensors in the places of those that were taken.
struct Unpacker<'a> {
    device: &'a Device,
    parcels: VecDeque<Parcel>,
    failure: Option<BoxError>,
}

impl Unpacker<'_> {
    /// Says what went wrong, and that a tensor has found no place.
    fn end(self) -> Result<(), BoxError> {
        match self.failure {
            Some(failure) => Err(failure),
            None if self.parcels.is_empty() => Ok(()),
            None => Err("StagedBatch shows fewer tensors the second time than the first".into()),
        }
    }
}

impl TensorVisitor for Unpacker<'_> {
    fn tensor<const D: usize, K: Basic>(&mut self, tensor: &mut Tensor<D, K>) {
        let Some(parcel) = self.parcels.pop_front() else {
            let error = "StagedBatch shows more tensors the second time than the first";
            self.failure.get_or_insert_with(|| error.into());
            return;
        };
        match parcel.unpack(self.device) {
            Ok(moved) => *tensor = moved,
            Err(error) => {
                let error = format!(
                    "StagedBatch shows other tensors the second time than the first: {error}"
                );
                self.failure.get_or_insert_with(|| error.into());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::burn::Int;
    use crate::slots::Slots;

    /// Shows its tensors in another order the second time, or fewer.
    struct Unsteady {
        floats: Tensor<1>,
        numbers: Tensor<1, Int>,
        second: fn(&mut Self, &mut Unpacker<'_>),
    }

    /// What is said when the parcels of both tensors are put back.
    fn unpacked(second: fn(&mut Unsteady, &mut Unpacker<'_>)) -> Option<String> {
        let device = Device::default();
        let mut batch = Unsteady {
            floats: Tensor::zeros([1], &device),
            numbers: Tensor::zeros([1], &device),
            second,
        };
        let host = Host::new(Slots::new(None), false);
        let pack = |data: TensorData| Parcel::pack(&data, &host).expect("there is memory");
        let mut unpacker = Unpacker {
            device: &device,
            parcels: [
                pack(TensorData::from([0.5_f32])),
                pack(TensorData::from([7_i64])),
            ]
            .into(),
            failure: None,
        };
        (batch.second)(&mut batch, &mut unpacker);
        unpacker.end().err().map(|error| error.to_string())
    }

    #[test]
    fn tensors_that_are_shown_in_another_order_are_refused() {
        let in_order = unpacked(|batch, unpacker| {
            unpacker.tensor(&mut batch.floats);
            unpacker.tensor(&mut batch.numbers);
        });
        assert_eq!(in_order, None);
        let swapped = unpacked(|batch, unpacker| {
            unpacker.tensor(&mut batch.numbers);
            unpacker.tensor(&mut batch.floats);
        });
        let swapped = swapped.expect("it is refused");
        let words = ["the second time", "holds F32", "an integer tensor"];
        assert!(words.iter().all(|it| swapped.contains(it)), "{swapped}");
        let fewer = unpacked(|batch, unpacker| unpacker.tensor(&mut batch.floats));
        assert!(fewer.expect("it is refused").contains("fewer tensors"));
        let more = unpacked(|batch, unpacker| {
            unpacker.tensor(&mut batch.floats);
            unpacker.tensor(&mut batch.numbers);
            unpacker.tensor(&mut batch.numbers);
        });
        assert!(more.expect("it is refused").contains("more tensors"));
        let shaped = unpacked(|_batch, unpacker| {
            let mut square: Tensor<2> = Tensor::zeros([1, 1], unpacker.device);
            unpacker.tensor(&mut square);
        });
        assert!(shaped.expect("it is refused").contains("2 dimensions"));
    }
}
