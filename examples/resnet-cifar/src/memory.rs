//! The most memory that this process held beyond what it needs anyway, and memory over time.

use std::fs;
use std::mem;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use crate::gauge::Gauge;

/// What is not counted: the most that was held by the work before the mark.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Baseline(usize);

impl Baseline {
    /// Runs `work` and takes the most memory it held for the baseline; the peak starts anew after it.
    ///
    /// `None` where the system keeps no such peak (anything but Linux) or does not let it start
    /// anew.
    ///
    /// Source: proc(5), `/proc/pid/clear_refs`: writing 5 resets the peak resident set size to the
    /// current one.
    pub(crate) fn of<T>(work: impl FnOnce() -> T) -> (T, Option<Self>) {
        let restarted = restart_peak();
        let done = work();
        let baseline = restarted.and_then(|()| status("VmHWM:")).map(Self);
        (done, baseline.filter(|_| restart_peak().is_some()))
    }

    /// Bytes that the peak since then is above the baseline.
    pub(crate) fn peak_above(self) -> Option<usize> {
        Some(status("VmHWM:")?.saturating_sub(self.0))
    }
}

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
    pub(crate) rss_above_start: Option<usize>,
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
        let (gauge, moments) = (Arc::clone(gauge), Arc::default());
        let kept: Arc<Mutex<Vec<Moment>>> = Arc::clone(&moments);
        let (began, at_start) = (Instant::now(), status("VmRSS:"));
        let watch = move || {
            let mut period = PERIOD;
            loop {
                let now = status("VmRSS:").zip(at_start);
                let moment = Moment {
                    seconds: began.elapsed().as_secs_f64(),
                    rss_above_start: now.map(|(now, start)| now.saturating_sub(start)),
                    batch_bytes: gauge.bytes(),
                };
                if keep(&kept, moment) == Kept::Thinned {
                    period *= 2;
                }
                if stopped.recv_timeout(period) != Err(RecvTimeoutError::Timeout) {
                    break;
                }
            }
        };
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

fn restart_peak() -> Option<()> {
    fs::write("/proc/self/clear_refs", "5").ok()
}

/// A line of `/proc/self/status`, in bytes.
fn status(field: &str) -> Option<usize> {
    parse(&fs::read_to_string("/proc/self/status").ok()?, field)
}

fn parse(status: &str, field: &str) -> Option<usize> {
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    let kibibytes: usize = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_line_is_read_in_bytes() {
        let text = "Name:\tx\nVmHWM:\t    1234 kB\nVmRSS:\t  99 kB\n";
        assert_eq!(parse(text, "VmHWM:"), Some(1234 * 1024));
        assert_eq!(parse(text, "VmRSS:"), Some(99 * 1024));
        assert_eq!(parse(text, "VmSwap:"), None);
    }

    fn moment(seconds: f64) -> Moment {
        Moment {
            seconds,
            rss_above_start: None,
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

    #[cfg(target_os = "linux")]
    #[test]
    fn memory_touched_and_given_back_stays_in_the_peak() {
        const SIZE: usize = 128 << 20;
        let (kept, Some(baseline)) = Baseline::of(|| vec![1_u8; SIZE]) else {
            return; // a container without clear_refs: `compare` prints no figure there
        };
        drop(std::hint::black_box(vec![1_u8; SIZE]));
        drop(std::hint::black_box(kept));
        let above = baseline.peak_above().unwrap();
        assert!(above > SIZE / 4 * 3, "{above} bytes");
        assert!(
            above < SIZE / 4 * 5,
            "{above} bytes: the baseline's own count too"
        );
    }
}
