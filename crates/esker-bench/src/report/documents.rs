//! What the documents of 2013 and 2014 published: ratios and times instead of operations a second,
//! so a table of its own beside what was measured here.

use super::format;
use super::model::Section;
use super::palette;
use serde::Deserialize;
use std::collections::BTreeMap;

const DATA: &str = include_str!("../../data/published.json");

#[derive(Debug, Deserialize)]
struct Document {
    source: String,
    #[serde(default)]
    hardware: String,
    #[serde(default)]
    relative_to_leveldb: Vec<Relative>,
    #[serde(default)]
    scenarios: Vec<Scenario>,
}

/// WiredTiger's speed as a multiple of LevelDB's.
#[derive(Debug, Deserialize)]
struct Relative {
    workload: String,
    wt_btree: Option<f64>,
    wt_lsm: Option<f64>,
}

#[derive(Debug, Deserialize)]
struct Scenario {
    name: String,
    #[serde(default)]
    published: BTreeMap<String, String>,
}

/// A table for readers.
#[derive(Debug, PartialEq)]
pub(crate) struct Table {
    pub caption: String,
    pub columns: Vec<String>,
    pub lines: Vec<Vec<String>>,
}

/// What a suite's document published, beside what these sections measured.
pub(crate) fn of_suite(suite: &str, sections: &[Section]) -> Option<Table> {
    // Our own file, compiled in; a test reads it.
    let documents: Vec<Document> = serde_json::from_str(DATA).unwrap_or_default();
    match suite {
        "wiredtiger2013" => {
            let document = documents.into_iter().find(|d| !d.relative_to_leveldb.is_empty())?;
            Some(relative(&document, sections))
        }
        "symas2014" => {
            let document = documents.into_iter().find(|d| !d.scenarios.is_empty())?;
            times(&document)
        }
        _ => None,
    }
}

fn relative(document: &Document, sections: &[Section]) -> Table {
    let shown = |ratio: Option<f64>| ratio.map_or_else(|| "-".to_string(), format::ratio);
    let line = |r: &Relative| {
        let here = |engine: &str| shown(measured(&r.workload, engine, sections));
        let [btree, lsm] = [here("wiredtiger"), here("wiredtiger-lsm")];
        vec![r.workload.clone(), shown(r.wt_btree), btree, shown(r.wt_lsm), lsm]
    };
    Table {
        caption: format!(
            "Speed as a multiple of LevelDB's, as published ({}; {}) and as measured here",
            document.source, document.hardware
        ),
        columns: ["workload", "B-tree, published", "B-tree, here", "LSM, published", "LSM, here"]
            .map(String::from)
            .to_vec(),
        lines: document.relative_to_leveldb.iter().map(line).collect(),
    }
}

/// The same ratio from the row that repeats a workload.
fn measured(workload: &str, engine: &str, sections: &[Section]) -> Option<f64> {
    let mut rows = sections.iter().flat_map(|s| &s.rows);
    let row = rows.find(|row| kind(workload).is_some() && kind(&row.name) == kind(workload))?;
    let [theirs, leveldb] = [engine, "leveldb"].map(|name| row.of(name).and_then(|r| r.figure()));
    row.unit.ratio(theirs?, leveldb?)
}

/// What the words of the document and the names of rows have in common.
fn kind(name: &str) -> Option<&'static str> {
    let name = name.to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
    if has(&["settled", "missing"]) {
        return None;
    }
    let kinds: [(&[&str], &'static str); 7] = [
        (&["large", "100k"], "large"),
        (&["overwrite"], "overwrite"),
        (&["reverse"], "reverse"),
        (&["random read", "readrandom", "read random"], "random read"),
        (&["sequential read", "readseq", "read forward"], "sequential read"),
        (&["sequential insert", "fillseq", "insertseq"], "sequential insert"),
        (&["random insert", "fillrandom", "insertrandom"], "random insert"),
    ];
    kinds.into_iter().find(|(words, _)| has(words)).map(|(_, kind)| kind)
}

fn times(document: &Document) -> Option<Table> {
    let scenario = document.scenarios.iter().find(|s| !s.published.is_empty())?;
    let mut lines: Vec<(usize, Vec<String>)> = Vec::new();
    for (engine, time) in &scenario.published {
        let place = palette::order(&id(engine)).0;
        lines.push((place, vec![engine.clone(), time.clone()]));
    }
    lines.sort();
    Some(Table {
        caption: format!(
            "Time to complete the {}, as published ({})",
            scenario.name, document.source
        ),
        columns: vec!["engine".to_string(), "time".to_string()],
        lines: lines.into_iter().map(|(_, line)| line).collect(),
    })
}

/// This benchmark's name of an engine of the document.
fn id(name: &str) -> String {
    match name {
        "Basho LevelDB" => "basho".to_string(),
        "BerkeleyDB" => "bdb".to_string(),
        "WiredTiger LSM" => "wiredtiger-lsm".to_string(),
        "WiredTiger Btree" => "wiredtiger".to_string(),
        other => other.to_ascii_lowercase(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::input::Record;
    use crate::report::model::Model;

    #[test]
    fn published_ratios_stand_beside_measured_ones() {
        let record = |engine: &str, value: f64| Record {
            engine: engine.into(),
            row: "readreverse".into(),
            value: Some(value),
            ..Record::default()
        };
        let model = Model::new(vec![record("leveldb", 10.0), record("wiredtiger", 15.0)]);
        let table = of_suite("wiredtiger2013", &model.sections).unwrap();
        assert_eq!(table.lines.len(), 7);
        let reverse = table.lines.iter().find(|l| l[0].contains("reverse")).unwrap();
        assert_eq!(reverse[1..], ["2.0×", "1.50×", "2.0×", "-"]);
        assert!(table.lines.iter().all(|l| kind(&l[0]).is_some()), "{:?}", table.lines);
        assert!(table.caption.contains("hi1.4xlarge"));
    }

    #[test]
    fn published_times_are_listed() {
        let table = of_suite("symas2014", &[]).unwrap();
        assert_eq!(table.lines.len(), 8);
        assert_eq!(table.lines[0][0], "LevelDB");
        assert!(table.lines.iter().any(|l| l == &["LMDB", "just over 10 minutes"]));
        assert_eq!(of_suite("ycsb", &[]), None);
    }
}
