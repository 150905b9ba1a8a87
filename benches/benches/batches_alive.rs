//! Question: how many batches exist while the reader does nothing?
//! Fixed: batch 4, items that cost nothing; the reader takes a batch and then waits until nothing has been fetched for
//! 50 ms, several times; a batch counts from the first `get` of one of its items until `next()` returns it.
//! Swept: 1, 2, 4, 8 workers; Burn's loader, ours with its default window and with four settings.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use burn_prefetch_benches::{Census, Collect, Contender, Counted, Effort, Report, Setup, Window};

const BATCH: usize = 4;
const QUIET: Duration = Duration::from_millis(50);

fn main() -> io::Result<()> {
    let effort = Effort::from_args();
    let mut report = Report::new(
        "Batches alive while the reader does nothing (least - most over the stops)",
        &["workers", "loader", "promised", "alive"],
    );
    for workers in effort.pick(vec![2], vec![1, 2, 4, 8]) {
        for contender in [
            Contender::Burn,
            Contender::Ours(Window::Learned),
            Contender::Ours(Window::Factor(2)),
            Contender::Ours(Window::Factor(1)),
            Contender::Ours(Window::Total(2)),
            Contender::Ours(Window::Total(0)),
        ] {
            let alive = alive_at_stops(contender, workers, effort.pick(1, 5));
            let (least, most) = (alive.iter().min(), alive.iter().max());
            let counted = match (least, most) {
                (Some(least), Some(most)) if least != most => format!("{least} - {most}"),
                (_, most) => most.map_or_else(String::new, ToString::to_string),
            };
            report.row(&[&workers, &contender, &promise(contender, workers), &counted]);
        }
    }
    report.print(effort)
}

/// What is promised, in words.
fn promise(contender: Contender, workers: usize) -> String {
    match contender {
        Contender::Burn => "nothing".to_owned(),
        Contender::Ours(Window::Learned) => format!("at most {}", 2 * workers),
        Contender::Ours(Window::Factor(factor)) => (factor * workers).to_string(),
        Contender::Ours(Window::Total(total)) => total.to_string(),
    }
}

/// Batches started and not returned, at each stop of the reader.
fn alive_at_stops(contender: Contender, workers: usize, stops: usize) -> Vec<usize> {
    let census = Arc::new(Census::default());
    let setup = Setup {
        batch_size: BATCH,
        workers,
        shuffle: None,
    };
    let dataset = Counted {
        len: 400 * BATCH,
        batch_size: BATCH,
        census: Arc::clone(&census),
    };
    let loader = contender.build(setup, Collect::default(), dataset);
    let mut batches = loader.iter();
    (1..=stops)
        .map(|returned| {
            drop(batches.next());
            census.started_when_quiet(QUIET) - returned
        })
        .collect()
}
