//! What is killed or interrupted leaves no process and no file behind, and says why it ended.
#![cfg(unix)]

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::keep::small;
use crate::support::{PICTURE, refused, text};

/// Far more than anything here takes.
const PATIENCE: Duration = Duration::from_mins(1);

/// What `work` gives; a work that never ends is a failed test, not a hanging one.
fn in_time<T: Send + 'static>(what: &str, work: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, receiver) = mpsc::channel();
    thread::Builder::new()
        .spawn(move || sender.send(work()))
        .unwrap();
    receiver.recv_timeout(PATIENCE).expect(what)
}

fn pipe(place: PathBuf) -> PathBuf {
    let made = Command::new("mkfifo").arg(&place).status().unwrap();
    assert!(made.success());
    place
}

/// Opening a pipe returns as soon as somebody reads it.
fn open(pipe: &Path) -> File {
    let pipe = pipe.to_owned();
    in_time("nobody reads the data", move || {
        OpenOptions::new().write(true).open(pipe).unwrap()
    })
}

#[test]
fn a_killed_comparison_takes_its_child_with_it() {
    let data = tempfile::tempdir().unwrap();
    let out = tempfile::tempdir().unwrap();
    let batches = [1, 2].map(|n| pipe(data.path().join(format!("data_batch_{n}.bin"))));
    let mut parent = Command::new(env!("CARGO_BIN_EXE_resnet-cifar"))
        .args(["compare", "--data"])
        .arg(data.path())
        .arg("--json")
        .arg(out.path().join("rows.json"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The parent reads both files to their ends, so the next reader of the first is its child; that
    // waits for more than the nothing it is given.
    for batch in &batches {
        open(batch).write_all(&[0; 1 + PICTURE]).unwrap();
    }
    let kept_open = open(&batches[0]);
    assert_eq!(fs::read_dir(out.path()).unwrap().count(), 0);
    let mut stderr = parent.stderr.take().unwrap();
    parent.kill().unwrap();
    parent.wait().unwrap();
    // The child has the same stderr, which ends with the last who has it.
    let said = in_time("the child lives on", move || {
        let mut text = String::new();
        stderr.read_to_string(&mut text).map(|_| text).unwrap()
    });
    // Both say of each file that it is no plain one.
    assert!(
        said.lines().all(|line| line.starts_with("note: ")),
        "{said}"
    );
    drop(kept_open);
    assert_eq!(fs::read_dir(out.path()).unwrap().count(), 0);
}

fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill")
        .args([name, &child.id().to_string()])
        .status()
        .unwrap();
    assert!(sent.success());
}

/// How the child ends, and what it said.
fn ended(mut child: Child) -> (Option<i32>, String) {
    let mut stderr = child.stderr.take().unwrap();
    in_time("it does not end", move || {
        let mut said = String::new();
        stderr.read_to_string(&mut said).unwrap();
        (child.wait().unwrap().code(), said)
    })
}

/// A training of 64 pictures that goes on for hours, after its first epoch.
fn after_an_epoch(args: &[&str]) -> Child {
    let mut child = Command::new(env!("CARGO_BIN_EXE_resnet-cifar"))
        .args(["train", "--images", "64", "--batch-size", "16"])
        .args(["--epochs", "10000"])
        .args(args)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let first = in_time("no epoch ends", move || {
        let first = lines.nth(1).unwrap().unwrap();
        // What follows is read, so that printing never fails.
        thread::Builder::new().spawn(|| lines.last()).unwrap();
        first
    });
    assert!(first.starts_with("epoch 1: "), "{first}");
    child
}

#[test]
fn an_interrupted_training_ends_with_130_and_says_what_can_be_done() {
    for name in ["-INT", "-TERM", "-HUP"] {
        let child = after_an_epoch(&[]);
        signal(&child, name);
        let said = "interrupted; nothing is kept without --out\n".to_owned();
        assert_eq!(ended(child), (Some(130), said), "{name}");
    }
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("run");
    let child = after_an_epoch(&["--out", text(&out)]);
    let first = out.join("checkpoint/manifest-1.json");
    in_time("there is no checkpoint", move || {
        while !first.exists() {
            thread::yield_now();
        }
    });
    signal(&child, "-TERM");
    let said = "interrupted; go on with --resume\n".to_owned();
    assert_eq!(ended(child), (Some(130), said));
}

#[test]
fn a_folder_is_one_trainings_as_long_as_that_lives() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("run");
    let mut child = after_an_epoch(&["--out", text(&out)]);
    let first = out.join("checkpoint/manifest-1.json");
    in_time("there is no checkpoint", move || {
        while !first.exists() {
            thread::yield_now();
        }
    });
    for more in [&["--seed", "2"][..], &["--resume"]] {
        let said = refused(&small(&out, more));
        assert!(said.contains("run is in use by another training"), "{said}");
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let said = refused(&small(&out, &["--epochs", "1", "--resume"]));
    assert!(said.contains("asks for no more"), "{said}");
}

#[test]
fn a_training_under_nohup_outlives_its_terminal() {
    let mut child = Command::new("nohup")
        .arg(env!("CARGO_BIN_EXE_resnet-cifar"))
        .args([
            "train",
            "--images",
            "64",
            "--batch-size",
            "16",
            "--epochs",
            "3",
        ])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let (first, lines) = in_time("no epoch ends", move || (lines.nth(1), lines));
    assert!(first.unwrap().unwrap().starts_with("epoch 1: "));
    signal(&child, "-HUP");
    let last = in_time("it does not end", move || lines.last().unwrap().unwrap());
    assert!(last.starts_with("test accuracy after epoch 3:"), "{last}");
    assert_eq!(ended(child).0, Some(0));
}

#[test]
fn an_interrupted_comparison_removes_the_pictures_that_it_drew_and_says_no_more() {
    for name in ["-INT", "-TERM", "-HUP"] {
        check_removal(name);
    }
}

/// The signal comes while a child trains on the pictures.
fn check_removal(name: &str) {
    let temporary = tempfile::tempdir().unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_resnet-cifar"))
        .args(["--workload", "png", "--images", "64", "--batch-size", "8"])
        .args(["--steps", "1000000", "--step-ms", "1"])
        .env("TMPDIR", temporary.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let parent = child.id().to_string();
    in_time("no child runs", move || {
        let children = || {
            Command::new("pgrep")
                .args(["-P", &parent])
                .output()
                .unwrap()
        };
        while children().stdout.is_empty() {
            thread::yield_now();
        }
    });
    assert_eq!(fs::read_dir(temporary.path()).unwrap().count(), 1);
    signal(&child, name);
    // The child has the same stderr, which ends with the last who has it.
    let mut stderr = child.stderr.take().unwrap();
    let said = in_time("the child lives on", move || {
        let mut said = String::new();
        stderr.read_to_string(&mut said).map(|_| said).unwrap()
    });
    assert_eq!(said, "interrupted\n", "{name}");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(fs::read_dir(temporary.path()).unwrap().count(), 0, "{name}");
}

/// Interrupts a comparison as soon as the first of its pictures' folders is there.
fn interrupt_while_it_draws(json: &Path) {
    let temporary = tempfile::tempdir().unwrap();
    let child = Command::new(env!("CARGO_BIN_EXE_resnet-cifar"))
        .args(["--workload", "png", "--images", "64", "--batch-size", "8"])
        .args(["--runs", "1000", "--step-ms", "60000", "--json"])
        .arg(json)
        .env("TMPDIR", temporary.path())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let drawn = temporary.path().to_owned();
    in_time("nothing is drawn", move || {
        while fs::read_dir(&drawn).unwrap().count() == 0 {
            thread::yield_now();
        }
    });
    signal(&child, "-INT");
    let (code, _) = ended(child);
    assert_eq!(code, Some(130));
    let left = temporary.path().to_owned();
    in_time("the pictures stay", move || {
        while fs::read_dir(&left).unwrap().count() > 0 {
            thread::yield_now();
        }
    });
}

#[test]
fn a_comparison_that_is_interrupted_while_it_draws_removes_what_it_drew() {
    let out = tempfile::tempdir().unwrap();
    let json = pipe(out.path().join("never"));
    // What is drawn at that moment differs from run to run.
    for _ in 0..20 {
        interrupt_while_it_draws(&json);
    }
}

#[test]
fn a_reader_that_leaves_ends_no_training() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("run");
    let mut child = Command::new(env!("CARGO_BIN_EXE_resnet-cifar"))
        .args([
            "train",
            "--images",
            "64",
            "--batch-size",
            "16",
            "--epochs",
            "2",
            "--out",
        ])
        .arg(&out)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    assert_eq!(ended(child), (Some(0), String::new()));
    assert!(out.join("checkpoint/manifest-2.json").exists());
}
