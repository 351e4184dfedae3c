//! The adapters, one file per engine, and the list of them. A new engine is a file, a line in
//! [`with_engine!`] and a name in [`NAMES`]. Those that are crates are in a program of their own
//! ([`crate::external`]).

pub mod esker;
pub mod fake;
pub mod leveldb;
pub mod library;
pub mod lmdb;
pub mod places;

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
    "redb",
    "fjall",
    "sled",
    "bf-tree",
    "libmdbx",
];

/// Runs `$body` with `$engine` as the type of the engine called `$name`; `None` when there is none.
macro_rules! with_engine {
    ($name:expr, $engine:ident => $body:expr) => {
        match $name {
            "esker" => Some({
                type $engine = $crate::engines::esker::Esker;
                $body
            }),
            "lmdb" => Some({
                type $engine = $crate::engines::lmdb::Lmdb;
                $body
            }),
            "leveldb" => Some({
                type $engine = $crate::engines::leveldb::LevelDb;
                $body
            }),
            "hyperleveldb" => Some({
                type $engine = $crate::engines::leveldb::HyperLevelDb;
                $body
            }),
            "basho" => Some({
                type $engine = $crate::engines::leveldb::BashoLevelDb;
                $body
            }),
            "fake" => Some({
                type $engine = $crate::engines::fake::Fake;
                $body
            }),
            _ => None,
        }
    };
}
pub(crate) use with_engine;

/// Whether there is an engine of that name.
pub fn exists(name: &str) -> bool {
    NAMES.contains(&name) || name == "fake"
}

/// The version of an engine's library, or how to install it.
pub fn version(name: &str) -> Result<String> {
    if external::has(name) {
        return external::version(name);
    }
    with_engine!(name, E => E::version()).unwrap_or_else(|| anyhow::bail!("no such engine"))
}
