//! What a process asks of the system, call by call, and calls that are made to fail.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// One call to the system.
#[derive(Debug)]
pub struct Call {
    pub thread: u32,
    pub name: String,
    pub args: String,
    /// Lines of the trace: where it begins and where it returns.
    pub begun: usize,
    pub done: usize,
    pub failed: bool,
}

impl Call {
    /// Whether it is one of these calls, on a file whose path contains `path`.
    pub fn is(&self, names: &[&str], path: &str) -> bool {
        names.contains(&self.name.as_str()) && self.args.contains(path)
    }

    /// The file behind the descriptor that is its first argument (`5</path>`).
    pub fn file(&self) -> Option<&str> {
        let from = self.args.find('<')? + 1;
        let to = from + self.args[from..].find('>')?;
        Some(&self.args[from..to])
    }
}

/// Whether there is an strace that may trace.
pub fn works() -> bool {
    let run = Command::new("strace").args(["-qq", "-e", "trace=none", "true"]).output();
    let works = run.is_ok_and(|out| out.status.success());
    if !works {
        println!("left out: no strace here, or tracing is not allowed");
    }
    works
}

/// Runs a role of `child` with these flags of strace.
pub fn run(role: &str, dir: &Path, flags: &[&str]) -> Output {
    let mut command = Command::new("strace");
    command.args(["-f", "-qq"]).args(flags);
    if !flags.contains(&"-o") {
        command.args(["-o", "/dev/null"]);
    }
    super::child::extend(&mut command, role, dir);
    command.output().unwrap()
}

/// Runs a role of `child` and lists its calls that write, sync, rename or remove.
pub fn calls(role: &str, dir: &Path) -> Vec<Call> {
    let to: PathBuf = dir.with_extension("strace");
    let what = "trace=openat,pwrite64,write,fdatasync,fsync,rename,renameat2,unlink,unlinkat";
    let mut command = Command::new("strace");
    command.args(["-f", "-y", "-qq", "-s", "64", "-e", what, "-o"]).arg(&to);
    super::child::extend(&mut command, role, dir);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    parse(&String::from_utf8_lossy(&std::fs::read(to).unwrap()))
}

pub fn parse(text: &str) -> Vec<Call> {
    let mut calls: Vec<Call> = Vec::new();
    let mut open: HashMap<u32, usize> = HashMap::new();
    for (at, line) in text.lines().enumerate() {
        let Some((thread, rest)) = line.split_once(char::is_whitespace) else { continue };
        let (Ok(thread), rest) = (thread.parse::<u32>(), rest.trim_start()) else { continue };
        if rest.starts_with("<... ") {
            if let Some(call) = open.remove(&thread) {
                calls[call].done = at;
                calls[call].failed = rest.contains(" = -1 ");
            }
        } else if let Some((name, args)) = rest.split_once('(') {
            let unfinished = rest.ends_with("<unfinished ...>");
            let failed = rest.contains(" = -1 ");
            let (name, args) = (name.to_string(), args.to_string());
            if unfinished {
                open.insert(thread, calls.len());
            }
            let done = if unfinished { usize::MAX } else { at };
            calls.push(Call { thread, name, args, begun: at, done, failed });
        }
    }
    assert!(calls.len() > 20, "the trace shows what the process did");
    calls
}
