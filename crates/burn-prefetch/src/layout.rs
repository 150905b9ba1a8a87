//! What a host batch is made of: named slots of one type and shape each.

use bytemuck::Pod;

use crate::burn::{DType, Element, Kind};

/// The slots of a host batch, whose rows are written one sample each.
///
/// A slot holds floats or integers. `bool` is none of them, since not every byte is one: use `u8` for a
/// mask, and make it one on the device, `batch.int("mask", device)?.bool()`.
///
/// ```
/// use burn_prefetch::Layout;
///
/// let len = 64;
/// let layout = Layout::new()
///     .slot::<u8>("images", [len, 3, 32, 32])
///     .slot_filled::<i64>("tokens", [len, 128], -100);
/// # let _ = layout;
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Layout {
    slots: Vec<SlotLayout>,
}

/// One slot of a layout.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SlotLayout {
    pub(crate) name: &'static str,
    pub(crate) dtype: DType,
    pub(crate) shape: Vec<usize>,
    /// What an element reads as where nothing was written; `None`: that is an error.
    pub(crate) fill: Option<Vec<u8>>,
}

/// Which slot: by its place in the layout, or by name.
pub trait SlotKey: Copy {
    /// The place of the slot among those of these names.
    fn place(&self, names: &mut dyn Iterator<Item = &'static str>) -> Option<usize>;
    /// The key in words, for an error.
    fn describe(&self) -> String;
}

impl SlotKey for usize {
    fn place(&self, names: &mut dyn Iterator<Item = &'static str>) -> Option<usize> {
        (names.count() > *self).then_some(*self)
    }

    fn describe(&self) -> String {
        format!("slot {self}")
    }
}

impl SlotKey for &str {
    fn place(&self, names: &mut dyn Iterator<Item = &'static str>) -> Option<usize> {
        names
            .enumerate()
            .find(|(_, name)| name == self)
            .map(|(place, _)| place)
    }

    fn describe(&self) -> String {
        format!("slot \"{self}\"")
    }
}

/// What is wrong with a host batch, or with what was written to it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// A shape and a number of values that do not belong together.
    #[error(
        "\"{name}\" has {expected} values a row or batch (shape {shape:?}), but {got} were given: \
         give as many, or name another shape"
    )]
    Length {
        /// The slot.
        name: &'static str,
        /// Its shape.
        shape: Vec<usize>,
        /// How many values it has, in the row or in all.
        expected: usize,
        /// How many were given.
        got: usize,
    },
    /// Rows that are not one for each sample.
    #[error(
        "\"{name}\" has the shape {shape:?}, but its first dimension has to be the {len} samples of \
         the batch: name one row for each sample"
    )]
    Rows {
        /// The slot.
        name: &'static str,
        /// Its shape.
        shape: Vec<usize>,
        /// The samples.
        len: usize,
    },
    /// A value of another type.
    #[error("\"{name}\" holds {expected}, but {got} was asked for: name the type of the layout")]
    Type {
        /// The slot.
        name: &'static str,
        /// The type of its elements.
        expected: String,
        /// The type that was named.
        got: String,
    },
    /// A tensor of another kind than the slot's values.
    #[error("\"{name}\" holds {dtype}, but {asked} was asked for: {instead}")]
    Kind {
        /// The slot.
        name: &'static str,
        /// The type of its elements.
        dtype: String,
        /// What was asked for.
        asked: &'static str,
        /// What would do.
        instead: &'static str,
    },
    /// A slot that is not there.
    #[error("there is no {key}: the slots are {names:?}")]
    NoSlot {
        /// What was asked for.
        key: String,
        /// What there is.
        names: Vec<&'static str>,
    },
    /// A slot that has been taken already.
    #[error("\"{name}\" has been taken from the batch already: take each slot once")]
    Taken {
        /// The slot.
        name: &'static str,
    },
    /// Two slots of one name.
    #[error("two slots are named \"{name}\": give each a name of its own")]
    Twice {
        /// The name.
        name: &'static str,
    },
    /// A batch that says it has another number of samples.
    #[error(
        "the batch was made with {got} samples, but of {len} items: HostBatch::new({len}) has them"
    )]
    Samples {
        /// The items.
        len: usize,
        /// What it says.
        got: usize,
    },
    /// Memory that the system does not give.
    #[error("no memory for a slot of {bytes} bytes: use a smaller batch_size, or smaller samples")]
    NoMemory {
        /// The bytes.
        bytes: usize,
    },
    /// A row that nobody wrote.
    #[error(
        "row {row} of \"{name}\" was not written, and the slot has no fill value: write every row, or \
         name the slot with slot_filled"
    )]
    Unwritten {
        /// The slot.
        name: &'static str,
        /// The sample within the batch.
        row: usize,
    },
    /// A slot that does not fit into memory.
    #[error(
        "\"{name}\" of shape {shape:?} has more bytes than can be counted: name a smaller shape"
    )]
    TooLarge {
        /// The slot.
        name: &'static str,
        /// Its shape.
        shape: Vec<usize>,
    },
    /// Another number of dimensions.
    #[error("\"{name}\" has the shape {shape:?}, but {dims} dimensions were asked for")]
    Dimensions {
        /// The slot.
        name: &'static str,
        /// Its shape.
        shape: Vec<usize>,
        /// How many were asked for.
        dims: usize,
    },
}

