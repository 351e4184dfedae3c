//! Processes that can be killed, traced and starved: this test binary, run again in a role.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, abort};

use esker::{Db, Durability, KeyspaceOptions, WriteBatch};

use super::small;

const ROLE: &str = "ESKER_SCENARIO_ROLE";
const DIR: &str = "ESKER_SCENARIO_DIR";

/// Adds program and arguments to a command that runs another program.
pub fn extend(command: &mut Command, role: &str, dir: &Path) {
    command.arg(std::env::current_exe().unwrap());
    command.args(["--exact", "child::child", "--nocapture", "--test-threads=1"]);
    command.env(ROLE, role).env(DIR, dir);
}

/// Runs a role in a process of its own, in which files that grow too large are an error and no
/// signal.
pub fn run(role: &str, dir: &Path) -> Output {
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""]);
    extend(&mut command, role, dir);
    command.output().unwrap()
}

/// What a process said was done: the words behind `ack`.
pub fn acknowledged(output: &Output) -> Vec<String> {
    let said = String::from_utf8_lossy(&output.stdout);
    // The harness may leave the beginning of a line to the test.
    said.lines().filter_map(|l| Some(l.split_once("ack ")?.1.to_string())).collect()
}

/// Not a test of its own: what the other tests run in another process.
#[test]
fn child() {
    let (Ok(role), Ok(dir)) = (std::env::var(ROLE), std::env::var(DIR)) else { return };
    let dir = PathBuf::from(dir);
    match role.as_str() {
        "life" => life(&dir),
        "open" => drop(small().open(&dir).map(std::mem::forget)),
        "try" => println!("ack {}", small().open(&dir).is_ok()),
        "hold" => hold(&dir),
        "rotate" => rotate(&dir),
        "merges" => merges(&dir),
        "batches" => batches(&dir),
        "torn" => torn_manifest(&dir),
        "close" => close_on_a_full_disk(&dir),
        other => panic!("no role {other}"),
    }
}

/// Everything a store does with its files, one thing after the other.
fn life(dir: &Path) {
    for round in 0..3u8 {
        let db = small().open(dir).unwrap();
        let other = db.create_keyspace(&format!("other {round}"), KeyspaceOptions::new()).unwrap();
        for n in 0..200u32 {
            db.put(n.to_be_bytes(), vec![round; 1200]).unwrap();
            other.put(n.to_be_bytes(), [round; 30]).unwrap();
        }
        db.flush().unwrap();
        db.bulk_load((500..600u32).map(|n| (n.to_be_bytes(), [round; 50]))).unwrap();
        db.compact_range::<&str>(..).unwrap();
        db.wait_for_compactions().unwrap();
        drop(other);
        db.close().unwrap();
    }
    Db::repair(dir).unwrap();
}

/// Holds the store open until standard input ends.
fn hold(dir: &Path) {
    let db = small().open(dir).unwrap();
    println!("ack open");
    drop(std::io::read_to_string(std::io::stdin()));
    drop(db);
}

/// Buffered writes over several segments, then a synced one.
fn rotate(dir: &Path) {
    let db = small().memory(32 << 20).open(dir).unwrap();
    for round in 0..6u32 {
        for n in 0..300u32 {
            db.put(n.to_be_bytes(), [round as u8; 500]).unwrap();
        }
        db.put_with("last", round.to_be_bytes(), Durability::Synced).unwrap();
        println!("ack {round}");
    }
    abort();
}

/// Flushes and merges whose manifest may fail to be synced, resumed each time.
fn merges(dir: &Path) {
    let Ok(db) = small().open(dir) else { return };
    for round in 0..6u32 {
        for n in 0..40u32 {
            if db.put(format!("{round}/{n}"), vec![round as u8; 300]).is_ok() {
                println!("ack {round}/{n}");
            }
        }
        let merged = db.flush().and_then(|()| db.compact_range::<&str>(..));
        if merged.is_err() {
            drop(db.resume());
        }
    }
    abort();
}

/// Batches large enough for a system call each, in turn with small ones.
fn batches(dir: &Path) {
    let Ok(db) = small().blob_threshold(1 << 20).open(dir) else { return };
    for round in 0..12u32 {
        let mut batch = WriteBatch::new();
        for n in 0..4u32 {
            batch.put(
                format!("{round}/{n}"),
                vec![round as u8; if round % 2 == 0 { 20_000 } else { 10 }],
            );
        }
        if db.write_with(batch, Durability::Synced).is_ok() {
            println!("ack {round}");
        } else {
            drop(db.resume());
        }
    }
    abort();
}

/// Sets the largest size that a file of this process may grow to.
fn limit_files(bytes: &str) {
    let me = std::process::id().to_string();
    let flags = ["--pid", &me, &format!("--fsize={bytes}:unlimited")];
    let run = Command::new("prlimit").args(flags).status();
    assert!(run.unwrap().success(), "prlimit sets a limit");
}

/// The disk is full in the middle of a record of the manifest, and then has room again.
fn torn_manifest(dir: &Path) {
    let db = small().open(dir).unwrap();
    db.put("before", "1").unwrap();
    let name = "n".repeat(250);
    for n in 0..4 {
        let manifest = super::common::files::names(dir);
        let manifest = manifest.iter().rfind(|n| n.starts_with("MANIFEST-")).unwrap();
        let len = std::fs::metadata(dir.join(manifest)).unwrap().len();
        limit_files(&(len + 60 + 20 * n).to_string());
        let failed = db.create_keyspace(&format!("{n}{name}"), KeyspaceOptions::new());
        println!("ack {}", if failed.is_err() { "refused" } else { "made" });
        limit_files("unlimited");
        // Once with writes in between, once at once.
        if n % 2 == 0 {
            drop(db.put("between", n.to_be_bytes()));
        }
        db.resume().unwrap();
        db.create_keyspace(&format!("kept {n}"), KeyspaceOptions::new()).unwrap();
        db.put("after", n.to_be_bytes()).unwrap();
        db.flush().unwrap();
    }
    println!("ack end");
    abort();
}

/// A close that cannot write what is in memory.
fn close_on_a_full_disk(dir: &Path) {
    let db = small().open(dir).unwrap();
    db.put("key", vec![1; 500]).unwrap();
    limit_files("100");
    let closed = db.close();
    println!("ack {}", closed.is_err());
}
