//! What the documents published, so that a measured row can be shown beside it: `data/published.json`, by the rows of ours
//! that repeat theirs.

use serde::Deserialize;
use std::sync::OnceLock;

/// A published figure.
#[derive(Debug, Deserialize)]
pub struct Figure {
    /// The section of ours that repeats it.
    pub section: String,
    /// The row there. Of each operation the document of 2013 counts the last instance, and that of reads comes behind a
    /// compaction of everything.
    pub row: String,
    /// The engine, by our name.
    pub engine: String,
    /// Its name in the document.
    pub named: String,
    /// The figure.
    #[serde(flatten)]
    pub value: Value,
}

/// What is published of an engine.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Value {
    /// Operations a second.
    OpsPerSecond(f64),
    /// How many times as fast as LevelDB.
    TimesLeveldb(f64),
    /// The time to complete, in the document's words.
    Time(String),
}

/// A document whose tables a suite repeats.
#[derive(Debug, Deserialize)]
pub struct Document {
    /// The suite.
    pub suite: String,
    /// Its title, its authors and when it was published.
    pub source: String,
    /// What it was measured on; empty where it does not say.
    pub hardware: String,
    /// What it published that can stand beside ours.
    pub figures: Vec<Figure>,
}

fn documents() -> &'static [Document] {
    static DOCUMENTS: OnceLock<Vec<Document>> = OnceLock::new();
    DOCUMENTS.get_or_init(|| {
        serde_json::from_str(include_str!("../data/published.json"))
            .expect("the file is a part of this crate, and a test reads it")
    })
}

/// The document that a suite repeats.
pub fn of_suite(suite: &str) -> Option<&'static Document> {
    documents().iter().find(|document| document.suite == suite)
}

/// The same in words.
pub fn source(suite: &str) -> Option<&'static str> {
    of_suite(suite).map(|document| document.source.as_str())
}

/// The published figures of a row, engine by engine; none where the documents have none.
pub fn for_row(suite: &str, section: &str, row: &str) -> Vec<&'static Figure> {
    let all = of_suite(suite).into_iter().flat_map(|document| &document.figures);
    all.filter(|figure| figure.section == section && figure.row == row).collect()
}

/// The published operations a second of a row by engine: what can stand beside a measured one.
pub fn rates(suite: &str, section: &str, row: &str) -> Vec<(&'static str, f64)> {
    let rate = |figure: &'static Figure| match figure.value {
        Value::OpsPerSecond(value) => Some((figure.engine.as_str(), value)),
        _ => None,
    };
    for_row(suite, section, row).into_iter().filter_map(rate).collect()
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
        assert_eq!(document.figures.len(), 52);
        for figure in &document.figures {
            let mut places = sections.iter().flat_map(|s| s.places());
            let is_here =
                places.any(|p| p.section.id == figure.section && p.row.name == figure.row);
            assert!(is_here, "no row for {figure:?}");
            assert!(crate::engines::exists(&figure.engine), "{figure:?}");
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
        let published = &of_suite("wiredtiger2013").unwrap().figures;
        assert_eq!(published.len(), 13);
        for figure in published {
            let places = sections.iter().flat_map(|s| s.places());
            let here =
                places.filter(|p| p.section.id == figure.section && p.row.name == figure.row);
            assert_eq!(here.count(), 1, "{figure:?}");
            assert!(crate::engines::exists(&figure.engine), "{figure:?}");
        }
        assert!(for_row("wiredtiger2013", "1", "random read").is_empty(), "right after the load");
        assert_eq!(for_row("symas2014", "3", "time to complete").len(), 8);
        assert!(for_row("leveldb2011", "beyond", "Overwrites").is_empty());
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
