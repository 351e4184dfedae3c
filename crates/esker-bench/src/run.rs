//! The whole run: sections, cases, repetitions, engines in turn, each in a process of its own.

use crate::engines;
use crate::options::BenchOptions;
use crate::plan::{Case, Row};
use crate::process::INTERRUPTED;
use crate::progress::Progress;
use crate::report::Log;
use crate::rest::Rest;
use crate::results::{Place, Results};
use crate::root::Root;
use crate::runner::Runner;
use crate::suites::Section;
use crate::{space, system, turns};
use anyhow::{Result, bail};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Measures everything that is asked for, and writes each result to `log` as soon as it is there. `child_command` is how this
/// executable is made to call [`crate::child_main`] with the arguments that follow.
pub fn measure(options: &BenchOptions, child_command: &[String], log: &mut Log) -> Result<Results> {
    let names = options.engine_names()?;
    // An error means that somebody else handles Ctrl-C already.
    let _ = ctrlc::set_handler(|| INTERRUPTED.store(true, Ordering::Relaxed));
    let root = Root::make(options.dir.as_deref())?;
    let base = options.base(root.path())?;
    let sections = wanted_sections(options, options.sections(&base))?;
    space::check(root.path(), sections.iter().flat_map(|section| &section.cases))?;
    log.open()?;

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
    let repetitions = options.repetitions();
    let only_cases: Vec<&Case> = cases.iter().map(|(_, case)| *case).collect();
    let steps = turns::steps(&only_cases, &present, repetitions, base.plan.seed);
    let mut runner = Runner {
        child_command,
        root: root.path(),
        timeout: options.timeout,
        repetitions,
        rest: Rest::new(Duration::from_secs_f64(options.seconds_of_rest())),
        progress: Progress::new(steps.clone()),
    };
    let start = Instant::now();
    for (at, (number, engine)) in steps.iter().enumerate() {
        let in_repetition = steps.len() / repetitions as usize;
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

/// Sections and cases with at least one row that is asked for, with those rows only; and the limits
/// they need.
pub(crate) fn wanted_sections(
    options: &BenchOptions,
    sections: Vec<Section>,
) -> Result<Vec<Section>> {
    let only = |section: Section| {
        let is_core = section.suite == "core";
        let asked_for = |row: &Row| options.wants_row(row);
        section.only(asked_for, |row| is_core && asked_for(row))
    };
    let wanted: Vec<Section> = sections.into_iter().filter_map(only).collect();
    if wanted.is_empty() {
        bail!("no row is called {}; --list shows them", options.rows.join(", "));
    }
    Ok(wanted)
}
