//! Running one child: what it says, how it ends, and that it ends.

use crate::device;
use crate::engine::Unsupported;
use crate::external;
use crate::plan::Step;
use crate::protocol::{Message, Spec};
use anyhow::{Context, Result, bail};
use esker_trust::process::collect;
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Set by Ctrl-C; the child is killed and everything is cleaned up.
pub static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Kills its child when dropped, on whatever way out.
struct Guard(Child);

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs a child to its end, or until it is ready and is killed; hands each message to `on`.
pub fn run(
    command: &[String],
    spec: &Spec,
    step: Step,
    timeout: Duration,
    on: &mut dyn FnMut(Message),
) -> Result<()> {
    let mut program = program(&spec.engine, command)?;
    device::apply(&mut program, spec.plan.sync_delay_ms)?;
    let child = program
        .arg(serde_json::to_string(spec)?)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("cannot start a process")?;
    let mut guard = Guard(child);
    let stdout = guard.0.stdout.take().context("stdout is piped")?;
    let stderr = guard.0.stderr.take().context("stderr is piped")?;
    let messages = listen(stdout);
    let complaint = collect(stderr);

    // Later than any clock goes is never.
    let end = Instant::now().checked_add(timeout);
    loop {
        match messages.recv_timeout(Duration::from_millis(100)) {
            Ok(Message::Ready) if step == Step::KillWhenReady => return Ok(()),
            Ok(message) => on(message),
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {}
        }
        if INTERRUPTED.load(Ordering::Relaxed) {
            bail!("interrupted");
        }
        if end.is_some_and(|end| Instant::now() >= end) {
            bail!("gave up after {} s (see --timeout)", timeout.as_secs());
        }
    }
    let status = guard.0.wait()?;
    if status.success() {
        return Ok(());
    }
    let text = complaint.recv_timeout(Duration::from_secs(1)).unwrap_or_default();
    bail!("{}", describe(&text, &status.to_string()))
}

/// What a child is started with: this executable again, or the one that has the engine.
pub fn program(engine: &str, command: &[String]) -> Result<Command> {
    if external::has(engine) {
        let mut program = Command::new(external::program()?);
        program.arg(external::CHILD);
        return Ok(program);
    }
    let executable = std::env::current_exe().context("where is this executable?")?;
    let mut program = Command::new(executable);
    program.args(command);
    Ok(program)
}

fn listen(stdout: ChildStdout) -> Receiver<Message> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(std::io::Result::ok) {
            // A line that is no message is an engine's own print.
            let Ok(message) = serde_json::from_str(&line) else { continue };
            if sender.send(message).is_err() {
                return;
            }
        }
    });
    receiver
}

/// One line from what a child wrote before it failed.
pub fn describe(stderr: &str, status: &str) -> String {
    let text = esker_trust::process::describe(stderr, status);
    match text.strip_suffix(&format!(" ({status})")) {
        // It did not fail: it says what it has no call for, or is too slow for.
        Some(line) if Unsupported::words(line).is_some() => line.to_string(),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::describe;

    #[test]
    fn a_failure_is_told_in_one_line() {
        let panic = "\nthread 'main' (1) panicked at src/x.rs:1:2:\nnot yet implemented\nnote: run";
        assert_eq!(
            describe(panic, "exit status: 101"),
            "panicked: not yet implemented (exit status: 101)"
        );
        assert_eq!(describe("", "signal: 9"), "signal: 9");
        assert_eq!(
            describe("open: no space\n", "exit status: 1"),
            "open: no space (exit status: 1)"
        );
        let unsupported = "not supported: the engine has no x";
        assert_eq!(describe(unsupported, "exit status: 1"), unsupported);
    }
}
