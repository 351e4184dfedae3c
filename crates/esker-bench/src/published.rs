//! What the documents published, so that a measured row can be shown beside it. `data/published.json`
//! has their figures; here is which row of ours repeats which of them.

use serde::Deserialize;

/// A published figure.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// The engine, by our name.
    pub engine: String,
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

#[derive(Deserialize)]
struct Document {
    #[serde(default)]
    results: Vec<Result2011>,
    #[serde(default)]
    relative_to_leveldb: Vec<Relative2013>,
    #[serde(default)]
    scenarios: Vec<Scenario2014>,
}

#[derive(Deserialize)]
struct Result2011 {
    section: String,
    config: Option<String>,
    workload: String,
    engine: String,
    ops_per_s: f64,
}

#[derive(Deserialize)]
struct Relative2013 {
    workload: String,
    wt_btree: Option<f64>,
    wt_lsm: Option<f64>,
}

#[derive(Deserialize)]
struct Scenario2014 {
    name: String,
    #[serde(default)]
    published: std::collections::BTreeMap<String, String>,
}

fn documents() -> Vec<Document> {
    serde_json::from_str(include_str!("../data/published.json"))
        .expect("the file is a part of this crate, and a test reads it")
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

/// The published figures of a row, engine by engine; none where the documents have none.
pub fn for_row(suite: &str, section: &str, row: &str) -> Vec<Figure> {
    let figure = |named: &str, value| Figure {
        engine: our_name(named).to_string(),
        named: named.to_string(),
        value,
    };
    let mut all = Vec::new();
    for document in documents() {
        if suite == "leveldb2011" {
            let of_row =
                document.results.iter().filter(|r| r.section() == section && r.row() == row);
            all.extend(of_row.map(|r| figure(&r.engine, Value::OpsPerSecond(r.ops_per_s))));
        }
        if suite == "wiredtiger2013" {
            for relative in document.relative_to_leveldb.iter().filter(|r| r.workload == row) {
                let both =
                    [("WiredTiger Btree", relative.wt_btree), ("WiredTiger LSM", relative.wt_lsm)];
                let some = both.into_iter().filter_map(|(name, times)| Some((name, times?)));
                all.extend(some.map(|(name, times)| figure(name, Value::TimesLevelDb(times))));
            }
        }
        let larger = suite == "symas2014" && section == "3" && row == "time to complete";
        for scenario in document.scenarios.iter().filter(|_| larger) {
            let named = scenario.published.iter().filter(|_| scenario.name.starts_with("larger"));
            all.extend(named.map(|(name, time)| figure(name, Value::Duration(time.clone()))));
        }
    }
    all
}

/// Our name of an engine of the documents.
fn our_name(named: &str) -> &'static str {
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
        let documents = documents();
        let published: Vec<&Result2011> = documents.iter().flat_map(|d| &d.results).collect();
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
        let documents = documents();
        let published: Vec<_> = documents.iter().flat_map(|d| &d.relative_to_leveldb).collect();
        assert_eq!(published.len(), 7);
        for relative in published {
            let rows = sections.iter().flat_map(|s| s.places());
            assert_eq!(rows.filter(|p| p.row.name == relative.workload).count(), 1);
            assert!(!for_row("wiredtiger2013", "1", &relative.workload).is_empty());
        }
        assert_eq!(for_row("symas2014", "3", "time to complete").len(), 8);
        assert_eq!(for_row("leveldb2011", "beyond", "Overwrites"), []);
    }
}
