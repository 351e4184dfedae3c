//! Which processes a case takes and what each of them tells. What a row measures must not depend on which other rows are asked
//! for: that is decided here, apart from the work.

use crate::plan::{Case, CaseId, Step};
use crate::protocol::{Sample, Spec};
use std::path::PathBuf;

/// Processes in one directory, one after the other. The first finds it empty, and the others need what it leaves there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chain {
    /// In order.
    pub processes: Vec<Process>,
}

/// A process of a chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Its number among the case's kinds of processes, by which it knows what to do.
    pub number: usize,
    /// How it ends.
    pub step: Step,
    /// Rows that it may tell.
    pub rows: Vec<String>,
    /// Whether the machine is brought to rest before it, as it always is before the first.
    pub rested: bool,
}

/// The kinds of processes of [`CaseId::Reads`].
pub mod reads {
    /// Loads a store and measures one row, and that row's second pass.
    pub const FRESH: usize = 0;
    /// Loads a store, settles and leaves it.
    pub const STORE: usize = 1;
    /// Measures one row over the settled store.
    pub const SETTLED: usize = 2;
    /// Reads the settled store in every way, to see how much memory that takes.
    pub const MEMORY: usize = 3;
}

/// What the name of a row of a settled store ends with, and that of the second pass over a fresh one.
pub const SETTLED: &str = ".settled";
/// See [`SETTLED`].
pub const SECOND: &str = ".second";
/// How often a chain is run in one repetition at most: each run costs a load.
const DRAWS_MAX: f64 = 3.0;

impl Chain {
    /// Every row that it tells.
    pub fn rows(&self) -> impl Iterator<Item = &str> {
        self.processes.iter().flat_map(|process| &process.rows).map(String::as_str)
    }
}

impl Process {
    /// What it is told, of its case, with an engine, in a directory; not audited, and within no limit of memory.
    pub fn spec(&self, case: &Case, engine: &str, dir: PathBuf) -> Spec {
        Spec {
            engine: engine.to_string(),
            case: case.id,
            step: self.number,
            rows: self.rows.clone(),
            dir,
            cgroup: None,
            audit: false,
            plan: case.plan.clone(),
        }
    }
}

/// The chains of a case, for the rows of it that are asked for.
pub fn of(case: &Case) -> Vec<Chain> {
    let rows: Vec<String> = case.rows.iter().map(|row| row.key.clone()).collect();
    match case.id {
        CaseId::Reads => return of_reads(&rows),
        // What the writer of one row leaves is no other row's store.
        CaseId::Mixed => {
            let alone = |row| vec![process(0, vec![row], false)];
            return rows.into_iter().map(|row| Chain { processes: alone(row) }).collect();
        }
        _ => {}
    }
    let steps = case.steps().iter().enumerate();
    let of_step = |(number, step): (usize, &Step)| {
        let plain = process(number, rows.clone(), false);
        Process { step: *step, ..plain }
    };
    vec![Chain { processes: steps.map(of_step).collect() }]
}

/// A load for each row of a fresh store; one store for all that need it settled, since reads do not change that, with a process
/// for each row.
fn of_reads(rows: &[String]) -> Vec<Chain> {
    let mut chains: Vec<Chain> = Vec::new();
    let (mut store, mut settled, mut memory) = (Vec::new(), Vec::new(), Vec::new());
    for row in rows {
        if is_peak(row) {
            store.push(row.clone());
            memory.push(row.clone());
        } else if ["disk", "settle", "disk.settled"].contains(&row.as_str()) {
            store.push(row.clone());
        } else if row.ends_with(SETTLED) {
            settled.push(process(reads::SETTLED, vec![row.clone()], true));
        } else {
            let first = first_pass(row);
            let known = chains.iter_mut().find(|c| c.rows().any(|r| first_pass(r) == first));
            match known {
                Some(chain) => chain.processes[0].rows.push(row.clone()),
                None => chains.push(Chain {
                    processes: vec![process(reads::FRESH, vec![row.clone()], false)],
                }),
            }
        }
    }
    if store.is_empty() && settled.is_empty() {
        return chains;
    }
    let mut processes = vec![process(reads::STORE, store, false)];
    processes.extend(settled);
    if !memory.is_empty() {
        processes.push(process(reads::MEMORY, memory, true));
    }
    chains.push(Chain { processes });
    chains
}

fn process(number: usize, rows: Vec<String>, rested: bool) -> Process {
    Process { number, step: Step::Whole, rows, rested }
}

/// The row whose second pass this is, or itself.
pub fn first_pass(row: &str) -> &str {
    row.strip_suffix(SECOND).unwrap_or(row)
}

/// Whether such a process reads the store that another one left, and its reads are what is measured of it.
pub fn only_reads(case: CaseId, number: usize) -> bool {
    match case {
        CaseId::Reads => number == reads::SETTLED,
        CaseId::ColdWarm | CaseId::FirstScan => number == 1,
        _ => false,
    }
}

/// Whether several processes tell a row, of which the largest figure counts.
pub fn is_peak(row: &str) -> bool {
    row == "memory" || row.starts_with("memory.")
}

