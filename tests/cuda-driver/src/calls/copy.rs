//! Copies: in a stream's turn or at once, from and to page-locked and pageable memory.
//!
//! As the driver does it, pageable memory is read while the caller waits, and written before it
//! goes on; page-locked memory is read and written when the copy's turn comes.
#![expect(
    unsafe_code,
    reason = "the driver's functions are exported under their own names"
)]

use crate::code::Code;
use crate::door::{self, call, code, current};
use crate::driver::Driver;
use crate::memory::Kind;
use crate::protocol::{ACROSS, DOWN, Record, UP};
use crate::raw;
use crate::transfer::{Rows, Source, Target, Transfer};

/// A copy as it was asked for.
#[derive(Clone, Copy)]
struct Wish {
    way: u64,
    to: Rows,
    from: Rows,
    width: u64,
    height: u64,
}

impl Wish {
    fn line(way: u64, to: u64, from: u64, bytes: usize) -> Self {
        let rows = |address| Rows {
            address,
            pitch: bytes as u64,
        };
        Self {
            way,
            to: rows(to),
            from: rows(from),
            width: bytes as u64,
            height: 1,
        }
    }

    fn record(&self, name: &str, stream: u64) -> Record {
        Record {
            stream,
            to: self.to.address,
            from: self.from.address,
            bytes: self.width.saturating_mul(self.height),
            way: self.way,
            ..Record::of(name)
        }
    }

    fn is_pinned(&self, driver: &Driver) -> bool {
        let host = match self.way {
            UP => self.from,
            DOWN => self.to,
            _ => return false,
        };
        driver.memory.kind(host.address, self.width) == Some(Kind::Pinned)
    }

    /// # Safety
    ///
    /// The host's memory is the caller's: alive and left alone until the call returns.
    unsafe fn transfer(self, driver: &Driver) -> Transfer {
        let pageable = !self.is_pinned(driver);
        let from = if self.way == UP && pageable {
            // SAFETY: as the caller of this function says.
            Source::Taken(unsafe { raw::take(self.from, self.width, self.height) })
        } else {
            Source::Own(self.from)
        };
        let to = if self.way == DOWN && pageable {
            Target::Lent(self.to)
        } else {
            Target::Own(self.to)
        };
        Transfer {
            to,
            from,
            width: self.width,
            height: self.height,
        }
    }
}

/// Carries a wish out in the turn of a stream.
///
/// # Safety
///
/// Pageable memory of the host is alive and left alone until this returns.
unsafe fn copy(name: &str, wish: Wish, stream: u64) -> Code {
    let pinned = u64::from(wish.is_pinned(&door::driver()));
    let record = Record {
        pinned,
        ..wish.record(name, stream)
    };
    code(call(record, |driver| {
        let stream = driver.streams.resolve(stream, current()?)?;
        // SAFETY: as the caller of this function says.
        let transfer = unsafe { wish.transfer(driver) };
        driver.copy_in(stream, transfer)
    }))
}

/// Carries a wish out before it returns.
///
/// # Safety
///
/// As for [`copy`].
unsafe fn copy_now(name: &str, wish: Wish) -> Code {
    // SAFETY: as the caller of this function says.
    let asked = unsafe { copy(name, wish, 0) };
    let mut driver = door::driver();
    let outcome = current().and_then(|device| {
        let stream = driver.streams.resolve(0, device)?;
        let goal = driver.all_of(stream)?;
        driver.attain(&goal);
        Ok(())
    });
    door::settle(&mut driver);
    if asked == Code::Success {
        code(outcome)
    } else {
        asked
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemcpyHtoDAsync_v2(to: u64, from: u64, bytes: usize, stream: u64) -> Code {
    // SAFETY: whoever copies from its own memory keeps it alive, as the driver asks.
    unsafe {
        copy(
            "cuMemcpyHtoDAsync_v2",
            Wish::line(UP, to, from, bytes),
            stream,
        )
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemcpyDtoHAsync_v2(to: u64, from: u64, bytes: usize, stream: u64) -> Code {
    // SAFETY: whoever copies into its own memory keeps it alive, as the driver asks.
    unsafe {
        copy(
            "cuMemcpyDtoHAsync_v2",
            Wish::line(DOWN, to, from, bytes),
            stream,
        )
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemcpyDtoDAsync_v2(to: u64, from: u64, bytes: usize, stream: u64) -> Code {
    // SAFETY: no memory of the host takes part.
    unsafe {
        copy(
            "cuMemcpyDtoDAsync_v2",
            Wish::line(ACROSS, to, from, bytes),
            stream,
        )
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemcpyHtoD_v2(to: u64, from: u64, bytes: usize) -> Code {
    // SAFETY: whoever copies from its own memory keeps it alive, as the driver asks.
    unsafe { copy_now("cuMemcpyHtoD_v2", Wish::line(UP, to, from, bytes)) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemcpyDtoH_v2(to: u64, from: u64, bytes: usize) -> Code {
    // SAFETY: whoever copies into its own memory keeps it alive, as the driver asks.
    unsafe { copy_now("cuMemcpyDtoH_v2", Wish::line(DOWN, to, from, bytes)) }
}

/// The driver's `CUDA_MEMCPY2D`.
#[repr(C)]
struct Copy2d {
    from: Side,
    to: Side,
    width: usize,
    height: usize,
}

/// One side of it.
#[repr(C)]
struct Side {
    x: usize,
    y: usize,
    /// 1 for the host, 2 for a device; others (arrays, unified addresses) are refused.
    kind: u32,
    host: u64,
    device: u64,
    array: u64,
    pitch: usize,
}

impl Side {
    fn rows(&self) -> Option<Rows> {
        let address = match self.kind {
            1 => self.host,
            2 => self.device,
            _ => return None,
        };
        let skipped = self.y.checked_mul(self.pitch)?.checked_add(self.x)?;
        let address = address.checked_add(skipped as u64)?;
        Some(Rows {
            address,
            pitch: self.pitch as u64,
        })
    }
}

impl Copy2d {
    fn wish(&self) -> Option<Wish> {
        let way = match (self.from.kind, self.to.kind) {
            (1, 2) => UP,
            (2, 1) => DOWN,
            (2, 2) => ACROSS,
            _ => return None,
        };
        Some(Wish {
            way,
            to: self.to.rows()?,
            from: self.from.rows()?,
            width: self.width as u64,
            height: self.height as u64,
        })
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemcpy2DAsync_v2(asked: Option<&Copy2d>, stream: u64) -> Code {
    match asked.and_then(Copy2d::wish) {
        // SAFETY: whoever copies from or into its own memory keeps it alive, as the driver asks.
        Some(wish) => unsafe { copy("cuMemcpy2DAsync_v2", wish, stream) },
        None => Code::InvalidValue,
    }
}
