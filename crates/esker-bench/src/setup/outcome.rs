//! What the parts of a set-up are given, and what each says of itself.

use anyhow::Result;
use std::path::{Path, PathBuf};

/// What a part is given.
pub struct Place<'a> {
    /// Where engines are built into.
    pub dir: PathBuf,
    /// The engines that are asked for.
    pub engines: &'a [String],
    /// Where the sources of Esker are, if somebody said so.
    pub source: Option<&'a Path>,
}

impl Place<'_> {
    /// Whether `engine` is asked for, itself or as one of its variants: `rocksdb` is for `rocksdb-prefix`.
    pub fn wants(&self, engine: &str) -> bool {
        let variant = |name: &str| name.strip_prefix(engine).is_some_and(|v| v.starts_with('-'));
        self.engines.iter().any(|name| name == engine || variant(name))
    }
}

/// What came of a part.
pub enum Outcome {
    /// Nothing was to be done.
    Present(String),
    /// It was installed or built.
    Installed(String),
    /// It was not, and why.
    Failed(String),
}

impl Outcome {
    /// A result told as an outcome.
    pub fn of(result: Result<Outcome>) -> Outcome {
        result.unwrap_or_else(|e| Outcome::Failed(format!("{e:#}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variant_asks_for_its_engine() {
        let engines = ["rocksdb-prefix", "leveldb-default", "bf-tree"].map(String::from);
        let place = Place { dir: PathBuf::new(), engines: &engines, source: None };
        for wanted in ["rocksdb", "leveldb", "bf-tree"] {
            assert!(place.wants(wanted), "{wanted}");
        }
        for unwanted in ["rocks", "hyperleveldb", "lmdb"] {
            assert!(!place.wants(unwanted), "{unwanted}");
        }
    }
}
