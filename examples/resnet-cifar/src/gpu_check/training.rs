//! A training with Burn's loader and with ours, plain and staged, each in a process of its own.

use std::env;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};

use super::card::{Card, NO_KERNELS};
use super::finding::{Finding, Verdict};
use crate::data::Source;
use crate::lifeline;
use crate::report;
use crate::run::{Answer, Run};

/// ResNet-18 on pictures of 32 × 32.
const COMMON: [&str; 10] = [
    "contender",
    "--with-parent",
    "--model",
    "resnet18",
    "--batch-size",
    "256",
    "--steps",
    "120",
    "--images",
    "16384",
];
const WORKERS: [u8; 3] = [0, 4, 8];
/// Each loader, by its arguments.
const LOADERS: [(&str, [&str; 4]); 3] = [
    ("Burn's loader", ["--loader", "burn", "--staging", "auto"]),
    ("plain", ["--loader", "prefetch", "--staging", "off"]),
    ("staged", ["--loader", "prefetch", "--staging", "on"]),
];
/// No further run begins after it.
const PATIENCE: Duration = Duration::from_secs(130);
const MOST_WAITING: f64 = 0.02;

pub(super) fn check(card: &Card, data: &Source) -> anyhow::Result<Vec<Finding>> {
    let what = |loader: &str, workers| format!("ResNet-18, {loader}, {workers} workers");
    if !card.computes {
        return Ok(vec![Finding::skipped("ResNet-18, all loaders", NO_KERNELS)]);
    }
    let since = Instant::now();
    let mut findings = Vec::new();
    // Without workers last: what matters most comes first, should the time not do.
    for workers in WORKERS.into_iter().rev() {
        for (loader, args) in LOADERS {
            if since.elapsed() > PATIENCE {
                findings.push(Finding::skipped(what(loader, workers), "no time was left"));
                continue;
            }
            let run = run(card, data, (args, workers))?;
            findings.push(finding(what(loader, workers), &run));
        }
    }
    Ok(findings)
}

fn run(card: &Card, data: &Source, (args, workers): ([&str; 4], u8)) -> anyhow::Result<Run> {
    let program = env::current_exe().context("cannot find this program's own file")?;
    let mut command = Command::new(program);
    command
        .args(COMMON)
        .args(["--device", &card.name.to_string()])
        .arg("--data")
        .arg(data.as_arg())
        .args(args)
        .args(["--workers", &workers.to_string()])
        .stderr(Stdio::inherit());
    let output = lifeline::output(&mut command).context("cannot run a training")?;
    ensure!(
        output.status.success(),
        "a training ended with {}",
        output.status
    );
    Answer::read(&output.stdout)
}

fn finding(what: String, run: &Run) -> Finding {
    let unknown = || "unknown".to_owned();
    let gpu = run.gpu.as_ref();
    let memory = gpu.and_then(|gpu| gpu.peak_memory_bytes);
    let memory = memory.and_then(|bytes| usize::try_from(bytes).ok());
    let busy = gpu.and_then(|gpu| gpu.utilisation_share);
    let found = format!(
        "{:.0} images/s, GPU {} busy, waiting {:.1} %, device memory {}, host memory {}",
        run.images_per_second,
        busy.map_or_else(unknown, |share| format!("{:.0} %", 100.0 * share)),
        100.0 * run.wait_share,
        memory.map_or_else(unknown, report::bytes),
        run.peak_rss_above_baseline_bytes
            .map_or_else(unknown, report::bytes),
    );
    // Without workers the training thread makes every batch itself.
    let judged = run.staged && run.workers > 0;
    Finding {
        what,
        found,
        goal: if judged { "waiting under 2 %" } else { "" },
        verdict: if judged {
            Verdict::of(run.wait_share < MOST_WAITING)
        } else {
            Verdict::Shown
        },
    }
}
