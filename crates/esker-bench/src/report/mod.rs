//! The result, for people and for programs.

mod bars;
mod chart;
mod cli;
mod columns;
mod compare;
mod documents;
mod first;
mod format;
mod html;
mod input;
mod json;
mod latency;
mod layout;
mod lines;
mod log;
pub(crate) mod markdown;
mod model;
mod over_time;
mod palette;
mod picture;
mod ratios;
mod record;
mod scale;
mod settings;
mod standing;
mod strips;
mod svg;
mod table;
mod text;

pub use cli::{Answer, BenchCommand, CompareArgs, ReportArgs};
pub use compare::{Comparison, Line, Verdict, compare};
pub use json::write_json_lines;
pub use log::Log;
pub use table::table;

use crate::results::Results;
use anyhow::{Context, Result};
use first::First;
use model::Model;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Writes everything to a directory: the results, folded over their repetitions, and the reports that
/// are made of them. A run that measured nothing takes the place of none that did.
pub fn write(dir: &Path, results: &Results) -> Result<()> {
    let path = dir.join(input::FILE_NAME);
    if results.is_empty() && path.exists() {
        return kept(&path);
    }
    let mut lines = Vec::new();
    write_json_lines(results, &mut lines)?;
    if lines.is_empty() {
        // Nothing was measured, so there is nothing to draw.
        return replace(&dir.join("table.txt"), table(results).as_bytes());
    }
    replace(&path, &lines)?;
    replace(&dir.join("table.txt"), table(results).as_bytes())?;
    write_all(dir).map(|_| ())
}

/// Draws everything from the `results.jsonl` of a directory, beside it.
pub fn write_all(dir: &Path) -> Result<Vec<PathBuf>> {
    let model = Model::new(input::read(dir)?);
    let write = |(name, content): (String, String)| {
        let path = dir.join(name);
        replace(&path, content.as_bytes()).map(|()| path)
    };
    files(&model).into_iter().map(write).collect()
}

/// The reports and their pictures, by the names of their files.
fn files(model: &Model) -> Vec<(String, String)> {
    let (machine, unquiet) = (model.machine_line(), model.caution());
    let mut files = vec![("report.html".to_string(), html::render(model))];
    for (suite, of) in model.suites() {
        let chart = chart::of_suite(suite, of, &machine, unquiet.as_deref());
        files.push((chart::file_name(suite), chart));
    }
    if let Some(picture) = first::picture::draw(&First::of(model), &machine, unquiet.as_deref()) {
        files.push((first::picture::FILE_NAME.to_string(), picture));
    }
    files.push(("report.md".to_string(), markdown::render(model)));
    files
}

/// Says that the results of an earlier run are still there.
pub(crate) fn kept(path: &Path) -> Result<()> {
    let path = path.display();
    let _ = writeln!(std::io::stderr(), "nothing was measured: {path} is that of an earlier run");
    Ok(())
}

/// What a file is called until it is whole, or has anything in it.
fn new_name(path: &Path) -> PathBuf {
    path.with_extension("new")
}

/// Whoever reads the file meanwhile sees the old one or the new one, whole.
fn replace(path: &Path, content: &[u8]) -> Result<()> {
    let new = new_name(path);
    std::fs::write(&new, content)
        .and_then(|()| std::fs::rename(&new, path))
        .with_context(|| format!("cannot write {}", path.display()))
}
