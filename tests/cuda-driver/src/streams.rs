//! Streams as queues of work, and events as places in them.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use crate::code::Code;
use crate::protocol::DEVICES;
use crate::transfer::Transfer;

/// The handle of the first stream that is created. Smaller ones are the devices' default streams.
const FIRST: u64 = 0x1000;

/// Something a stream does in its turn.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Work {
    Copy(Transfer),
    /// Gives back the device memory that begins here.
    Free(u64),
    /// An event's place.
    Mark,
    /// Waits for a place in another stream.
    Await(Place),
}

/// A place in a stream: it is reached when the work with this number is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    stream: u64,
    number: u64,
}

#[derive(Debug)]
struct Stream {
    device: u64,
    queue: VecDeque<Work>,
    /// How many pieces of work were begun so far: the number of the first in the queue.
    done: u64,
    /// Until when the copies that were asked for so far take.
    busy: Option<Instant>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Event {
    /// Where it was recorded last, and from when on it may be reached.
    recorded: Option<(Place, Instant)>,
}

/// All streams and events.
#[derive(Debug)]
pub(crate) struct Streams {
    queues: BTreeMap<u64, Stream>,
    events: BTreeMap<u64, Event>,
    last: u64,
}

impl Streams {
    pub(crate) const fn new() -> Self {
        Self {
            queues: BTreeMap::new(),
            events: BTreeMap::new(),
            last: FIRST,
        }
    }

