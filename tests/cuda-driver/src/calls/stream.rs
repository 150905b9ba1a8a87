//! Streams and events.
#![expect(
    unsafe_code,
    reason = "the driver's functions are exported under their own names"
)]

use std::ffi::{c_int, c_uint};
use std::mem::MaybeUninit;

use crate::code::Code;
use crate::door::{call, code, current, give, wait_for};
use crate::driver::Driver;
use crate::protocol::Record;

type Out<'a, T> = Option<&'a mut MaybeUninit<T>>;

fn of_stream(name: &str, stream: u64) -> Record {
    Record {
        stream,
        ..Record::of(name)
    }
}

fn of_event(name: &str, event: u64) -> Record {
    Record {
        event,
        ..Record::of(name)
    }
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamCreate(stream: Out<u64>, _flags: c_uint) -> Code {
    let create = |driver: &mut Driver| Ok(driver.streams.create(current()?));
    give(stream, call(Record::of("cuStreamCreate"), create))
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamCreateWithPriority(
    stream: Out<u64>,
    _flags: c_uint,
    _priority: c_int,
) -> Code {
    let create = |driver: &mut Driver| Ok(driver.streams.create(current()?));
    give(
        stream,
        call(Record::of("cuStreamCreateWithPriority"), create),
    )
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamDestroy_v2(stream: u64) -> Code {
    code(call(of_stream("cuStreamDestroy_v2", stream), |driver| {
        let goal = driver.all_of(stream)?;
        driver.attain(&goal);
        driver.streams.destroy(stream);
        Ok(())
    }))
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamSynchronize(stream: u64) -> Code {
    code(wait_for(
        of_stream("cuStreamSynchronize", stream),
        |driver| {
            let stream = driver.streams.resolve(stream, current()?)?;
            driver.all_of(stream)
        },
    ))
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamWaitEvent(stream: u64, event: u64, _flags: c_uint) -> Code {
    let record = Record {
        event,
        ..of_stream("cuStreamWaitEvent", stream)
    };
    code(call(record, |driver| {
        let stream = driver.streams.resolve(stream, current()?)?;
        driver.wait(stream, event)
    }))
}

#[unsafe(no_mangle)]
extern "C" fn cuEventCreate(event: Out<u64>, _flags: c_uint) -> Code {
    let outcome = call(Record::of("cuEventCreate"), |driver| {
        current()?;
        Ok(driver.streams.create_event())
    });
    give(event, outcome)
}

#[unsafe(no_mangle)]
extern "C" fn cuEventDestroy_v2(event: u64) -> Code {
    code(call(of_event("cuEventDestroy_v2", event), |driver| {
        driver.streams.destroy_event(event)
    }))
}

#[unsafe(no_mangle)]
extern "C" fn cuEventRecord(event: u64, stream: u64) -> Code {
    let record = Record {
        stream,
        ..of_event("cuEventRecord", event)
    };
    code(call(record, |driver| {
        let stream = driver.streams.resolve(stream, current()?)?;
        driver.record(event, stream)
    }))
}

#[unsafe(no_mangle)]
extern "C" fn cuEventSynchronize(event: u64) -> Code {
    code(wait_for(of_event("cuEventSynchronize", event), |driver| {
        driver.up_to_event(event)
    }))
}

#[unsafe(no_mangle)]
extern "C" fn cuEventQuery(event: u64) -> Code {
    code(call(of_event("cuEventQuery", event), |driver| {
        driver.query(event)
    }))
}

#[unsafe(no_mangle)]
extern "C" fn cuEventElapsedTime(milliseconds: Out<f32>, start: u64, end: u64) -> Code {
    let elapsed = call(of_event("cuEventElapsedTime", end), |driver| {
        driver.elapsed(start, end)
    });
    give(
        milliseconds,
        elapsed.map(|time| time.as_secs_f32() * 1000.0),
    )
}

#[unsafe(no_mangle)]
extern "C" fn cuEventElapsedTime_v2(milliseconds: Out<f32>, start: u64, end: u64) -> Code {
    let elapsed = call(of_event("cuEventElapsedTime_v2", end), |driver| {
        driver.elapsed(start, end)
    });
    give(
        milliseconds,
        elapsed.map(|time| time.as_secs_f32() * 1000.0),
    )
}
