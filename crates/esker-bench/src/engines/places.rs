//! Where files that the benchmark makes for its engines are kept between runs.

use std::env::{temp_dir, var_os};
use std::path::PathBuf;

/// The directory for what is built once and loaded later: `$ESKER_BENCH_ENGINES`, or
/// `esker-bench` below the user's cache.
pub fn setup_dir() -> PathBuf {
    // An empty variable is as good as none (XDG Base Directory Specification).
    let set = |name| var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("ESKER_BENCH_ENGINES")
        .or_else(|| Some(set("XDG_CACHE_HOME")?.join("esker-bench")))
        .or_else(|| Some(set("HOME")?.join(".cache/esker-bench")))
        .unwrap_or_else(|| temp_dir().join("esker-bench"))
}
