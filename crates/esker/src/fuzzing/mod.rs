//! The parsers of everything that a store reads, as functions of bytes: what the fuzzers call.
//!
//! Each target takes any bytes and must return: no panic, no read outside, no endless loop, and no
//! more memory than a small multiple of its input. Where it can be told, the answer is checked too.
//! The first byte of most inputs says whether checksums are set right first, so that what lies
//! behind them is reached.
//!
//! `fuzz/` runs them under libFuzzer; `drive_tests` runs them in the ordinary tests, from the same
//! seeds.

mod mutate;
mod operations;
mod scratch;
pub mod seeds;
mod store;
pub mod testing;

#[cfg(test)]
mod drive_tests;

use crate::key::KeyOrder;
use crate::{table, version, wal};
use scratch::Scratch;

/// Something to be fuzzed.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Its name, on the command line and in `fuzz/corpus`.
    pub name: &'static str,
    /// Takes any bytes. A panic is a bug.
    pub run: fn(&[u8]),
}

/// All targets.
pub const TARGETS: &[Target] = &[
    Target { name: "log", run: log_segment },
    Target { name: "manifest", run: manifest },
    Target { name: "edit", run: version::fuzz::edit },
    Target { name: "table", run: table },
    Target { name: "block", run: table::fuzz::a_block },
    Target { name: "point_index", run: table::fuzz::an_index },
    Target { name: "packed_value", run: table::fuzz::a_value },
    Target { name: "batch", run: batch },
    Target { name: "store", run: store::store },
    Target { name: "operations", run: operations::operations },
];

/// The target of this name.
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|t| t.name == name)
}

/// Runs the target of this name.
///
/// # Panics
/// When there is none, and when it finds a bug.
pub fn run(name: &str, data: &[u8]) {
    (target(name).expect("a target of this name").run)(data);
}

fn log_segment(data: &[u8]) {
    let Some((&mode, data)) = data.split_first() else { return };
    let scratch = Scratch::of_this_thread();
    let file = wal::fuzz::expand(data, wal::fuzz::NUMBER, mode & 1 != 0);
    wal::fuzz::segment(&scratch.env, &scratch.dir, &file);
}

fn batch(data: &[u8]) {
    let scratch = Scratch::of_this_thread();
    wal::fuzz::batch(&scratch.env, &scratch.dir, data);
}

fn manifest(data: &[u8]) {
    let Some((&mode, data)) = data.split_first() else { return };
    let scratch = Scratch::of_this_thread();
    if !scratch.env.exists(&scratch.dir.join("CURRENT")).expect("a directory of ours") {
        scratch.write("CURRENT", version::fuzz::current().as_bytes());
    }
    let bytes = match mode & 1 {
        0 => data.to_vec(),
        _ => version::fuzz::of_payloads(store::parts(data).into_iter()),
    };
    version::fuzz::manifest(&scratch.env, &scratch.dir, &bytes);
}

fn table(data: &[u8]) {
    let Some((&mode, data)) = data.split_first() else { return };
    let order = if mode & 2 == 0 { KeyOrder::Bytewise } else { KeyOrder::Reverse };
    let mut bytes = data.to_vec();
    if mode & 1 != 0 {
        table::fuzz::reseal(&mut bytes, table::fuzz::NUMBER);
    }
    let scratch = Scratch::of_this_thread();
    table::fuzz::table(&scratch.env, &scratch.dir, &bytes, order);
}
