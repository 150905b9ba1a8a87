//! A batch in host memory, before any device has seen it.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use bytemuck::Pod;

use crate::burn::{Basic, DType, Device, Element, Int, Tensor, TensorData};
use crate::layout::{
    HostError, Layout, SlotKey, SlotLayout, check_kind, check_names, check_type, find,
};
use crate::row::fill;
use crate::slot::Slot;
use crate::slots::Slots;

/// A batch in host memory: slots of values, each of one type and shape.
///
/// [`float`](Self::float) and [`int`](Self::int) take a slot to a device in its own type, in one copy.
/// Take the largest slot last, if there are several: its copy then runs while the next batch is made.
#[derive(Debug, Default)]
pub struct HostBatch {
    len: usize,
    slots: Vec<Filled>,
}

/// One slot of a batch, with what is in it.
#[derive(Debug)]
struct Filled {
    name: &'static str,
    dtype: DType,
    shape: Vec<usize>,
    bytes: usize,
    /// Until it is taken.
    slot: Option<Slot>,
}

impl HostBatch {
    /// A batch of `len` samples, without slots yet.
    #[must_use]
    pub fn new(len: usize) -> Self {
        Self {
            len,
            slots: Vec::new(),
        }
    }

    /// The same batch with one more slot.
    #[must_use]
    pub fn with<T: Element + Pod>(mut self, slot: HostSlot<T>) -> Self {
        self.slots.push(slot.filled);
        self
    }

    /// A layout's slots, written.
    pub(crate) fn of(layout: &Layout, len: usize, slots: Vec<Slot>) -> Result<Self, HostError> {
        let mut batch = Self::new(len);
        for (of, slot) in layout.slots().iter().zip(slots) {
            batch.slots.push(Filled::new(of, slot)?);
        }
        Ok(batch)
    }

    /// Says what cannot be a batch of `len` items.
    pub(crate) fn check(&self, len: usize) -> Result<(), HostError> {
        if self.len != len {
            return Err(HostError::Samples { len, got: self.len });
        }
        check_names(self.slots.iter().map(|slot| slot.name))
    }

    /// The samples in it.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no samples in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The values of a slot, as long as it is here.
    ///
    /// # Errors
    ///
    /// When the slot is not there or no longer, or holds another type.
    pub fn values<T: Element + Pod>(&self, slot: impl SlotKey) -> Result<&[T], HostError> {
        let filled = &self.slots[self.find(&slot)?];
        check_type::<T>(filled.name, filled.dtype)?;
        let taken = HostError::Taken { name: filled.name };
        let memory = filled.slot.as_ref().ok_or(taken)?;
        Ok(bytemuck::cast_slice(&memory.bytes()[..filled.bytes]))
    }

    /// Takes a slot as tensor data, without a copy: pinned where the slot is.
    ///
    /// # Errors
    ///
    /// When the slot is not there, or no longer.
    pub fn data(&mut self, slot: impl SlotKey) -> Result<TensorData, HostError> {
        let (data, shape) = self.flat(&slot)?;
        let dtype = data.dtype();
        Ok(TensorData::from_bytes(data.into_bytes(), shape, dtype))
    }

    /// Takes a slot to a device as floats, in the slot's own type.
    ///
    /// # Errors
    ///
    /// When the slot is not there or no longer, holds integers ([`int`](Self::int) takes those, and
    /// `.float()` widens them on the device), or has not got `D` dimensions. It stays in the batch.
    pub fn float<const D: usize>(
        &mut self,
        slot: impl SlotKey,
        device: &Device,
    ) -> Result<Tensor<D>, HostError> {
        self.tensor(&slot, device)
    }

