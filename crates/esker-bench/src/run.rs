//! The whole run: cases, repetitions, engines in turn, each in a process of its own.

use crate::cgroup::MemoryGroup;
use crate::engines;
use crate::options::BenchOptions;
use crate::plan::{self, Case, CaseId, Plan};
use crate::process::{self, INTERRUPTED};
use crate::protocol::{Message, Sample, Spec};
use crate::results::Results;
use crate::system;
use anyhow::{Context, Result, bail};
use indicatif::{ProgressBar, ProgressStyle};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The name under which the machine's limits are recorded.
pub const MACHINE: &str = "machine";

/// Measures everything that is asked for. `child_command` is how this executable is made to call
/// [`crate::child_main`] with the arguments that follow.
pub fn run(options: &BenchOptions, child_command: &[String]) -> Result<Results> {
    let plan = options.plan()?;
    let names = options.engine_names()?;
    let cases = wanted_cases(options, &plan)?;
    // An error means that somebody else handles Ctrl-C already.
    let _ = ctrlc::set_handler(|| INTERRUPTED.store(true, Ordering::Relaxed));
    let root = make_root(options.dir.as_deref())?;

    let mut results = Results::new(&plan, &cases, &names, options.repetitions());
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
    let runner = Runner {
        child_command,
        root: root.path(),
        timeout: Duration::from_secs(options.timeout_seconds(&plan)),
        bar: progress_bar(cases.len() * (present.len()) * options.repetitions() as usize),
        plan: &plan,
    };
    for repetition in 0..options.repetitions() as usize {
        for case in &cases {
            for name in in_turn(case, &present, repetition) {
                runner.case(case, &name, &mut results);
                if INTERRUPTED.load(Ordering::Relaxed) {
                    runner.bar.finish_and_clear();
                    root.close()?;
                    bail!("interrupted; the stores are removed");
                }
            }
        }
    }
    runner.bar.finish_and_clear();
    root.close().context("cannot remove the stores")?;
    Ok(results)
}

/// Cases with at least one row that is asked for, with those rows only; and the limits they need.
fn wanted_cases(options: &BenchOptions, plan: &Plan) -> Result<Vec<Case>> {
    let mut cases = plan::cases(plan);
    let needed: HashSet<&str> = cases
        .iter()
        .flat_map(|case| &case.rows)
        .filter(|row| options.wants_row(&row.name))
        .filter_map(|row| Some(row.limit?.0))
        .collect();
    for case in &mut cases {
        case.rows.retain(|row| options.wants_row(&row.name) || needed.contains(row.name.as_str()));
    }
    cases.retain(|case| !case.rows.is_empty());
    if cases.is_empty() {
        bail!("no row is called {}; --list shows them", options.rows.join(", "));
    }
    Ok(cases)
}

/// The engines of a case, beginning with another one in each repetition: who comes first finds the
/// machine in another state.
fn in_turn(case: &Case, engines: &[String], repetition: usize) -> Vec<String> {
    if matches!(case.id, CaseId::Machine | CaseId::MachineSync) {
        return vec![MACHINE.to_string()];
    }
    let mut turn = engines.to_vec();
    if !turn.is_empty() {
        let first = repetition % turn.len();
        turn.rotate_left(first);
    }
    turn
}

/// A directory for all stores. In memory nothing would be measured of the disk, so a `TMPDIR` that
/// is not on one is passed over.
fn make_root(dir: Option<&Path>) -> Result<tempfile::TempDir> {
    let parent = match dir {
        Some(dir) => {
            std::fs::create_dir_all(dir)?;
            dir.to_path_buf()
        }
        None => default_parent(),
    };
    tempfile::Builder::new()
        .prefix("esker-bench-")
        .tempdir_in(&parent)
        .with_context(|| format!("cannot make a directory in {}", parent.display()))
}

fn default_parent() -> PathBuf {
    let temp = std::env::temp_dir();
    if in_memory(&temp) { PathBuf::from(".") } else { temp }
}

fn in_memory(dir: &Path) -> bool {
    #[cfg(target_os = "linux")]
    {
        const TMPFS: u64 = 0x0102_1994;
        rustix::fs::statfs(dir).is_ok_and(|fs| fs.f_type as u64 == TMPFS)
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = dir;
        false
    }
}

/// Shown on standard error when that is a terminal, and hidden otherwise by itself.
fn progress_bar(steps: usize) -> ProgressBar {
    let bar = ProgressBar::new(steps as u64);
    let style = ProgressStyle::with_template("{elapsed_precise} [{wide_bar}] {pos}/{len} {msg}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> "));
    bar.enable_steady_tick(Duration::from_millis(500));
    bar
}

struct Runner<'a> {
    child_command: &'a [String],
    root: &'a Path,
    timeout: Duration,
    bar: ProgressBar,
    plan: &'a Plan,
}

impl Runner<'_> {
    /// Runs a case with an engine; what fails is recorded as failed.
    fn case(&self, case: &Case, engine: &str, results: &mut Results) {
        let mut seen = HashSet::new();
        let outcome = self.steps(case, engine, &mut |sample| {
            seen.insert(sample.row.clone());
            results.add(engine, sample);
        });
        if let Err(e) = outcome {
            for row in case.rows.iter().filter(|row| !seen.contains(&row.name)) {
                let failed = Some(format!("{e:#}"));
                results.add(engine, Sample { failed, ..Sample::figure(&row.name, 0.0) });
            }
        }
        self.bar.inc(1);
    }

    fn steps(&self, case: &Case, engine: &str, on: &mut dyn FnMut(Sample)) -> Result<()> {
        let dir = tempfile::Builder::new().prefix("store-").tempdir_in(self.root)?;
        let limit = self.plan.memory_limit.filter(|_| case.limited());
        let group = limit.map(MemoryGroup::create).transpose()?;
        let mut plan = self.plan.clone();
        plan.compression |= case.id == CaseId::Compressed;
        for (number, step) in case.steps().iter().enumerate() {
            let spec = Spec {
                engine: engine.to_string(),
                case: case.id,
                step: number,
                rows: case.rows.iter().map(|row| row.name.clone()).collect(),
                dir: dir.path().join("db"),
                cgroup: group.as_ref().map(|g| g.path().to_path_buf()),
                plan: plan.clone(),
            };
            process::run(self.child_command, &spec, *step, self.timeout, &mut |m| match m {
                Message::Row(sample) => on(*sample),
                Message::Doing { what } => self.bar.set_message(format!("{engine}: {what}")),
                Message::Ready => {}
            })?;
        }
        Ok(())
    }
}
