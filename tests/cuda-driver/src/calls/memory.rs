//! Device memory and page-locked host memory.
#![expect(
    unsafe_code,
    reason = "the driver's functions are exported under their own names"
)]

use std::ffi::c_uint;
use std::mem::MaybeUninit;

use crate::code::Code;
use crate::device::MEMORY;
use crate::door::{call, code, current, give};
use crate::driver::Driver;
use crate::memory::Kind;
use crate::protocol::Record;
use crate::raw;

type Out<'a, T> = Option<&'a mut MaybeUninit<T>>;

/// Allocates, within a device's memory, and says so in the record.
fn allocate(driver: &mut Driver, bytes: u64, kind: Kind) -> Result<u64, Code> {
    if bytes == 0 {
        return Err(Code::InvalidValue);
    }
    if let Kind::Device(device) = kind
        && driver.memory.used(device).saturating_add(bytes) > MEMORY
    {
        return Err(Code::OutOfMemory);
    }
    let block = raw::allocate(bytes, kind).ok_or(Code::OutOfMemory)?;
    driver.memory.add(block);
    if let Some(record) = driver.log.newest() {
        record.to = block.address;
    }
    Ok(block.address)
}

fn sized(name: &str, bytes: usize) -> Record {
    Record {
        bytes: bytes as u64,
        ..Record::of(name)
    }
}

fn at(name: &str, address: u64) -> Record {
    Record {
        to: address,
        ..Record::of(name)
    }
}

#[unsafe(no_mangle)]
extern "C" fn cuMemAlloc_v2(address: Out<u64>, bytes: usize) -> Code {
    let outcome = call(sized("cuMemAlloc_v2", bytes), |driver| {
        allocate(driver, bytes as u64, Kind::Device(current()?))
    });
    give(address, outcome)
}

#[unsafe(no_mangle)]
extern "C" fn cuMemAllocAsync(address: Out<u64>, bytes: usize, stream: u64) -> Code {
    let record = Record {
        stream,
        ..sized("cuMemAllocAsync", bytes)
    };
    let outcome = call(record, |driver| {
        driver.streams.resolve(stream, current()?)?;
        allocate(driver, bytes as u64, Kind::Device(current()?))
    });
    give(address, outcome)
}

#[unsafe(no_mangle)]
extern "C" fn cuMemFree_v2(address: u64) -> Code {
    code(call(at("cuMemFree_v2", address), |driver| {
        driver.free_device(address)
    }))
}

#[unsafe(no_mangle)]
extern "C" fn cuMemFreeAsync(address: u64, stream: u64) -> Code {
    let record = Record {
        stream,
        ..at("cuMemFreeAsync", address)
    };
    code(call(record, |driver| {
        let stream = driver.streams.resolve(stream, current()?)?;
        driver.free_in(stream, address)
    }))
}

#[unsafe(no_mangle)]
extern "C" fn cuMemAllocHost_v2(address: Out<u64>, bytes: usize) -> Code {
    let outcome = call(sized("cuMemAllocHost_v2", bytes), |driver| {
        current()?;
        allocate(driver, bytes as u64, Kind::Pinned)
    });
    give(address, outcome)
}

#[unsafe(no_mangle)]
extern "C" fn cuMemHostAlloc(address: Out<u64>, bytes: usize, _flags: c_uint) -> Code {
    let outcome = call(sized("cuMemHostAlloc", bytes), |driver| {
        current()?;
        allocate(driver, bytes as u64, Kind::Pinned)
    });
    give(address, outcome)
}

#[unsafe(no_mangle)]
extern "C" fn cuMemFreeHost(address: u64) -> Code {
    code(call(at("cuMemFreeHost", address), |driver| {
        driver.free(address, true)
    }))
}

#[unsafe(no_mangle)]
extern "C" fn cuMemGetInfo_v2(free: Out<u64>, total: Out<u64>) -> Code {
    let outcome = call(Record::of("cuMemGetInfo_v2"), |driver| {
        Ok(MEMORY - driver.memory.used(current()?))
    });
    let told = give(free, outcome);
    if told == Code::Success {
        give(total, Ok(MEMORY))
    } else {
        told
    }
}
