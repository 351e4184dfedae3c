//! The golden scripts of `testdata/version`: edits in words, and the version after them.

use std::fmt::Write;

use super::*;
use crate::filename;
use crate::version::script::{Case, run_folder, size};
use crate::wal::Position;

#[test]
fn scripts() {
    run_folder("version", || {
        let mut state = State::new(Orders::default());
        move |case: &Case<'_>| answer(&mut state, case)
    });
}

fn answer(state: &mut State, case: &Case<'_>) -> String {
    match case.command {
        "edit" => {
            let edit = VersionEdit::from(case.input.iter().map(|l| change(l)).collect::<Vec<_>>());
            assert_eq!(VersionEdit::decode(&edit.encode()).unwrap(), edit);
            let before = state.clone();
            let shown = match state.apply_in_place(&edit) {
                Ok(()) => show(state),
                Err(e) => {
                    assert!(*state == before, "a refused edit changed something: {edit:?}");
                    format!("refused: {e}")
                }
            };
            assert!(state.finds_what_it_has(), "after {edit:?}");
            shown
        }
        "find" => {
            let k = &state.keyspaces[&0];
            let order = k.order.as_ref().unwrap();
            let mut out = String::new();
            for key in &case.words {
                write!(out, "{key}:").unwrap();
                for run in k.version.runs() {
                    if let Some(t) = run.find(order, key.as_bytes()) {
                        write!(out, " {} in run {}", t.number, run.id()).unwrap();
                    }
                }
                out.push('\n');
            }
            out
        }
        "encode" => {
            let edit = VersionEdit::from(case.input.iter().map(|l| change(l)).collect::<Vec<_>>());
            hex(&edit.encode())
        }
        "file" => {
            let env = super::mem_env::MemEnv::default();
            let new = State::new(Orders::default());
            let dir = std::path::Path::new("/");
            let mut manifest =
                Manifest::create(std::sync::Arc::new(env.clone()), dir, new).unwrap();
            for line in &case.input {
                manifest.append(&VersionEdit::from(vec![change(line)])).unwrap();
            }
            let current = String::from_utf8(env.bytes(filename::CURRENT)).unwrap();
            format!("{}\n{current}", hex(&env.bytes(&filename::manifest(1))))
        }
        other => panic!("unknown command {other}"),
    }
}

fn hex(bytes: &[u8]) -> String {
    let line = |(i, line): (usize, &[u8])| {
        let hex: Vec<String> = line.iter().map(|b| format!("{b:02x}")).collect();
        format!("{:04x}  {}", i * 16, hex.join(" "))
    };
    bytes.chunks(16).enumerate().map(line).collect::<Vec<_>>().join("\n")
}

fn change(line: &str) -> Change {
    let words: Vec<&str> = line.split_whitespace().collect();
    let n = |i: usize| size(words[i]);
    match words[0] {
        "keyspace" => Change::AddKeyspace {
            id: n(1) as u32,
            name: words[2].into(),
            order_name: words.get(3).unwrap_or(&"esker.bytewise").to_string(),
            compression: None,
            blob_threshold: None,
        },
        "drop" => Change::DropKeyspace { id: n(1) as u32 },
        "add" => {
            // add KEYSPACE RUN NUMBER FIRST..LAST [seq=LOW-HIGH]
            let (first, last) = words[4].split_once("..").unwrap();
            let mut meta = table(n(3), first, last);
            if let Some(seqs) = crate::version::script::word(&words, "seq") {
                let (low, high) = seqs.split_once('-').unwrap();
                (meta.min_seq, meta.max_seq) = (size(low), size(high));
                meta.base_seq = meta.min_seq;
            }
            add(n(1) as u32, n(2), meta)
        }
        "remove" => Change::RemoveTable { keyspace: n(1) as u32, number: n(2) },
        "flushed" => Change::Flushed { keyspace: n(1) as u32, segment: n(2) },
        "log-start" => {
            Change::LogStart { segment: n(1), durable: Position { segment: n(1), end: 4096 } }
        }
        "next-file" => Change::NextFile { number: n(1) },
        "next-keyspace" => Change::NextKeyspace { id: n(1) as u32 },
        "last-seq" => Change::LastSeq { seq: n(1) },
        "clean-close" => Change::CleanClose,
        "reopened" => Change::Reopened,
        other => panic!("unknown change {other}"),
    }
}

fn show(state: &State) -> String {
    let mut out = String::new();
    for k in state.keyspaces.values() {
        writeln!(out, "keyspace {} {} flushed={}", k.id, k.name, k.flushed).unwrap();
        for run in k.version.runs() {
            write!(out, "  run {}:", run.id()).unwrap();
            for t in run.tables() {
                let (a, b) =
                    (String::from_utf8_lossy(&t.smallest), String::from_utf8_lossy(&t.largest));
                write!(out, " {}[{a}..{b}]", t.number).unwrap();
            }
            out.push('\n');
        }
    }
    write!(
        out,
        "log-start={} next-file={} next-keyspace={} last-seq={}",
        state.log_start, state.next_file, state.next_keyspace, state.last_seq
    )
    .unwrap();
    if state.closed {
        out.push_str(" closed");
    }
    out
}
