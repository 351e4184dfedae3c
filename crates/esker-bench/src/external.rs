//! Engines whose adapters are in another program: crates that would make every build of Esker
//! longer. That program speaks the same protocol as this one's child, and is made of one call:
//!
//! ```no_run
//! # use esker_bench::external::{self, Visit};
//! # use esker_bench::engine::Engine;
//! # fn main_of<Redb: Engine + 'static>() -> std::process::ExitCode {
//! external::main(|name, visit: Visit| match name {
//!     "redb" => visit.engine::<Redb>(),
//!     _ => visit.unknown(),
//! })
//! # }
//! ```

use crate::child::{Ctx, child_main_with, obey, run_engine};
use crate::engine::Engine;
use crate::engines::places::setup_dir;
use crate::trust;
use anyhow::{Context, Result, bail};
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

/// The program.
pub const PROGRAM: &str = "esker-bench-engines";

/// Its engines.
pub const NAMES: &[&str] = &["redb", "fjall", "sled", "bf-tree", "libmdbx"];

/// Its command that runs a case.
pub const CHILD: &str = "bench-child";

/// Its command that says which version of an engine it has.
const VERSION: &str = "version";

/// Whether an engine is one of that program's.
pub fn has(engine: &str) -> bool {
    NAMES.contains(&engine)
}

/// Where the program is.
pub fn program() -> Result<PathBuf> {
    let path = setup_dir().join(PROGRAM);
    if !path.is_file() {
        bail!("not installed: esker bench --setup");
    }
    Ok(path)
}

/// The version of one of its engines.
pub fn version(engine: &str) -> Result<String> {
    let path = program()?;
    let output = Command::new(&path)
        .args([VERSION, engine])
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot start {}", path.display()))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_string();
    if !output.status.success() {
        let why = text(&output.stderr);
        bail!("{} is of no use ({why}); esker bench --setup builds it anew", path.display());
    }
    Ok(text(&output.stdout))
}

/// What is to be done with an engine, once its type is known.
pub struct Visit<'a, 'b>(Task<'a, 'b>);

enum Task<'a, 'b> {
    Run(&'a Ctx<'b>),
    Trust(&'a trust::Job),
    Version,
}

impl Visit<'_, '_> {
    /// This is the engine.
    pub fn engine<E: Engine + 'static>(self) -> Result<()> {
        match self.0 {
            Task::Run(ctx) => run_engine::<E>(ctx),
            Task::Trust(job) => trust::run_job::<E>(job),
            Task::Version => {
                println!("{}", E::version()?);
                Ok(())
            }
        }
    }
    /// There is no engine of that name.
    pub fn unknown(self) -> Result<()> {
        bail!("this program has no engine of that name")
    }
}

/// The whole of a program of engines: does what its arguments say, with the engine that `find`
/// shows.
pub fn main(find: impl Fn(&str, Visit) -> Result<()>) -> ExitCode {
    let mut args = std::env::args().skip(1).peekable();
    match args.next().as_deref() {
        Some(CHILD) if args.next_if(|word| word == trust::WORD).is_some() => {
            let run = |job: &trust::Job| find(&job.engine, Visit(Task::Trust(job)));
            ExitCode::from(obey(args, run) as u8)
        }
        Some(CHILD) => {
            let run = |ctx: &Ctx| find(&ctx.spec.engine, Visit(Task::Run(ctx)));
            ExitCode::from(child_main_with(args, run) as u8)
        }
        Some(VERSION) => match find(&args.next().unwrap_or_default(), Visit(Task::Version)) {
            Ok(()) => ExitCode::SUCCESS,
            Err(e) => {
                eprintln!("{e:#}");
                ExitCode::FAILURE
            }
        },
        _ => {
            eprintln!("{PROGRAM} is started by esker bench; it does nothing by itself");
            ExitCode::FAILURE
        }
    }
}
