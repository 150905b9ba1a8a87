//! Question: how long does the first batch of an epoch take?
//! Fixed: 4 workers, batch 64, 5 ms an item, an epoch of 4 batches read to its end, threads running since the epoch before.
//! Swept: Burn's loader, ours with its default window and with `prefetch_factor(2)`.

use std::io;
use std::time::Duration;

use burn_prefetch_benches::{
    Collect, Contender, Effort, Items, Report, Run, Setup, Which, Window, epoch, interleaved, timed,
};

fn main() -> io::Result<()> {
    let effort = Effort::from_args();
    let setup = Setup {
        batch_size: effort.pick(8, 64),
        workers: 4,
        shuffle: None,
    };
    let items = Items {
        len: 4 * setup.batch_size,
        which: Which::All,
        wait: effort.pick(Duration::from_millis(1), Duration::from_millis(5)),
    };
    let contenders = [
        Contender::Burn,
        Contender::Ours(Window::Learned),
        Contender::Ours(Window::Factor(2)),
    ];
    let first = contenders.map(|contender| first_batch(contender, setup, items));
    let series = interleaved(effort.pick(1, 7), first.into());
    let whole =
        contenders.map(|contender| epoch(contender.build(setup, Collect::default(), items)));
    let epochs = interleaved(effort.pick(1, 7), whole.into());

    let mut report = Report::new(
        format!(
            "First batch of an epoch: 4 workers, batch {}, {:?} an item",
            setup.batch_size, items.wait
        ),
        &[
            "loader",
            "first batch, ms",
            "share of Burn's",
            "whole epoch, ms",
            "epoch, times as fast as Burn",
        ],
    );
    for ((contender, first), whole) in contenders.iter().zip(&series).zip(&epochs) {
        let share = series[0].speed_against(first);
        report.row(&[
            contender,
            &format!("{:.1}", first.wall() * 1e3),
            &share,
            &format!("{:.1}", whole.wall() * 1e3),
            &whole.speed_against(&epochs[0]),
        ]);
    }
    report.print(effort)
}

/// Times from `iter()` to the first batch, then reads the rest so that no worker is still busy with it next time.
fn first_batch(contender: Contender, setup: Setup, items: Items) -> Run<'static> {
    let loader = contender.build(setup, Collect::default(), items);
    Box::new(move || {
        let mut rest = None;
        let sample = timed(|| {
            let mut batches = loader.iter();
            drop(batches.next());
            rest = Some(batches);
        });
        rest.into_iter().flatten().for_each(drop);
        sample
    })
}
