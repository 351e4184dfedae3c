//! Runs the real binary against stores in a temporary directory.
#![allow(dead_code, reason = "every test file uses a part")]

use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Makes a program of these bytes. By another process: while this one has the file open, another thread's child may hold it too
/// for a moment, and a file that somebody may write to is not started ("text file busy").
pub fn make_program(at: &Path, bytes: &[u8]) {
    let mut child = Command::new("sh")
        .args(["-c", "cat >\"$0\" && chmod 755 \"$0\""])
        .arg(at)
        .stdin(Stdio::piped())
        .spawn()
        .expect("start sh");
    child.stdin.take().expect("a pipe").write_all(bytes).expect("write to sh");
    assert!(child.wait().expect("wait for sh").success());
}

pub struct Dir(pub tempfile::TempDir);

/// What a run left.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub out: Vec<u8>,
    pub err: String,
}

impl Dir {
    pub fn new() -> Dir {
        Dir(tempfile::tempdir().expect("a temporary directory"))
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), bytes).expect("write a file");
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).expect("read a file")
    }

    pub fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_esker"));
        command.current_dir(self.0.path());
        command
    }

    /// Runs `esker` with the words of `line`.
    pub fn run(&self, line: &str) -> Ran {
        self.run_with(line, b"")
    }

    /// The same with `input` on standard input.
    pub fn run_with(&self, line: &str, input: &[u8]) -> Ran {
        let args: Vec<&[u8]> = line.split_whitespace().map(str::as_bytes).collect();
        self.run_args(&args, input)
    }

    /// With arguments of any bytes.
    pub fn run_args(&self, args: &[&[u8]], input: &[u8]) -> Ran {
        let mut child = self
            .command()
            .args(args.iter().map(|a| OsStr::from_bytes(a)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("start esker");
        let mut stdin = child.stdin.take().expect("a pipe");
        let input = input.to_vec();
        // A command that fails early closes its end, which is none of our errors.
        let feeder = std::thread::spawn(move || drop(stdin.write_all(&input)));
        let output = child.wait_with_output().expect("wait for esker");
        feeder.join().expect("the feeder");
        Ran::from(output)
    }

    /// Runs and expects success; returns standard output.
    pub fn ok(&self, line: &str) -> String {
        let ran = self.run(line);
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "esker {line}");
        String::from_utf8(ran.out).expect("text")
    }

    /// Loads TSV lines into the store `db`.
    pub fn load(&self, tsv: &str) {
        let ran = self.run_with("load db --create", tsv.as_bytes());
        assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    }

    pub fn json(&self, line: &str) -> serde_json::Value {
        serde_json::from_str(&self.ok(line)).expect("JSON")
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Ran {
        Ran {
            code: output.status.code().expect("esker was killed"),
            out: output.stdout,
            err: String::from_utf8(output.stderr).expect("messages are text"),
        }
    }
}

impl Ran {
    /// Expects this exit code and one line of message that contains `what`.
    #[track_caller]
    pub fn fails(&self, code: i32, what: &str) {
        assert_eq!(self.code, code, "{self:?}");
        assert_eq!(self.err.lines().count(), 1, "{}", self.err);
        assert!(self.err.starts_with("esker: "), "{}", self.err);
        assert!(self.err.contains(what), "{:?} is not in {:?}", what, self.err);
    }
}