/// How often a chain whose first run told this is run in each of the repetitions, so that together they are `least` seconds of
/// work in every row that counts operations; more than once only where a run is short.
pub fn draws(chain: &Chain, told: &[Sample], least: f64, repetitions: u32) -> u32 {
    if chain.processes.len() > 1 {
        return 1;
    }
    let counted = told.iter().filter(|sample| sample.ops > 0);
    let shortest = counted.map(|sample| sample.seconds).fold(f64::INFINITY, f64::min);
    let share = least / f64::from(repetitions.max(1));
    // A row that ends by the clock ends a little before or after it.
    (share / shortest.max(1e-9) - 0.1).ceil().clamp(1.0, DRAWS_MAX) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Row;
    use crate::suites::Suite;

    fn reads_of_core() -> Case {
        let sections = Suite::Core.sections(&crate::suites::tests::base());
        let mut cases = sections.into_iter().flat_map(|section| section.cases);
        cases.find(|case| case.id == CaseId::Reads).unwrap()
    }

    /// What happens in a row's directory until it is measured: the processes before it, and the rows before it in its own.
    fn before(case: &Case, row: &str) -> Vec<(usize, bool, bool)> {
        let chains = of(case);
        let of_row: Vec<&Chain> =
            chains.iter().filter(|chain| chain.rows().any(|r| r == row)).collect();
        assert_eq!(of_row.len(), 1, "{row} is measured in one place");
        let all = &of_row[0].processes;
        let last = all.iter().rposition(|p| p.rows.iter().any(|r| r == row)).unwrap();
        // Whoever only reads the settled store leaves it as it was.
        let changes = |p: &&Process| p.number != reads::SETTLED && p.number != reads::MEMORY;
        let mut before: Vec<_> =
            all[..last].iter().filter(changes).map(|p| (p.number, p.rested, false)).collect();
        let is_second = row.ends_with(SECOND);
        before.push((all[last].number, all[last].rested, is_second));
        before
    }

    #[test]
    fn what_a_row_measures_does_not_depend_on_the_rows_that_are_asked_for() {
        let case = reads_of_core();
        let keys: Vec<String> = case.rows.iter().map(|row| row.key.clone()).collect();
        assert!(keys.len() >= 17, "{keys:?}");
        let only = |wanted: &dyn Fn(&str) -> bool| {
            let rows: Vec<Row> = case.rows.iter().filter(|r| wanted(&r.key)).cloned().collect();
            Case { rows, ..case.clone() }
        };
        for key in &keys {
            let all = before(&case, key);
            assert_eq!(before(&only(&|k| k == key), key), all, "{key} alone");
            for other in &keys {
                let two = only(&|k| k == key || k == other);
                assert_eq!(before(&two, key), all, "{key} beside {other}");
            }
        }
    }

    #[test]
    fn no_process_measures_two_reads() {
        for chain in of(&reads_of_core()) {
            for process in &chain.processes {
                let mut reads: Vec<&str> = process.rows.iter().map(|row| first_pass(row)).collect();
                reads.retain(|row| row.starts_with("read") || row.starts_with("seek"));
                reads.dedup();
                assert!(reads.len() <= 1, "{process:?}");
            }
            let settled = chain.processes.iter().filter(|p| p.number == reads::SETTLED);
            assert!(settled.clone().all(|p| p.rested));
            for process in &chain.processes {
                let settled =
                    process.rows.iter().any(|row| row.ends_with(SETTLED) && row != "disk.settled");
                assert_eq!(only_reads(CaseId::Reads, process.number), settled, "{process:?}");
            }
            assert!(settled.count() == 0 || chain.processes[0].number == reads::STORE);
        }
    }

    #[test]
    fn readers_beside_a_writer_find_no_other_writers_store() {
        let case = Case { id: CaseId::Mixed, ..reads_of_core() };
        let chains = of(&case);
        assert_eq!(chains.len(), case.rows.len());
        assert!(chains.iter().all(|chain| chain.rows().count() == 1));
    }

    #[test]
    fn other_cases_have_the_processes_they_name() {
        let case = Case { id: CaseId::OpenKilled, ..reads_of_core() };
        let chains = of(&case);
        assert_eq!(chains.len(), 1);
        let steps: Vec<Step> = chains[0].processes.iter().map(|p| p.step).collect();
        assert_eq!(steps, [Step::KillWhenReady, Step::Whole]);
        assert!(chains[0].processes.iter().all(|p| p.rows.len() == case.rows.len() && !p.rested));
    }

    #[test]
    fn short_rows_are_drawn_more_often() {
        let chain = &of(&reads_of_core())[0];
        let told = |seconds: f64| vec![Sample { ops: 9, seconds, ..Sample::default() }];
        assert_eq!(draws(chain, &told(2.0), 1.0, 5), 1);
        assert_eq!(draws(chain, &told(0.2), 1.0, 5), 1);
        assert_eq!(draws(chain, &told(0.1), 1.0, 5), 2);
        assert_eq!(draws(chain, &told(0.02), 1.0, 5), 3);
        assert_eq!(draws(chain, &told(0.02), 0.0, 1), 1, "a first impression takes one");
        assert_eq!(draws(chain, &[Sample::figure("disk", 1.0)], 1.0, 5), 1, "nothing was counted");
        let both = [told(0.9), told(0.15)].concat();
        assert_eq!(draws(chain, &both, 1.0, 5), 2, "the shortest decides");
        let store = of(&reads_of_core()).pop().unwrap();
        assert_eq!(draws(&store, &told(0.02), 1.0, 5), 1);
    }
}
