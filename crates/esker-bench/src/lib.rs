//! Benchmarks of embedded key-value stores: Esker beside the others, in one run, under one set of
//! rules.
//!
//! - Every engine gets the same data ([`data`]), memory, compression switch and durability, and is
//!   called in the way its own manual calls fastest: one adapter a file in [`engines`], behind the
//!   traits of [`engine`].
//! - Each engine and case ([`plan`], [`cases`]) runs in a fresh process and directory; what crashes
//!   fails its own rows only ([`process`], [`mod@run`]).
//! - After each load the whole store is compared with what must be in it; a row with lost or wrong
//!   data does not count.
//! - The machine's own limits are measured in the same run ([`machine`]).
//!
//! Peers that are crates, and would make every build of Esker longer, are adapted in a program of its
//! own ([`external`]); what is not installed, `--setup` installs ([`setup`]).
//!
//! [`run_and_report`] measures, [`report`] shows. The process that measures is this executable again:
//! whoever calls [`run_and_report`] routes a hidden command to [`child_main`].
#![allow(rustdoc::private_intra_doc_links)]

mod audit;
mod audited;
pub mod calls;
mod cases;
mod cgroup;
mod chains;
mod child;
pub mod conformance;
mod data;
mod device;
pub mod engine;
mod engines;
pub mod external;
mod first;
mod interval;
mod machine;
mod measure;
mod memory;
mod options;
mod out_file;
mod over_time;
mod plan;
mod process;
mod progress;
mod protocol;
mod published;
mod quiet;
pub mod report;
mod rest;
mod results;
mod root;
mod run;
mod runner;
mod setup;
mod space;
mod suites;
mod system;
mod trust;
mod tuning;
mod turns;

pub use child::child_main;
pub use data::{FileFormat, KeyShape, ValueSize};
pub use options::BenchOptions;
pub use report::BenchCommand;
pub use results::{Cell, Results};
pub use suites::Suite;
pub use trust::TrustArgs;

use anyhow::{Context, Result, bail, ensure};
use out_file::OutFile;
use std::io::Write;
use std::path::Path;

/// All that a command does: measures, prints the table, writes the files that were asked for.
/// Whether every row that was measured counts.
pub fn run_and_report(options: &BenchOptions, child_command: &[String]) -> Result<bool> {
    if options.setup {
        let engines = options.engine_names()?;
        return setup::run(&engines, options.source.as_deref()).map(|()| true);
    }
    if options.list {
        return list(options).map(|()| true);
    }
    let on_stdout = options.json.as_deref() == Some(Path::new("-"));
    let file = options.json.as_deref().filter(|_| !on_stdout).map(OutFile::open).transpose()?;
    let mut log = match &options.out {
        Some(dir) => report::Log::into_dir(dir),
        None => report::Log::nowhere(),
    };
    let results = run::measure(options, child_command, &mut log)?;
    drop(log);
    let mut lines = Vec::new();
    report::write_json_lines(&results, &mut lines)?;
    let table = report::table(&results);
    let said = if on_stdout {
        let said = say(&String::from_utf8_lossy(&lines));
        let _ = std::io::stderr().write_all(table.as_bytes());
        said
    } else {
        say(&table)
    };
    let written = match file {
        Some(file) if results.is_empty() && file.has_content() => report::kept(file.path()),
        Some(file) => file.write(&lines),
        None => Ok(()),
    };
    let reported = options.out.as_deref().map_or(Ok(()), |dir| report::write(dir, &results));
    // One that fails is no reason to keep the others back.
    let errors = [said, written, reported].into_iter().filter_map(Result::err);
    let errors: Vec<String> = errors.map(|e| format!("{e:#}")).collect();
    ensure!(errors.is_empty(), "{}", errors.join("; "));
    if results.interrupted {
        bail!("interrupted; what was measured until then is reported, and the stores are removed");
    }
    Ok(results.all_well())
}

/// Prints; a reader that has seen enough and is gone is no error.
pub fn say(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => Err(e).context("cannot print"),
        _ => Ok(()),
    }
}

fn list(options: &BenchOptions) -> Result<()> {
    let mut text = String::new();
    let names = engines::NAMES.iter().map(|name| ("engine", name.to_string()));
    for (word, name) in names.chain(engines::built::other_names().map(|name| ("also", name))) {
        let version = engines::version(&name).unwrap_or_else(|e| format!("{e:#}"));
        text.push_str(&format!("{word} {name}: {version}\n"));
    }
    let sections = options.sections(&options.base_without_file()?);
    for section in &run::wanted_sections(options, sections)? {
        text.push_str(&format!("{}/{}: {}\n", section.suite, section.id, section.title));
        for place in section.places() {
            text.push_str(&format!("  {}\n", place.row.path()));
        }
    }
    say(&text)
}
