//! What the parts of a set-up are given, and what each says of itself.

use anyhow::Result;
use std::path::{Path, PathBuf};

/// What a part is given.
pub struct Place<'a> {
    /// Where engines are built into.
    pub dir: PathBuf,
    /// Where the sources of Esker are, if somebody said so.
    pub source: Option<&'a Path>,
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
