//! A training that is killed in the middle of an epoch becomes the one that is not.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::yield_now;
use std::time::{Duration, Instant};

use crate::support::{misused, printed, refused, text};

/// Far more than anything here takes.
const PATIENCE: Duration = Duration::from_mins(1);

/// Three epochs of 16 steps.
pub(crate) fn small<'a>(out: &'a Path, more: &[&'a str]) -> Vec<&'a str> {
    let few = ["train", "--plain", "--images", "128", "--batch-size", "8"];
    let kept = ["--workers", "2", "--save-every", "5", "--out", text(out)];
    [&few[..], &kept, more].concat()
}

/// What each step of an epoch lost.
fn losses(out: &Path, epoch: usize) -> Vec<String> {
    let file = out.join(format!("train/epoch-{epoch}/Loss.log"));
    let log = fs::read_to_string(&file).unwrap();
    // The last line is their mean.
    let steps = log.lines().filter(|line| !line.ends_with(",final"));
    steps.map(str::to_owned).collect()
}

/// What the tests after each of three epochs found, to the bit: as burn-train wrote it.
fn tests(out: &Path) -> Vec<String> {
    let logs = ["Loss", "Accuracy"].into_iter().flat_map(|name| {
        (1..=3).map(move |epoch| out.join(format!("valid/epoch-{epoch}/{name}.log")))
    });
    logs.map(|file| fs::read_to_string(file).unwrap()).collect()
}

/// All weights, means and variances by name. Whole files differ: parameters have random numbers.
fn weights(out: &Path) -> BTreeMap<String, Vec<u8>> {
    let reader = burn_pack::Reader::from_file(out.join("checkpoint/model-3.bpk")).unwrap();
    let names: Vec<String> = reader
        .tensor_names()
        .into_iter()
        .map(str::to_owned)
        .collect();
    let weights = names.into_iter().map(|name| {
        let bytes = reader.tensor_data(&name).unwrap();
        (name, bytes)
    });
    weights.collect()
}

/// The places in the middle of epochs that are kept.
pub(crate) fn midway(out: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(out.join("checkpoint")) else {
        return Vec::new();
    };
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with("step-")).collect()
}

/// Killed with `SIGKILL` as soon as a place in this epoch, from 1, is kept.
pub(crate) fn killed_in(out: &Path, (epoch, args): (usize, &[&str])) {
    let mut child: Child = Command::new(env!("CARGO_BIN_EXE_resnet-cifar"))
        .args(args)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    let wanted = format!("step-{epoch}-");
    while !midway(out).iter().any(|name| name.starts_with(&wanted)) {
        assert!(begun.elapsed() < PATIENCE, "nothing is kept");
        assert_eq!(child.try_wait().unwrap(), None, "it ended by itself");
        yield_now();
    }
    child.kill().unwrap();
    assert!(!child.wait().unwrap().success());
}

fn run(name: &str, dir: &tempfile::TempDir) -> PathBuf {
    dir.path().join(name)
}

#[test]
fn killed_in_the_middle_of_an_epoch_it_becomes_the_model_of_an_uninterrupted_run() {
    let dir = tempfile::tempdir().unwrap();
    let [whole, killed, again] = ["whole", "killed", "again"].map(|name| run(name, &dir));
    printed(&small(&whole, &["--epochs", "3"]));
    let expected: Vec<_> = (1..=3).map(|epoch| losses(&whole, epoch)).collect();
    assert!(expected.iter().all(|losses| losses.len() == 16));
    printed(&small(&again, &["--epochs", "3"]));
    if losses(&again, 3) != expected[2] || weights(&again) != weights(&whole) {
        writeln!(
            io::stderr(),
            "skipped: two plain runs differ on this machine"
        )
        .unwrap();
        return;
    }
    // In the first epoch, then in the second of what goes on.
    killed_in(&killed, (1, &small(&killed, &["--epochs", "3"])));
    killed_in(
        &killed,
        (2, &small(&killed, &["--epochs", "3", "--resume"])),
    );
    // What it did before it was killed for the first time is in no file any more; the rest is.
    let first = losses(&killed, 1);
    assert!(!first.is_empty() && first.len() < 16, "{first:?}");
    assert!(expected[0].ends_with(&first), "{first:?}");
    // The rest under other settings of the loader.
    let other = ["--epochs", "3", "--resume", "--prefetch", "1"];
    let said = printed(&small(&killed, &other));
    assert!(
        !said.contains("epoch 1:") && said.contains("\nepoch 2: loss "),
        "{said}"
    );
    let second = losses(&killed, 2);
    assert!(!second.is_empty() && second.len() < 16, "{second:?}");
    assert!(
        expected[1].ends_with(&second),
        "{second:?} in {:?}",
        expected[1]
    );
    assert_eq!(losses(&killed, 3), expected[2]);
    assert_eq!(tests(&killed), tests(&whole));
    let (found, expected) = (weights(&killed), weights(&whole));
    let other = expected
        .iter()
        .filter(|&(name, bytes)| found.get(name) != Some(bytes));
    let other: Vec<_> = other.map(|(name, _)| name).collect();
    assert!(
        other.is_empty() && found.len() == expected.len(),
        "{other:?}"
    );
    assert!(midway(&killed).len() <= 1, "older places are removed");
}

/// What is said when a training of 128 pictures in batches of 8 is to go on with one flag changed.
fn refused_with(out: &Path, changed: [&str; 2]) -> String {
    let few = [
        "train",
        "--plain",
        "--epochs",
        "2",
        "--resume",
        "--out",
        text(out),
    ];
    let rest = [["--images", "128"], ["--batch-size", "8"]];
    let rest = rest.into_iter().filter(|pair| pair[0] != changed[0]);
    let rest: Vec<_> = rest.flatten().collect();
    refused(&[&few[..], &rest, &changed].concat())
}

#[test]
fn what_does_not_fit_the_middle_of_an_epoch_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let out = run("run", &dir);
    killed_in(&out, (1, &small(&out, &["--epochs", "2"])));
    let kept = midway(&out);
    let said = refused(&small(&out, &["--epochs", "2"]));
    assert!(said.contains("go on with --resume"), "{said}");
    for (changed, words) in [
        (["--seed", "9"], "give --seed 42,"),
        (["--images", "120"], "give the same --data and --images,"),
        (["--batch-size", "4"], "give --batch-size 8,"),
    ] {
        let said = refused_with(&out, changed);
        let file = out.join("training.json");
        let begins = format!("error: {} tells of another training: ", file.display());
        assert!(said.starts_with(&begins) && said.contains(words), "{said}");
    }
    let burn = [
        "train",
        "--loader",
        "burn",
        "--save-every",
        "3",
        "--out",
        text(&out),
    ];
    let said = misused(&burn);
    assert!(
        said.contains("--loader burn cannot say where it stands"),
        "{said}"
    );
    assert_eq!(midway(&out), kept);
}
