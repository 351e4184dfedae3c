//! Results as they come, so that a crash leaves what was measured. A row that is measured again gets
//! another line; the last one counts.

use super::{input, json};
use crate::results::{Place, Results};
use anyhow::{Context, Result, ensure};
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Where results go as soon as they are there.
#[derive(Debug)]
pub struct Log {
    dir: Option<PathBuf>,
    file: Option<File>,
    /// What the file is called, and what it is to be called, until a result is in it.
    names: Option<(PathBuf, PathBuf)>,
}

impl Log {
    /// Nowhere.
    pub fn nowhere() -> Self {
        Log { dir: None, file: None, names: None }
    }
    /// Into a new `results.jsonl` of a directory. The one of an earlier run stays until this one has
    /// a result.
    pub fn into_dir(dir: &Path) -> Self {
        Log { dir: Some(dir.to_path_buf()), file: None, names: None }
    }
    /// Makes the directory if it is not there, and a file beside the results of an earlier run. To
    /// be called when nothing else can keep the run from measuring.
    pub fn open(&mut self) -> Result<()> {
        let Some(dir) = &self.dir else { return Ok(()) };
        std::fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
        let path = dir.join(input::FILE_NAME);
        ensure!(!path.is_dir(), "cannot write {}: it is a directory", path.display());
        let new = super::new_name(&path);
        let file = File::create(&new).with_context(|| format!("cannot write {}", new.display()))?;
        self.file = Some(file);
        self.names = Some((new, path));
        Ok(())
    }
    /// Adds what is known of an engine in a row. If that fails, the run goes on without: hours of
    /// measuring are not thrown away for a file that is written again at the end.
    pub fn add(&mut self, results: &Results, place: Place<'_>, engine: &str) {
        if self.file.is_none() {
            return;
        }
        let row = json::row(results, place);
        let Some(record) = row.of(engine) else { return };
        let mut line = Vec::new();
        let written = json::write_line(record, &mut line).and_then(|()| self.write(&line));
        if let Err(e) = written {
            eprintln!("cannot write results.jsonl as results come: {e}");
            self.file = None;
        }
    }
    /// One call a line: what a crash cuts off is whole lines.
    fn write(&mut self, line: &[u8]) -> io::Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        file.write_all(line)?;
        if let Some((new, path)) = &self.names {
            std::fs::rename(new, path)?;
            self.names = None;
        }
        Ok(())
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        if let Some((new, _)) = &self.names {
            let _ = std::fs::remove_file(new);
        }
    }
}
