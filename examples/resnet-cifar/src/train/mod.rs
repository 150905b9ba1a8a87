//! Training for some epochs through burn-train, with the accuracy on held-out pictures.

mod checkpoint;
mod epochs;
mod files;
mod identity;
mod journal;
mod keep;
mod manifest;
mod midway;
mod place;
mod quiet;
mod retention;
mod schedule;
mod screen;
mod steps;
mod training;
mod trouble;
mod watch;

use std::env;
use std::io::{self, IsTerminal as _};
use std::sync::Arc;

use anyhow::ensure;
use burn::train::Interrupter;

use crate::cli::{Setup, TrainArgs, Workload};
use crate::data::{Owner, Pictures, Request, Split};
use crate::loader;
use crate::model::ResNet;
use crate::note::note;
use journal::Printing;
use keep::Kept;
use steps::Learning;
use training::Training;
use trouble::Trouble;

/// What the training is stopped with by a signal, or in the dashboard.
const INTERRUPTED: &str = "interrupted";

/// Trains; on a terminal with burn-train's dashboard, else with one line for each epoch.
pub(crate) fn train(args: &TrainArgs) -> anyhow::Result<()> {
    args.check()?;
    let setup = &args.setup;
    let device = setup.device.open()?;
    let (pictures, test) = load(setup)?;
    let open = |folder| Kept::open(args, folder, [&pictures, &test]);
    let kept = args.out.as_deref().map(open).transpose()?;
    device.seed(setup.seed);
    let model = Learning {
        net: ResNet::new(setup.model, pictures.classes, &device),
        saver: None,
    };
    if let Some(kept) = &kept {
        kept.try_out(&model, setup.model.title())?;
    }
    let interrupter = Interrupter::new();
    let training = Training {
        args,
        device,
        kept,
        budget: loader::budget(&args.loader),
        printing: printing(args),
        trouble: Trouble::new(interrupter.clone()),
        interrupter,
    };
    training.run(model, [&pictures, &test])
}

fn load(setup: &Setup) -> anyhow::Result<(Arc<Pictures>, Arc<Pictures>)> {
    let request = Request {
        setup,
        workload: Workload::Memory,
        owner: Owner::User,
    };
    let (pictures, test) = (request.load(Split::Train)?, request.load(Split::Test)?);
    let mut left_out = vec![&pictures.left_out, &test.left_out];
    left_out.dedup();
    for words in left_out.into_iter().flatten() {
        note(words);
    }
    request.setup.note_unused();
    let enough = pictures.len() > 0 && test.len() > 0;
    ensure!(enough, "there is nothing to train on");
    ensure!(
        pictures.classes == test.classes,
        "the training pictures have {} classes and the test pictures {}",
        pictures.classes,
        test.classes
    );
    Ok((pictures, test))
}

fn printing(args: &TrainArgs) -> Printing {
    // A terminal that calls itself dumb moves no cursor.
    let dumb = env::var_os("TERM").is_some_and(|term| term == "dumb");
    if args.plain || dumb || !io::stdout().is_terminal() {
        Printing::AtOnce
    } else {
        Printing::AfterTheDashboard
    }
}