impl Layout {
    /// No slots yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// One more slot; what is not written reads as zero.
    #[must_use]
    pub fn slot<T: Element + Pod>(self, name: &'static str, shape: impl Into<Vec<usize>>) -> Self {
        self.with::<T>(name, shape.into(), Some(vec![0; size_of::<T>()]))
    }

    /// One more slot; what is not written reads as `fill`.
    #[must_use]
    pub fn slot_filled<T: Element + Pod>(
        self,
        name: &'static str,
        shape: impl Into<Vec<usize>>,
        fill: T,
    ) -> Self {
        self.with::<T>(name, shape.into(), Some(bytemuck::bytes_of(&fill).to_vec()))
    }

    /// One more slot, of which every row has to be written as a whole: nothing is filled in. A row that
    /// was not written is an error.
    #[must_use]
    pub fn slot_unfilled<T: Element + Pod>(
        self,
        name: &'static str,
        shape: impl Into<Vec<usize>>,
    ) -> Self {
        self.with::<T>(name, shape.into(), None)
    }

    fn with<T: Element>(
        mut self,
        name: &'static str,
        shape: Vec<usize>,
        fill: Option<Vec<u8>>,
    ) -> Self {
        let dtype = T::dtype();
        self.slots.push(SlotLayout {
            name,
            dtype,
            shape,
            fill,
        });
        self
    }

    pub(crate) fn slots(&self) -> &[SlotLayout] {
        &self.slots
    }

    /// Which slot is meant.
    pub(crate) fn find(&self, key: &impl SlotKey) -> Result<usize, HostError> {
        find(key, self.slots.iter().map(|slot| slot.name))
    }

    /// Says what cannot be the layout of `len` samples.
    pub(crate) fn check(&self, len: usize) -> Result<(), HostError> {
        for slot in &self.slots {
            if slot.shape.first() != Some(&len) {
                return Err(HostError::Rows {
                    name: slot.name,
                    shape: slot.shape.clone(),
                    len,
                });
            }
            slot.bytes()?;
        }
        check_names(self.slots.iter().map(|slot| slot.name))
    }
}

impl SlotLayout {
    /// How many bytes it has in all.
    pub(crate) fn bytes(&self) -> Result<usize, HostError> {
        let nothing = self.shape.contains(&0).then_some(0);
        let elements = nothing.or_else(|| {
            let mut dims = self.shape.iter();
            dims.try_fold(1, |product: usize, dim| product.checked_mul(*dim))
        });
        let bytes = elements.and_then(|elements| elements.checked_mul(self.dtype.size()));
        bytes.ok_or_else(|| HostError::TooLarge {
            name: self.name,
            shape: self.shape.clone(),
        })
    }

