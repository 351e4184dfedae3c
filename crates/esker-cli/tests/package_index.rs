//! Debian's package index through the command, from the first load to the last compaction, with
//! `kill -9` in between; after every step the store is compared with a sorted map of the same data.
//!
//! Once with a small sample of invented packages in the same form, and once with the index of the
//! machine, where it has one.

mod common;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use common::Dir;
use esker::Db;

/// Key (`package/version`) and stanza, in the order of the index.
type Entry = (Vec<u8>, Vec<u8>);
type Map = BTreeMap<Vec<u8>, Vec<u8>>;

const SAMPLE: &[u8] = include_bytes!("../testdata/packages.txt");
const SAMPLE_FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/packages.txt");
const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/debian-packages.sh");

/// What the loader may have read and not written yet when it is killed: what is in the pipe and in
/// its buffers, a batch that is being gathered, and one that is being written.
const IN_FLIGHT: usize = 3 << 20;

/// An index has more stanzas than this, or it is none.
const FEWEST: usize = 1000;

#[test]
fn a_sample_of_the_index() {
    // Many versions of each, so that there is something to be in the middle of.
    let copies = (0..300).flat_map(|n| {
        stanzas(SAMPLE).into_iter().map(move |(mut key, mut value)| {
            key.extend_from_slice(format!("+b{n}").as_bytes());
            value.extend_from_slice(format!("\nCopy: {n}").as_bytes());
            (key, value)
        })
    });
    life_of(&copies.collect::<Vec<_>>(), b"oak");
}

#[test]
fn the_index_of_this_machine() {
    let text = match Command::new("apt-cache").arg("dumpavail").output() {
        Ok(output) if output.status.success() => output.stdout,
        Ok(output) => return skip(&format!("apt-cache dumpavail ended with {}", output.status)),
        Err(e) => return skip(&format!("apt-cache cannot be run: {e}")),
    };
    let entries = stanzas(&text);
    if entries.len() < FEWEST {
        return skip(&format!(
            "apt-cache dumpavail knows {} packages only; `apt-get update` fetches the index",
            entries.len()
        ));
    }
    life_of(&entries, b"python3-");
}

/// Past the test harness, which would keep it to itself.
fn skip(why: &str) {
    let _ = writeln!(std::io::stderr(), "\nSKIPPED the_index_of_this_machine: {why}");
}

#[test]
fn the_example_loads_what_the_index_says() {
    let dir = Dir::new();
    let output = Command::new("sh")
        .arg(EXAMPLE)
        .args([dir.path("db").as_os_str(), SAMPLE_FILE.as_ref()])
        .env("ESKER", env!("CARGO_BIN_EXE_esker"))
        .output()
        .expect("run the example");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let map: Map = stanzas(SAMPLE).into_iter().collect();
    assert_same(&dir.run("dump db").out, &map, "the example");
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(shown.contains(&format!("loaded {} entries", map.len())), "{shown}");
}

/// Loads, is killed, loads again, scans, deletes, is killed, compacts.
fn life_of(entries: &[Entry], prefix: &[u8]) {
    let dir = Dir::new();
    let input = tsv(entries);
    dir.write("all.tsv", &input);

    killed_in_the_middle_of_a_load(&dir, entries);
    let ran = dir.run("load db all.tsv --create");
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    let mut map: Map = entries.iter().cloned().collect();
    assert_same(&dir.run("dump db").out, &map, "loaded");
    assert_eq!(dir.ok("count db"), format!("{}\n", map.len()));

    scans(&dir, &map, prefix);

    // Some with the command, one in seven by a process that is killed without closing the store.
    let some: Vec<Vec<u8>> = map.keys().step_by(997).cloned().collect();
    let mut args: Vec<&[u8]> = vec![b"del", b"db", b"--"];
    args.extend(some.iter().map(Vec::as_slice));
    assert_eq!(dir.run_args(&args, b"").code, 0);
    map.retain(|key, _| !some.contains(key));
    assert_same(&dir.run("dump db").out, &map, "deleted by the command");
    let many: Vec<Vec<u8>> = map.keys().step_by(7).cloned().collect();
    killed_after_deleting(&dir, &many);
    for key in &many {
        map.remove(key);
    }
    assert_same(&dir.run("dump db").out, &map, "deleted by a process that was killed");
    scans(&dir, &map, prefix);

    assert!(dir.ok("verify db").starts_with("sound: "));
    dir.ok("compact db");
    assert_same(&dir.run("dump db").out, &map, "compacted");
    assert!(dir.ok("verify db").starts_with("sound: "));
}

