//! The whole run: sections, cases, repetitions, engines in turn, each in a process of its own.

use crate::cgroup::MemoryGroup;
use crate::engine::Unsupported;
use crate::engines;
use crate::options::BenchOptions;
use crate::plan::{Case, Row};
use crate::process::{self, INTERRUPTED};
use crate::progress::Progress;
use crate::protocol::{Message, Sample, Spec};
use crate::report::Log;
use crate::results::{Place, Results};
use crate::root::Root;
use crate::suites::Section;
use crate::{space, system};
use anyhow::{Result, bail};
use std::collections::HashSet;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// The name under which the machine's limits are recorded.
pub const MACHINE: &str = "machine";

/// Measures everything that is asked for. `child_command` is how this executable is made to call
/// [`crate::child_main`] with the arguments that follow.
pub fn run(options: &BenchOptions, child_command: &[String]) -> Result<Results> {
    measure(options, child_command, &mut Log::nowhere())
}

/// [`run`], writing each result to `log` as soon as it is there.
pub fn measure(options: &BenchOptions, child_command: &[String], log: &mut Log) -> Result<Results> {
    let names = options.engine_names()?;
    // An error means that somebody else handles Ctrl-C already.
    let _ = ctrlc::set_handler(|| INTERRUPTED.store(true, Ordering::Relaxed));
    let root = Root::make(options.dir.as_deref())?;
    let base = options.base(root.path())?;
    let sections = wanted_sections(options, options.sections(&base))?;
    space::check(root.path(), sections.iter().flat_map(|section| &section.cases))?;

    let mut results = Results::new(&base.plan, &sections, &names, options.repetitions());
    results.read_ahead_kib = system::read_ahead_kib(root.path());
    let mut present = Vec::new();
    for name in &names {
        match engines::version(name) {
            Ok(version) => {
                results.version(name, version);
                present.push(name.clone());
            }
            Err(e) => results.missing(name, format!("{e:#}")),
        }
    }
    let cases: Vec<(&Section, &Case)> =
        sections.iter().flat_map(|s| s.cases.iter().map(move |case| (s, case))).collect();
    let steps = steps(&cases, &present, options.repetitions() as usize);
    let mut runner = Runner {
        child_command,
        root: root.path(),
        timeout: options.timeout,
        progress: Progress::new(steps.clone()),
    };
    let start = Instant::now();
    for (at, (number, engine)) in steps.iter().enumerate() {
        let in_repetition = steps.len() / options.repetitions() as usize;
        let done = at / in_repetition;
        if at % in_repetition == 0 && done > 0 {
            let once_more = start.elapsed().as_secs_f64() * (1.0 + 1.0 / done as f64);
            if options.seconds_to_repeat().is_some_and(|most| once_more > most) {
                results.repetitions = done as u32;
                break;
            }
        }
        let (section, case) = cases[*number];
        runner.case(case, engine, &mut results);
        if INTERRUPTED.load(Ordering::Relaxed) {
            results.interrupted = true;
            break;
        }
        for row in &case.rows {
            log.add(&results, Place { section, case, row }, engine);
        }
    }
    runner.progress.finish();
    root.close()?;
    Ok(results)
}

/// Every case of every repetition with every engine, beginning with another one each time: who comes
/// first finds the machine in another state.
fn steps(
    cases: &[(&Section, &Case)],
    engines: &[String],
    repetitions: usize,
) -> Vec<(usize, String)> {
    let mut steps = Vec::new();
    for repetition in 0..repetitions {
        for (number, (_, case)) in cases.iter().enumerate() {
            if case.id.is_machine() {
                steps.push((number, MACHINE.to_string()));
                continue;
            }
            let mut turn = engines.to_vec();
            if !turn.is_empty() {
                let first = repetition % turn.len();
                turn.rotate_left(first);
            }
            steps.extend(turn.into_iter().map(|engine| (number, engine)));
        }
    }
    steps
}

