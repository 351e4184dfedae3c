//! The page as a document: what it links to is there, every picture has words, nothing from
//! elsewhere.

use super::*;
use crate::report::record::Record;

fn model() -> Model {
    let record = |engine: &str, row: &str, value: f64| Record {
        suite: Some("leveldb2011".into()),
        section: Some("1".into()),
        table: Some("<Baseline> & more".into()),
        engine: engine.into(),
        row: row.into(),
        value: Some(value),
        class: Some("K".into()),
        settings: Some("a <b> \"c\"".into()),
        cpu: Some("A & B".into()),
        ..Record::default()
    };
    Model::new(vec![
        record("esker", "Sequential Reads", 40e6),
        record("leveldb", "Sequential Reads", 9e6),
        record("esker", "Sequential Writes", 1e6),
        record("leveldb", "Sequential Writes", 2e6),
    ])
}

#[test]
fn every_link_has_its_target_and_every_picture_its_words() {
    let html = render(&model());
    let targets = html.split("href=\"#").skip(1).filter_map(|s| s.split('"').next());
    let mut links = 0;
    for id in targets {
        links += 1;
        assert_eq!(html.matches(&format!("id=\"{id}\"")).count(), 1, "{id}");
    }
    assert!(links >= 5);
    let pictures = html.matches("<svg class=\"chart").count();
    // A panel for each row, and on the first screen the one that is lost.
    assert_eq!(pictures, 3);
    assert_eq!(html.matches("<desc id=").count(), pictures);
    assert!(html.contains("&lt;Baseline&gt; &amp; more") && !html.contains("<Baseline>"));
}

#[test]
fn nothing_is_loaded_and_nothing_runs() {
    let html = render(&model());
    for foreign in ["http://", "https://", "<script", "@import", "url(", "src="] {
        assert!(!html.contains(foreign), "{foreign}");
    }
}

#[test]
fn an_unquiet_machine_is_said_on_top_of_every_format() {
    let said = "The machine was not quiet: a load of 2.4 before the run";
    let record = Record {
        engine: "esker".into(),
        row: "r".into(),
        value: Some(1.0),
        unquiet: Some(said.into()),
        ..Record::default()
    };
    let unquiet = Model::new(vec![record]);
    let markdown = crate::report::markdown::render(&unquiet);
    for (text, begin) in [(render(&unquiet), "class=\"lead\""), (markdown, "| row |")] {
        let (at, begin) = (text.find(said).expect("it is said"), text.find(begin).unwrap());
        assert!(at < begin, "{text}");
    }
    assert!(!render(&model()).contains("not quiet"));
    let times = |runs: usize| {
        let (engine, row) = ("esker".into(), "r".into());
        let runs = Some(vec![1.0; runs]);
        render(&Model::new(vec![Record {
            engine,
            row,
            value: Some(1.0),
            runs,
            ..Record::default()
        }]))
    };
    for few in [1, 2] {
        assert!(times(few).contains("Each row was measured once or twice"));
    }
    assert!(!times(3).contains("measured once"));
}

#[test]
fn what_was_measured_too_few_times_is_counted() {
    let row = |row: &str, runs: usize| Record {
        engine: "esker".into(),
        row: row.into(),
        value: Some(1.0),
        runs: Some(vec![1.0; runs]),
        ..Record::default()
    };
    let said = |rows: Vec<Record>| Model::new(rows).caution().unwrap_or_default();
    assert!(said(vec![row("a", 1), row("b", 5), row("c", 2)]).starts_with("2 of 3 rows were"));
    assert!(said(vec![row("a", 1), row("b", 5)]).starts_with("One of 2 rows was"));
    assert_eq!(said(vec![row("a", 5)]), "");
}

#[test]
fn the_worst_row_is_named_and_on_top() {
    let html = render(&model());
    assert!(html.contains("Esker is first in 1 of 2 rows"), "summary");
    let (behind, first) = (html.find("Another engine is first"), html.find("Esker is first (1)"));
    assert!(behind.is_some() && behind < first);
    assert!(html.contains("0.50×"));
    // The published figures of 2011 stand beside the measured ones.
    assert!(html.contains("LevelDB 2011: 4,030,000") && html.contains("X5650"));
}
