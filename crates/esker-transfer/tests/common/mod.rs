//! Programs in C that use the libraries themselves, and what they write.
#![allow(dead_code, reason = "every test file uses a part")]

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

pub type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// The program `tests/c/NAME.c`, compiled once and linked with `library`; `None`, with a word about it, where
/// there is no such library.
pub fn program(name: &str, library: &str) -> Option<PathBuf> {
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(|e| e.into_inner());
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR"));
    // The tests of other crates use it too.
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let source = crates.join(format!("esker-transfer/tests/c/{name}.c"));
    // By its text: a program of an earlier run is as good, and another source has another one.
    let mut hash = std::hash::DefaultHasher::new();
    std::hash::Hash::hash(&fs::read(&source).expect("a source"), &mut hash);
    let hash = std::hash::Hasher::finish(&hash);
    let program = dir.join(format!("transfer-{name}-{hash:016x}"));
    if program.exists() {
        return Some(program);
    }
    let partial = dir.join(format!("transfer-{name}-{}", std::process::id()));
    let built = Command::new("cc")
        .args(["-O1", "-Wall", "-o"])
        .arg(&partial)
        .arg(&source)
        .arg(format!("-l{library}"))
        .output();
    match built {
        Ok(output) if output.status.success() => {
            fs::rename(&partial, &program).expect("a program");
            Some(program)
        }
        Ok(output) => {
            println!("left out: {name}.c: {}", String::from_utf8_lossy(&output.stderr));
            None
        }
        Err(e) => {
            println!("left out: no C compiler: {e}");
            None
        }
    }
}

/// Operations on a database, and what it then has.
#[derive(Default)]
pub struct Operations {
    pub bytes: Vec<u8>,
    pub map: Map,
}

impl Operations {
    fn prefixed(&mut self, bytes: &[u8]) {
        self.bytes.extend((bytes.len() as u32).to_ne_bytes());
        self.bytes.extend(bytes);
    }

    pub fn put(&mut self, key: &[u8], value: &[u8]) {
        self.bytes.push(b'P');
        self.prefixed(key);
        self.prefixed(value);
        self.map.insert(key.to_vec(), value.to_vec());
    }

    pub fn delete(&mut self, key: &[u8]) {
        self.bytes.push(b'D');
        self.prefixed(key);
        self.map.remove(key);
    }

    /// Between two of them, what is written is a batch.
    pub fn batch(&mut self, is_begin: bool) {
        self.bytes.push(if is_begin { b'B' } else { b'E' });
    }

    pub fn compact(&mut self) {
        self.bytes.push(b'C');
    }

    /// Overwrites, deletions, batches, keys and values of all kinds.
    pub fn random(seed: u64, count: usize) -> Operations {
        let mut rng = Rng(seed);
        let mut all = Operations::default();
        all.put(b"", b"value of the empty key");
        all.put(b"empty value", b"");
        all.put(&[0xff; 30], b"last");
        all.put(&[0xff; 300], &[0; 300_000]);
        all.put(b"k\0\xff\n", &[0xff; 70_000]);
        all.put(&[b'l'; 65_536], b"the longest key");
        let (mut key, mut in_batch) = (Vec::new(), false);
        for n in 0..count {
            key.clear();
            match rng.below(4) {
                0 => key.extend((rng.below(count / 2) as u32).to_be_bytes()),
                1 => key.extend(format!("user/{:06}", rng.below(count / 4)).bytes()),
                2 => key.extend((0..rng.below(6)).map(|_| [0, 0xff, b'a'][rng.below(3)])),
                _ => key.extend(format!("long/{}/{:04}", "x".repeat(90), rng.below(300)).bytes()),
            }
            match rng.below(10) {
                0 | 1 => all.delete(&key),
                _ => {
                    let len = match rng.below(200) {
                        0 => rng.below(20_000),
                        1..=20 => 0,
                        _ => rng.below(120),
                    };
                    // Half of them compress.
                    let noise = rng.below(2) == 0;
                    let value: Vec<u8> =
                        (0..len).map(|_| if noise { rng.next() as u8 } else { n as u8 }).collect();
                    all.put(&key, &value);
                }
            }
            if rng.below(50) == 0 {
                in_batch = !in_batch;
                all.batch(in_batch);
            }
        }
        if in_batch {
            all.batch(false);
        }
        all
    }
}

pub struct Rng(pub u64);

impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }
}

/// Runs a program with these bytes on its standard input, and gives what it printed.
pub fn run(program: &Path, args: &[&str], input: &[u8]) -> Vec<u8> {
    let mut child = Command::new(program)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    let input = input.to_vec();
    let feeder = std::thread::spawn(move || stdin.write_all(&input).is_ok());
    let output = child.wait_with_output().expect("the program ends");
    assert!(output.status.success(), "{program:?} {args:?}: {}", output.status);
    assert!(feeder.join().expect("the feeder"));
    output.stdout
}

/// The entries that a program printed.
pub fn entries(mut bytes: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut all = Vec::new();
    let mut next = || {
        let (len, rest) = bytes.split_first_chunk::<4>()?;
        let (found, rest) = rest.split_at(u32::from_ne_bytes(*len) as usize);
        bytes = rest;
        Some(found.to_vec())
    };
    while let (Some(key), Some(value)) = (next(), next()) {
        all.push((key, value));
    }
    all
}

/// Every file of a directory: name, bytes, and when it was changed.
pub fn state(dir: &Path) -> Vec<(String, Vec<u8>, std::time::SystemTime)> {
    let of = |e: std::io::Result<fs::DirEntry>| {
        let e = e.expect("an entry");
        let changed = e.metadata().and_then(|m| m.modified()).expect("a time");
        (e.file_name().into_string().expect("a name"), fs::read(e.path()).expect("a file"), changed)
    };
    let mut all: Vec<_> = fs::read_dir(dir).expect("a directory").map(of).collect();
    all.sort();
    all
}