/// Sections and cases with at least one row that is asked for, with those rows only; and the limits
/// they need.
pub(crate) fn wanted_sections(
    options: &BenchOptions,
    sections: Vec<Section>,
) -> Result<Vec<Section>> {
    let mut wanted = Vec::new();
    for mut section in sections {
        let asked_for = |row: &&Row| options.wants_row(row);
        let engines = section.cases.iter().filter(|case| !case.id.is_machine());
        let needed: HashSet<&str> = engines
            .flat_map(|case| &case.rows)
            .filter(asked_for)
            .filter_map(|row| Some(row.limit?.0))
            .collect();
        let everything = section.suite == "core";
        for case in &mut section.cases {
            let is_machine = case.id.is_machine();
            case.rows.retain(|row| {
                let asked = options.wants_row(row) && (!is_machine || everything);
                asked || (is_machine && needed.contains(row.key.as_str()))
            });
        }
        section.cases.retain(|case| !case.rows.is_empty());
        if !section.cases.is_empty() {
            wanted.push(section);
        }
    }
    if wanted.is_empty() {
        bail!("no row is called {}; --list shows them", options.rows.join(", "));
    }
    Ok(wanted)
}

struct Runner<'a> {
    child_command: &'a [String],
    root: &'a Path,
    timeout: Option<u64>,
    progress: Progress,
}

impl Runner<'_> {
    /// Runs a case with an engine; what fails is recorded as failed. What Ctrl-C cut short is not.
    fn case(&mut self, case: &Case, engine: &str, results: &mut Results) {
        let start = Instant::now();
        let mut seen = HashSet::new();
        let outcome = self.steps(case, engine, &mut |sample| {
            if let Some(row) = case.rows.iter().find(|row| row.key == sample.row)
                && seen.insert(sample.row.clone())
            {
                results.add(engine, row, sample);
            }
        });
        if let Err(e) = outcome
            && !INTERRUPTED.load(Ordering::Relaxed)
        {
            for row in case.rows.iter().filter(|row| !seen.contains(&row.key)) {
                let failed = Some(format!("{e:#}"));
                results.add(engine, row, Sample { failed, ..Sample::figure(&row.key, 0.0) });
            }
        }
        self.progress.done(start);
    }

    fn steps(&self, case: &Case, engine: &str, on: &mut dyn FnMut(Sample)) -> Result<()> {
        let dir = tempfile::Builder::new().prefix("store-").tempdir_in(self.root)?;
        let group = match case.plan.memory_limit.map(MemoryGroup::create).transpose() {
            Ok(group) => group,
            Err(e) => return Err(Unsupported::new(format!("{e:#}")).into()),
        };
        let timeout = Duration::from_secs(self.timeout.unwrap_or(patience(case)?));
        for (number, step) in case.steps().iter().enumerate() {
            let spec = Spec {
                engine: engine.to_string(),
                case: case.id,
                step: number,
                rows: case.rows.iter().map(|row| row.key.clone()).collect(),
                dir: dir.path().join("db"),
                cgroup: group.as_ref().map(|g| g.path().to_path_buf()),
                audit: false,
                plan: case.plan.clone(),
            };
            let outcome =
                process::run(self.child_command, &spec, *step, timeout, &mut |m| match m {
                    Message::Row(sample) => on(*sample),
                    Message::Doing { what } => self.progress.doing(engine, &what),
                    Message::Ready | Message::Called { .. } => {}
                });
            if let (Err(e), Some(group)) = (&outcome, &group)
                && group.has_killed()
            {
                let mib = case.plan.memory_limit.unwrap_or(0) >> 20;
                bail!("it needed more than the {mib} MiB of memory that it has here ({e:#})");
            }
            outcome?;
        }
        Ok(())
    }
}

/// Seconds after which a process is given up: what its rows may take, and time enough to load and to
/// verify.
fn patience(case: &Case) -> Result<u64> {
    let plan = &case.plan;
    let rows = case.rows.len() as f64 * plan.seconds_max.unwrap_or(0.0).max(4.0 * plan.seconds);
    let data = (plan.entries / 5_000 + plan.raw_bytes_about()? / 2_000_000) as f64;
    let load = plan.load_seconds_max.map_or(data, |most| data.min(most));
    Ok(120 + (rows + load) as u64 + plan.memory_limit.unwrap_or(0) / 500_000)
}
