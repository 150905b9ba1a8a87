//! The one driver of the process behind its lock: every call is recorded, and waits without the lock.

use std::cell::{Cell, OnceCell};
use std::fs;
use std::mem::MaybeUninit;
use std::sync::{Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::code::Code;
use crate::driver::{Driver, Goal};
use crate::log::Ticket;
use crate::protocol::{NOWHERE, Record};
use crate::raw;

static DRIVER: Mutex<Driver> = Mutex::new(Driver::new());
static NEVER: Condvar = Condvar::new();
static BEGIN: LazyLock<Instant> = LazyLock::new(Instant::now);

thread_local! {
    static CURRENT: Cell<Option<u64>> = const { Cell::new(None) };
    static THREAD: OnceCell<u64> = const { OnceCell::new() };
}

/// The device whose context is current on this thread.
pub(crate) fn current() -> Result<u64, Code> {
    CURRENT.get().ok_or(Code::InvalidContext)
}

pub(crate) fn set_current(device: Option<u64>) {
    CURRENT.set(device);
}

/// The operating system's number of the calling thread, 0 where it does not tell.
fn thread() -> u64 {
    let ask = || {
        let link = fs::read_link("/proc/thread-self").ok()?;
        link.file_name()?.to_str()?.parse().ok()
    };
    THREAD.with(|known| *known.get_or_init(|| ask().unwrap_or(0)))
}

/// The driver, for what is no call of its own.
pub(crate) fn driver() -> MutexGuard<'static, Driver> {
    DRIVER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Does what the driver decided.
pub(crate) fn settle(driver: &mut Driver) {
    #[expect(unsafe_code, reason = "see below")]
    // SAFETY: these are the driver's own steps, in order, taken under its lock; lent memory is that
    // of the call that is going on, whose caller vouches for it.
    unsafe {
        raw::perform(driver.take_steps());
    }
}

/// A call of a driver function: recorded, failed where a test wants that, and otherwise done.
pub(crate) fn call<T>(
    record: Record,
    body: impl FnOnce(&mut Driver) -> Result<T, Code>,
) -> Result<T, Code> {
    let begun = Begun::new(record);
    let mut driver = driver();
    let ticket = begun.enter(&mut driver);
    let outcome = driver.faults.check(record.name());
    let outcome = outcome.and_then(|()| body(&mut driver));
    Begun::leave(&mut driver, ticket, outcome)
}

/// A call that waits: its goal is set when it begins, and attained when the time has come.
pub(crate) fn wait_for(
    record: Record,
    goal: impl FnOnce(&mut Driver) -> Result<Goal, Code>,
) -> Result<(), Code> {
    let begun = Begun::new(record);
    let mut driver = driver();
    let ticket = begun.enter(&mut driver);
    let outcome = driver.faults.check(record.name());
    let outcome = outcome.and_then(|()| goal(&mut driver));
    if let Ok(goal) = &outcome {
        driver = pass(driver, goal.due());
        driver.attain(goal);
    }
    Begun::leave(&mut driver, ticket, outcome.map(drop))
}

/// Waits until a moment, with the lock released meanwhile.
fn pass(
    mut driver: MutexGuard<'static, Driver>,
    due: Option<Instant>,
) -> MutexGuard<'static, Driver> {
    let left = || due.and_then(|due| due.checked_duration_since(Instant::now()));
    while let Some(left) = left().filter(|left| *left > Duration::ZERO) {
        let woken = NEVER.wait_timeout(driver, left);
        driver = woken.unwrap_or_else(PoisonError::into_inner).0;
    }
    driver
}

/// A call that has begun.
struct Begun(Record);

impl Begun {
    fn new(record: Record) -> Self {
        Self(Record {
            thread: thread(),
            device: CURRENT.get().unwrap_or(NOWHERE),
            ..record
        })
    }

    fn enter(&self, driver: &mut Driver) -> Ticket {
        let began = nanoseconds();
        driver.log.begin(Record { began, ..self.0 })
    }

    fn leave<T>(driver: &mut Driver, ticket: Ticket, outcome: Result<T, Code>) -> Result<T, Code> {
        settle(driver);
        if let Some(record) = driver.log.record(ticket) {
            record.took = (nanoseconds() - record.began).max(1);
            let code = outcome.as_ref().err().copied();
            record.code = u64::from(code.unwrap_or(Code::Success) as u32);
        }
        outcome
    }
}

/// Nanoseconds since the first call.
fn nanoseconds() -> u64 {
    u64::try_from(BEGIN.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// Hands a result to the caller through its pointer.
pub(crate) fn give<T>(out: Option<&mut MaybeUninit<T>>, outcome: Result<T, Code>) -> Code {
    match (out, outcome) {
        (Some(out), Ok(value)) => {
            out.write(value);
            Code::Success
        }
        (None, Ok(_)) => Code::InvalidValue,
        (_, Err(code)) => code,
    }
}

/// The code of a call that has nothing to hand over.
pub(crate) fn code(outcome: Result<(), Code>) -> Code {
    outcome.err().unwrap_or(Code::Success)
}
