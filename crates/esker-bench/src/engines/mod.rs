//! The adapters, one file per engine, and the list of them. A new engine is a file, a line in
//! [`with_engine!`] and a name in [`NAMES`]. Those that are crates are in a program of their own
//! ([`crate::external`]).

pub mod bdb;
pub mod built;
pub mod esker;
pub mod fake;
pub mod kyoto;
pub mod leveldb;
mod leveldb_interface;
mod leveldb_rest;
pub mod library;
pub mod lmdb;
pub mod places;
pub mod rocksdb;
mod rocksdb_settings;
pub mod shim;
mod shimmed;
pub mod sqlite;
mod sqlite_connection;
pub mod traced;
pub mod wiredtiger;

pub use places::setup_dir;

use crate::engine::Engine;
use crate::external;
use anyhow::Result;

/// Engines that take part by default, in the order of the table's columns.
pub const NAMES: &[&str] = &[
    "esker",
    "lmdb",
    "leveldb",
    "hyperleveldb",
    "basho",
    "rocksdb",
    "rocksdb-prefix",
    "sqlite",
    "bdb",
    "kyoto",
    "wiredtiger",
    "wiredtiger-lsm",
    "redb",
    "fjall",
    "sled",
    "bf-tree",
    "libmdbx",
];

/// Runs `$body` with `$engine` as the type of the engine called `$name`, with the library that the name
/// stands for; `None` when there is none.
macro_rules! with_engine {
    ($name:expr, $engine:ident => $body:expr) => {
        $crate::engines::with_engine!($name, $engine => $body, of
            "esker" => $crate::engines::esker::Esker,
            "lmdb" => $crate::engines::lmdb::Lmdb,
            "leveldb" => $crate::engines::leveldb::LevelDb,
            "hyperleveldb" => $crate::engines::leveldb::HyperLevelDb,
            "basho" => $crate::engines::leveldb::BashoLevelDb,
            "rocksdb" => $crate::engines::rocksdb::RocksDb<false>,
            "rocksdb-prefix" => $crate::engines::rocksdb::RocksDb<true>,
            "sqlite" => $crate::engines::sqlite::Sqlite,
            "bdb" => $crate::engines::bdb::BdbStore,
            "kyoto" => $crate::engines::kyoto::Kyoto,
            "wiredtiger" => $crate::engines::wiredtiger::BTreeStore,
            "wiredtiger-lsm" => $crate::engines::wiredtiger::LsmStore,
            "fake" => $crate::engines::fake::Fake
        )
    };
    ($name:expr, $engine:ident => $body:expr, of $($known:literal => $store:ty),*) => {
        match $crate::engines::built::choose($name) {
            $($known => Some({
                type $engine = $store;
                $body
            }),)*
            _ => None,
        }
    };
}
pub(crate) use with_engine;

/// Whether there is an engine of that name.
pub fn exists(name: &str) -> bool {
    NAMES.contains(&name) || name == "fake" || built::other_names().any(|other| other == name)
}

/// The version of an engine's library, or how to install it.
pub fn version(name: &str) -> Result<String> {
    if external::has(name) {
        return external::version(name);
    }
    with_engine!(name, E => E::version()).unwrap_or_else(|| anyhow::bail!("no such engine"))
}

/// Bytes of a write buffer of LevelDB or RocksDB, at most, where no document has another. A larger one is slower to fill, to search
/// and to read back after a kill.
const MOST_TO_WRITE: u64 = 64 << 20;

/// Bytes as MiB: whole ones, or a part of one.
fn mib(bytes: u64) -> String {
    let mib = bytes as f64 / 1048576.0;
    if mib < 10.0 {
        format!("{} MiB", (mib * 100.0).round() / 100.0)
    } else {
        format!("{mib:.0} MiB")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distributions_library_has_a_name_of_its_own() {
        assert_eq!(built::plain("lmdb-system"), "lmdb");
        assert_eq!(built::plain("wiredtiger-lsm"), "wiredtiger-lsm");
        for name in built::other_names() {
            assert!(exists(&name) && NAMES.contains(&built::plain(&name)), "{name}");
        }
        assert!(!exists("esker-system") && !exists("-system") && !exists("lmdb-default"));
    }
}
