//! The driver as a whole, without a pointer: what each call does to memory, streams and events.
//!
//! Nothing here moves a byte. What has to be moved or given back comes out as [`Step`]s, in order,
//! and whoever holds the driver carries them out before the next call.

use std::time::{Duration, Instant};

use crate::code::Code;
use crate::faults::Faults;
use crate::log::Log;
use crate::memory::{Block, Kind, Memory};
use crate::protocol::Live;
use crate::streams::{Place, Streams, Work};
use crate::transfer::{Target, Transfer};

/// Something to be done to real memory.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// All memory of the driver's that it touches is alive.
    Copy(Transfer),
    /// A block that is the driver's no more.
    Release(Block),
}

/// Whether copies happen as soon as they can or as late as they may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Copies {
    /// When they are asked for.
    AtOnce,
    /// When something waits for them: what lies at their source by then is what arrives.
    Held,
}

/// What a call waits for: places in streams, and the moment from when on they may be reached.
#[derive(Debug, Default)]
pub(crate) struct Goal {
    places: Vec<Place>,
    due: Option<Instant>,
}

impl Goal {
    pub(crate) fn due(&self) -> Option<Instant> {
        self.due
    }
}

/// What the driver knows.
#[derive(Debug)]
pub(crate) struct Driver {
    pub(crate) memory: Memory,
    pub(crate) streams: Streams,
    pub(crate) log: Log,
    pub(crate) faults: Faults,
    copies: Copies,
    delay: Duration,
    hazards: u64,
    steps: Vec<Step>,
}

impl Driver {
    pub(crate) const fn new() -> Self {
        Self {
            memory: Memory::new(),
            streams: Streams::new(),
            log: Log::new(),
            faults: Faults::new(),
            copies: Copies::AtOnce,
            delay: Duration::ZERO,
            hazards: 0,
            steps: Vec::new(),
        }
    }

    /// What has to be done to memory now.
    pub(crate) fn take_steps(&mut self) -> Vec<Step> {
        std::mem::take(&mut self.steps)
    }

    /// Gives a block back at once.
    pub(crate) fn free(&mut self, address: u64, pinned: bool) -> Result<(), Code> {
        let block = self.memory.remove(address, pinned)?;
        self.steps.push(Step::Release(block));
        Ok(())
    }

    /// Gives device memory back when all work of its device is done.
    pub(crate) fn free_device(&mut self, address: u64) -> Result<(), Code> {
        if let Some(Kind::Device(device)) = self.memory.kind(address, 1) {
            let goal = self.all_on(device)?;
            self.attain(&goal);
        }
        self.free(address, false)
    }

    /// Gives device memory back in its stream's turn.
    pub(crate) fn free_in(&mut self, stream: u64, address: u64) -> Result<(), Code> {
        self.memory.kind(address, 1).ok_or(Code::InvalidValue)?;
        self.streams.push(stream, Work::Free(address))?;
        self.settle(stream)
    }

    /// Copies in a stream's turn; a copy to the caller's own memory, before this returns.
    pub(crate) fn copy_in(&mut self, stream: u64, transfer: Transfer) -> Result<(), Code> {
        if !self.is_alive(&transfer) {
            return Err(Code::InvalidValue);
        }
        let lent = matches!(transfer.to, Target::Lent(_));
        self.streams.push(stream, Work::Copy(transfer))?;
        self.streams.occupy(stream, self.delay)?;
        if lent {
            self.finish(stream)
        } else {
            self.settle(stream)
        }
    }

    /// Records an event in a stream.
    pub(crate) fn record(&mut self, event: u64, stream: u64) -> Result<(), Code> {
        self.streams.record(event, stream)?;
        self.settle(stream)
    }

    /// Lets a stream wait for an event.
    pub(crate) fn wait(&mut self, stream: u64, event: u64) -> Result<(), Code> {
        self.streams.wait(stream, event)?;
        self.settle(stream)
    }

    /// Whether an event is reached, without any help.
    pub(crate) fn query(&self, event: u64) -> Result<(), Code> {
        match self.streams.recorded(event)? {
            Some((place, due)) if !self.streams.is_reached(place) || due > Instant::now() => {
                Err(Code::NotReady)
            }
            _ => Ok(()),
        }
    }

