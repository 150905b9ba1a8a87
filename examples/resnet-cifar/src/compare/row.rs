//! A row of the table: the runs of one contender put together.

use anyhow::ensure;
use serde::Serialize;

use crate::cli::LoaderKind;
use crate::gpu::GpuFigures;
use crate::meter::{self, Shares, Waits};
use crate::run::Run;

/// The runs of one contender: medians of rates, shares and times, the most of what is a most.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Row {
    #[serde(flatten)]
    pub(crate) run: Run,
    /// Of each run, in their order.
    pub(crate) images_per_second_of_runs: Vec<f64>,
    /// Over the steps of all runs, seconds.
    pub(crate) wait_p50_seconds: f64,
    pub(crate) wait_p95_seconds: f64,
    pub(crate) wait_p99_seconds: f64,
    /// No other row is at least as fast with less memory, or faster with as little.
    pub(crate) on_frontier: bool,
}

impl Row {
    /// # Errors
    ///
    /// Where our loader gave other batches in one run than in another: that is a broken promise.
    pub(super) fn of(name: &str, runs: &[Run]) -> anyhow::Result<Self> {
        let Some(first) = runs.first() else {
            anyhow::bail!("{name} was not run");
        };
        let same = runs.iter().all(|run| run.checksum == first.checksum);
        ensure!(
            same || first.loader == LoaderKind::Burn,
            "{name} gave other batches in one run than in another; please report this"
        );
        let median = |of: fn(&Run) -> f64| meter::median(runs.iter().map(of)).unwrap_or(0.0);
        let shares = middle_shares(runs);
        let most = |of: fn(&Run) -> usize| runs.iter().map(of).max().unwrap_or(0);
        let none = Waits::default();
        let waits = runs.iter().fold(none, |all, run| all.with(&run.waits));
        let quantile = |share| waits.quantile(share).as_secs_f64();
        Ok(Self {
            images_per_second_of_runs: runs.iter().map(|run| run.images_per_second).collect(),
            wait_p50_seconds: quantile(0.5),
            wait_p95_seconds: quantile(0.95),
            wait_p99_seconds: quantile(0.99),
            on_frontier: false,
            run: Run {
                name: name.to_owned(),
                images_per_second: median(|run| run.images_per_second),
                wait_share: shares.waited,
                step_share: shares.stepped,
                drop_share: shares.dropped,
                cpu_seconds_per_1000_batches: median(|run| run.cpu_seconds_per_1000_batches),
                peak_batches_alive: most(|run| run.peak_batches_alive),
                peak_batch_bytes: most(|run| run.peak_batch_bytes),
                reserved_bytes: runs.iter().filter_map(|run| run.reserved_bytes).max(),
                peak_rss_above_baseline_bytes: runs
                    .iter()
                    .filter_map(|run| run.peak_rss_above_baseline_bytes)
                    .max(),
                waits,
                gpu: GpuFigures::of(runs.iter().filter_map(|run| run.gpu)),
                ..first.clone()
            },
        })
    }

    /// The slowest and the fastest run.
    pub(crate) fn range(&self) -> (f64, f64) {
        let rates = self.images_per_second_of_runs.iter().copied();
        (
            rates.clone().fold(f64::INFINITY, f64::min),
            rates.fold(0.0, f64::max),
        )
    }

    /// How far the runs lie apart, as a share of their median.
    pub(crate) fn spread(&self) -> f64 {
        let (least, most) = self.range();
        (most - least) / self.run.images_per_second.max(1e-9)
    }
}

