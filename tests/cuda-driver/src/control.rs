//! What a test may ask of the stand-in beside the driver's functions, exported as `stand_in_*`.
#![expect(
    unsafe_code,
    reason = "a test finds these in the loaded library by name"
)]

use std::mem::MaybeUninit;
use std::time::Duration;

use crate::door::{driver, settle};
use crate::driver::Copies;
use crate::protocol::{Fault, Live, Record};

/// Hands over the call at a position of the log; whether there was one.
#[unsafe(no_mangle)]
extern "C" fn stand_in_log(position: u64, record: &mut MaybeUninit<Record>) -> bool {
    let found = driver().log.at(position);
    found.map(|found| record.write(found)).is_some()
}

/// Forgets the calls so far.
#[unsafe(no_mangle)]
extern "C" fn stand_in_clear_log() {
    driver().log.clear();
}

/// Says what is alive.
#[unsafe(no_mangle)]
extern "C" fn stand_in_live(live: &mut MaybeUninit<Live>) {
    live.write(driver().live());
}

/// Holds copies back until something waits for them, or holds them no more and does those that are
/// due.
#[unsafe(no_mangle)]
extern "C" fn stand_in_hold_copies(hold: bool) {
    let copies = if hold { Copies::Held } else { Copies::AtOnce };
    let mut driver = driver();
    // A stream that is listed is there: nothing fails.
    let _always = driver.set_copies(copies);
    settle(&mut driver);
}

/// Events behind copies that are asked for from now on are reached this many milliseconds after them.
#[unsafe(no_mangle)]
extern "C" fn stand_in_delay_events(milliseconds: u64) {
    driver().set_delay(Duration::from_millis(milliseconds));
}

/// Lets calls fail; whether that is possible.
#[unsafe(no_mangle)]
extern "C" fn stand_in_fail(fault: &Fault) -> bool {
    driver().faults.add(*fault)
}

/// Lets no call fail any more that was to.
#[unsafe(no_mangle)]
extern "C" fn stand_in_fail_no_more() {
    driver().faults.clear();
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn live() -> Live {
        driver().live()
    }

    pub(crate) fn calls() -> Vec<Record> {
        let mut record = MaybeUninit::uninit();
        let next = |position| {
            stand_in_log(position, &mut record)
                .then(|| driver().log.at(position))
                .flatten()
        };
        (0..).map_while(next).collect()
    }
}