    /// The time between two events that are reached.
    pub(crate) fn elapsed(&self, start: u64, end: u64) -> Result<Duration, Code> {
        self.query(start).and_then(|()| self.query(end))?;
        let due = |event| Ok(self.streams.recorded(event)?.ok_or(Code::InvalidHandle)?.1);
        Ok(due(end)?.saturating_duration_since(due(start)?))
    }

    /// The work that an event stands behind; none when it was never recorded.
    pub(crate) fn up_to_event(&self, event: u64) -> Result<Goal, Code> {
        let recorded = self.streams.recorded(event)?;
        let (places, due) = recorded.map(|(place, due)| (vec![place], due)).unzip();
        Ok(Goal {
            places: places.unwrap_or_default(),
            due,
        })
    }

    /// All work of a stream.
    pub(crate) fn all_of(&self, stream: u64) -> Result<Goal, Code> {
        let places = vec![self.streams.end(stream)?];
        let due = self.streams.busy(stream)?;
        Ok(Goal { places, due })
    }

    /// All work of a device.
    pub(crate) fn all_on(&self, device: u64) -> Result<Goal, Code> {
        let mut whole = Goal::default();
        for stream in self.streams.of(device) {
            let goal = self.all_of(stream)?;
            whole.places.extend(goal.places);
            whole.due = whole.due.max(goal.due);
        }
        Ok(whole)
    }

    /// Does the work of a goal, whose time has come.
    pub(crate) fn attain(&mut self, goal: &Goal) {
        for place in &goal.places {
            self.reach(*place);
        }
    }

    /// Does all work of a stream now.
    fn finish(&mut self, stream: u64) -> Result<(), Code> {
        let goal = self.all_of(stream)?;
        self.attain(&goal);
        Ok(())
    }

    /// From now on copies happen at this time.
    pub(crate) fn set_copies(&mut self, copies: Copies) -> Result<(), Code> {
        self.copies = copies;
        let mut streams = self.streams.all().into_iter();
        streams.try_for_each(|stream| self.settle(stream))
    }

    /// Copies that are asked for from now on take this long, as far as events behind them tell.
    pub(crate) fn set_delay(&mut self, delay: Duration) {
        self.delay = delay;
    }

    pub(crate) fn live(&self) -> Live {
        let (streams, events) = self.streams.count();
        let mut live = Live {
            streams,
            events,
            hazards: self.hazards,
            lost: self.log.lost,
            ..Live::default()
        };
        self.memory.count_into(&mut live);
        live
    }

    fn settle(&mut self, stream: u64) -> Result<(), Code> {
        match self.copies {
            Copies::AtOnce => self.finish(stream),
            Copies::Held => Ok(()),
        }
    }

    fn reach(&mut self, place: Place) {
        for work in self.streams.reach(place) {
            match work {
                Work::Copy(transfer) if self.is_alive(&transfer) => {
                    self.steps.push(Step::Copy(transfer));
                }
                Work::Free(address) if self.free(address, false).is_ok() => {}
                Work::Copy(_) | Work::Free(_) => self.hazards += 1,
                Work::Mark | Work::Await(_) => {}
            }
        }
    }

