//! Where engines are that no package manager installs, and what else is built for engines.

use std::env::{temp_dir, var_os};
use std::path::PathBuf;

/// The directory that `--setup` builds into and engines are looked for in: `$ESKER_BENCH_ENGINES`,
/// or `esker-bench` in the user's cache.
pub fn setup_dir() -> PathBuf {
    // An empty variable is as good as none (XDG Base Directory Specification).
    let set = |name| var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("ESKER_BENCH_ENGINES").unwrap_or_else(|| {
        let cache = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")));
        cache.unwrap_or_else(temp_dir).join("esker-bench")
    })
}
