//! What must hold of every suite.

use super::*;
use clap::Parser;

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    options: crate::BenchOptions,
}

/// What the command line without any options gives.
pub(crate) fn base() -> Base {
    Cli::parse_from(["bench"]).options.base_without_file().unwrap()
}

#[test]
fn a_row_is_known_by_its_suite_section_and_name() {
    let base = Base { memory_limit: Some(64 << 20), ..base() };
    let mut seen = HashSet::new();
    for section in Suite::All.sections(&base) {
        assert!(!section.cases.is_empty(), "{}", section.id);
        for case in &section.cases {
            let mut keys = HashSet::new();
            for row in &case.rows {
                assert!(seen.insert(row.path()), "{} is there twice", row.path());
                assert!(keys.insert(&row.key), "{} is there twice in a case", row.key);
                assert_eq!((row.suite.as_str(), &row.section), (section.suite, &section.id));
            }
        }
    }
    assert!(seen.len() > 100, "{}", seen.len());
}

#[test]
fn limits_are_measured_before_what_is_compared_with_them() {
    for section in Suite::All.sections(&base()) {
        let mut known = HashSet::new();
        for case in &section.cases {
            for row in &case.rows {
                if let Some((limit, _)) = row.limit {
                    assert!(known.contains(limit), "{} needs {limit}", row.path());
                }
            }
            if case.id.is_machine() {
                known.extend(case.rows.iter().map(|row| row.key.as_str()));
            }
        }
    }
}

#[test]
fn core_has_the_rows_it_always_had() {
    let sections = Suite::Core.sections(&base());
    let names: Vec<&str> = sections
        .iter()
        .flat_map(|s| &s.cases)
        .flat_map(|c| &c.rows)
        .map(|r| r.name.as_str())
        .collect();
    for name in [
        "limit.copy",
        "limit.raw",
        "fillseq",
        "fillbatch",
        "fillrandom",
        "fillrandbatch",
        "overwrite",
        "limit.fdatasync",
        "fillsync",
        "fillsync16",
        "fill100Kseq",
        "fill100Krandom",
        "readrandom",
        "readmissing.settled",
        "readreverse",
        "seekrandom",
        "disk",
        "disk.settled",
        "settle",
        "memory",
        "readwhilewriting1",
        "readwhilewriting4",
        "deleterandom",
        "open",
        "open.killed",
        "disk.compressed",
        "fillseq.settled",
        "overwrite.settled",
        "fill100Krandom.settled",
        "readseq.second",
    ] {
        assert!(names.contains(&name), "{name} is gone");
    }
    assert_eq!(names.len(), 47);
}

#[test]
fn every_row_of_writes_has_one_that_pays_their_debts_right_below_it() {
    let file = Some((std::path::PathBuf::from("entries"), 7));
    let base = Base { file, ..base() };
    let mut found = 0;
    for section in Suite::All.sections(&base) {
        for case in &section.cases {
            let mut rows = case.rows.iter().peekable();
            while let Some(row) = rows.next() {
                let fills = row.key.starts_with("fill") || row.key == "overwrite";
                if fills && !row.key.contains("sync") && !row.key.ends_with(chains::SETTLED) {
                    let next = rows.peek().map(|row| row.key.as_str());
                    assert_eq!(
                        next,
                        Some(format!("{}.settled", row.key).as_str()),
                        "{}",
                        row.path()
                    );
                    found += 1;
                }
            }
        }
    }
    assert!(found >= 20, "{found}");
}

#[test]
fn suites_are_chosen_by_name_and_by_what_there_is() {
    assert_eq!(Suite::wanted(&[], false), [Suite::Core]);
    assert_eq!(Suite::wanted(&[], true), [Suite::File]);
    assert_eq!(Suite::wanted(&[Suite::All], false).len(), 7);
    assert_eq!(Suite::wanted(&[Suite::All], true).len(), 8);
    assert_eq!(Suite::wanted(&[Suite::Ycsb, Suite::Core], true), [Suite::Core, Suite::Ycsb]);
}
