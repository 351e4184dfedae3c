//! What the documents of 2013 and 2014 published: ratios and times instead of operations a second,
//! so a table of its own beside what was measured here.

use super::format;
use super::model::Section;
use super::palette;
use crate::published::{self, Document, Relative2013};

/// A table for readers.
#[derive(Debug, PartialEq)]
pub(crate) struct Table {
    pub caption: String,
    pub columns: Vec<String>,
    pub lines: Vec<Vec<String>>,
}

/// What a suite's document published, beside what these sections measured.
pub(crate) fn of_suite(suite: &str, sections: &[Section]) -> Option<Table> {
    let document = published::of_suite(suite)?;
    match suite {
        "wiredtiger2013" => Some(relative(document, sections)),
        "symas2014" => times(document),
        _ => None,
    }
}

fn relative(document: &Document, sections: &[Section]) -> Table {
    let shown = |ratio: Option<f64>| ratio.map_or_else(|| "-".to_string(), format::ratio);
    let line = |r: &Relative2013| {
        let here = |engine: &str| shown(measured(&r.row_of_ours(), engine, sections));
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
fn measured(name: &str, engine: &str, sections: &[Section]) -> Option<f64> {
    let mut rows = sections.iter().flat_map(|s| &s.rows);
    let row = rows.find(|row| row.name == name)?;
    let [theirs, leveldb] = [engine, "leveldb"].map(|name| row.of(name).and_then(|r| r.figure()));
    Some(row.unit.times_better(theirs?, leveldb?))
}

fn times(document: &Document) -> Option<Table> {
    let scenario = document.scenarios.iter().find(|s| !s.published.is_empty())?;
    let mut lines: Vec<(usize, Vec<String>)> = Vec::new();
    for (engine, time) in &scenario.published {
        let place = palette::order(published::our_name(engine)).0;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::input::Record;
    use crate::report::model::Model;

    #[test]
    fn published_ratios_stand_beside_measured_ones() {
        let record = |engine: &str, value: f64| Record {
            engine: engine.into(),
            row: "sequential read reverse, settled".into(),
            value: Some(value),
            ..Record::default()
        };
        let model = Model::new(vec![record("leveldb", 10.0), record("wiredtiger", 15.0)]);
        let table = of_suite("wiredtiger2013", &model.sections).unwrap();
        assert_eq!(table.lines.len(), 7);
        let reverse = table.lines.iter().find(|l| l[0].contains("reverse")).unwrap();
        assert_eq!(reverse[1..], ["2.0×", "1.50×", "2.0×", "-"]);
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