    /// How many bytes a row has; its [`bytes`](Self::bytes) have been checked.
    pub(crate) fn row_bytes(&self) -> usize {
        let row = self.shape.get(1..).unwrap_or_default();
        // The other dimensions of a row without values may have a product beyond what can be counted.
        if row.contains(&0) {
            return 0;
        }
        row.iter().product::<usize>() * self.dtype.size()
    }

    /// Says that `T` is not what it holds.
    pub(crate) fn check_type<T: Element>(&self) -> Result<(), HostError> {
        check_type::<T>(self.name, self.dtype)
    }
}

/// Says that `T` is not what a slot of this type holds.
pub(crate) fn check_type<T: Element>(name: &'static str, dtype: DType) -> Result<(), HostError> {
    if T::dtype() == dtype {
        return Ok(());
    }
    Err(HostError::Type {
        name,
        expected: format!("{dtype:?}"),
        got: format!("{:?}", T::dtype()),
    })
}

/// Says that a tensor of this kind is not made of what a slot of this type holds: Burn would make one of
/// another kind inside, or panic, and on some devices only there.
pub(crate) fn check_kind(name: &'static str, dtype: DType, kind: Kind) -> Result<(), HostError> {
    // A quantized tensor that a batcher has made is one of floats, too.
    let is_float = dtype.is_float() || matches!(dtype, DType::QFloat(_));
    let (fits, asked) = match kind {
        Kind::Float => (is_float, "a float tensor"),
        Kind::Int => (dtype.is_int() || dtype.is_uint(), "an integer tensor"),
        Kind::Bool => (dtype.is_bool(), "a bool tensor"),
    };
    if fits {
        return Ok(());
    }
    let instead = match kind {
        Kind::Int if dtype.is_float() => {
            "take it with float(..)?, and .int() cuts off the fractions"
        }
        Kind::Float => "take it with int(..)?, and .float() widens it on the device",
        Kind::Int | Kind::Bool => "take it with int(..)?, and .bool() makes a mask of it",
    };
    Err(HostError::Kind {
        name,
        dtype: format!("{dtype:?}"),
        asked,
        instead,
    })
}

/// Says which of these names stands twice.
pub(crate) fn check_names(
    mut names: impl Iterator<Item = &'static str> + Clone,
) -> Result<(), HostError> {
    while let Some(name) = names.next() {
        if names.clone().any(|other| other == name) {
            return Err(HostError::Twice { name });
        }
    }
    Ok(())
}

/// Which of the slots of these names is meant.
pub(crate) fn find(
    key: &impl SlotKey,
    names: impl Iterator<Item = &'static str> + Clone,
) -> Result<usize, HostError> {
    let place = key.place(&mut names.clone());
    place.ok_or_else(|| HostError::NoSlot {
        key: key.describe(),
        names: names.collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_found_by_name_or_place() {
        let layout = Layout::new()
            .slot::<u8>("images", [4, 2])
            .slot::<i64>("labels", [4]);
        assert_eq!(layout.find(&"labels"), Ok(1));
        assert_eq!(layout.find(&0), Ok(0));
        let error = layout.find(&"label").unwrap_err().to_string();
        assert!(
            error.contains("\"label\"") && error.contains("\"labels\""),
            "{error}"
        );
        assert!(layout.find(&2).is_err());
        assert_eq!(layout.slots()[0].row_bytes(), 2);
        assert_eq!(layout.slots()[1].bytes(), Ok(32));
    }

    #[test]
    fn what_cannot_be_is_said() {
        let rows = Layout::new().slot::<u8>("images", [3, 2]).check(4);
        let error = rows.unwrap_err().to_string();
        assert!(error.contains("[3, 2]") && error.contains('4'), "{error}");
        assert!(Layout::new().slot::<u8>("scalar", []).check(1).is_err());
        let large = Layout::new()
            .slot::<f32>("images", [4, usize::MAX])
            .check(4);
        assert!(matches!(large, Err(HostError::TooLarge { .. })));
    }
}
