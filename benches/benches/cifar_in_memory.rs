//! Question: is an in-memory data set with crop and flip in `get` loaded as fast as by Burn's loader?
//! Fixed: 32x32x3 pictures of 8-bit pixels, shuffled, batch 128, a batcher that makes f32 tensors, our default window.
//! And does the road through host memory cost anything where it is not needed? `FetchInto` and bytes instead of floats, once as they
//! come and once widened to the same f32 tensors by the reader.
//! Swept: 0, 1, 2, 4 workers; three allocators, each in its own process, both contenders under the same one.

use std::io;
use std::process::Command;
use std::{env, path::PathBuf};

use burn_prefetch_benches::{Allocator, Effort, Report, contest};

fn main() -> io::Result<()> {
    let effort = Effort::from_args();
    for allocator in [Allocator::System, Allocator::Untrimmed] {
        if env::args().any(|arg| arg == allocator.flag()) {
            return contest(allocator, effort);
        }
    }
    let mut report = Report::new(
        "CIFAR-like pictures in memory, crop and flip in `get`, batch 128",
        &[
            "allocator",
            "workers",
            "Burn, images/s",
            "ours, images/s",
            "ours / Burn",
            "CPU time, ours / Burn",
            "staged bytes / ours",
            "widened by the reader / ours",
        ],
    );
    for allocator in [Allocator::System, Allocator::Untrimmed, Allocator::Mimalloc] {
        for line in lines_of(allocator, effort)?.lines() {
            let cells: Vec<&str> = line.split('\t').collect();
            let [workers, burn, ours, speed, work, bytes, widened] = cells[..] else {
                return Err(io::Error::other(format!(
                    "not a row of the contest: {line}"
                )));
            };
            let own: [&dyn std::fmt::Display; 4] = [&allocator, &workers, &burn, &ours];
            let ratios: [&dyn std::fmt::Display; 4] = [&speed, &work, &bytes, &widened];
            report.row(&[own, ratios].concat());
        }
    }
    report.print(effort)
}

/// What the program under this allocator wrote.
fn lines_of(allocator: Allocator, effort: Effort) -> io::Result<String> {
    let program = match allocator {
        Allocator::System | Allocator::Untrimmed => env::current_exe()?,
        Allocator::Mimalloc => PathBuf::from(env!("CARGO_BIN_EXE_cifar-under-mimalloc")),
    };
    let output = Command::new(program)
        .args(effort.as_args())
        .arg(allocator.flag())
        .output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(io::Error::other(format!("{allocator}: {said}")));
    }
    String::from_utf8(output.stdout).map_err(io::Error::other)
}