/// The shares of the run that waited its median share, which are all of its time; of two such
/// runs their means.
fn middle_shares(runs: &[Run]) -> Shares {
    let mut runs: Vec<&Run> = runs.iter().collect();
    runs.sort_by(|one, other| one.wait_share.total_cmp(&other.wait_share));
    let beside = runs.len().saturating_sub(1) / 2;
    let middle = &runs[beside..=runs.len() / 2];
    let mean = |of: fn(&Run) -> f64| meter::median(middle.iter().map(|run| of(run))).unwrap_or(0.0);
    Shares {
        waited: mean(|run| run.wait_share),
        stepped: mean(|run| run.step_share),
        dropped: mean(|run| run.drop_share),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::Value;

    use crate::cli::{Allocator, Workload};
    use crate::meter::Wait;
    use crate::timeline::Moment;

    use super::*;

    /// One run, with figures of its own.
    pub(crate) fn run(name: &str, images_per_second: f64) -> Run {
        Run {
            name: name.to_owned(),
            loader: LoaderKind::Prefetch,
            staged: false,
            device: "flex".to_owned(),
            workers: 3,
            batch_size: 64,
            bound: Some(2),
            memory_budget_bytes: None,
            reserved_bytes: None,
            steps: 40,
            warm_up_steps: 5,
            data: "drawn shapes, 100 training records".to_owned(),
            workload: Workload::Memory,
            allocator: Allocator::System,
            model: "ResNet-8".to_owned(),
            step_ms: None,
            images_per_second,
            wait_share: 0.256,
            step_share: 0.7,
            drop_share: 0.044,
            cpu_seconds_per_1000_batches: 12.5,
            waits: Waits(vec![wait(1_000, 30), wait(2_000_000, 5)]),
            peak_batches_alive: 2,
            peak_batch_bytes: 3 << 20,
            peak_rss_above_baseline_bytes: None,
            timeline: [0.0, 0.5].map(moment).to_vec(),
            final_loss: Some(1.25),
            losses: Vec::new(),
            checksum: "0f".to_owned(),
            gpu: None,
        }
    }

    fn wait(nanoseconds: u64, count: u64) -> Wait {
        Wait { nanoseconds, count }
    }

    fn moment(seconds: f64) -> Moment {
        Moment {
            seconds,
            rss_above_start_bytes: Some(1 << 20),
            batch_bytes: 1 << 19,
        }
    }

    /// A row of one such run.
    pub(crate) fn row(name: &str, images_per_second: f64, bytes: usize) -> Row {
        let run = Run {
            peak_batch_bytes: bytes,
            ..run(name, images_per_second)
        };
        Row::of(name, &[run]).unwrap()
    }

    #[test]
    fn rates_are_medians_peaks_are_the_most_and_waits_are_all_of_them() {
        let mut runs = [10.0, 30.0, 20.0].map(|rate| run("ours", rate));
        runs[1].peak_batches_alive = 4;
        runs[2].peak_rss_above_baseline_bytes = Some(7);
        let row = Row::of("ours", &runs).unwrap();
        assert!((row.run.images_per_second - 20.0).abs() < 1e-9);
        assert_eq!(row.range(), (10.0, 30.0));
        assert!((row.spread() - 1.0).abs() < 1e-9);
        assert_eq!(row.run.peak_batches_alive, 4);
        assert_eq!(row.run.peak_rss_above_baseline_bytes, Some(7));
        let counts = row.run.waits.0.iter().map(|wait| wait.count);
        assert_eq!(counts.sum::<u64>(), 3 * 35);
        assert!(row.wait_p50_seconds < 1e-5 && row.wait_p99_seconds > 1e-3);
    }

    #[test]
    fn the_shares_of_several_runs_leave_nothing_over() {
        let of = |[wait_share, step_share, drop_share]: [f64; 3]| Run {
            wait_share,
            step_share,
            drop_share,
            ..run("ours", 1.0)
        };
        let runs = [
            [0.1, 0.5, 0.4],
            [0.4, 0.6, 0.0],
            [0.2, 0.2, 0.6],
            [0.3, 0.7, 0.0],
        ]
        .map(of);
        for (count, wait) in [(1, 0.1), (2, 0.25), (3, 0.2), (4, 0.25)] {
            let row = Row::of("ours", &runs[..count]).unwrap().run;
            let sum = row.wait_share + row.step_share + row.drop_share;
            assert!((sum - 1.0).abs() < 1e-9, "{sum}");
            assert!(
                (row.wait_share - wait).abs() < 1e-9,
                "{count}: {}",
                row.wait_share
            );
        }
    }

    #[test]
    fn other_batches_in_another_run_are_a_broken_promise_of_ours_only() {
        let mut runs = [run("x", 1.0), run("x", 1.0)];
        runs[1].checksum = "10".to_owned();
        assert!(
            Row::of("x", &runs)
                .unwrap_err()
                .to_string()
                .contains("other batches")
        );
        runs[0].loader = LoaderKind::Burn;
        assert!(Row::of("x", &runs).is_ok());
    }

    /// Numbers that count, or have no unit.
    const COUNTS: [&str; 10] = [
        "workers",
        "batch_size",
        "bound",
        "steps",
        "warm_up_steps",
        "peak_batches_alive",
        "count",
        "final_loss",
        "losses",
        "pageable_fallbacks",
    ];
    const UNITS: [&str; 5] = ["seconds", "bytes", "images_per_second", "share", "_ms"];

    /// The names of all numbers.
    fn numbers(name: &str, value: &Value) -> Vec<String> {
        match value {
            Value::Number(_) => vec![name.to_owned()],
            Value::Array(all) => all.iter().flat_map(|one| numbers(name, one)).collect(),
            Value::Object(all) => {
                let each = |(name, value): (&String, _)| numbers(name, value);
                all.iter().flat_map(each).collect()
            }
            Value::Null | Value::Bool(_) | Value::String(_) => Vec::new(),
        }
    }

    #[test]
    fn every_number_of_the_json_has_its_unit_in_its_name_or_counts() {
        let full = Run {
            memory_budget_bytes: Some(1),
            reserved_bytes: Some(1),
            peak_rss_above_baseline_bytes: Some(1),
            step_ms: Some(1),
            losses: vec![1.0],
            gpu: Some(crate::gpu::tests::figures()),
            ..run("x", 1.0)
        };
        let row = serde_json::to_value(Row::of("x", &[full]).unwrap()).unwrap();
        let all = numbers("", &row);
        assert!(all.len() > 25, "{all:?}");
        for name in all {
            let has_unit = UNITS.iter().any(|unit| name.contains(unit));
            assert!(has_unit || COUNTS.contains(&name.as_str()), "{name}");
        }
    }
}
