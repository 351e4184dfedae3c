//! The result, for people and for programs.

mod json;
mod log;
mod table;

pub use json::write_json_lines;
pub use log::Log;
pub use table::table;

use crate::results::Results;
use anyhow::{Context, Result};
use std::path::Path;

/// Writes everything to a directory: the results, folded over their repetitions, and the reports that
/// are made of them.
pub fn write(dir: &Path, results: &Results) -> Result<()> {
    let mut lines = Vec::new();
    write_json_lines(results, &mut lines)?;
    replace(&dir.join(json::FILE_NAME), &lines)?;
    replace(&dir.join("table.txt"), table(results).as_bytes())
}

/// Whoever reads the file meanwhile sees the old one or the new one, whole.
fn replace(path: &Path, content: &[u8]) -> Result<()> {
    let new = path.with_extension("new");
    std::fs::write(&new, content)
        .and_then(|()| std::fs::rename(&new, path))
        .with_context(|| format!("cannot write {}", path.display()))
}
