//! A process of this program's that is listened to, and killed. It says what it does on its standard
//! output: a message a line, as JSON.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::process::{Ending, collect};
use crate::{Fact, Result, Rng};

/// How far a writer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Message {
    /// The store is open.
    Opened,
    /// A thread begins its operation of this number.
    Intent(u8, u32),
    /// It was done.
    Done(u8, u32),
}

/// What a process says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Say {
    /// How far it is.
    Message(Message),
    /// What it was answered.
    Fact(Fact),
    /// Something else that its parent knows to read; also a line that somebody else printed.
    Note(String),
}

impl Message {
    /// Says it.
    pub fn say(self) {
        Say::Message(self).say();
    }
}

impl Say {
    /// How far it is, if that is what it says.
    pub fn message(self) -> Option<Message> {
        if let Say::Message(message) = self { Some(message) } else { None }
    }

    /// What it was answered, if that is what it says.
    pub fn fact(self) -> Option<Fact> {
        if let Say::Fact(fact) = self { Some(fact) } else { None }
    }

    /// Says it, in one call of `write` under the lock of the stream: a kill leaves whole lines. Panics
    /// when nobody listens any more.
    pub fn say(&self) {
        let line = serde_json::to_string(self).expect("a message is plain data");
        let mut out = std::io::stdout().lock();
        let said = out.write_all(format!("{line}\n").as_bytes()).and_then(|()| out.flush());
        said.expect("the parent listens");
    }
}

/// How long to wait for a process that says nothing. Only time in which it could run counts: it may be
/// stopped by others.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// Then it hangs.
    pub most: Duration,
    /// Whether to wait no longer at all.
    pub interrupted: fn() -> bool,
}

/// How long a parent sleeps between two looks.
const TICK: Duration = Duration::from_millis(20);

/// A process at work, and what it said. Killed when dropped.
pub struct Victim {
    child: Child,
    said: Receiver<Say>,
    complaint: Option<Receiver<String>>,
    hung: bool,
    /// Closed when whoever started it is gone; see [`end_with_parent`].
    _stdin: Option<ChildStdin>,
}

impl Victim {
    /// Starts a process. What it writes to standard error is kept for [`Ending`] if that is piped.
    pub fn start(command: &mut Command) -> Result<Victim> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|e| format!("starting a child: {e}"))?;
        let stdout = child.stdout.take().ok_or("no pipe")?;
        let (sender, said) = channel();
        // Ends when the child is gone; what it said before stays in the pipe until read.
        std::thread::spawn(move || listen(stdout, &sender));
        let complaint = child.stderr.take().map(collect);
        Ok(Victim { said, complaint, hung: false, _stdin: child.stdin.take(), child })
    }

    /// The next thing it says; `None` when it said its last, or hangs. An error when interrupted.
    pub fn next(&mut self, patience: &Patience) -> Result<Option<Say>> {
        let mut waited = Duration::ZERO;
        while waited < patience.most {
            match self.said.recv_timeout(TICK) {
                Ok(say) => return Ok(Some(say)),
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if (patience.interrupted)() {
                return Err("interrupted".to_string());
            }
            if !is_stopped(self.child.id()) {
                waited += TICK;
            }
        }
        self.hung = true;
        Ok(None)
    }

    /// Everything else it says, and how it ends.
    pub fn finish(mut self, patience: &Patience) -> Result<(Vec<Say>, Ending)> {
        let mut said = Vec::new();
        while let Some(say) = self.next(patience)? {
            said.push(say);
        }
        // Whoever closed its output may still be busy with ending.
        let mut waited = Duration::ZERO;
        while !self.hung && waited < patience.most {
            if self.ended()? {
                let status = self.child.wait().map_err(|e| e.to_string())?;
                return Ok((said, self.ending(status)));
            }
            std::thread::sleep(Duration::from_millis(1));
            waited += Duration::from_millis(u64::from(!is_stopped(self.child.id())));
        }
        Ok((said, Ending::Hung))
    }

    /// SIGKILL, and all that it had said by then. An error when it had ended by itself before.
    pub fn stop(&mut self) -> std::result::Result<Vec<Say>, Ending> {
        let mut by_itself = self.child.try_wait().ok().flatten();
        drop(self.child.kill());
        if let Ok(status) = self.child.wait()
            && std::os::unix::process::ExitStatusExt::signal(&status) != Some(9)
        {
            by_itself = Some(status);
        }
        by_itself.map_or_else(|| Ok(self.said.iter().collect()), |status| Err(self.ending(status)))
    }

    /// Lets a writer write for a while, or only begin to open its store, which is recovery, and kills it:
    /// after 10 to 300 ms, or up to 20. All that it said, or how it had ended by itself before; an error
    /// when the wait was interrupted.
    pub fn kill_at_random(
        mut self,
        opening: bool,
        rng: &mut Rng,
        patience: &Patience,
    ) -> Result<std::result::Result<Vec<Say>, Ending>> {
        let (least, range) = if opening { (0, 20_000) } else { (10_000, 290_000) };
        let mut said = Vec::new();
        while !opening && !said.contains(&Say::Message(Message::Opened)) {
            match self.next(patience)? {
                Some(say) => said.push(say),
                // It says why when it ended; if it did not, it hangs.
                None => return Ok(Err(self.finish(patience)?.1)),
            }
        }
        std::thread::sleep(Duration::from_micros(least + rng.below(range)));
        Ok(self.stop().map(|rest| said.into_iter().chain(rest).collect()))
    }

    /// As [`Victim::stop`], of a process that says nothing but messages.
    pub fn kill(&mut self) -> Result<Vec<Message>> {
        messages_alone(self.stop()?)
    }

    /// Whether it is gone.
    pub fn ended(&mut self) -> Result<bool> {
        Ok(self.child.try_wait().map_err(|e| e.to_string())?.is_some())
    }

    /// Waits for its end; how it ended, and all that it said, which must be messages.
    pub fn wait(&mut self) -> Result<(ExitStatus, Vec<Message>)> {
        let status = self.child.wait().map_err(|e| e.to_string())?;
        Ok((status, messages_alone(self.said.iter().collect())?))
    }

    fn ending(&self, status: ExitStatus) -> Ending {
        let complaint = self.complaint.as_ref();
        let text = complaint.and_then(|c| c.recv_timeout(Duration::from_secs(1)).ok());
        Ending::of(status, &text.unwrap_or_default())
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// What a process said that says nothing but messages; an error when it said something else.
pub fn messages_alone(said: Vec<Say>) -> Result<Vec<Message>> {
    let message = |say: Say| match say {
        Say::Message(message) => Ok(message),
        other => Err(format!("the child said something else: {other:?}")),
    };
    said.into_iter().map(message).collect()
}

fn listen(stdout: ChildStdout, sender: &Sender<Say>) {
    for line in BufReader::new(stdout).lines().map_while(std::io::Result::ok) {
        let say = serde_json::from_str(&line).unwrap_or(Say::Note(line));
        if sender.send(say).is_err() {
            return;
        }
    }
}

/// Ends this process when the one that started it is gone, whatever its other threads do.
pub fn end_with_parent() {
    std::thread::spawn(|| {
        drop(std::io::copy(&mut std::io::stdin(), &mut std::io::sink()));
        std::process::exit(3);
    });
}

/// Whether somebody has stopped a process.
fn is_stopped(id: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with(['T', 't']))
}
