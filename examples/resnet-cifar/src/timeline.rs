//! Memory over time: a thread that looks at it while the training runs.

use std::mem;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use crate::gauge::Gauge;
use crate::memory;

/// How often memory is looked at to begin with.
const PERIOD: Duration = Duration::from_millis(5);
/// When there are that many looks, every second one is forgotten and the period doubles: a run of
/// any length has a line of at most that many points.
const MOST_MOMENTS: usize = 256;

/// One look at memory.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Moment {
    /// Since the training loop began.
    pub(crate) seconds: f64,
    /// Resident bytes of the process above those at the start; null where the system does not say.
    pub(crate) rss_above_start_bytes: Option<usize>,
    /// Bytes of items and batches alive.
    pub(crate) batch_bytes: usize,
}

/// A thread that looks at memory until it is told to stop; dropped, it stops too.
#[derive(Debug)]
pub(crate) struct Timeline {
    /// Gone when it is to stop.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
    moments: Arc<Mutex<Vec<Moment>>>,
}

impl Timeline {
    pub(crate) fn start(gauge: &Arc<Gauge>) -> anyhow::Result<Self> {
        let (stop, stopped) = mpsc::channel();
        let moments = Arc::default();
        let watch = Watch {
            gauge: Arc::clone(gauge),
            began: Instant::now(),
            at_start: memory::resident(),
            moments: Arc::clone(&moments),
        };
        let watch = move || watch.until(&stopped);
        let thread = thread::Builder::new()
            .name("timeline".to_owned())
            .spawn(watch);
        Ok(Self {
            stop: Some(stop),
            thread: Some(thread.context("cannot start the thread that watches memory")?),
            moments,
        })
    }

    /// What was seen.
    pub(crate) fn stop(mut self) -> Vec<Moment> {
        self.end();
        mem::take(&mut self.moments.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn end(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // It panics nowhere; were it to, the line would only be shorter.
            let _ = thread.join();
        }
    }
}

impl Drop for Timeline {
    fn drop(&mut self) {
        self.end();
    }
}

/// What the thread works with.
struct Watch {
    gauge: Arc<Gauge>,
    began: Instant,
    at_start: Option<usize>,
    moments: Arc<Mutex<Vec<Moment>>>,
}

impl Watch {
    /// Looks once, then again and again until the other end is gone.
    fn until(&self, stopped: &Receiver<()>) {
        let mut period = PERIOD;
        loop {
            if keep(&self.moments, self.look()) == Kept::Thinned {
                period *= 2;
            }
            if stopped.recv_timeout(period) != Err(RecvTimeoutError::Timeout) {
                break;
            }
        }
    }

    fn look(&self) -> Moment {
        let now = memory::resident().zip(self.at_start);
        Moment {
            seconds: self.began.elapsed().as_secs_f64(),
            rss_above_start_bytes: now.map(|(now, start)| now.saturating_sub(start)),
            batch_bytes: self.gauge.bytes(),
        }
    }
}

#[derive(Debug, PartialEq)]
enum Kept {
    Added,
    Thinned,
}

fn keep(moments: &Mutex<Vec<Moment>>, moment: Moment) -> Kept {
    let mut moments = moments.lock().unwrap_or_else(PoisonError::into_inner);
    moments.push(moment);
    if moments.len() < MOST_MOMENTS {
        return Kept::Added;
    }
    let mut at = 0;
    moments.retain(|_| {
        at += 1;
        at % 2 == 1
    });
    Kept::Thinned
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(seconds: f64) -> Moment {
        Moment {
            seconds,
            rss_above_start_bytes: None,
            batch_bytes: 0,
        }
    }

    #[test]
    fn a_line_of_any_length_has_few_points_and_keeps_its_ends() {
        let moments = Mutex::default();
        for second in 0..10_000_u32 {
            keep(&moments, moment(second.into()));
        }
        let moments = moments.into_inner().unwrap();
        assert!(moments.len() < MOST_MOMENTS, "{}", moments.len());
        assert!(moments[0].seconds.abs() < 1e-9);
        assert!(moments.is_sorted_by(|one, two| one.seconds < two.seconds));
    }

    #[test]
    fn a_timeline_sees_what_the_gauge_counts() {
        let gauge = Gauge::new(1);
        let item = gauge.start_item(77);
        let moments = Timeline::start(&gauge).unwrap().stop();
        drop(item);
        assert_eq!(moments[0].batch_bytes, 77);
    }
}
