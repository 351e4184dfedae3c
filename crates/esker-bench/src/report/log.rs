//! Results as they come, so that a crash leaves what was measured. A row that is measured again gets
//! another line; the last one counts.

use super::{input, json};
use crate::results::{Cell, Place, Results};
use anyhow::{Context, Result};
use std::fs::File;
use std::io::Write;
use std::path::Path;

/// Where results go as soon as they are there.
#[derive(Debug)]
pub struct Log {
    file: Option<File>,
}

impl Log {
    /// Nowhere.
    pub fn nowhere() -> Self {
        Log { file: None }
    }
    /// Into a new `results.jsonl` of a directory, which is made if it is not there.
    pub fn create(dir: &Path) -> Result<Self> {
        std::fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
        let path = dir.join(input::FILE_NAME);
        let file =
            File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Log { file: Some(file) })
    }
    /// Adds what is known of an engine in a row. If that fails, the run goes on without: hours of
    /// measuring are not thrown away for a file that is written again at the end.
    pub fn add(&mut self, results: &Results, place: Place<'_>, engine: &str) {
        let Some(file) = &mut self.file else { return };
        if matches!(results.cell(engine, place.row), Cell::Nothing) {
            return;
        }
        let mut line = Vec::new();
        // One call a line: what a crash cuts off is whole lines.
        let written = json::write_line(results, place, engine, &mut line)
            .and_then(|()| file.write_all(&line));
        if let Err(e) = written {
            eprintln!("cannot write results.jsonl as results come: {e}");
            self.file = None;
        }
    }
}
