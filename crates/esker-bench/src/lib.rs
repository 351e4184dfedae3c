//! Benchmarks of embedded key-value stores: Esker beside the others, in one run, under one set of
//! rules.
//!
//! - Every engine gets the same data ([`data`]), memory, compression switch and durability, and is
//!   called in the way its own manual calls fastest: one adapter a file in [`engines`], behind the
//!   traits of [`engine`].
//! - Each engine and case ([`plan`], [`cases`]) runs in a fresh process and directory; what crashes
//!   fails its own rows only ([`process`], [`run`]).
//! - After each load the whole store is compared with what must be in it; a row with lost or wrong
//!   data does not count.
//! - The machine's own limits are measured in the same run ([`machine`]).
//!
//! [`run()`] measures, [`report`] shows. The process that measures is this executable again:
//! whoever calls [`run()`] routes a hidden command to [`child_main`].
#![allow(rustdoc::private_intra_doc_links)]

mod cases;
mod cgroup;
mod child;
mod data;
mod engine;
mod engines;
mod machine;
mod measure;
mod options;
mod plan;
mod process;
mod protocol;
pub mod report;
mod results;
mod run;
mod system;

pub use child::child_main;
pub use data::{KeyShape, ValueSize};
pub use options::BenchOptions;
pub use report::BenchCommand;
pub use results::{Cell, Results};
pub use run::run;

use anyhow::{Context, Result};
use std::fs::File;
use std::io::Write;
use std::path::Path;

/// All that a command does: measures, prints the table, writes the files that were asked for.
/// Whether every row that was measured counts.
pub fn run_and_report(options: &BenchOptions, child_command: &[String]) -> Result<bool> {
    if options.list {
        return list(options).map(|()| true);
    }
    let results = run(options, child_command)?;
    let table = report::table(&results);
    match &options.json {
        Some(path) if path == Path::new("-") => {
            report::write_json_lines(&results, &mut std::io::stdout().lock())?;
            eprint!("{table}");
        }
        Some(path) => {
            let mut file = create(path)?;
            report::write_json_lines(&results, &mut file)?;
            print!("{table}");
        }
        None => print!("{table}"),
    }
    if let Some(path) = &options.out {
        create(path)?.write_all(table.as_bytes())?;
    }
    Ok(results.all_well())
}

fn create(path: &Path) -> Result<File> {
    File::create(path).with_context(|| format!("cannot write {}", path.display()))
}

fn list(options: &BenchOptions) -> Result<()> {
    for name in engines::NAMES {
        let version = engines::version(name).unwrap_or_else(|e| format!("{e:#}"));
        println!("engine {name}: {version}");
    }
    for case in plan::cases(&options.plan()?) {
        for row in case.rows {
            println!("{}", row.name);
        }
    }
    Ok(())
}
