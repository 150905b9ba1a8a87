//! The driver, its devices, contexts and errors, and the refusal of kernels.
#![expect(
    unsafe_code,
    reason = "the driver's functions are exported under their own names"
)]

use std::ffi::{c_char, c_int, c_uint};
use std::mem::MaybeUninit;

use crate::code::Code;
use crate::device;
use crate::door::{self, call, code, give};
use crate::driver::Driver;
use crate::protocol::{DEVICES, Record};
use crate::raw;

/// Handles of contexts: this much above the number of their device.
const CONTEXT: u64 = 0x100;

type Out<'a, T> = Option<&'a mut MaybeUninit<T>>;

#[unsafe(no_mangle)]
extern "C" fn cuInit(_flags: c_uint) -> Code {
    code(call(Record::of("cuInit"), |_| Ok(())))
}

#[unsafe(no_mangle)]
extern "C" fn cuDriverGetVersion(version: Out<c_int>) -> Code {
    give(
        version,
        call(Record::of("cuDriverGetVersion"), |_| Ok(device::VERSION)),
    )
}

#[unsafe(no_mangle)]
extern "C" fn cuDeviceGetCount(count: Out<c_int>) -> Code {
    let devices = |_: &mut _| c_int::try_from(DEVICES).map_err(|_| Code::Unknown);
    give(count, call(Record::of("cuDeviceGetCount"), devices))
}

#[unsafe(no_mangle)]
extern "C" fn cuDeviceGet(found: Out<c_int>, ordinal: c_int) -> Code {
    let find = |_: &mut _| device::find(ordinal.into()).map(|_| ordinal);
    give(found, call(Record::of("cuDeviceGet"), find))
}

#[unsafe(no_mangle)]
extern "C" fn cuDeviceGetAttribute(value: Out<c_int>, attribute: c_int, of: c_int) -> Code {
    let ask = |_: &mut _| device::find(of.into()).map(|_| device::attribute(attribute));
    give(value, call(Record::of("cuDeviceGetAttribute"), ask))
}

#[unsafe(no_mangle)]
extern "C" fn cuDeviceTotalMem_v2(bytes: Out<usize>, of: c_int) -> Code {
    let ask = |_: &mut _| device::find(of.into()).and_then(|_| size(device::MEMORY));
    give(bytes, call(Record::of("cuDeviceTotalMem_v2"), ask))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetName(name: *mut c_char, room: c_int, of: c_int) -> Code {
    let found = call(Record::of("cuDeviceGetName"), |_| device::find(of.into()));
    // SAFETY: the caller says how much room it has at `name`.
    code(
        found.map(|device| unsafe { raw::write_text(name, capacity(room), &device::name(device)) }),
    )
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetPCIBusId(id: *mut c_char, room: c_int, of: c_int) -> Code {
    let found = call(Record::of("cuDeviceGetPCIBusId"), |_| {
        device::find(of.into())
    });
    // SAFETY: the caller says how much room it has at `id`.
    code(found.map(|device| unsafe { raw::write_text(id, capacity(room), &device::bus(device)) }))
}

#[unsafe(no_mangle)]
extern "C" fn cuDevicePrimaryCtxRetain(context: Out<u64>, of: c_int) -> Code {
    let retain = |_: &mut _| device::find(of.into()).map(|device| CONTEXT + device);
    give(
        context,
        call(Record::of("cuDevicePrimaryCtxRetain"), retain),
    )
}

#[unsafe(no_mangle)]
extern "C" fn cuDevicePrimaryCtxRelease_v2(of: c_int) -> Code {
    let find = |_: &mut _| device::find(of.into()).map(|_| ());
    code(call(Record::of("cuDevicePrimaryCtxRelease_v2"), find))
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxSetCurrent(context: u64) -> Code {
    code(call(Record::of("cuCtxSetCurrent"), |_| {
        let device = match context.checked_sub(CONTEXT) {
            _ if context == 0 => None,
            Some(device) if device < DEVICES as u64 => Some(device),
            _ => return Err(Code::InvalidContext),
        };
        door::set_current(device);
        Ok(())
    }))
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxGetCurrent(context: Out<u64>) -> Code {
    let current = |_: &mut _| Ok(door::current().map_or(0, |device| CONTEXT + device));
    give(context, call(Record::of("cuCtxGetCurrent"), current))
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxGetDevice(device: Out<c_int>) -> Code {
    let current = |_: &mut _| c_int::try_from(door::current()?).map_err(|_| Code::Unknown);
    give(device, call(Record::of("cuCtxGetDevice"), current))
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxSynchronize() -> Code {
    let all = |driver: &mut Driver| driver.all_on(door::current()?);
    code(door::wait_for(Record::of("cuCtxSynchronize"), all))
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxGetStreamPriorityRange(least: Out<c_int>, greatest: Out<c_int>) -> Code {
    let outcome = call(Record::of("cuCtxGetStreamPriorityRange"), |_| Ok(0));
    let told = give(least, outcome);
    if told == Code::Success {
        give(greatest, outcome)
    } else {
        told
    }
}

#[unsafe(no_mangle)]
extern "C" fn cuGetErrorName(error: c_uint, name: Out<*const c_char>) -> Code {
    let words = Code::of(error.into()).unwrap_or(Code::Unknown).words();
    give(name, Ok(words.0.as_ptr()))
}

#[unsafe(no_mangle)]
extern "C" fn cuGetErrorString(error: c_uint, text: Out<*const c_char>) -> Code {
    let words = Code::of(error.into()).unwrap_or(Code::Unknown).words();
    give(text, Ok(words.1.as_ptr()))
}

/// Kernels are refused where they come in, so that nothing further of them is ever asked for.
#[unsafe(no_mangle)]
extern "C" fn cuModuleLoadData(module: Out<u64>, _image: u64) -> Code {
    give(
        module,
        call(Record::of("cuModuleLoadData"), |_| Err(Code::NotSupported)),
    )
}

fn size(bytes: u64) -> Result<usize, Code> {
    usize::try_from(bytes).map_err(|_| Code::Unknown)
}

fn capacity(room: c_int) -> usize {
    usize::try_from(room).unwrap_or(0)
}
