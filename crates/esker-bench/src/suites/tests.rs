//! What must hold of every suite.

use super::*;
use crate::first::{Group, LOST};
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

/// What an engine maps and dirties is memory too.
#[test]
fn memory_is_told_by_kind_wherever_it_is_told() {
    for section in Suite::All.sections(&base()) {
        for case in &section.cases {
            let has = |key: &str| case.rows.iter().any(|row| row.key == key);
            let all = has("memory.mapped") && has("memory.dirty");
            assert_eq!(has("memory"), all, "{} {}", section.suite, section.id);
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
        "memory.mapped",
        "memory.dirty",
        "readwhilewriting1",
        "readwhilewriting4",
        "deleterandom",
        "deleterandom.settled",
        "reopen",
        "open.killed",
        "disk.compressed",
        "fillseq.settled",
        "overwrite.settled",
        "fill100Krandom.settled",
        "readseq.second",
    ] {
        assert!(names.contains(&name), "{name} is gone");
    }
    assert_eq!(names.len(), 50);
}

#[test]
fn every_row_of_writes_has_one_that_pays_their_debts_right_below_it() {
    let file = Some((std::path::PathBuf::from("entries"), 7));
    let base = Base { file, ..base() };
    let mut found = 0;
    for section in Suite::All.sections(&base) {
        // Overwrites for a minute have a row of their own for what is owed then.
        for case in section.cases.iter().filter(|case| case.id != CaseId::Sustained) {
            let mut rows = case.rows.iter().peekable();
            while let Some(row) = rows.next() {
                let fills = row.key.starts_with("fill") || row.key == "overwrite";
                // Of YCSB all that write: the load, and every mix but one.
                let fills = fills || row.suite == "ycsb" && row.key != "c" || row.key == "load";
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
    assert!(found >= 26, "{found}");
}

#[test]
fn tables_have_the_settings_that_their_documents_name() {
    const MIB: u64 = 1 << 20;
    let set = |plan: &Plan, name: &str| plan.tuning.get(name).cloned();
    let buffer_of = |suite: Suite, base: &Base, id: &str| {
        let sections = suite.sections(base);
        let plan = &sections.iter().find(|section| section.id == id).unwrap().plan;
        let bytes: u64 = set(plan, "leveldb.write_buffer").unwrap().parse().unwrap();
        (bytes as f64 / MIB as f64, (plan.memory / MIB))
    };
    let base = base();
    // A buffer of so many MiB, of so much memory.
    for (id, split) in [
        ("1", (2.0, 4)),
        ("2D", (2.0, 4)),
        ("2E", (120.0, 128)),
        ("3A", (8.0, 128)),
        ("3B", (2.0, 4)),
    ] {
        assert_eq!(buffer_of(Suite::Leveldb2011, &base, id), split, "{id}");
    }
    assert_eq!(buffer_of(Suite::Wiredtiger2013, &base, "1"), (4.0, 128));
    assert_eq!(buffer_of(Suite::Voldemort, &base, "2"), (20.0, 320));
    assert_eq!(buffer_of(Suite::Voldemort, &base, "1a"), (4.0, 16), "LevelDB's own least");
    let of_2011 = Suite::Leveldb2011.sections(&base);
    for case in of_2011.iter().flat_map(|section| &section.cases) {
        assert_eq!(set(&case.plan, "kyoto.psiz").as_deref(), Some("1024"), "{:?}", case.id);
        let buffer = |engine| set(&case.plan, &format!("{engine}.write_buffer"));
        assert_eq!(buffer("rocksdb"), buffer("leveldb"), "{:?}", case.id);
    }
    let of_2013 = &Suite::Wiredtiger2013.sections(&base)[0];
    let table = set(&of_2013.plan, "wiredtiger.table").unwrap();
    assert!(table.contains("leaf_page_max=16KB,memory_page_max=120795955"), "{table}");
    assert_eq!(set(&of_2013.plan, "leveldb.cache").as_deref(), Some("134217728"));
    let in_bulk = |case: &&Case| case.plan.tuning.contains_key("bulk");
    let bulk: Vec<_> = of_2013.cases.iter().filter(in_bulk).map(|case| case.id).collect();
    assert_eq!(bulk, [CaseId::FillSeq], "no other row of it was loaded so");

    let mine = Base { plan: base.plan.clone().tuned("leveldb.write_buffer", MIB), ..base };
    assert_eq!(
        buffer_of(Suite::Leveldb2011, &mine, "2E"),
        (1.0, 128),
        "the command line comes first"
    );
}

#[test]
fn suites_are_chosen_by_name_and_by_what_there_is() {
    assert_eq!(Suite::wanted(&[], false), [Suite::Core]);
    assert_eq!(Suite::wanted(&[], true), [Suite::File]);
    assert_eq!(Suite::wanted(&[Suite::All], false).len(), 7);
    assert_eq!(Suite::wanted(&[Suite::All], true).len(), 8);
    assert_eq!(Suite::wanted(&[Suite::Ycsb, Suite::Core], true), [Suite::Core, Suite::Ycsb]);
    assert_eq!(Suite::wanted(&[Suite::First], false), [Suite::First]);
    let options = |suites: &str| Cli::parse_from(["bench", "--suite", suites]).options;
    let rows = |suites: &str| -> usize {
        options(suites).sections(&base()).iter().map(|s| s.places().count()).sum()
    };
    assert_eq!(rows("first,core,ycsb,motion"), rows("core,ycsb,motion"), "no row is there twice");
}

#[test]
fn first_has_what_a_report_begins_with_as_it_is_in_the_other_suites() {
    let all: Vec<String> = Suite::All
        .sections(&base())
        .iter()
        .flat_map(|s| s.places())
        .map(|p| p.row.path())
        .collect();
    let first = Suite::First.sections(&base());
    let rows: Vec<&Row> = first.iter().flat_map(|s| s.places()).map(|p| p.row).collect();
    for row in &rows {
        assert!(all.contains(&row.path()), "{} is nowhere else", row.path());
    }
    let of_engines: Vec<&&Row> = rows.iter().filter(|r| !r.key.starts_with("limit.")).collect();
    let usual = Group::ALL.iter().flat_map(|g| g.usual().map(|names| (*g, names[0])));
    for (group, key) in usual.clone() {
        let of =
            of_engines.iter().filter(|r| r.key == key && Group::of(&r.suite, key) == Some(group));
        assert_eq!(of.count(), 1, "{key}");
    }
    // What is known to be lost cannot be left out of what a report begins with.
    for (suite, key) in LOST {
        let of = of_engines.iter().filter(|r| r.key == key && r.suite == suite);
        assert_eq!(of.count(), 1, "{suite} {key}");
    }
    assert_eq!(of_engines.len(), usual.count() + LOST.len());
    assert!(rows.iter().all(|r| r.key != limits::SYNC), "no synced row needs it");
}

#[test]
fn no_limit_is_told_of_rows_that_need_not_reach_the_store() {
    let mut found = 0;
    for section in Suite::All.sections(&base()) {
        for row in section.cases.iter().flat_map(|case| &case.rows) {
            let kind = row.key.split('.').next().unwrap();
            if ["readmissing", "readhot", "deleterandom"].contains(&kind) {
                assert_eq!(row.limit, None, "{}", row.path());
                found += 1;
            }
        }
    }
    assert!(found >= 8, "{found}");
}

#[test]
fn rocksdb_flushes_the_dead_in_queues_whose_first_entry_is_looked_for() {
    let sections = Suite::Motion.sections(&base());
    let queues = &sections.iter().find(|section| section.id == "queue").unwrap().cases;
    let rows = queues.iter().filter(|case| case.plan.tuning.contains_key("rocksdb.scan_flush"));
    let names: Vec<&str> = rows.flat_map(|case| &case.rows).map(|row| row.key.as_str()).collect();
    assert_eq!(names, ["queue", "queue1000"]);
}
