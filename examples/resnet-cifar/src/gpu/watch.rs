//! A thread that looks at a card while a training runs on it.

use std::mem;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::Context as _;

use super::card;
use crate::device::Device;
use crate::meter;

/// How often a card is looked at; it sums up its own work several times a second.
const PERIOD: Duration = Duration::from_millis(50);

/// One look at a card.
#[derive(Debug, Clone, Copy)]
pub(super) struct Look {
    /// Bytes in use, by whomever.
    pub(super) memory: Option<u64>,
    /// The share of the last moments in which a kernel ran, 0 to 1.
    pub(super) busy: Option<f64>,
}

/// What a watch has seen.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Seen {
    pub(super) peak_memory_bytes: Option<u64>,
    pub(super) utilisation: Option<f64>,
}

/// All looks so far, as one.
#[derive(Debug, Default)]
struct State {
    first: Option<u64>,
    most: Option<u64>,
    busy: f64,
    looks: usize,
}

/// A thread that looks until it is told to stop; dropped, it stops too.
#[derive(Debug)]
pub(crate) struct Watch {
    /// Gone when it is to stop.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
    state: Arc<Mutex<State>>,
}

impl Watch {
    /// Begins to watch; what is in use on the card now is not counted. `None` for a device that is
    /// no card; a card that cannot be looked at is watched and nothing is seen.
    pub(crate) fn of(device: Device) -> anyhow::Result<Option<Self>> {
        match card::of(device) {
            None => Ok(None),
            Some(Ok(look)) => Self::start(look).map(Some),
            Some(Err(_)) => Ok(Some(Self {
                stop: None,
                thread: None,
                state: Arc::default(),
            })),
        }
    }

    fn start(mut look: impl FnMut() -> Look + Send + 'static) -> anyhow::Result<Self> {
        let (stop, stopped) = mpsc::channel();
        let state: Arc<Mutex<State>> = Arc::default();
        lock(&state).add(look());
        let shared = Arc::clone(&state);
        let watch = move || {
            while stopped.recv_timeout(PERIOD) == Err(RecvTimeoutError::Timeout) {
                let look = look();
                lock(&shared).add(look);
            }
        };
        let thread = thread::Builder::new().name("gpu-watch".to_owned());
        Ok(Self {
            stop: Some(stop),
            thread: Some(
                thread
                    .spawn(watch)
                    .context("cannot start the thread that watches the card")?,
            ),
            state,
        })
    }

    /// Forgets how busy the card was so far.
    pub(crate) fn warm_up_is_over(&self) {
        let mut state = lock(&self.state);
        (state.busy, state.looks) = (0.0, 0);
    }

    /// What was seen.
    pub(crate) fn stop(mut self) -> Seen {
        self.end();
        mem::take(&mut *lock(&self.state)).seen()
    }

    fn end(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // It panics nowhere; were it to, less would be seen.
            let _ = thread.join();
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.end();
    }
}

impl State {
    fn add(&mut self, look: Look) {
        self.first = self.first.or(look.memory);
        self.most = self.most.max(look.memory);
        if let Some(busy) = look.busy {
            self.busy += busy;
            self.looks += 1;
        }
    }

    fn seen(&self) -> Seen {
        let above = |(most, first): (u64, u64)| most.saturating_sub(first);
        Seen {
            peak_memory_bytes: self.most.zip(self.first).map(above),
            utilisation: (self.looks > 0).then(|| self.busy / meter::to_f64(self.looks)),
        }
    }
}

fn lock(state: &Mutex<State>) -> std::sync::MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(memory: u64, busy: f64) -> Look {
        Look {
            memory: Some(memory),
            busy: Some(busy),
        }
    }

    #[test]
    fn memory_counts_above_the_first_look_and_work_after_the_warm_up() {
        let (sender, looks) = mpsc::channel();
        sender.send(look(100, 0.0)).unwrap();
        let (seen, all_seen) = mpsc::channel();
        let watch = Watch::start(move || {
            let next = looks.try_recv().unwrap_or(look(100, 0.75));
            let _ = seen.send(());
            next
        });
        let watch = watch.unwrap();
        watch.warm_up_is_over();
        sender.send(look(170, 0.75)).unwrap();
        for _ in 0..3 {
            all_seen.recv_timeout(Duration::from_mins(1)).unwrap();
        }
        let seen = watch.stop();
        assert_eq!(seen.peak_memory_bytes, Some(70));
        assert_eq!(seen.utilisation, Some(0.75));
    }

    #[test]
    fn what_no_look_tells_stays_unknown() {
        let mut state = State::default();
        state.add(Look {
            memory: None,
            busy: None,
        });
        assert_eq!(state.seen(), Seen::default());
    }
}