    fn handle(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    pub(crate) fn create(&mut self, device: u64) -> u64 {
        let handle = self.handle();
        self.queues.insert(handle, Stream::of(device));
        handle
    }

    /// The stream that a handle names: 0 is the default stream of the device.
    pub(crate) fn resolve(&mut self, handle: u64, device: u64) -> Result<u64, Code> {
        let handle = if handle == 0 { device + 1 } else { handle };
        if handle <= DEVICES as u64 {
            self.queues
                .entry(handle)
                .or_insert_with(|| Stream::of(device));
        }
        let known = self.queues.contains_key(&handle);
        known.then_some(handle).ok_or(Code::InvalidHandle)
    }

    /// Forgets a stream whose work is done.
    pub(crate) fn destroy(&mut self, stream: u64) {
        self.queues.remove(&stream);
    }

    /// The streams of a device.
    pub(crate) fn of(&self, device: u64) -> Vec<u64> {
        let of_device = self
            .queues
            .iter()
            .filter(|(_, stream)| stream.device == device);
        of_device.map(|(handle, _)| *handle).collect()
    }

    pub(crate) fn all(&self) -> Vec<u64> {
        self.queues.keys().copied().collect()
    }

    pub(crate) fn push(&mut self, stream: u64, work: Work) -> Result<Place, Code> {
        let queue = self.queues.get_mut(&stream).ok_or(Code::InvalidHandle)?;
        queue.queue.push_back(work);
        let number = queue.done + queue.queue.len() as u64;
        Ok(Place { stream, number })
    }

    /// Keeps a stream busy for this long, behind what it is busy with.
    pub(crate) fn occupy(&mut self, stream: u64, time: Duration) -> Result<(), Code> {
        let queue = self.queues.get_mut(&stream).ok_or(Code::InvalidHandle)?;
        let now = Instant::now();
        queue.busy = Some(queue.busy.map_or(now, |busy| busy.max(now)) + time);
        Ok(())
    }

    /// The place behind all work that the stream has now.
    pub(crate) fn end(&self, stream: u64) -> Result<Place, Code> {
        let queue = self.queues.get(&stream).ok_or(Code::InvalidHandle)?;
        let number = queue.done + queue.queue.len() as u64;
        Ok(Place { stream, number })
    }

    /// Whether all work up to a place is done; a stream that is gone was done before.
    pub(crate) fn is_reached(&self, place: Place) -> bool {
        let stream = self.queues.get(&place.stream);
        stream.is_none_or(|stream| stream.done >= place.number)
    }

    /// Does all work up to a place, and what that waits for in other streams before it; returns
    /// what has bytes to move or memory to free, in order.
    pub(crate) fn reach(&mut self, place: Place) -> Vec<Work> {
        let (mut wanted, mut done) = (vec![place], Vec::new());
        while let Some(&place) = wanted.last() {
            let stream = self.queues.get_mut(&place.stream);
            let Some(stream) = stream.filter(|stream| stream.done < place.number) else {
                wanted.pop();
                continue;
            };
            stream.done += 1;
            match stream.queue.pop_front() {
                Some(Work::Await(other)) => wanted.push(other),
                Some(Work::Mark) | None => {}
                Some(work @ (Work::Copy(_) | Work::Free(_))) => done.push(work),
            }
        }
        done
    }

    /// Until when the copies of a stream take.
    pub(crate) fn busy(&self, stream: u64) -> Result<Option<Instant>, Code> {
        let stream = self.queues.get(&stream).ok_or(Code::InvalidHandle)?;
        Ok(stream.busy)
    }

    pub(crate) fn create_event(&mut self) -> u64 {
        let handle = self.handle();
        self.events.insert(handle, Event::default());
        handle
    }

    pub(crate) fn destroy_event(&mut self, event: u64) -> Result<(), Code> {
        let known = self.events.remove(&event);
        known.map(|_| ()).ok_or(Code::InvalidHandle)
    }

    /// Puts an event behind all work that the stream has now; it is reached when that is done and
    /// the stream is busy with nothing before it.
    pub(crate) fn record(&mut self, event: u64, stream: u64) -> Result<(), Code> {
        let place = self.push(stream, Work::Mark)?;
        let due = self.busy(stream)?.unwrap_or_else(Instant::now);
        let recorded = self.events.get_mut(&event).ok_or(Code::InvalidHandle)?;
        recorded.recorded = Some((place, due.max(Instant::now())));
        Ok(())
    }

    /// Lets a stream wait for where an event was recorded last, if it was.
    pub(crate) fn wait(&mut self, stream: u64, event: u64) -> Result<(), Code> {
        let Some((place, due)) = self.recorded(event)? else {
            return Ok(());
        };
        self.push(stream, Work::Await(place))?;
        let queue = self.queues.get_mut(&stream).ok_or(Code::InvalidHandle)?;
        queue.busy = queue.busy.max(Some(due));
        Ok(())
    }

    /// Where an event was recorded last, and from when on it may be reached.
    pub(crate) fn recorded(&self, event: u64) -> Result<Option<(Place, Instant)>, Code> {
        let event = self.events.get(&event).ok_or(Code::InvalidHandle)?;
        Ok(event.recorded)
    }

    /// How many streams and events were created and not destroyed.
    pub(crate) fn count(&self) -> (u64, u64) {
        let created = self.queues.keys().filter(|handle| **handle > FIRST);
        (created.count() as u64, self.events.len() as u64)
    }
}

impl Stream {
    fn of(device: u64) -> Self {
        Self {
            device,
            queue: VecDeque::new(),
            done: 0,
            busy: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two() -> (Streams, u64, u64) {
        let mut streams = Streams::new();
        let (one, two) = (streams.create(0), streams.create(0));
        (streams, one, two)
    }

    #[test]
    fn work_up_to_a_place_is_done_in_order_and_no_more() {
        let (mut streams, one, _) = two();
        let places = [1, 2, 3].map(|address| streams.push(one, Work::Free(address)).unwrap());
        assert_eq!(streams.reach(places[1]), [Work::Free(1), Work::Free(2)]);
        assert!(streams.is_reached(places[1]) && !streams.is_reached(places[2]));
        assert_eq!(streams.reach(places[0]), []);
        assert_eq!(streams.reach(places[2]), [Work::Free(3)]);
    }

    #[test]
    fn a_stream_that_waits_for_an_event_has_the_other_streams_work_done_first() {
        let (mut streams, one, two) = two();
        let event = streams.create_event();
        streams.push(one, Work::Free(1)).unwrap();
        streams.record(event, one).unwrap();
        streams.push(one, Work::Free(2)).unwrap();
        streams.wait(two, event).unwrap();
        let place = streams.push(two, Work::Free(3)).unwrap();
        assert_eq!(streams.reach(place), [Work::Free(1), Work::Free(3)]);
    }

    #[test]
    fn an_event_that_was_never_recorded_is_waited_for_by_nobody() {
        let (mut streams, one, _) = two();
        let event = streams.create_event();
        streams.wait(one, event).unwrap();
        assert_eq!(streams.recorded(event), Ok(None));
        assert!(streams.is_reached(streams.end(one).unwrap()));
    }

    #[test]
    fn an_event_is_due_when_its_stream_is_busy_no_more_also_through_another_stream() {
        let (mut streams, one, two) = two();
        let [before, behind, across] = [(); 3].map(|()| streams.create_event());
        let hour = Duration::from_hours(1);
        let now = Instant::now();
        streams.record(before, one).unwrap();
        streams.occupy(one, hour).unwrap();
        streams.occupy(one, hour).unwrap();
        streams.record(behind, one).unwrap();
        streams.wait(two, behind).unwrap();
        streams.record(across, two).unwrap();
        let due = |event| streams.recorded(event).unwrap().unwrap().1;
        assert!(due(before) < now + hour);
        assert!(due(behind) >= now + 2 * hour && due(across) >= due(behind));
    }

    #[test]
    fn handles_that_name_nothing_are_refused() {
        let (mut streams, one, _) = two();
        assert_eq!(streams.resolve(one, 0), Ok(one));
        assert_eq!(streams.resolve(0, 1), Ok(2));
        assert_eq!(streams.resolve(7, 0), Err(Code::InvalidHandle));
        assert_eq!(streams.destroy_event(one), Err(Code::InvalidHandle));
        let place = streams.end(one).unwrap();
        streams.destroy(one);
        assert!(streams.is_reached(place));
        assert_eq!(streams.count(), (1, 0));
    }
}
