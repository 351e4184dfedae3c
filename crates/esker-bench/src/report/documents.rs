//! What the documents of 2013 and 2014 published: ratios and times instead of operations a second,
//! so a table of its own beside what was measured here.

use super::format;
use super::model::Section;
use super::palette;
use crate::published::{self, Document, Figure, Value};

/// A table for readers.
#[derive(Debug, PartialEq)]
pub(crate) struct Table {
    pub caption: String,
    /// Each with its class: `n` for numbers.
    pub columns: Vec<(&'static str, &'static str)>,
    pub lines: Vec<Vec<String>>,
}

/// What a suite's document published, beside what these sections measured.
pub(crate) fn of_suite(suite: &str, sections: &[Section]) -> Option<Table> {
    let document = published::of_suite(suite)?;
    match suite {
        "wiredtiger2013" => Some(relative(document, sections)),
        "symas2014" => Some(times(document)),
        _ => None,
    }
}

fn relative(document: &Document, sections: &[Section]) -> Table {
    let shown = |ratio: Option<f64>| ratio.map_or_else(|| "-".to_string(), format::ratio);
    let line = |row: &str| {
        let mut line = vec![row.strip_suffix(", settled").unwrap_or(row).to_string()];
        for engine in ["wiredtiger", "wiredtiger-lsm"] {
            line.push(shown(times_leveldb(document, row, engine)));
            line.push(shown(measured(row, engine, sections)));
        }
        line
    };
    let mut rows: Vec<&str> = document.figures.iter().map(|f| f.row.as_str()).collect();
    rows.dedup();
    Table {
        caption: format!(
            "Speed as a multiple of LevelDB's, as published ({}; {}) and as measured here",
            document.source, document.hardware
        ),
        columns: vec![
            ("", "workload"),
            ("n", "B-tree, published"),
            ("n", "B-tree, here"),
            ("n", "LSM, published"),
            ("n", "LSM, here"),
        ],
        lines: rows.into_iter().map(line).collect(),
    }
}

/// A published multiple of LevelDB's speed.
fn times_leveldb(document: &Document, row: &str, engine: &str) -> Option<f64> {
    document.figures.iter().find_map(|figure| match figure.value {
        Value::TimesLeveldb(times) if figure.row == row && figure.engine == engine => Some(times),
        _ => None,
    })
}

/// The same ratio from the row that repeats a workload.
fn measured(name: &str, engine: &str, sections: &[Section]) -> Option<f64> {
    let mut rows = sections.iter().flat_map(|s| &s.rows);
    let row = rows.find(|row| row.name == name)?;
    let [theirs, leveldb] = [engine, "leveldb"].map(|name| row.of(name).and_then(|r| r.figure()));
    Some(row.unit.times_better(theirs?, leveldb?))
}

fn times(document: &Document) -> Table {
    let mut figures: Vec<&Figure> = document.figures.iter().collect();
    figures.sort_by_key(|figure| palette::order(&figure.engine).0);
    let time = |figure: &Figure| match &figure.value {
        Value::Time(time) => time.clone(),
        _ => String::new(),
    };
    Table {
        caption: format!(
            "Time to complete the larger set in memory, as published ({})",
            document.source
        ),
        columns: vec![("", "engine"), ("", "time")],
        lines: figures.iter().map(|figure| vec![figure.named.clone(), time(figure)]).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::model::Model;
    use crate::report::record::Record;

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
