//! A child with a [`Job`]: what it says, and how it ends, or that it does not.

use super::job::{Job, Say, WORD};
use crate::process::{INTERRUPTED, collect, describe, program};
use anyhow::{Context, Result, bail};
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdout, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long a parent sleeps between two looks.
const TICK: Duration = Duration::from_millis(20);

/// A process that ended.
#[derive(Debug)]
pub enum Ending {
    /// By itself, all well.
    Done,
    /// By itself, with an error, in words.
    Failed(String),
    /// By a signal or a panic, in words.
    Crashed(String),
    /// It had to be killed, or took all the processor time there is for it.
    Hung,
}

/// A process at work. Killed when dropped.
pub struct Running {
    child: Child,
    acknowledged: Arc<AtomicU64>,
    messages: Receiver<Say>,
    listener: Option<JoinHandle<()>>,
    complaint: Receiver<String>,
    hung: bool,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Running {
    /// Starts a process.
    pub fn start(command: &[String], job: &Job) -> Result<Running> {
        let mut child = program(&job.engine, command)?
            .args([WORD, &serde_json::to_string(job)?])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context("cannot start a process")?;
        let stdout = child.stdout.take().context("stdout is piped")?;
        let complaint = collect(child.stderr.take().context("stderr is piped")?);
        let acknowledged = Arc::new(AtomicU64::new(0));
        let (sender, messages) = channel();
        let theirs = acknowledged.clone();
        let listener = Some(std::thread::spawn(move || listen(stdout, &theirs, &sender)));
        Ok(Running { child, acknowledged, messages, listener, complaint, hung: false })
    }

    /// The next thing it says; `None` when it said its last, or nothing for all of `patience`.
    ///
    /// Only time in which it and this process ran counts: either may be stopped by others.
    pub fn next(&mut self, patience: Duration) -> Result<Option<Say>> {
        let mut waited = Duration::ZERO;
        while waited < patience {
            match self.messages.recv_timeout(TICK) {
                Ok(message) => return Ok(Some(message)),
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if INTERRUPTED.load(Ordering::Relaxed) {
                bail!("interrupted");
            }
            if !is_stopped(self.child.id()) {
                waited += TICK;
            }
        }
        self.hung = true;
        Ok(None)
    }

    /// Everything else it says, and how it ends.
    pub fn finish(mut self, patience: Duration) -> Result<(Vec<Say>, Ending)> {
        let mut said = Vec::new();
        while let Some(message) = self.next(patience)? {
            said.push(message);
        }
        // Whoever closed its output may still be busy with ending.
        let mut waited = Duration::ZERO;
        let status = loop {
            if let Some(status) = self.child.try_wait()? {
                break status;
            }
            if self.hung || waited >= patience {
                return Ok((said, Ending::Hung));
            }
            std::thread::sleep(Duration::from_millis(1));
            if !is_stopped(self.child.id()) {
                waited += Duration::from_millis(1);
            }
        };
        let text = self.complaint.recv_timeout(Duration::from_secs(1)).unwrap_or_default();
        Ok((said, ending(status, &text)))
    }

    /// Kills it, as `kill -9` does; the last operation that it had acknowledged by then, if any. An
    /// error when it had ended by itself before.
    pub fn kill(mut self) -> Result<Option<u64>, Ending> {
        let mut by_itself = self.child.try_wait().ok().flatten();
        let _ = self.child.kill();
        if let Ok(status) = self.child.wait()
            && status.signal() != Some(9)
        {
            by_itself = Some(status);
        }
        // What it had said before is in the pipe still.
        if let Some(listener) = self.listener.take() {
            let _ = listener.join();
        }
        match by_itself {
            None => Ok(Some(self.acknowledged.load(Ordering::Relaxed)).filter(|n| *n > 0)),
            Some(status) => {
                let wait = Duration::from_secs(1);
                Err(ending(status, &self.complaint.recv_timeout(wait).unwrap_or_default()))
            }
        }
    }
}

/// Reads lines until the pipe ends.
fn listen(stdout: ChildStdout, acknowledged: &AtomicU64, sender: &Sender<Say>) {
    for line in BufReader::new(stdout).lines().map_while(std::io::Result::ok) {
        if let Some(number) = line.strip_prefix('a').and_then(|digits| digits.parse().ok()) {
            acknowledged.store(number, Ordering::Relaxed);
        } else if let Ok(message) = serde_json::from_str(&line) {
            // A line that is no message is an engine's own print.
            let _ = sender.send(message);
        }
    }
}

fn ending(status: ExitStatus, complaint: &str) -> Ending {
    const SIGXCPU: i32 = 24;
    const PANIC: i32 = 101;
    let words = || describe(complaint, &status.to_string());
    match (status.signal(), status.code()) {
        (_, Some(0)) => Ending::Done,
        (_, Some(PANIC)) => Ending::Crashed(words()),
        (Some(SIGXCPU), _) => Ending::Hung,
        (Some(_), _) => Ending::Crashed(words()),
        _ => Ending::Failed(words()),
    }
}

/// Whether somebody has stopped a process.
fn is_stopped(id: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with(['T', 't']))
}
