//! What the documents published, so that a measured row can be shown beside it. `data/published.json`
//! has their figures; here is which row of ours repeats which of them.

use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// A published figure.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// The engine, by our name.
    pub engine: &'static str,
    /// Its name in the document.
    pub named: String,
    /// The figure.
    pub value: Value,
}

/// What is published of an engine.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Operations a second.
    OpsPerSecond(f64),
    /// How many times as fast as LevelDB.
    TimesLevelDb(f64),
    /// The time to complete, in the document's words.
    Duration(String),
}

/// A document whose tables a suite repeats.
#[derive(Debug, Deserialize)]
pub struct Document {
    /// Its title, its authors and when it was published.
    pub source: String,
    /// What it was measured on; empty where it does not say.
    #[serde(default)]
    pub hardware: String,
    #[serde(default)]
    results: Vec<Result2011>,
    /// WiredTiger beside LevelDB.
    #[serde(default)]
    pub relative_to_leveldb: Vec<Relative2013>,
    /// Readers beside a writer.
    #[serde(default)]
    pub scenarios: Vec<Scenario2014>,
}

#[derive(Debug, Deserialize)]
struct Result2011 {
    section: String,
    config: Option<String>,
    workload: String,
    engine: String,
    ops_per_s: f64,
}

/// WiredTiger's speed as a multiple of LevelDB's.
#[derive(Debug, Deserialize)]
pub struct Relative2013 {
    /// The name of the row.
    pub workload: String,
    /// With a B-tree.
    pub wt_btree: Option<f64>,
    /// With an LSM tree.
    pub wt_lsm: Option<f64>,
}

/// A set of data and how long it took.
#[derive(Debug, Deserialize)]
pub struct Scenario2014 {
    /// What it is called.
    pub name: String,
    /// The time to complete by engine, in the document's words.
    #[serde(default)]
    pub published: BTreeMap<String, String>,
}

fn documents() -> &'static [Document] {
    static DOCUMENTS: OnceLock<Vec<Document>> = OnceLock::new();
    DOCUMENTS.get_or_init(|| {
        serde_json::from_str(include_str!("../data/published.json"))
            .expect("the file is a part of this crate, and a test reads it")
    })
}

/// The document that a suite repeats, if it published figures.
pub fn of_suite(suite: &str) -> Option<&'static Document> {
    documents().iter().find(|document| match suite {
        "leveldb2011" => !document.results.is_empty(),
        "wiredtiger2013" => !document.relative_to_leveldb.is_empty(),
        "symas2014" => !document.scenarios.is_empty(),
        _ => false,
    })
}

/// The document that a suite repeats, in words; also one that published no figures that can stand beside ours.
pub fn source(suite: &str) -> Option<&'static str> {
    if let Some(document) = of_suite(suite) {
        return Some(&document.source);
    }
    let of = |start: &str| documents().iter().find(|d| d.source.starts_with(start));
    match suite {
        "voldemort" => of("Voldemort").map(|d| d.source.as_str()),
        "ycsb" => Some("Yahoo! Cloud Serving Benchmark, Cooper et al., 2010"),
        _ => None,
    }
}

impl Result2011 {
    /// Section "2. Write ..." with configuration "C. Synchronous ..." is our section 2C.
    fn section(&self) -> String {
        let first = |text: &str| text.chars().next().map(String::from).unwrap_or_default();
        first(&self.section) + &self.config.as_deref().map(first).unwrap_or_default()
    }
    /// The baseline's workloads have letters of their own, "A. Sequential Reads".
    fn row(&self) -> &str {
        self.workload.split_once(". ").map_or(&self.workload, |(_, name)| name)
    }
}

impl Relative2013 {
    /// Of each operation the document counts the last instance, and that of reads comes behind a compaction of everything.
    pub fn row_of_ours(&self) -> String {
        let settled = if self.workload.contains(" read") { ", settled" } else { "" };
        format!("{}{settled}", self.workload)
    }
}

/// The published figures of a row, engine by engine; none where the documents have none.
pub fn for_row(suite: &str, section: &str, row: &str) -> Vec<Figure> {
    let figure =
        |named: &str, value| Figure { engine: our_name(named), named: named.to_string(), value };
    let Some(document) = of_suite(suite) else { return Vec::new() };
    let mut all = Vec::new();
    let of_row = document.results.iter().filter(|r| r.section() == section && r.row() == row);
    all.extend(of_row.map(|r| figure(&r.engine, Value::OpsPerSecond(r.ops_per_s))));
    let measured = document.relative_to_leveldb.iter().filter(|r| r.row_of_ours() == row);
    for relative in measured {
        let both = [("WiredTiger Btree", relative.wt_btree), ("WiredTiger LSM", relative.wt_lsm)];
        let some = both.into_iter().filter_map(|(name, times)| Some((name, times?)));
        all.extend(some.map(|(name, times)| figure(name, Value::TimesLevelDb(times))));
    }
    let larger = section == "3" && row == "time to complete";
    for scenario in document.scenarios.iter().filter(|s| larger && s.name.starts_with("larger")) {
        let named = scenario.published.iter();
        all.extend(named.map(|(name, time)| figure(name, Value::Duration(time.clone()))));
    }
    all
}

