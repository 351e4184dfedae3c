//! Engines in the pictures: names, their fixed order, and how their lines look.
//!
//! Esker has the accent. Lines of the others differ in colour, dash and label, so that none of
//! these has to be told apart alone; the colours stay distinct for the common kinds of colour
//! blindness (the set of Okabe and Ito, darkened for a white page by the style sheet).

use crate::results::OURS;

/// Order and shown names. Engines that are not listed follow by name.
const ENGINES: [(&str, &str); 18] = [
    (OURS, "Esker"),
    ("leveldb", "LevelDB"),
    ("hyperleveldb", "HyperLevelDB"),
    ("basho", "Basho LevelDB"),
    ("rocksdb", "RocksDB"),
    ("rocksdb-prefix", "RocksDB, prefix"),
    ("lmdb", "LMDB"),
    ("libmdbx", "libmdbx"),
    ("sqlite", "SQLite"),
    ("bdb", "BerkeleyDB"),
    ("kyoto", "Kyoto TreeDB"),
    ("wiredtiger", "WiredTiger B-tree"),
    ("wiredtiger-lsm", "WiredTiger LSM"),
    ("tokudb", "TokuDB"),
    ("redb", "redb"),
    ("fjall", "fjall"),
    ("bf-tree", "Bf-Tree"),
    ("sled", "sled"),
];

/// Colours of the style sheet (`.c0` to `.c5`).
const COLOURS: usize = 6;
/// Dashes of the style sheet (`.d0` to `.d2`).
const DASHES: usize = 3;

fn place(engine: &str) -> usize {
    ENGINES.iter().position(|(name, _)| *name == engine).unwrap_or(ENGINES.len())
}

/// What sorts engines.
pub(crate) fn order(engine: &str) -> (usize, &str) {
    (place(engine), engine)
}

/// The name as its makers write it.
pub(crate) fn shown(engine: &str) -> &str {
    ENGINES.get(place(engine)).map_or(engine, |(_, shown)| shown)
}

/// Classes of an engine's line.
pub(crate) fn line_class(engine: &str) -> String {
    if engine == OURS {
        return "ours".to_string();
    }
    let place = match place(engine) {
        // An engine from elsewhere has a look by its name, the same in every picture.
        unknown if unknown == ENGINES.len() => {
            engine.bytes().fold(0usize, |sum, b| sum.wrapping_mul(31).wrapping_add(b.into()))
        }
        known => known - 1,
    };
    format!("c{} d{}", place % COLOURS, place / COLOURS % DASHES)
}

/// What Esker's own lines have beside the class of their kind.
pub(crate) fn emphasis(engine: &str) -> &'static str {
    if engine == OURS { " ours" } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_known_engine_looks_different() {
        let looks: HashSet<String> = ENGINES.iter().map(|(name, _)| line_class(name)).collect();
        assert_eq!(looks.len(), ENGINES.len());
        assert!(line_class("novel").starts_with('c'));
    }

    #[test]
    fn ours_is_first_and_strangers_last_by_name() {
        let mut names = ["zeta", "sled", "alpha", "lmdb", OURS];
        names.sort_by_key(|name| order(name));
        assert_eq!(names, [OURS, "lmdb", "sled", "alpha", "zeta"]);
        assert_eq!((shown("bdb"), shown("alpha")), ("BerkeleyDB", "alpha"));
    }
}