/// Gives `esker load` the first half of the input and kills it while it waits for more. What is
/// there then is a beginning of the input, and holds every batch that was written.
fn killed_in_the_middle_of_a_load(dir: &Dir, entries: &[Entry]) {
    let half = &entries[..entries.len() / 2];
    let mut child = dir
        .command()
        .args(["load", "db", "-", "--format", "tsv", "--create"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("start esker");
    let mut stdin = child.stdin.take().expect("a pipe");
    let given = tsv(half);
    stdin.write_all(&given).expect("esker reads");
    kill(child);
    drop(stdin);

    let found = dir.run("dump db").out;
    let count = found.iter().filter(|b| **b == b'\n').count();
    let mut map = Map::new();
    let mut taken = 0;
    let held = half.iter().position(|(key, value)| {
        map.insert(key.clone(), value.clone());
        taken += tsv(&[(key.clone(), value.clone())]).len();
        map.len() == count && tsv_of(&map) == found
    });
    assert!(held.is_some(), "{count} entries, which are no beginning of the input");
    let least = given.len().saturating_sub(IN_FLIGHT);
    assert!(taken >= least, "{taken} bytes of the input are there of {least} that must be");
    assert!(dir.ok("verify db").starts_with("sound: "));
}

fn scans(dir: &Dir, map: &Map, prefix: &[u8]) {
    let below: Map = map
        .range(prefix.to_vec()..)
        .take_while(|(key, _)| key.starts_with(prefix))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    assert!(below.len() >= 10, "{} keys begin with the prefix", below.len());
    let scanned = dir.run_args(&[b"scan", b"db", b"--prefix", prefix], b"");
    assert_same(&scanned.out, &below, "a scan");
    let last: Vec<u8> =
        map.keys().rev().take(20).flat_map(|k| [escaped(k), b"\n".to_vec()].concat()).collect();
    assert_eq!(dir.run("scan db --reverse --limit 20 --keys-only").out, last);
    let (key, value) = below.iter().next().expect("one at least");
    assert_eq!(&dir.run_args(&[b"get", b"db", b"--", key], b"").out, value);
}

/// Deletes in another process, not synced, and kills that once the deletions are acknowledged.
fn killed_after_deleting(dir: &Dir, keys: &[Vec<u8>]) {
    dir.write("keys", keys.join(&b"\n"[..]));
    let mut child = Command::new(std::env::current_exe().expect("this test's program"))
        .args(["--exact", "delete_and_wait", "--ignored", "--nocapture"])
        .current_dir(dir.0.path())
        .env("ESKER_DELETE_AND_WAIT", "1")
        .stdout(Stdio::piped())
        .spawn()
        .expect("start the process that deletes");
    let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let done = lines.map_while(Result::ok).any(|line| line.contains("all deleted"));
    assert!(done, "the process ended before it was killed");
    kill(child);
}

/// The process that [`killed_after_deleting`] starts; no test.
#[test]
#[ignore = "run by another test, which kills it"]
fn delete_and_wait() {
    if std::env::var_os("ESKER_DELETE_AND_WAIT").is_none() {
        return;
    }
    let db = Db::open("db").expect("open the store");
    let keys = std::fs::read("keys").expect("the keys");
    for key in keys.split(|b| *b == b'\n') {
        db.delete(key).expect("delete");
    }
    println!("all deleted");
    std::thread::sleep(Duration::from_secs(60));
}

fn kill(mut child: Child) {
    child.kill().expect("send SIGKILL");
    let status = child.wait().expect("wait for it");
    assert_eq!(status.signal(), Some(9), "it ended by itself: {status}");
}

/// The stanzas of an index as `apt-cache dumpavail` prints it. Written apart from the awk of the
/// example, so that each checks the other.
fn stanzas(text: &[u8]) -> Vec<Entry> {
    let mut entries = Vec::new();
    let mut stanza: Vec<&[u8]> = Vec::new();
    for line in text.split(|b| *b == b'\n').chain([&b""[..]]) {
        if !line.is_empty() {
            stanza.push(line);
            continue;
        }
        let field = |name: &[u8]| stanza.iter().find_map(|l| l.strip_prefix(name));
        if let Some(package) = field(b"Package: ") {
            let version = field(b"Version: ").unwrap_or_default();
            entries.push(([package, b"/", version].concat(), stanza.join(&b"\n"[..])));
        }
        stanza.clear();
    }
    entries
}

/// Entries as `esker load --help` describes TSV.
fn tsv(entries: &[Entry]) -> Vec<u8> {
    lines(entries.iter().map(|(key, value)| (key, value)))
}

fn tsv_of(map: &Map) -> Vec<u8> {
    lines(map.iter())
}

fn lines<'a>(entries: impl Iterator<Item = (&'a Vec<u8>, &'a Vec<u8>)>) -> Vec<u8> {
    let mut out = Vec::new();
    for (key, value) in entries {
        out.extend(escaped(key));
        out.push(b'\t');
        out.extend(escaped(value));
        out.push(b'\n');
    }
    out
}

fn escaped(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    for &b in bytes {
        match b {
            b'\\' => out.extend(b"\\\\"),
            b'\t' => out.extend(b"\\t"),
            b'\n' => out.extend(b"\\n"),
            b'\r' => out.extend(b"\\r"),
            b => out.push(b),
        }
    }
    out
}

/// Byte for byte, and without printing megabytes when they differ.
#[track_caller]
fn assert_same(dump: &[u8], map: &Map, when: &str) {
    let expected = tsv_of(map);
    if dump == expected {
        return;
    }
    let at = dump.iter().zip(&expected).position(|(a, b)| a != b).unwrap_or(0);
    let line = |bytes: &[u8]| {
        let start =
            bytes[..at.min(bytes.len())].iter().rposition(|b| *b == b'\n').map_or(0, |n| n + 1);
        String::from_utf8_lossy(&bytes[start..bytes.len().min(start + 200)]).into_owned()
    };
    panic!(
        "{when}: {} bytes where {} should be; they differ at {at}:\n{:?}\nshould be\n{:?}",
        dump.len(),
        expected.len(),
        line(dump),
        line(&expected)
    );
}