    /// Takes a slot to a device as integers, in the slot's own type: `u8` stays `u8`. For a mask,
    /// `.bool()` makes one of it there.
    ///
    /// # Errors
    ///
    /// When the slot is not there or no longer, holds floats ([`float`](Self::float) takes those), or has
    /// not got `D` dimensions. It stays in the batch.
    pub fn int<const D: usize>(
        &mut self,
        slot: impl SlotKey,
        device: &Device,
    ) -> Result<Tensor<D, Int>, HostError> {
        self.tensor(&slot, device)
    }

    fn tensor<const D: usize, K: Basic>(
        &mut self,
        slot: &impl SlotKey,
        device: &Device,
    ) -> Result<Tensor<D, K>, HostError> {
        let filled = &self.slots[self.find(slot)?];
        check_kind(filled.name, filled.dtype, K::KIND)?;
        let shape = filled.shape.clone();
        let Ok(shape) = <[usize; D]>::try_from(shape) else {
            return Err(HostError::Dimensions {
                name: filled.name,
                shape: filled.shape.clone(),
                dims: D,
            });
        };
        let (data, _) = self.flat(slot)?;
        Ok(upload(data, shape, device))
    }

    /// A slot's values in one row, and its shape.
    fn flat(&mut self, slot: &impl SlotKey) -> Result<(TensorData, Vec<usize>), HostError> {
        let place = self.find(slot)?;
        self.slots[place].take()
    }

    fn find(&self, key: &impl SlotKey) -> Result<usize, HostError> {
        find(key, self.slots.iter().map(|slot| slot.name))
    }

    /// The bytes of each slot.
    pub(crate) fn sizes(&self) -> impl Iterator<Item = usize> {
        self.slots.iter().map(|slot| slot.bytes)
    }
}

/// Data of one row as a tensor of `shape`, in the data's own type. One linear copy: a device lays the
/// rows of a tensor of several dimensions apart, and copies them one by one.
pub(crate) fn upload<const D: usize, K: Basic>(
    data: TensorData,
    shape: [usize; D],
    device: &Device,
) -> Tensor<D, K> {
    let dtype = data.dtype();
    if shape.contains(&0) {
        // There is nothing to copy, and no row that could be parted.
        return Tensor::empty(shape, (device, dtype));
    }
    Tensor::<1, K>::from_data(data, (device, dtype)).reshape(shape)
}

impl Filled {
    fn new(of: &SlotLayout, slot: Slot) -> Result<Self, HostError> {
        Ok(Self {
            name: of.name,
            dtype: of.dtype,
            shape: of.shape.clone(),
            bytes: of.bytes()?,
            slot: Some(slot),
        })
    }

    fn take(&mut self) -> Result<(TensorData, Vec<usize>), HostError> {
        let slot = self
            .slot
            .take()
            .ok_or(HostError::Taken { name: self.name })?;
        let bytes = slot.lend(self.bytes);
        let elements = self.shape.iter().product::<usize>();
        let data = TensorData::from_bytes(bytes, [elements], self.dtype);
        Ok((data, self.shape.clone()))
    }
}

/// Where a batch of ragged samples gets its slots from: of floats or integers, `u8` for a mask, as in a
/// [`Layout`].
#[derive(Clone)]
pub struct Host {
    slots: Arc<Slots>,
    pinned: bool,
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host")
            .field("pinned", &self.pinned)
            .finish_non_exhaustive()
    }
}

impl Host {
    pub(crate) fn new(slots: Arc<Slots>, pinned: bool) -> Self {
        Self { slots, pinned }
    }

    /// A slot of zeros.
    ///
    /// # Errors
    ///
    /// When the shape has more bytes than can be counted.
    pub fn slot<T: Element + Pod>(
        &self,
        name: &'static str,
        shape: impl Into<Vec<usize>>,
    ) -> Result<HostSlot<T>, HostError> {
        self.slot_filled(name, shape, T::zeroed())
    }

