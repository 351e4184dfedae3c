//! A process of this program's that is listened to, and killed.

use std::io::Read;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;

use crate::child::Message;

/// The process, and the thread that listens to it.
pub struct Victim {
    child: Child,
    listener: Option<JoinHandle<Vec<u8>>>,
    /// Closed when whoever started it is gone; see [`end_with_parent`].
    _stdin: Option<ChildStdin>,
}

impl Victim {
    pub fn start(command: &mut Command) -> Result<Victim, String> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|e| format!("starting a child: {e}"))?;
        let mut said = child.stdout.take().ok_or("no pipe")?;
        let stdin = child.stdin.take();
        let listener = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            // Ends when the child is gone; what it said before stays in the pipe until read.
            drop(said.read_to_end(&mut bytes));
            bytes
        });
        Ok(Victim { child, listener: Some(listener), _stdin: stdin })
    }

    /// SIGKILL, and all that it said. An error when it was gone already.
    pub fn kill(&mut self) -> Result<Vec<Message>, String> {
        if let Some(status) = self.child.try_wait().map_err(|e| e.to_string())? {
            return Err(format!("the child ended by itself: {status}"));
        }
        self.child.kill().map_err(|e| format!("killing the child: {e}"))?;
        self.wait().map(|(_, messages)| messages)
    }

    /// Whether it is gone.
    pub fn ended(&mut self) -> Result<bool, String> {
        Ok(self.child.try_wait().map_err(|e| e.to_string())?.is_some())
    }

    /// Waits for its end; how it ended, and all that it said.
    pub fn wait(&mut self) -> Result<(ExitStatus, Vec<Message>), String> {
        let status = self.child.wait().map_err(|e| e.to_string())?;
        let bytes = self.listener.take().and_then(|l| l.join().ok()).ok_or("no listener")?;
        let (lines, rest) = bytes.as_chunks::<{ Message::LEN }>();
        if !rest.is_empty() {
            return Err("half a line from the child".to_string());
        }
        let messages: Option<Vec<Message>> = lines.iter().map(|l| Message::decode(*l)).collect();
        Ok((status, messages.ok_or("the child said something else")?))
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Ends this process when the one that started it is gone, whatever its other threads do.
pub fn end_with_parent() {
    std::thread::spawn(|| {
        drop(std::io::copy(&mut std::io::stdin(), &mut std::io::sink()));
        std::process::exit(3);
    });
}
