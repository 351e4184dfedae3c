//! How a process ended, and what it complained of.

use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::process::{ChildStderr, ExitStatus};
use std::sync::mpsc::{Receiver, Sender, channel};

/// A process that ended.
#[derive(Debug, Clone, PartialEq, Eq)]
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

impl Ending {
    /// From how a process ended by itself, and what it wrote to standard error.
    pub fn of(status: ExitStatus, complaint: &str) -> Ending {
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
}

impl From<Ending> for String {
    fn from(ending: Ending) -> String {
        format!("the child ended by itself: {ending:?}")
    }
}

/// Reads what a child writes on standard error; its end comes when the child is gone.
pub fn collect(stderr: ChildStderr) -> Receiver<String> {
    let (sender, receiver): (Sender<String>, _) = channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let mut reader = stderr;
        let mut chunk = [0; 4096];
        while let Ok(n @ 1..) = reader.read(&mut chunk) {
            // The end tells why; an engine that prints without end must not fill memory.
            bytes.extend_from_slice(&chunk[..n]);
            let excess = bytes.len().saturating_sub(64 << 10);
            bytes.drain(..excess);
        }
        let _ = sender.send(String::from_utf8_lossy(&bytes).into_owned());
    });
    receiver
}

/// One line from what a child wrote before it failed, and how it ended.
pub fn describe(stderr: &str, status: &str) -> String {
    let lines: Vec<&str> = stderr.lines().map(str::trim).filter(|l| !l.is_empty()).collect();
    let panic = lines.iter().position(|l| l.contains("panicked at"));
    let line = match panic {
        Some(at) => lines.get(at + 1).or(lines.get(at)).map(|l| format!("panicked: {l}")),
        None => lines.iter().rfind(|l| !l.starts_with("note:")).map(|l| l.to_string()),
    };
    line.map_or(status.to_string(), |line| format!("{line} ({status})"))
}