/// The published operations a second of a row by engine: what can stand beside a measured one.
pub fn rates(suite: &str, section: &str, row: &str) -> Vec<(&'static str, f64)> {
    let rate = |figure: Figure| match figure.value {
        Value::OpsPerSecond(value) => Some((figure.engine, value)),
        _ => None,
    };
    for_row(suite, section, row).into_iter().filter_map(rate).collect()
}

/// Our name of an engine of the documents.
pub fn our_name(named: &str) -> &'static str {
    match named {
        "LevelDB" => "leveldb",
        "Kyoto TreeDB" => "kyoto",
        "SQLite3" => "sqlite",
        "WiredTiger Btree" => "wiredtiger",
        "WiredTiger LSM" => "wiredtiger-lsm",
        "LMDB" => "lmdb",
        "RocksDB" => "rocksdb",
        "RocksDBpfx" => "rocksdb-prefix",
        "BerkeleyDB" => "bdb",
        "Basho LevelDB" => "basho",
        "HyperLevelDB" => "hyperleveldb",
        "TokuDB" => "tokudb",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suites::{Suite, tests::base};

    #[test]
    fn every_published_row_of_2011_is_a_row_of_ours() {
        let sections = Suite::Leveldb2011.sections(&base());
        let document = of_suite("leveldb2011").unwrap();
        assert!(document.hardware.contains("X5650") && document.source.contains("2011"));
        let published: Vec<&Result2011> = document.results.iter().collect();
        assert_eq!(published.len(), 52);
        for result in published {
            let place = sections
                .iter()
                .flat_map(|s| s.places())
                .find(|p| p.section.id == result.section() && p.row.name == result.row());
            let place = place.unwrap_or_else(|| {
                panic!("no row for {} {:?} {}", result.section, result.config, result.workload)
            });
            let figures = for_row("leveldb2011", &place.section.id, &place.row.name);
            let ours = figures.iter().find(|f| f.named == result.engine).unwrap();
            assert_eq!(ours.value, Value::OpsPerSecond(result.ops_per_s));
            assert!(!ours.engine.is_empty());
        }
    }

    #[test]
    fn the_documents_settings_are_those_of_the_sections() {
        let sections = Suite::Leveldb2011.sections(&base());
        let plan = |id: &str| &sections.iter().find(|s| s.id == id).unwrap().plan;
        for (id, mib, compression) in [
            ("1", 4, true),
            ("2A", 4, true),
            ("2B", 4, true),
            ("2C", 4, true),
            ("2D", 4, false),
            ("2E", 128, true),
            ("3A", 128, true),
            ("3B", 4, false),
        ] {
            assert_eq!((plan(id).memory >> 20, plan(id).compression), (mib, compression), "{id}");
            assert_eq!((plan(id).entries, plan(id).value_size.as_str()), (1_000_000, "100"));
        }
        assert_eq!((plan("2A").large_ops, plan("2A").large_len), (1000, 100_000));
        assert_eq!((plan("2B").batch, plan("2C").sync_ops), (1000, 10_000));
    }

    #[test]
    fn every_comparison_of_2013_is_a_row_of_ours() {
        let sections = Suite::Wiredtiger2013.sections(&base());
        let published = &of_suite("wiredtiger2013").unwrap().relative_to_leveldb;
        assert_eq!(published.len(), 7);
        for relative in published {
            let rows = sections.iter().flat_map(|s| s.places());
            let row = relative.row_of_ours();
            assert_eq!(rows.filter(|p| p.row.name == row).count(), 1);
            assert!(!for_row("wiredtiger2013", "1", &row).is_empty());
        }
        assert!(for_row("wiredtiger2013", "1", "random read").is_empty(), "right after the load");
        assert_eq!(for_row("symas2014", "3", "time to complete").len(), 8);
        assert_eq!(for_row("leveldb2011", "beyond", "Overwrites"), []);
    }

    #[test]
    fn every_suite_that_repeats_a_document_names_it() {
        for section in Suite::All.sections(&base()) {
            let source = source(section.suite);
            let is_named = source.is_some_and(|s| s.contains(' '));
            let suite = section.suite;
            assert_eq!(
                is_named,
                !matches!(suite, "core" | "motion" | "file"),
                "{suite}: {source:?}"
            );
        }
    }

    #[test]
    fn only_rates_stand_beside_rates() {
        let reads = rates("leveldb2011", "1", "Sequential Reads");
        assert_eq!(
            reads,
            [("leveldb", 4_030_000.0), ("kyoto", 1_010_000.0), ("sqlite", 383_000.0)]
        );
        let larger = rates("leveldb2011", "2A", "Random Writes");
        assert_eq!(larger.iter().map(|r| r.1).collect::<Vec<_>>(), [480.0, 1_100.0, 1_600.0]);
        assert!(rates("leveldb2011", "1", "Sequential Reads, settled").is_empty());
        assert!(rates("wiredtiger2013", "1", "random read").is_empty());
        assert!(rates("core", "1", "Sequential Reads").is_empty());
    }
}