    fn is_alive(&self, transfer: &Transfer) -> bool {
        let known = |(address, bytes)| self.memory.kind(address, bytes).is_some();
        transfer.own().all(known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transfer::{Rows, Source};

    const DEVICE: u64 = 1000;
    const PINNED: u64 = 2000;

    /// A driver with 100 bytes of each kind, and a stream.
    fn driver() -> (Driver, u64) {
        let mut driver = Driver::new();
        for (address, kind) in [(DEVICE, Kind::Device(0)), (PINNED, Kind::Pinned)] {
            driver.memory.add(Block {
                address,
                bytes: 100,
                kind,
            });
        }
        let stream = driver.streams.create(0);
        (driver, stream)
    }

    fn own(address: u64) -> Rows {
        Rows {
            address,
            pitch: 100,
        }
    }

    fn upload() -> Transfer {
        Transfer {
            to: Target::Own(own(DEVICE)),
            from: Source::Own(own(PINNED)),
            width: 100,
            height: 1,
        }
    }

    #[test]
    fn a_copy_happens_when_it_is_asked_for() {
        let (mut driver, stream) = driver();
        driver.copy_in(stream, upload()).unwrap();
        assert_eq!(driver.take_steps(), [Step::Copy(upload())]);
    }

    #[test]
    fn a_held_copy_happens_when_its_event_is_waited_for() {
        let (mut driver, stream) = driver();
        driver.set_copies(Copies::Held).unwrap();
        driver.copy_in(stream, upload()).unwrap();
        let event = driver.streams.create_event();
        driver.record(event, stream).unwrap();
        assert_eq!(driver.query(event), Err(Code::NotReady));
        assert_eq!(driver.take_steps(), []);
        let goal = driver.up_to_event(event).unwrap();
        driver.attain(&goal);
        assert_eq!(driver.take_steps(), [Step::Copy(upload())]);
        assert_eq!(driver.query(event), Ok(()));
    }

    #[test]
    fn held_copies_happen_when_they_are_held_no_more() {
        let (mut driver, stream) = driver();
        driver.set_copies(Copies::Held).unwrap();
        driver.copy_in(stream, upload()).unwrap();
        driver.set_copies(Copies::AtOnce).unwrap();
        assert_eq!(driver.take_steps(), [Step::Copy(upload())]);
    }

    #[test]
    fn a_held_copy_from_memory_that_was_freed_is_a_hazard_and_moves_nothing() {
        let (mut driver, stream) = driver();
        driver.set_copies(Copies::Held).unwrap();
        driver.copy_in(stream, upload()).unwrap();
        driver.free(PINNED, true).unwrap();
        driver.finish(stream).unwrap();
        assert!(!driver.take_steps().contains(&Step::Copy(upload())));
        assert_eq!(driver.live().hazards, 1);
    }

    #[test]
    fn device_memory_is_freed_behind_the_copies_into_it() {
        let (mut driver, stream) = driver();
        driver.set_copies(Copies::Held).unwrap();
        driver.copy_in(stream, upload()).unwrap();
        driver.free_device(DEVICE).unwrap();
        let steps = driver.take_steps();
        assert_eq!(steps[0], Step::Copy(upload()));
        assert!(matches!(
            steps[1],
            Step::Release(Block {
                address: DEVICE,
                ..
            })
        ));
        assert_eq!(driver.live().hazards, 0);
    }

    #[test]
    fn a_copy_into_the_callers_own_memory_is_done_before_the_call_ends() {
        let (mut driver, stream) = driver();
        driver.set_copies(Copies::Held).unwrap();
        driver.copy_in(stream, upload()).unwrap();
        let down = Transfer {
            to: Target::Lent(own(5)),
            from: Source::Own(own(DEVICE)),
            width: 100,
            height: 1,
        };
        driver.copy_in(stream, down.clone()).unwrap();
        assert_eq!(
            driver.take_steps(),
            [Step::Copy(upload()), Step::Copy(down)]
        );
    }

    #[test]
    fn a_copy_beyond_a_block_is_refused() {
        let (mut driver, stream) = driver();
        let beyond = Transfer {
            width: 101,
            ..upload()
        };
        assert_eq!(driver.copy_in(stream, beyond), Err(Code::InvalidValue));
        assert_eq!(driver.take_steps(), []);
    }

    #[test]
    fn an_event_behind_a_copy_is_reached_later_and_one_before_it_is_not() {
        let (mut driver, stream) = driver();
        let [start, end] = [(); 2].map(|()| driver.streams.create_event());
        driver.set_delay(Duration::from_hours(1));
        driver.record(start, stream).unwrap();
        driver.copy_in(stream, upload()).unwrap();
        driver.record(end, stream).unwrap();
        assert_eq!(driver.query(start), Ok(()));
        assert_eq!(driver.query(end), Err(Code::NotReady));
        assert_eq!(driver.elapsed(start, end), Err(Code::NotReady));
    }

    #[test]
    fn what_is_alive_is_told() {
        let (mut driver, stream) = driver();
        let live = driver.live();
        assert_eq!(
            (live.pinned.bytes, live.device[0].bytes, live.streams),
            (100, 100, 1)
        );
        driver.free(PINNED, true).unwrap();
        driver.free_in(stream, DEVICE).unwrap();
        driver.streams.destroy(stream);
        assert_eq!(driver.live(), Live::default());
    }
}
