//! `esker-bench audit`: what a row's timed loop calls of an engine, and what the adapter makes of each call. The
//! row is run as always, but on few entries and behind a wrapper that counts ([`crate::audited`]).

use crate::calls::{Call, Called, Counts};
use crate::chains;
use crate::engines;
use crate::options::BenchOptions;
use crate::plan::{Case, Row};
use crate::process;
use crate::protocol::{Message, Sample, Spec};
use crate::root::Root;
use crate::suites::{Section, Suite};
use anyhow::{Context, Result, bail};
use clap::Parser;
use std::fmt::Write;
use std::time::Duration;

/// What is audited.
#[derive(Debug, clap::Args)]
pub struct AuditArgs {
    /// The row, by name, or with its suite and section: `readrandom`, `leveldb2011/1/Random Reads`
    #[arg(long, value_name = "NAME")]
    row: String,
    /// The engine
    #[arg(long, value_name = "NAME")]
    engine: String,
}

/// The part of the usual entries, seconds and stores that an audit is content with.
const SCALE: &str = "0.002";
/// Seconds after which it is given up.
const PATIENCE: Duration = Duration::from_secs(120);

/// The options of a run, as an audit has them.
#[derive(Parser)]
struct Run {
    #[command(flatten)]
    options: BenchOptions,
}

/// Runs the row and tells; `command` starts this executable as a child.
pub fn answer(args: &AuditArgs, command: &[String]) -> Result<String> {
    let mut options =
        Run::try_parse_from(["audit", "--scale", SCALE, "--row-seconds", "2"])?.options;
    // Not by the parser, which takes a comma in a name for the end of it.
    options.rows = vec![args.row.clone()];
    options.engines = vec![args.engine.clone()];
    options.engine_names()?;
    engines::version(&args.engine)?;
    let base = options.base_without_file()?;
    let sections = Suite::All.sections(&base);
    let (section, case, row) = find(&options, &sections)
        .with_context(|| format!("no row is called {}; --list --suite all shows them", args.row))?;
    let seen = measure(args, command, case, &row.key)?;
    let sample =
        seen.sample.with_context(|| format!("{} reported nothing of {}", args.engine, row.key))?;
    if let Some(why) = &sample.failed {
        bail!("{why}");
    }
    let mut text = format!("{}/{}/{}, {}\n", section.suite, section.id, row.name, args.engine);
    let _ = writeln!(text, "opened with: {}\n", sample.settings);
    text.push_str(&seen.calls.context("the process said nothing of its calls")?.told());
    Ok(text)
}

/// The first row that is meant, and where it stands.
fn find<'a>(
    options: &BenchOptions,
    sections: &'a [Section],
) -> Option<(&'a Section, &'a Case, &'a Row)> {
    let cases = sections.iter().flat_map(|s| s.cases.iter().map(move |case| (s, case)));
    let mut engines = cases.filter(|(_, case)| !case.id.is_machine());
    engines.find_map(|(section, case)| {
        let row = case.rows.iter().find(|row| options.wants_row(row))?;
        Some((section, case, row))
    })
}

#[derive(Debug, Default)]
struct Seen {
    sample: Option<Sample>,
    calls: Option<Called>,
}

/// Runs the case, process by process as it always does, for that row alone.
fn measure(args: &AuditArgs, command: &[String], case: &Case, row: &str) -> Result<Seen> {
    let root = Root::make(None)?;
    let mut seen = Seen::default();
    let mut alone = case.clone();
    alone.rows.retain(|of_case| of_case.key == row);
    for process in chains::of(&alone).iter().flat_map(|chain| &chain.processes) {
        let store = root.path().join("store");
        std::fs::create_dir_all(&store)?;
        let spec = Spec { audit: true, ..process.spec(case, &args.engine, store.join("db")) };
        let mut is_here = false;
        process::run(command, &spec, process.step, PATIENCE, &mut |message| match message {
            Message::Row(sample) if sample.row == row => {
                seen.sample = Some(*sample);
                is_here = true;
            }
            // The process that reports the row is the one that timed it.
            Message::Called(called) if is_here => seen.calls = Some(called),
            _ => {}
        })?;
    }
    root.close()?;
    Ok(seen)
}

impl Called {
    /// For people.
    fn told(&self) -> String {
        let mut text = String::new();
        let Counts { timed, others, library, ops } = &self.counts;
        if timed.is_empty() {
            text.push_str("Nothing is called in a timed loop: the figure is not one of calls.\n");
        } else {
            let _ = writeln!(
                text,
                "Timed, for each of {ops} operations (all that the case times with it):"
            );
        }
        let each = |times: u64| times as f64 / (*ops).max(1) as f64;
        for (call, times) in timed {
            let _ = writeln!(text, "{:>12.3}  {}", each(*times), self.line(*call));
        }
        let of_library: Vec<_> = library.iter().filter(|(_, timed, _)| *timed > 0).collect();
        if !of_library.is_empty() {
            text.push_str("of the library, for each operation:\n");
        }
        for (name, times, _) in of_library {
            let _ = writeln!(text, "{:>12.3}  {name}", each(*times));
        }
        text.push_str("\nNot timed, in all:\n");
        for (call, times) in others {
            let _ = writeln!(text, "{times:>12}  {}", self.line(*call));
        }
        text
    }

    fn line(&self, call: Call) -> String {
        let known = self.mapping.iter().find(|(of, _)| *of == call);
        let api = match known {
            Some((_, api)) => api.as_str(),
            None if self.counts.library.is_empty() => "its adapter does not say what it calls",
            None => "",
        };
        format!("{:<18}{api}", call.name()).trim_end().to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Engine;
    use crate::engines::{bdb::BdbStore, esker::Esker, wiredtiger::BTreeStore};

    #[test]
    fn adapters_whose_calls_nobody_can_count_tell_all_of_them() {
        for mapping in [Esker::calls(), BdbStore::calls(), BTreeStore::calls()] {
            for &(call, name) in Call::ALL {
                let lines: Vec<_> = mapping.iter().filter(|(of, _)| *of == call).collect();
                assert!(matches!(lines[..], [(_, api)] if !api.is_empty()), "{name}: {lines:?}");
            }
        }
    }

    #[test]
    fn what_is_told_is_per_operation() {
        let counts = Counts {
            timed: vec![(Call::Get, 300)],
            others: vec![(Call::Open, 1)],
            library: vec![("x_get".to_string(), 600, 1), ("x_open".to_string(), 0, 1)],
            ops: 300,
        };
        let told = Called { counts, mapping: vec![(Call::Open, "x_open".to_string())] }.told();
        for line in
            ["       1.000  get", "       2.000  x_get", "           1  open              x_open"]
        {
            assert!(told.lines().any(|l| l == line), "{told}");
        }
    }
}
