//! A program that has closed its standard streams: what is opened next gets their numbers, and whoever prints writes there.
//!
//! The program is this binary, run again.

use std::fs;
use std::path::Path;
use std::process::Command;

use esker::{Db, Durability, Options};

const ROOT: &str = "ESKER_DESCRIPTORS_ROOT";
const WHEN: &str = "ESKER_DESCRIPTORS_WHEN";

/// Not a test of its own: what the other one runs in a process without standard streams.
#[test]
fn child() {
    let (Ok(root), Ok(when)) = (std::env::var(ROOT), std::env::var(WHEN)) else { return };
    let done = std::panic::catch_unwind(|| print_beside_a_store(Path::new(&root), &when));
    // Nobody sees what the test runner would say, so the exit has to.
    // SAFETY: it ends the process.
    unsafe { libc::_exit(i32::from(done.is_err())) }
}

fn close_streams() {
    for stream in 0..=2 {
        // SAFETY: nothing of this process needs them.
        unsafe { libc::close(stream) };
    }
}

fn print_beside_a_store(root: &Path, when: &str) {
    let dir = root.join("db");
    if when == "before" {
        close_streams();
    }
    let db = Options::new().memory(1 << 20).segment_size(64 << 10).open(&dir).unwrap();
    if when == "after" {
        close_streams();
    }
    for n in 0..3000u32 {
        db.put_with(n.to_be_bytes(), [7; 500], Durability::Buffered).unwrap();
        if n % 1000 == 0 {
            db.put_with("synced", n.to_be_bytes(), Durability::Synced).unwrap();
            db.flush().unwrap();
        }
        for stream in 0..=2 {
            let message = b"warning: something happened\n";
            // SAFETY: the bytes are there as long as the call takes.
            unsafe { libc::write(stream, message.as_ptr().cast(), message.len()) };
            let leads = fs::read_link(format!("/proc/self/fd/{stream}"));
            assert!(!leads.is_ok_and(|to| to.starts_with(root)), "{stream} leads into the store");
        }
    }
    db.checkpoint(root.join("copy")).unwrap();
    db.close().unwrap();
}

#[test]
fn what_a_program_printed_without_streams_went_into_the_store() {
    for when in ["before", "after"] {
        let root = tempfile::tempdir().unwrap();
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "child", "--test-threads=1"]);
        let status = command.env(ROOT, root.path()).env(WHEN, when).status().unwrap();
        for dir in ["db", "copy"].map(|name| root.path().join(name)) {
            let checked = Db::verify_path(&dir).unwrap();
            assert!(checked.problems.is_empty(), "{when}: {checked:?}");
            let db = Db::open(&dir).unwrap();
            assert_eq!(db.iter().filter(|entry| entry.is_ok()).count(), 3001, "{when}");
        }
        assert!(status.success(), "{when}: {status}");
    }
}
