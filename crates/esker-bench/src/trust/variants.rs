//! Which settings each engine is tested with, and what it promises.

use crate::engines::built::plain;
use std::collections::BTreeMap;

/// Engines that are tested by default.
pub const NAMES: &[&str] = &["esker", "leveldb", "rocksdb", "lmdb", "sqlite", "redb", "fjall"];

/// An engine with settings.
#[derive(Debug, Clone)]
pub struct Variant {
    /// What its row is called.
    pub label: String,
    /// Tuning of its adapter.
    pub tuning: BTreeMap<String, String>,
}

/// The settings for damage: those that a new user gets, where the benchmark's are faster than
/// careful; and beside them the strict ones, where an engine has any.
pub fn of(engine: &str) -> Vec<Variant> {
    let variant = |label: &str, settings: &[(&str, &str)]| Variant {
        label: label.to_string(),
        tuning: settings.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect(),
    };
    match plain(engine) {
        "leveldb" => vec![
            variant("leveldb", &[]),
            variant("leveldb, strict", &[("verify_checksums", "1"), ("paranoid_checks", "1")]),
        ],
        "rocksdb" => vec![
            variant("rocksdb", &[("verify_checksums", "1"), ("mmap_reads", "0")]),
            variant(
                "rocksdb, strict",
                &[("verify_checksums", "1"), ("mmap_reads", "0"), ("wal_recovery", "1")],
            ),
        ],
        "sqlite" => vec![variant("sqlite", &[("mmap", "0")])],
        "redb" => {
            vec![variant("redb", &[]), variant("redb, checked", &[("check_integrity", "on")])]
        }
        name => vec![variant(name, &[])],
    }
}

/// What an engine's documents promise of damage, and what its row was set to.
pub fn promise(engine: &str) -> &'static str {
    match plain(engine) {
        "esker" => "every answer of a damaged store is right or an error; its default settings",
        "leveldb" => {
            "checksums of blocks and log records; by default reads do not verify them and damaged log \
             records are dropped. Strict: `verify_checksums` and `paranoid_checks`"
        }
        "rocksdb" => {
            "checksums of blocks and log records, verified; the log is replayed up to its first damage \
             (`kPointInTimeRecovery`). These are its defaults, not those of the benchmark (no \
             verification, mapped reads). Strict: `kAbsoluteConsistency`"
        }
        "lmdb" => "no checksums, by design: it relies on the file system; its defaults",
        "sqlite" => {
            "no checksums in the database file unless an extension adds them; those of the log count \
             until a checkpoint, and a clean close is one. `synchronous=FULL`, and no mapped reads, as \
             by default"
        }
        "redb" => {
            "checksums of pages, by which it finds the last whole commit after a crash; reads do not \
             verify them; its defaults. Checked: `check_integrity` is called when it is opened"
        }
        "fjall" => "checksums of blocks and of the journal; its defaults",
        _ => "its defaults",
    }
}
