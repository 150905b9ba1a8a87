//! What each worker was doing at one moment, for whoever waited in vain.

use std::fmt;
use std::time::Duration;

/// What a worker was seen doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Doing {
    /// Nothing: it waits for work.
    Idle,
    /// It is inside `worker_init`.
    Starting,
    /// It is inside the dataset.
    Fetching {
        /// The epoch.
        epoch: usize,
        /// The batch within the epoch.
        batch: usize,
        /// The dataset index; `None` where several are fetched in one call.
        index: Option<usize>,
        /// Whether it does so for the iterator that waited, not for another on the same workers.
        here: bool,
    },
    /// It is inside the batcher.
    Assembling {
        /// The epoch.
        epoch: usize,
        /// The batch within the epoch.
        batch: usize,
        /// Whether it does so for the iterator that waited, not for another on the same workers.
        here: bool,
    },
    /// It is inside the batcher's upload.
    Uploading {
        /// The epoch.
        epoch: usize,
        /// The batch within the epoch.
        batch: usize,
        /// Whether it does so for the iterator that waited, not for another.
        here: bool,
    },
}

impl fmt::Display for Doing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (epoch, here) = match *self {
            Self::Idle => return f.write_str("idle"),
            Self::Starting => return f.write_str("in worker_init"),
            Self::Fetching {
                epoch,
                batch,
                index,
                here,
            } => {
                match index {
                    Some(index) => write!(f, "in index {index} of batch {batch}")?,
                    None => write!(f, "fetching for batch {batch}")?,
                }
                (epoch, here)
            }
            Self::Assembling { epoch, batch, here } => {
                write!(f, "assembling batch {batch}")?;
                (epoch, here)
            }
            Self::Uploading { epoch, batch, here } => {
                write!(f, "uploading batch {batch}")?;
                (epoch, here)
            }
        };
        write!(f, " of epoch {epoch}")?;
        if here {
            Ok(())
        } else {
            f.write_str(" of another iterator")
        }
    }
}

/// One worker when a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct WorkerReport {
    /// The worker, from 0.
    pub worker: usize,
    /// What it was doing.
    pub doing: Doing,
    /// For how long at least it had been in that one call, or idle.
    pub at_least: Duration,
    /// Whether it was given up: another thread has its number, and what it brings is dropped.
    pub disowned: bool,
}

impl fmt::Display for WorkerReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "worker {} ", self.worker)?;
        self.write_state(f)
    }
}

impl WorkerReport {
    fn write_state(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.doing)?;
        if !self.at_least.is_zero() {
            write!(f, " for {:.1?} or longer", self.at_least)?;
        }
        f.write_str(if self.disowned { ", given up" } else { "" })
    }
}

/// The uploader's report in words: it has no number.
pub(crate) struct OfUploader(pub(crate) WorkerReport);

impl fmt::Display for OfUploader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the uploader ")?;
        self.0.write_state(f)
    }
}

/// All workers when a wait ended.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct CrewReport {
    /// Each worker, by number.
    pub workers: Vec<WorkerReport>,
    /// The thread that uploads, where there is one.
    pub uploader: Option<WorkerReport>,
    /// Threads that were given up earlier and have not come back, beside these.
    pub disowned_before: usize,
}

impl fmt::Display for CrewReport {
    /// One line: each worker that is busy, then the numbers of those that are not.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_idle = |report: &&WorkerReport| report.doing == Doing::Idle;
        let busy = self.workers.iter().filter(|report| !is_idle(report));
        let mut words: Vec<_> = busy.map(WorkerReport::to_string).collect();
        let idle = self.workers.iter().filter(is_idle);
        let idle: Vec<_> = idle.map(|report| report.worker.to_string()).collect();
        if !idle.is_empty() {
            words.push(format!("idle: {}", idle.join(", ")));
        }
        if let Some(uploader) = self.uploader.filter(|report| !is_idle(&report)) {
            words.push(OfUploader(uploader).to_string());
        }
        if words.is_empty() {
            words.push("no worker is left".to_owned());
        }
        match self.disowned_before {
            0 => {}
            1 => words.push("1 thread given up before has not come back".to_owned()),
            more => words.push(format!("{more} threads given up before have not come back")),
        }
        f.write_str(&words.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE: WorkerReport = WorkerReport {
        worker: 0,
        doing: Doing::Idle,
        at_least: Duration::from_secs(3),
        disowned: false,
    };

    #[test]
    fn the_list_reads_as_a_line() {
        let stuck = WorkerReport {
            worker: 1,
            doing: Doing::Fetching {
                epoch: 0,
                batch: 3,
                index: Some(7),
                here: true,
            },
            at_least: Duration::from_millis(2_100),
            disowned: true,
        };
        let elsewhere = WorkerReport {
            worker: 3,
            doing: Doing::Assembling {
                epoch: 2,
                batch: 9,
                here: false,
            },
            at_least: Duration::ZERO,
            disowned: false,
        };
        let doing = Doing::Uploading {
            epoch: 0,
            batch: 2,
            here: true,
        };
        let uploader = WorkerReport { doing, ..IDLE };
        let crew = CrewReport {
            workers: vec![IDLE, stuck, WorkerReport { worker: 2, ..IDLE }, elsewhere],
            uploader: Some(uploader),
            disowned_before: 1,
        };
        assert_eq!(
            crew.to_string(),
            "worker 1 in index 7 of batch 3 of epoch 0 for 2.1s or longer, given up; \
             worker 3 assembling batch 9 of epoch 2 of another iterator; idle: 0, 2; \
             the uploader uploading batch 2 of epoch 0 for 3.0s or longer; \
             1 thread given up before has not come back"
        );
        let nobody = CrewReport {
            workers: Vec::new(),
            uploader: None,
            disowned_before: 0,
        };
        assert_eq!(nobody.to_string(), "no worker is left");
    }
}
