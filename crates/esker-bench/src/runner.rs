//! Runs a case with an engine: its chains of processes, each in a directory of its own, and what they told or why they did not.

use crate::cgroup::MemoryGroup;
use crate::chains::{self, Chain, Process};
use crate::engine::Unsupported;
use crate::plan::Case;
use crate::process::{self, INTERRUPTED};
use crate::progress::Progress;
use crate::protocol::{Message, Sample, Spec};
use crate::rest::Rest;
use crate::results::Results;
use anyhow::{Result, bail};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// What a run has for all of its cases.
pub struct Runner<'a> {
    /// How this executable is started to measure.
    pub child_command: &'a [String],
    /// Where stores are made.
    pub root: &'a Path,
    /// Seconds after which a process is given up.
    pub timeout: Option<u64>,
    /// How often everything is measured.
    pub repetitions: u32,
    /// How the machine is brought to rest.
    pub rest: Rest,
    /// How far the run is.
    pub progress: Progress,
}

/// What the processes of a chain told.
#[derive(Default)]
struct Told {
    samples: Vec<Sample>,
    failed: bool,
}

impl Told {
    /// Of a peak that several processes tell the largest counts, and a failure of any of them before that.
    fn add(&mut self, sample: Sample) {
        match self.samples.iter_mut().find(|known| known.row == sample.row) {
            Some(known) if known.failed.is_some() => {}
            Some(known) if sample.failed.is_some() || sample.value > known.value => *known = sample,
            Some(_) => {}
            None => self.samples.push(sample),
        }
    }
    /// The rows of a process that failed, as far as they were not told before.
    fn fail<'r>(&mut self, rows: impl Iterator<Item = &'r str>, why: &str) {
        self.failed = true;
        for row in rows {
            // A part of a peak is none.
            self.samples.retain(|known| known.row != row || !chains::is_peak(row));
            if !self.samples.iter().any(|known| known.row == row) {
                let failed = Some(why.to_string());
                self.samples.push(Sample { failed, ..Sample::figure(row, 0.0) });
            }
        }
    }
}