    /// A slot that reads as `fill` wherever nothing is written.
    ///
    /// # Errors
    ///
    /// When the shape has more bytes than can be counted.
    pub fn slot_filled<T: Element + Pod>(
        &self,
        name: &'static str,
        shape: impl Into<Vec<usize>>,
        value: T,
    ) -> Result<HostSlot<T>, HostError> {
        let layout = Layout::new().slot_filled(name, shape, value);
        let mut slot = self.raw::<T>(&layout.slots()[0])?;
        fill(slot.bytes_mut(), &layout.slots()[0]);
        Ok(slot)
    }

    /// A slot with these values.
    ///
    /// # Errors
    ///
    /// When there are not as many as the shape has.
    pub fn slot_of<T: Element + Pod>(
        &self,
        name: &'static str,
        shape: impl Into<Vec<usize>>,
        values: &[T],
    ) -> Result<HostSlot<T>, HostError> {
        let layout = Layout::new().slot_unfilled::<T>(name, shape);
        let of = &layout.slots()[0];
        let expected = of.bytes()? / size_of::<T>();
        if values.len() != expected {
            return Err(HostError::Length {
                name,
                shape: of.shape.clone(),
                expected,
                got: values.len(),
            });
        }
        let mut slot = self.raw::<T>(of)?;
        slot.copy_from_slice(values);
        Ok(slot)
    }

    /// A slot of so many bytes, with whatever is in it.
    pub(crate) fn take(&self, bytes: usize) -> Result<Slot, HostError> {
        let slot = self.slots.take(bytes, self.pinned);
        slot.ok_or(HostError::NoMemory { bytes })
    }

    fn raw<T>(&self, of: &SlotLayout) -> Result<HostSlot<T>, HostError> {
        let slot = self.take(of.bytes()?)?;
        Ok(HostSlot {
            filled: Filled::new(of, slot)?,
            values: PhantomData,
        })
    }
}

/// A slot that is being written: a slice of values of one type.
#[derive(Debug)]
pub struct HostSlot<T> {
    filled: Filled,
    values: PhantomData<fn() -> T>,
}

impl<T> HostSlot<T> {
    fn bytes(&self) -> &[u8] {
        let memory = self.filled.slot.as_ref().map_or(&[][..], Slot::bytes);
        &memory[..self.filled.bytes]
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        let bytes = self.filled.bytes;
        let memory = self.filled.slot.as_mut();
        &mut memory.map_or(&mut [][..], Slot::bytes_mut)[..bytes]
    }
}

impl<T: Element + Pod> Deref for HostSlot<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        bytemuck::cast_slice(self.bytes())
    }
}

impl<T: Element + Pod> DerefMut for HostSlot<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        bytemuck::cast_slice_mut(self.bytes_mut())
    }
}

/// Tensor data in a slot, until it is uploaded.
pub(crate) struct Parcel {
    filled: Filled,
}

impl Parcel {
    /// Copies tensor data into a slot.
    pub(crate) fn pack(data: &TensorData, host: &Host) -> Result<Self, HostError> {
        let bytes = data.as_bytes();
        let mut slot = host.take(bytes.len())?;
        slot.bytes_mut()[..bytes.len()].copy_from_slice(bytes);
        Ok(Self {
            filled: Filled {
                name: "tensor",
                dtype: data.dtype(),
                shape: data.shape().to_vec(),
                bytes: bytes.len(),
                slot: Some(slot),
            },
        })
    }

    pub(crate) fn bytes(&self) -> usize {
        self.filled.bytes
    }

    /// The tensor that was packed, on a device.
    pub(crate) fn unpack<const D: usize, K: Basic>(
        mut self,
        device: &Device,
    ) -> Result<Tensor<D, K>, HostError> {
        check_kind(self.filled.name, self.filled.dtype, K::KIND)?;
        let (data, shape) = self.filled.take()?;
        let shape = <[usize; D]>::try_from(shape).map_err(|shape| HostError::Dimensions {
            name: self.filled.name,
            shape,
            dims: D,
        })?;
        Ok(upload(data, shape, device))
    }
}
