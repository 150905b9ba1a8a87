//! What fails in a child of a comparison is said by its parent, once; a parent that goes has said why.
#![cfg(target_os = "linux")]

use std::fs;
use std::io::Read as _;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::support::{draw_folder, refused, text};

/// Far more than anything here takes.
const PATIENCE: Duration = Duration::from_mins(1);

#[test]
fn a_picture_that_cannot_be_read_is_one_line() {
    let dir = tempfile::tempdir().unwrap();
    // So many that not each of them is looked at before anything runs.
    draw_folder(dir.path(), 200, (32, "png"));
    let broken = dir.path().join("dark/004.png");
    let whole = fs::read(&broken).unwrap();
    fs::write(&broken, &whole[..whole.len() / 2]).unwrap();
    let said = refused(&[
        "--workload",
        "png",
        "--data",
        text(dir.path()),
        "--batch-size",
        "16",
        "--step-ms",
        "0",
    ]);
    assert!(said.starts_with("error: Burn's loader: "), "{said}");
    assert!(said.contains("004.png"), "{said}");
}

/// Whether a child of this process runs its steps.
fn steps(parent: u32) -> bool {
    let children = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children"));
    let children = children.unwrap();
    children.split_whitespace().any(|child| {
        let tasks = fs::read_dir(format!("/proc/{child}/task"));
        let mut tasks = tasks.into_iter().flatten().flatten();
        tasks.any(|task| {
            let name = fs::read_to_string(task.path().join("comm"));
            name.is_ok_and(|name| name.trim() == "timeline")
        })
    })
}

/// What is said where the parent is sent this signal while its child reads drawn files.
fn stopped(mut parent: Child, signal: &'static str) -> String {
    let (sender, receiver) = mpsc::channel();
    let work = move || {
        while !steps(parent.id()) {
            thread::yield_now();
        }
        let number = parent.id().to_string();
        let kill = Command::new("kill").args([signal, &number]).status();
        assert!(kill.unwrap().success());
        // The child has the same stderr, which ends with the last who has it.
        let mut said = String::new();
        let mut stderr = parent.stderr.take().unwrap();
        stderr.read_to_string(&mut said).unwrap();
        parent.wait().unwrap();
        sender.send(said).unwrap();
    };
    thread::Builder::new().spawn(work).unwrap();
    receiver.recv_timeout(PATIENCE).expect("it does not end")
}

#[test]
fn a_child_whose_pictures_go_with_its_parent_says_nothing() {
    for (signal, wanted) in [("-INT", "interrupted\n"), ("-KILL", "")] {
        for loaders in [&[][..], &["--sweep", "workers=0", "staging=on"]] {
            let temporary = tempfile::tempdir().unwrap();
            let parent = Command::new(env!("CARGO_BIN_EXE_resnet-cifar"))
                .args(["--workload", "png", "--images", "256", "--step-ms", "0"])
                .args(["--batch-size", "16", "--steps", "1000000"])
                .args(loaders)
                .env("TMPDIR", temporary.path())
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            assert_eq!(stopped(parent, signal), wanted, "{signal}");
        }
    }
}
