//! The libraries that `--setup` makes, one version of each, so that everybody measures the same; and whose library an
//! engine is measured with: that one where it was made, otherwise the distribution's. The name of an engine
//! with [`SYSTEM`] behind it stands for the distribution's in any case, with [`DEFAULT`] for the engine as it comes.

use super::library::load_built;
use super::places::setup_dir;
use anyhow::Result;
use libloading::Library;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// A library that `--setup` makes, in a directory of its own.
pub struct Built {
    /// The library, as its directory is called.
    pub name: &'static str,
    /// Its version, the other half of the directory's name: another one never passes for it.
    pub version: &'static str,
    /// Its file.
    pub file: &'static str,
    /// How it was compiled, in a word.
    pub how: &'static str,
}

/// LMDB.
pub const LMDB: Built =
    Built { name: "lmdb", version: "1.0.2", file: "liblmdb.so", how: OPTIMIZED };
/// LevelDB.
pub const LEVELDB: Built =
    Built { name: "leveldb", version: "1.23", file: "libleveldb-crc32c.so", how: RELEASE };
/// HyperLevelDB.
pub const HYPERLEVELDB: Built =
    Built { name: "hyperleveldb", version: "1.0.2", file: "libhyperleveldb.so", how: OPTIMIZED };
/// Basho's LevelDB; the version is that of the package which has its sources.
pub const BASHO: Built =
    Built { name: "basho", version: "0.10.1", file: "libbasholeveldb.so", how: OPTIMIZED };
/// RocksDB.
pub const ROCKSDB: Built =
    Built { name: "rocksdb", version: "11.1.1", file: "librocksdb-crc32c.so", how: RELEASE };
/// SQLite.
pub const SQLITE: Built =
    Built { name: "sqlite", version: "3.54.1", file: "libsqlite3.so", how: OPTIMIZED };
/// WiredTiger.
pub const WIREDTIGER: Built = Built {
    name: "wiredtiger",
    version: "11.3.1",
    file: "libwiredtiger.so.11.3.1",
    how: OPTIMIZED,
};

/// Compiled here, without assertions.
const OPTIMIZED: &str = "-O2";
/// As somebody else compiled it, without assertions; but for checksums (`setup/crc32c.rs`), and so with files of other names
/// than those that were made before.
const RELEASE: &str = "release, crc32c by SSE 4.2";

/// Behind an engine's name: the distribution's library.
pub const SYSTEM: &str = "-system";

/// Engines of which there are both.
const IN_BOTH: &[&str] =
    &["lmdb", "leveldb", "rocksdb", "rocksdb-prefix", "sqlite", "wiredtiger", "wiredtiger-lsm"];

/// Behind an engine's name: nothing is set that the library has a default for, its memory not either; only what a row is
/// about is, compression and when a write is done.
pub const DEFAULT: &str = "-default";

/// Engines whose defaults are far from what their manuals advise for a benchmark.
const WITH_DEFAULTS: &[&str] = &["leveldb", "rocksdb", "sqlite", "wiredtiger"];

/// The tuning that the name of an engine stands for.
pub fn tuning_of(name: &str) -> Option<(String, String)> {
    name.ends_with(DEFAULT).then(|| ("defaults".to_string(), "1".to_string()))
}

/// Whether this process takes the distribution's libraries, whatever was made.
static SYSTEM_ONLY: AtomicBool = AtomicBool::new(false);

/// An engine's name without [`SYSTEM`] or [`DEFAULT`].
pub fn plain(name: &str) -> &str {
    name.strip_suffix(SYSTEM).or(name.strip_suffix(DEFAULT)).unwrap_or(name)
}

/// Makes this process take the library that an engine's name stands for, from now on, where there are two; the [`plain`]
/// name.
pub fn choose(name: &str) -> &str {
    if IN_BOTH.contains(&plain(name)) {
        SYSTEM_ONLY.store(name.ends_with(SYSTEM), Ordering::Relaxed);
    }
    plain(name)
}

/// The names that stand for the distribution's libraries.
pub fn system_names() -> impl Iterator<Item = String> {
    IN_BOTH.iter().map(|name| format!("{name}{SYSTEM}"))
}

/// The names that stand for engines as they come.
pub fn default_names() -> impl Iterator<Item = String> {
    WITH_DEFAULTS.iter().map(|name| format!("{name}{DEFAULT}"))
}

/// All names that are not those of columns unless they are asked for.
pub fn other_names() -> impl Iterator<Item = String> {
    system_names().chain(default_names())
}

impl Built {
    /// Its directory below the one of the set-up.
    pub fn dir_in(&self, root: &Path) -> PathBuf {
        root.join(format!("{}-{}", self.name, self.version))
    }

    /// Its directory.
    pub fn dir(&self) -> PathBuf {
        self.dir_in(&setup_dir())
    }

    /// Whether it is what this process takes: it was made, and the distribution's is not asked for.
    pub fn is_taken(&self) -> bool {
        !SYSTEM_ONLY.load(Ordering::Relaxed) && self.dir().is_dir()
    }

    /// What a library says of its version, and whose build it is.
    pub fn told(&self, version: &str) -> String {
        format!("{version} {}", if self.is_taken() { self.how } else { "system" })
    }

    /// Loads it.
    pub fn load(&self) -> Result<&'static Library> {
        load_built(&self.dir().join(self.file))
    }
}

/// A library's functions, loaded once: from what `--setup` made, and from the distribution's.
pub struct Loaded<A> {
    built: OnceLock<Result<A, String>>,
    system: OnceLock<Result<A, String>>,
}

impl<A> Loaded<A> {
    /// Not loaded yet.
    pub const fn new() -> Loaded<A> {
        Loaded { built: OnceLock::new(), system: OnceLock::new() }
    }

    /// Those of the library that this process takes. `system` finds the distribution's.
    pub fn get(
        &'static self,
        built: &Built,
        system: impl FnOnce() -> Result<&'static Library>,
        functions: fn(&'static Library) -> Result<A>,
    ) -> Result<&'static A> {
        let taken = built.is_taken();
        let load = || if taken { built.load() } else { system() };
        self.get_by(taken, || load().and_then(functions))
    }

    /// What was loaded before from the same place, or is now.
    pub fn get_by(
        &'static self,
        taken: bool,
        load: impl FnOnce() -> Result<A>,
    ) -> Result<&'static A> {
        let place = if taken { &self.built } else { &self.system };
        place
            .get_or_init(|| load().map_err(|e| format!("{e:#}")))
            .as_ref()
            .map_err(|e| anyhow::anyhow!("{e}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_libraries_are_kept_apart() {
        static FUNCTIONS: Loaded<u32> = Loaded::new();
        assert_eq!(*FUNCTIONS.get_by(true, || Ok(1)).unwrap(), 1);
        assert_eq!(*FUNCTIONS.get_by(false, || Ok(2)).unwrap(), 2);
        assert_eq!(*FUNCTIONS.get_by(true, || panic!("it is loaded once")).unwrap(), 1);
    }
}
