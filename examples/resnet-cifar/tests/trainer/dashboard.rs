//! On a terminal: whatever ends the training, the terminal is given back and the reason is said.
#![cfg(unix)]

use std::io::{Read as _, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

/// Far more than anything here takes.
const PATIENCE: Duration = Duration::from_mins(1);
/// The other screen is entered and left, the mouse reported and not, the cursor shown.
const ENTER: &str = "\u{1b}[?1049h";
const LEAVE: &str = "\u{1b}[?1049l";
const NO_MOUSE: &str = "\u{1b}[?1000l";
const CURSOR: &str = "\u{1b}[?25h";

/// A training on a terminal of its own, which `script` makes.
struct Terminal {
    script: Child,
    keys: ChildStdin,
    printed: Receiver<Vec<u8>>,
    seen: String,
}

impl Terminal {
    fn of(term: &str, args: &str) -> Self {
        let trainer = env!("CARGO_BIN_EXE_resnet-cifar");
        let command = format!("stty rows 40 cols 120; exec '{trainer}' train {args}");
        let mut script = Command::new("script")
            .args([
                "--quiet",
                "--return",
                "--flush",
                "--command",
                &command,
                "/dev/null",
            ])
            .env("TERM", term)
            .env("SHELL", "/bin/sh")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let keys = script.stdin.take().unwrap();
        let mut stdout = script.stdout.take().unwrap();
        let (sender, printed) = mpsc::channel();
        let forward = move || {
            let mut some = [0; 4096];
            while let Ok(count @ 1..) = stdout.read(&mut some) {
                // Nobody listens any more after a failed test.
                let _ = sender.send(some[..count].to_vec());
            }
        };
        thread::Builder::new().spawn(forward).unwrap();
        Self {
            script,
            keys,
            printed,
            seen: String::new(),
        }
    }

    /// Reads until this was printed.
    fn wait_for(&mut self, words: &str) {
        while !self.seen.contains(words) {
            let some = self.printed.recv_timeout(PATIENCE);
            let some = some.unwrap_or_else(|_| panic!("no {words:?} in {:?}", self.seen));
            self.seen.push_str(&String::from_utf8_lossy(&some));
        }
    }

    fn press(&mut self, key: &str) {
        self.keys.write_all(key.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    /// The exit code, and all that was printed.
    fn end(mut self) -> (Option<i32>, String) {
        while let Ok(some) = self.printed.recv_timeout(PATIENCE) {
            self.seen.push_str(&String::from_utf8_lossy(&some));
        }
        (self.script.wait().unwrap().code(), self.seen)
    }
}

/// A training that goes on for hours, with its dashboard.
fn long() -> Terminal {
    let args = "--images 64 --batch-size 16 --epochs 10000";
    let mut terminal = Terminal::of("xterm", args);
    terminal.wait_for(ENTER);
    terminal.wait_for("Loss");
    terminal
}

/// The terminal is as it was, and what follows is all that is said.
fn check_given_back(seen: &str, said: &str) {
    let (before, after) = seen.rsplit_once(LEAVE).unwrap();
    assert!(before.contains(NO_MOUSE), "{seen:?}");
    let (_, after) = after.rsplit_once(CURSOR).unwrap();
    // Lines of the epochs that were complete come first.
    assert!(after.ends_with(&format!("{said}\r\n")), "{after:?}");
    assert!(!seen.contains("panicked"), "{seen:?}");
}

#[test]
fn ctrl_c_ends_the_training_in_the_dashboard_too() {
    let mut terminal = long();
    terminal.press("\u{3}");
    let (code, seen) = terminal.end();
    assert_eq!(code, Some(130), "{seen:?}");
    check_given_back(&seen, "interrupted; nothing is kept without --out");
}

#[test]
fn stopping_in_the_dashboard_is_an_interruption_that_is_said() {
    let mut terminal = long();
    terminal.press("q");
    terminal.wait_for("[s]");
    terminal.press("s");
    let (code, seen) = terminal.end();
    assert_eq!(code, Some(130), "{seen:?}");
    check_given_back(&seen, "interrupted; nothing is kept without --out");
}

#[test]
fn killing_in_the_dashboard_is_no_panic() {
    let mut terminal = long();
    terminal.press("q");
    terminal.wait_for("[k]");
    terminal.press("k");
    let (code, seen) = terminal.end();
    assert_eq!(code, Some(130), "{seen:?}");
    check_given_back(&seen, "interrupted");
}

#[test]
fn what_fails_under_the_dashboard_fails_the_training() {
    let args = "--images 64 --batch-size 16 --lr 1e30";
    let (code, seen) = Terminal::of("xterm", args).end();
    assert_eq!(code, Some(1), "{seen:?}");
    let said =
        "error: the loss is no longer a number: the training has diverged, choose a lower --lr";
    check_given_back(&seen, said);
}

#[test]
fn a_dumb_terminal_gets_lines() {
    let args = "--images 64 --batch-size 16 --epochs 1";
    let (code, seen) = Terminal::of("dumb", args).end();
    assert_eq!(code, Some(0), "{seen:?}");
    assert!(!seen.contains(ENTER), "{seen:?}");
    assert!(seen.contains("epoch 1: loss "), "{seen:?}");
}
