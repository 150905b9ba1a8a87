//! Question: what does counting cost for one batch, statistics and budget, on one thread?
//! Fixed: a batch that is there when it is asked for, of a known size.
//! Swept: without a budget, and with one that has room.

use std::hint::black_box;
use std::io::{self, Write};
use std::time::Instant;

use burn_prefetch_engine::{Account, MemoryBudget};

/// What the statistics may cost, in nanoseconds a batch; printed beside what they do.
const GOAL: f64 = 150.0;

fn main() -> io::Result<()> {
    let quick = std::env::args().any(|argument| argument == "--quick");
    let (rounds, batches) = if quick { (2, 1_000) } else { (200, 10_000) };
    let free = Account::default();
    let bounded = Account {
        budget: Some(MemoryBudget::new(1 << 30)),
        ..Account::default()
    };
    let mut out = io::stdout().lock();
    for (name, account) in [("no budget", free), ("a budget", bounded)] {
        let mut all: Vec<f64> = (0..rounds)
            .map(|_| {
                let begun = Instant::now();
                black_box(&account).rehearse(batches);
                begun.elapsed().as_secs_f64() * 1e9 / f64::from(batches)
            })
            .collect();
        all.sort_by(f64::total_cmp);
        let (best, median) = (all[0], all[all.len() / 2]);
        writeln!(
            out,
            "{name}: {best:.0} ns a batch at best, {median:.0} in the median (goal: {GOAL:.0})"
        )?;
    }
    Ok(())
}
