//! A copy as a value: rows of bytes from one place to another.

/// Rows of memory: where the first begins, and how far apart their beginnings are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rows {
    pub(crate) address: u64,
    pub(crate) pitch: u64,
}

/// Where the bytes of a copy come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// Memory of the driver's: must be alive when the copy happens.
    Own(Rows),
    /// Bytes that were taken from the caller's pageable memory when it asked: without gaps.
    Taken(Vec<u8>),
}

/// Where the bytes of a copy go to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// Memory of the driver's: must be alive when the copy happens.
    Own(Rows),
    /// Pageable memory of the caller's: only valid while the caller waits in the call.
    Lent(Rows),
}

/// A copy of `height` rows of `width` bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Transfer {
    pub(crate) to: Target,
    pub(crate) from: Source,
    pub(crate) width: u64,
    pub(crate) height: u64,
}

impl Transfer {
    /// The bytes from the beginning of the first row to the end of the last.
    pub(crate) fn extent(&self, rows: Rows) -> u64 {
        match self.height {
            0 => 0,
            height => rows
                .pitch
                .saturating_mul(height - 1)
                .saturating_add(self.width),
        }
    }

    /// The memory of the driver's that this touches: address and bytes.
    pub(crate) fn own(&self) -> impl Iterator<Item = (u64, u64)> {
        let to = match self.to {
            Target::Own(rows) => Some(rows),
            Target::Lent(_) => None,
        };
        let from = match self.from {
            Source::Own(rows) => Some(rows),
            Source::Taken(_) => None,
        };
        let extent = |rows: Rows| (rows.address, self.extent(rows));
        to.into_iter()
            .chain(from)
            .map(extent)
            .collect::<Vec<_>>()
            .into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_extent_of_rows_ends_with_the_last_row() {
        let rows = Rows {
            address: 4096,
            pitch: 512,
        };
        let transfer = |height| Transfer {
            to: Target::Own(rows),
            from: Source::Taken(Vec::new()),
            width: 100,
            height,
        };
        assert_eq!(transfer(1).extent(rows), 100);
        assert_eq!(transfer(3).extent(rows), 1124);
        assert_eq!(transfer(0).extent(rows), 0);
        assert_eq!(transfer(3).own().collect::<Vec<_>>(), [(4096, 1124)]);
    }
}
