//! A file that a command is to write when everything is measured. That it can be made is known
//! before; what is in it stays until there is something to take its place.

use anyhow::{Context, Result};
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Such a file, open. It goes again if it was not there before and nothing is written.
#[derive(Debug)]
pub struct OutFile {
    path: PathBuf,
    file: File,
    is_new: bool,
}

impl OutFile {
    /// Opens it, or makes it if it is not there.
    pub fn open(path: &Path) -> Result<OutFile> {
        let (file, is_new) = match File::options().write(true).create_new(true).open(path) {
            Err(e) if e.kind() == ErrorKind::AlreadyExists => {
                (File::options().write(true).create(true).truncate(false).open(path), false)
            }
            file => (file, true),
        };
        let file = file.with_context(|| format!("cannot write {}", path.display()))?;
        Ok(OutFile { path: path.to_path_buf(), file, is_new })
    }
    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
    /// Whether something would be lost by writing it.
    pub fn has_content(&self) -> bool {
        self.file.metadata().is_ok_and(|data| data.is_file() && data.len() > 0)
    }
    /// Writes all of it.
    pub fn write(mut self, content: &[u8]) -> Result<()> {
        self.is_new = false;
        self.replace(content).with_context(|| format!("cannot write {}", self.path.display()))
    }

    fn replace(&mut self, content: &[u8]) -> io::Result<()> {
        // A pipe has no length.
        if self.file.metadata()?.is_file() {
            self.file.set_len(0)?;
        }
        self.file.write_all(content)
    }
}

impl Drop for OutFile {
    fn drop(&mut self) {
        // Somebody else may have put a file there meanwhile, such as `--out` in the same directory.
        let is_empty = || std::fs::metadata(&self.path).is_ok_and(|data| data.len() == 0);
        if self.is_new && is_empty() {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}
