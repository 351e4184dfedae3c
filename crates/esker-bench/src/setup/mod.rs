//! `--setup`: installs or builds every engine that is missing. What is there already stays; what
//! fails says why, and the rest goes on.

mod command;
mod forks;
mod packages;
mod program;
mod shims;

use crate::engines::places::setup_dir;
use anyhow::{Context, Result, bail};
use std::io::Write;
use std::path::{Path, PathBuf};

/// What a step is given.
pub struct Place<'a> {
    /// Where engines are built into.
    pub dir: PathBuf,
    /// Where the sources of Esker are, if somebody said so.
    pub source: Option<&'a Path>,
}

/// What came of a part of a step.
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

/// A step: engines that are installed in one way.
pub struct Step {
    /// What it installs, as its line begins.
    pub name: &'static str,
    /// Does it; a line for each of its parts.
    pub run: fn(&Place) -> Vec<(String, Outcome)>,
}

/// All of it, in this order. A new way to install engines is a line here.
pub const STEPS: &[Step] = &[
    Step { name: "packages", run: packages::install },
    Step { name: "shims", run: shims::compile },
    Step { name: "forks of LevelDB", run: forks::build },
    Step { name: "engines that are crates", run: program::build },
];

/// Runs all steps and says what they did; an error when something failed.
pub fn run(source: Option<&Path>) -> Result<()> {
    let place = Place { dir: setup_dir(), source };
    std::fs::create_dir_all(&place.dir)
        .with_context(|| format!("cannot make {}", place.dir.display()))?;
    let mut out = std::io::stdout();
    writeln!(out, "engines are built into {}", place.dir.display())?;
    let mut failed = 0;
    for step in STEPS {
        // Said before, as it may take minutes.
        writeln!(out, "{} ...", step.name)?;
        for (what, outcome) in (step.run)(&place) {
            let told = match outcome {
                Outcome::Present(how) => format!("already there ({how})"),
                Outcome::Installed(how) => format!("installed ({how})"),
                Outcome::Failed(why) => {
                    failed += 1;
                    format!("failed: {}", why.replace('\n', "\n    "))
                }
            };
            writeln!(out, "  {what}: {told}")?;
        }
    }
    if failed > 0 {
        bail!("{failed} could not be installed, as said above; the rest is there");
    }
    Ok(())
}