impl Runner<'_> {
    /// Runs a case with an engine; what fails is recorded as failed. What Ctrl-C cut short is not.
    pub fn case(&mut self, case: &Case, engine: &str, results: &mut Results) {
        let start = Instant::now();
        for chain in chains::of(case) {
            for sample in self.drawn(case, &chain, engine, results) {
                if let Some(row) = case.rows.iter().find(|row| row.key == sample.row) {
                    results.add(engine, row, sample);
                }
            }
        }
        self.progress.done(start);
    }

    /// A chain as often as its rows are too short to be measured once.
    fn drawn(
        &mut self,
        case: &Case,
        chain: &Chain,
        engine: &str,
        results: &mut Results,
    ) -> Vec<Sample> {
        let first = self.chain(case, chain, engine, results);
        let least = if case.id.is_machine() { 0.0 } else { case.plan.least_seconds() };
        let draws = chains::draws(chain, &first.samples, least, self.repetitions);
        let (mut samples, mut failed) = (first.samples, first.failed);
        for _ in 1..draws {
            if failed || INTERRUPTED.load(Ordering::Relaxed) {
                break;
            }
            let next = self.chain(case, chain, engine, results);
            failed = next.failed;
            samples.extend(next.samples);
        }
        in_the_middle(samples)
    }

    /// All processes of a chain. Those after the first do without each other, and none does without the first.
    fn chain(&mut self, case: &Case, chain: &Chain, engine: &str, results: &mut Results) -> Told {
        let mut told = Told::default();
        if INTERRUPTED.load(Ordering::Relaxed) {
            return told;
        }
        let (dir, group) = match self.store(case) {
            Ok(store) => store,
            Err(e) => {
                told.fail(chain.rows(), &format!("{e:#}"));
                return told;
            }
        };
        for (at, process) in chain.processes.iter().enumerate() {
            let mut restless = false;
            if at == 0 || process.rested {
                restless = !self.rest.bring(self.root);
                results.quiet.measured += 1;
                results.quiet.restless += restless as u32;
            }
            let on = &mut |sample: Sample| told.add(Sample { restless, ..sample });
            let Err(e) = self.process(case, process, engine, dir.path(), group.as_ref(), on) else {
                continue;
            };
            if INTERRUPTED.load(Ordering::Relaxed) {
                return told;
            }
            let why = format!("{e:#}");
            if at == 0 {
                told.fail(chain.rows(), &why);
                return told;
            }
            told.fail(process.rows.iter().map(String::as_str), &why);
        }
        told
    }

    /// A directory, and the memory that its processes may use where that is limited.
    fn store(&self, case: &Case) -> Result<(TempDir, Option<MemoryGroup>)> {
        let dir = tempfile::Builder::new().prefix("store-").tempdir_in(self.root)?;
        match case.plan.memory_limit.map(MemoryGroup::create).transpose() {
            Ok(group) => Ok((dir, group)),
            Err(e) => Err(Unsupported::new(format!("{e:#}")).into()),
        }
    }

    fn process(
        &self,
        case: &Case,
        process: &Process,
        engine: &str,
        dir: &Path,
        group: Option<&MemoryGroup>,
        on: &mut dyn FnMut(Sample),
    ) -> Result<()> {
        let cgroup = group.map(|g| g.path().to_path_buf());
        let spec = Spec { cgroup, ..process.spec(case, engine, dir.join("db")) };
        let timeout = Duration::from_secs(self.timeout.unwrap_or(patience(case)?));
        let on = &mut |message: Message| match message {
            Message::Row(sample) => on(*sample),
            Message::Doing { what } => self.progress.doing(engine, &what),
            Message::Ready | Message::Called(_) => {}
        };
        let outcome = process::run(self.child_command, &spec, process.step, timeout, on);
        if let (Err(e), Some(group)) = (&outcome, group)
            && group.has_killed()
        {
            let mib = case.plan.memory_limit.unwrap_or(0) >> 20;
            bail!("it needed more than the {mib} MiB of memory that it has here ({e:#})");
        }
        outcome
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

/// Of each row one sample, that in the middle, of two with the mean of their figures: measurements one after the other are like
/// each other, and count as one of the repetitions. One that failed counts for all.
fn in_the_middle(samples: Vec<Sample>) -> Vec<Sample> {
    let mut rows: Vec<Vec<Sample>> = Vec::new();
    for sample in samples {
        match rows.iter_mut().find(|row| row[0].row == sample.row) {
            Some(row) => row.push(sample),
            None => rows.push(vec![sample]),
        }
    }
    let middle = |mut row: Vec<Sample>| {
        if let Some(failed) = row.iter().position(|s| s.failed.is_some()) {
            return row.swap_remove(failed);
        }
        row.sort_by(|a, b| a.value.total_cmp(&b.value));
        let (low, high) = ((row.len() - 1) / 2, row.len() / 2);
        let value = (row[low].value + row[high].value) / 2.0;
        Sample { value, ..row.swap_remove(low) }
    };
    rows.into_iter().map(middle).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_takes_what_was_not_told_and_peaks_that_are_not_whole() {
        let mut told = Told::default();
        for (row, value) in [("disk", 5.0), ("memory", 7.0), ("memory", 6.0)] {
            told.add(Sample::figure(row, value));
        }
        assert_eq!(told.samples.len(), 2);
        assert_eq!(told.samples[1].value, 7.0, "the largest counts");
        told.fail(["disk", "memory", "readseq"].into_iter(), "it crashed");
        told.add(Sample { failed: Some("it lied".into()), ..Sample::figure("peak", 0.0) });
        told.add(Sample::figure("peak", 9.0));
        told.add(Sample::figure("late", 9.0));
        told.add(Sample { failed: Some("it lied".into()), ..Sample::figure("late", 0.0) });
        let failed = |row: &str| {
            let sample = told.samples.iter().find(|s| s.row == row).unwrap();
            sample.failed.clone()
        };
        assert_eq!([failed("peak"), failed("late")], ["it lied"; 2].map(|why| Some(why.into())));
        assert_eq!(failed("disk"), None);
        assert_eq!(failed("memory").as_deref(), Some("it crashed"));
        assert_eq!(failed("readseq").as_deref(), Some("it crashed"));
        assert!(told.failed);
    }
    #[test]
    fn of_two_draws_the_mean_counts_and_of_three_the_one_in_the_middle() {
        let drawn = |values: &[f64]| {
            let samples = values.iter().map(|value| Sample::figure("r", *value)).collect();
            in_the_middle(samples).into_iter().map(|sample| sample.value).collect::<Vec<_>>()
        };
        assert_eq!(drawn(&[8.0]), [8.0]);
        assert_eq!(drawn(&[8.0, 10.0]), [9.0]);
        assert_eq!(drawn(&[8.0, 30.0, 10.0]), [10.0]);
    }
}
