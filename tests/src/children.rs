//! A test once more in a process of its own: for what ends a process, or is true of all of it.

use std::env;
use std::io::Read;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::thread::Builder;
use std::time::{Duration, Instant};

use crate::LIMIT;

/// What a child is told to do; set in no other process.
const ROLE: &str = "BURN_PREFETCH_TESTS_ROLE";

/// What a child says when it has begun: a name that fits no test ends well, and has tested nothing.
const BEGUN: &str = "a child has begun";

/// What this process was started to do by [`Child::run`]; `None` in any other.
#[must_use]
pub fn role() -> Option<String> {
    let role = env::var(ROLE).ok();
    if role.is_some() {
        eprintln!("{BEGUN}");
    }
    role
}

/// This process's tests once more, but only one of them, which asks for its [`role`].
#[derive(Debug)]
pub struct Child(Command);

/// How a child ended.
#[derive(Clone, Debug)]
pub struct Ended {
    /// Its exit code; `None` when a signal ended it, as an abort does.
    pub code: Option<i32>,
    /// All that it said on its standard error.
    pub said: String,
    /// From its start to its end.
    pub took: Duration,
}

impl Ended {
    /// How many panics it told of.
    #[must_use]
    pub fn panics(&self) -> usize {
        self.said.matches("panicked at").count()
    }
}

impl Child {
    /// The test of this name, as a `role`.
    ///
    /// # Panics
    ///
    /// When this process does not know its own file.
    #[must_use]
    pub fn new(test: &str, role: &str) -> Self {
        let own = env::current_exe().expect("Linux knows the file of a process");
        let mut command = Command::new(own);
        command.args(["--exact", test, "--nocapture"]);
        command.env(ROLE, role);
        Self(command)
    }

    /// With a variable of the environment.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.0.env(name, value);
        self
    }

    /// With so many bytes of addresses and no more, which bounds the threads too: each has a stack.
    #[must_use]
    pub fn with_addresses(self, bytes: usize) -> Self {
        let script = format!("ulimit -v {} && exec \"$0\" \"$@\"", bytes / 1024);
        let mut command = Command::new("sh");
        command.args(["-c", &script]).arg(self.0.get_program());
        command.args(self.0.get_args());
        for (name, value) in self.0.get_envs() {
            if let Some(value) = value {
                command.env(name, value);
            }
        }
        Self(command)
    }

    /// Runs it to its end.
    ///
    /// # Panics
    ///
    /// When it does not start, find its test or end.
    #[must_use]
    pub fn run(mut self) -> Ended {
        let started = Instant::now();
        let command = self.0.stdin(Stdio::null()).stdout(Stdio::null());
        let mut child = command.stderr(Stdio::piped()).spawn().expect("it starts");
        let mut stderr = child.stderr.take().expect("it has been asked for");
        let (told, heard) = channel();
        let listen = move || {
            let mut said = Vec::new();
            // What it said before it was cut off is still worth showing.
            let _ = stderr.read_to_end(&mut said);
            let _ = told.send(String::from_utf8_lossy(&said).into_owned());
        };
        Builder::new().spawn(listen).expect("the system has room");
        // Its end closes the pipe, by itself or not.
        let in_time = heard.recv_timeout(LIMIT / 2);
        if in_time.is_err() {
            let _ = child.kill();
        }
        let status = child.wait().expect("it was started here");
        let said = in_time.clone().or_else(|_| heard.recv());
        let said = said.expect("the listener tells what it has heard");
        assert!(in_time.is_ok(), "a child did not end: {self:?}: {said}");
        assert!(said.contains(BEGUN), "no such test: {self:?}: {said}");
        Ended {
            code: status.code(),
            said,
            took: started.elapsed(),
        }
    }
}
