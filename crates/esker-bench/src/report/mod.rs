//! The result, for people and for programs.

mod bars;
mod chart;
mod cli;
mod compare;
mod documents;
mod footprint;
mod format;
pub mod html;
mod input;
mod json;
mod latency;
mod layout;
mod lines;
pub mod markdown;
mod model;
mod palette;
mod published;
mod ratios;
mod scale;
mod settings;
mod svg;
mod table;
mod text;

pub use cli::{Answer, BenchCommand, CompareArgs, ReportArgs};
pub use compare::{Comparison, Line, Verdict, compare};
pub use json::write_json_lines;
pub use table::table;

use anyhow::Result;
use std::path::{Path, PathBuf};

/// Draws everything from the `results.jsonl` of a directory, beside it.
pub fn write_all(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut written = vec![html::write(dir)?];
    written.extend(markdown::write(dir)?);
    Ok(written)
}
