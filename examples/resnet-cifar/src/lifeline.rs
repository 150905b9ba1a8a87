//! A child process that ends when its parent does.
//!
//! The parent holds one end of a pipe and never writes; however it ends, the system closes that
//! end, and the child reads the end of its standard input.

use std::fs;
use std::io::{self, Read as _};
use std::path::PathBuf;
use std::process::{self, Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use anyhow::Context as _;

/// Ends this process as soon as its standard input ends, and removes the folder that the parent
/// would have removed.
pub(crate) fn hold(left_behind: Option<PathBuf>) -> anyhow::Result<()> {
    thread::Builder::new()
        .name("lifeline".to_owned())
        .spawn(|| {
            // An input that cannot be read tells nothing of the parent: it counts as gone.
            let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
            if let Some(folder) = left_behind {
                // Perhaps the parent was still able to.
                let _ = fs::remove_dir_all(folder);
            }
            process::exit(1)
        })
        .context("cannot start the thread that watches standard input")?;
    Ok(())
}

/// The child that runs now.
static CHILD: Mutex<Option<Child>> = Mutex::new(None);

/// Runs a child that [`hold`]s to its end, and collects what it prints.
pub(crate) fn output(command: &mut Command) -> io::Result<Output> {
    let mut running = child();
    let mut child: Child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    // Waiting would close the pipe first, were it still the child's.
    let pipe = child.stdin.take();
    let printing = child.stdout.take();
    *running = Some(child);
    drop(running);
    let mut stdout = Vec::new();
    if let Some(mut printing) = printing {
        printing.read_to_end(&mut stdout)?;
    }
    let ended = self::child().take();
    let status = ended.ok_or(io::ErrorKind::NotFound)?.wait()?;
    drop(pipe);
    Ok(Output {
        status,
        stdout,
        stderr: Vec::new(),
    })
}

/// Ends the child that runs now; there is no other one as long as the value lives.
pub(crate) fn cut() -> impl Sized {
    let mut running = child();
    if let Some(child) = &mut *running {
        // One that has ended by itself is gone as well.
        let _ = child.kill();
        let _ = child.wait();
    }
    running
}

fn child() -> MutexGuard<'static, Option<Child>> {
    CHILD.lock().unwrap_or_else(PoisonError::into_inner)
}
