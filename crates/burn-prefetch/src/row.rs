//! One sample of a host batch, as whoever writes it sees it.

use bytemuck::Pod;

use crate::burn::Element;
use crate::layout::{HostError, Layout, SlotKey, SlotLayout};
use crate::slot::Rows;

/// One row of every slot of a batch: where one sample goes.
///
/// What is not written reads as the slot's fill value; for a slot without one that is an error.
pub struct Row<'a> {
    layout: &'a Layout,
    rows: &'a mut Rows,
    number: usize,
    /// Which slots have been written; by their place.
    written: Vec<bool>,
}

impl std::fmt::Debug for Row<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Row")
            .field("layout", &self.layout)
            .field("row", &self.number)
            .finish_non_exhaustive()
    }
}

/// Writes the rows of one part one after the other.
pub(crate) struct RowWriter<'a> {
    row: Row<'a>,
    rest: std::ops::Range<usize>,
}

impl<'a> RowWriter<'a> {
    pub(crate) fn new(layout: &'a Layout, rows: &'a mut Rows) -> Self {
        let rest = rows.range();
        Self {
            row: Row {
                layout,
                rows,
                number: rest.start,
                written: vec![false; layout.slots().len()],
            },
            rest,
        }
    }

    /// Has the next row written by `write`, and fills in what it left out.
    pub(crate) fn next<E: From<HostError>>(
        &mut self,
        write: impl FnOnce(&mut Row<'a>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.row.number = self.rest.next().unwrap_or(self.rest.end);
        self.row.written.fill(false);
        write(&mut self.row)?;
        Ok(self.row.finish()?)
    }
}

impl<'a> Row<'a> {
    /// Which sample of the batch it is, from 0.
    #[must_use]
    pub fn index(&self) -> usize {
        self.number
    }

    /// Copies the values of one sample into its slot; where there are fewer than the row has, the fill
    /// value follows.
    ///
    /// # Errors
    ///
    /// When there are more values than the row has, or fewer and no fill value, or the slot holds another
    /// type or is not there.
    pub fn write<T: Element + Pod>(
        &mut self,
        slot: impl SlotKey,
        values: &[T],
    ) -> Result<(), HostError> {
        let (place, of) = self.slot::<T>(&slot)?;
        let expected = of.row_bytes() / size_of::<T>();
        let short = values.len() < expected;
        if values.len() > expected || short && of.fill.is_none() {
            return Err(HostError::Length {
                name: of.name,
                shape: of.shape.clone(),
                expected,
                got: values.len(),
            });
        }
        let row = self.rows.row(place, self.number);
        let (target, rest) = row.split_at_mut(size_of_val(values));
        target.copy_from_slice(bytemuck::cast_slice(values));
        fill(rest, of);
        self.written[place] = true;
        Ok(())
    }

    /// The values of one sample in its slot, to be written in place: all of them fill values, or, where
    /// the slot has none, those of some sample before.
    ///
    /// # Errors
    ///
    /// When the slot holds another type or is not there.
    pub fn values_mut<T: Element + Pod>(
        &mut self,
        slot: impl SlotKey,
    ) -> Result<&mut [T], HostError> {
        let (place, of) = self.slot::<T>(&slot)?;
        let first = !std::mem::replace(&mut self.written[place], true);
        let row = self.rows.row(place, self.number);
        if first {
            fill(row, of);
        }
        Ok(bytemuck::cast_slice_mut(row))
    }

    fn slot<T: Element>(&self, key: &impl SlotKey) -> Result<(usize, &'a SlotLayout), HostError> {
        let place = self.layout.find(key)?;
        let slot = &self.layout.slots()[place];
        slot.check_type::<T>()?;
        Ok((place, slot))
    }

    /// Fills what was not written.
    fn finish(&mut self) -> Result<(), HostError> {
        for (place, slot) in self.layout.slots().iter().enumerate() {
            if self.written[place] || slot.row_bytes() == 0 {
                continue;
            }
            if slot.fill.is_none() {
                return Err(HostError::Unwritten {
                    name: slot.name,
                    row: self.number,
                });
            }
            fill(self.rows.row(place, self.number), slot);
        }
        Ok(())
    }
}

/// Writes the slot's fill value over and over.
pub(crate) fn fill(bytes: &mut [u8], slot: &SlotLayout) {
    let Some(value) = &slot.fill else { return };
    if value.iter().all(|byte| byte == &value[0]) {
        bytes.fill(value[0]);
        return;
    }
    for element in bytes.chunks_exact_mut(value.len()) {
        element.copy_from_slice(value);
    }
}
