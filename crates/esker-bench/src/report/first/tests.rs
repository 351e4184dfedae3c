//! What stands on the first screen, and how it is said in each format.

use super::*;
use crate::measure::{Recorder, Timing};
use crate::protocol::WriterSide;
use crate::report::{html, markdown};
use std::path::Path;

fn record(suite: &str, key: &str, engine: &str, value: f64) -> Record {
    Record {
        suite: Some(suite.into()),
        section: Some("1".into()),
        row: key.into(),
        key: Some(key.into()),
        engine: engine.into(),
        value: Some(value),
        class: Some("K".into()),
        entries: Some(1_000_000),
        key_len: Some(16),
        keys: Some("decimal".into()),
        value_size: Some("100".into()),
        memory_bytes: Some(4 << 20),
        compression: Some(true),
        sync: Some(false),
        ..Record::default()
    }
}

/// One suite of a document: reads, writes and scans, Esker beside two known engines and one that is faster than all.
fn document() -> Vec<Record> {
    let rows = [
        ("readrandom", [3e6, 1e6, 1.5e6, 9e6]),
        ("fillseq", [4e6, 2e6, 1e6, 9e6]),
        ("fillrandom", [3e6, 1e6, 1e6, 9e6]),
        ("fillbatch", [4e6, 2e6, 11e6, 9e6]),
        ("fill100Krandom", [36e3, 2e3, 58e3, 9e6]),
        ("readseq", [40e6, 13e6, 20e6, 9e6]),
    ];
    let engines = [OURS, "leveldb", "lmdb", "sled"];
    let of_row = |(key, values): (&'static str, [f64; 4])| {
        engines.into_iter().zip(values).map(move |(engine, value)| {
            let large = key.starts_with("fill100K").then(|| "100000".to_string());
            let record = record("leveldb2011", key, engine, value);
            Record { value_size: large.or(record.value_size.clone()), ..record }
        })
    };
    rows.into_iter().flat_map(of_row).collect()
}

#[test]
fn groups_without_rows_are_left_out_and_only_the_known_engines_count() {
    let model = Model::new(document());
    let first = First::of(&model);
    let names: Vec<&str> = first.groups.iter().map(|(heading, _)| *heading).collect();
    assert_eq!(names, ["Reads", "Writes", "Scans", WORST]);
    assert_eq!(first.peers, ["leveldb", "lmdb"], "the fourth is not on the first screen");
    let writes: Vec<(&str, &str)> =
        first.groups[1].1.iter().map(|c| (c.row.key(), c.verdict.as_str())).collect();
    assert_eq!(
        writes,
        [
            ("fillrandom", "Esker: 3.0× of LevelDB"),
            ("fillseq", "Esker: 2.0× of LevelDB"),
            ("fillbatch", "Esker: 0.36× of LMDB, its worst of 4 rows"),
        ]
    );
    assert_eq!(first.groups[0].1[0].verdict, "Esker: 2.0× of LMDB", "one of one is no worst");
    let bars = first.groups[0].1[0].bars(&first.peers);
    let shown: Vec<&str> = bars.iter().map(|b| b.shown.as_str()).collect();
    assert_eq!(shown, ["3,000,000/s", "1,000,000/s", "1,500,000/s"]);
}

#[test]
fn whatever_else_is_worst_stands_on_it_too() {
    let of = |suite: &str, key: &str, unit: Unit, [ours, lmdb, sled]: [f64; 3]| {
        [(OURS, ours), ("lmdb", lmdb), ("sled", sled)]
            .map(|(e, value)| Record { unit: Some(unit), ..record(suite, key, e, value) })
    };
    let lost = [
        of("core", "settle", Unit::Seconds, [0.5, 0.01, 1e-4]),
        of("core", "disk", Unit::Bytes, [9e6, 8e6, 1.0]),
        of("motion", "queue", Unit::OpsPerSecond, [1e5, 2e5, 3e5]),
        of("core", "memory", Unit::Bytes, [1e6, 9e6, 1.0]),
        of("core", "open.killed", Unit::Milliseconds, [30.0, 3.0, 1.0]),
        of("core", "fillsync", Unit::OpsPerSecond, [1.0, 50.0, 1.0]),
    ];
    let model = Model::new([document(), lost.concat()].concat());
    let first = First::of(&model);
    let (heading, worst) = first.groups.last().unwrap();
    assert_eq!(*heading, WORST);
    let told: Vec<(&str, &str)> =
        worst.iter().map(|c| (c.title.as_str(), c.verdict.as_str())).collect();
    // Synced writes are on it as the worst of theirs, and the queue as the only one of its; memory is no loss beside LMDB.
    assert_eq!(
        told,
        [
            ("Time to settle after a random load", "Esker: 0.020× of LMDB"),
            ("Opening and one read after kill -9", "Esker: 0.10× of LMDB"),
            ("Writes in key order, in batches", "Esker: 0.36× of LMDB"),
        ]
    );
    assert!(worst[0].place.contains("Less is better.") && !worst[2].place.contains("Less"));
    let pictured = picture::draw(&first, "m", None).unwrap();
    assert!(pictured.contains("Time to settle"), "the picture alone has them");
}

#[test]
fn a_flood_says_how_much_was_written_beside_each_engine() {
    let beside = |engine: &str, value: f64, wanted_per_s: f64, ops_per_s: f64| Record {
        writer: Some(WriterSide {
            wanted_per_s,
            ops_per_s,
            latency: Recorder::new(Timing::Every).latency(),
        }),
        ..record(
            "motion",
            if wanted_per_s > 0.0 { "read.10k" } else { "read.flood" },
            engine,
            value,
        )
    };
    let model = Model::new(vec![
        beside(OURS, 9e5, 0.0, 523_000.0),
        beside("lmdb", 6e5, 0.0, 140_000.0),
        beside(OURS, 9e5, 1e4, 1e4),
        beside("lmdb", 6e5, 1e4, 1e4),
    ]);
    let first = First::of(&model);
    let places: Vec<&str> = first.groups[0].1.iter().map(|card| card.place.as_str()).collect();
    assert!(
        places[0].ends_with("Writes beside it: Esker 523,000/s, LMDB 140,000/s."),
        "{places:?}"
    );
    assert!(!places[1].contains("Writes beside"), "its rate is that of the row");
}

#[test]
fn sizes_are_said_once_and_where_they_differ() {
    let mut records = document();
    records.retain(|r| r.row != "fillbatch");
    let model = Model::new(records);
    let first = First::of(&model);
    assert_eq!(
        first.sizes,
        "Where a row says nothing else: 1,000,000 entries, decimal keys of 16 B, values of 100 B, 4 MiB of memory for each engine, compression on, \
         writes do not wait for the device."
    );
    let places: Vec<&str> = first.groups[1].1.iter().map(|c| c.place.as_str()).collect();
    let one = "LevelDB 2011, 1.";
    assert_eq!(places, [one, one, "LevelDB 2011, 1. Values of 100000 B."]);
    let caption = first.caption().join(" ");
    let document = "LevelDB 2011 is LevelDB Benchmarks, Google, July 2011.";
    assert_eq!(caption.matches(document).count(), 1, "{caption}");
    let memory = "On top of that come, for Esker, log that waits";
    assert_eq!(caption.matches(memory).count(), 1, "{caption}");
}

#[test]
fn what_some_rows_have_no_word_of_is_told_of_the_others() {
    let mut records = document();
    for record in records.iter_mut().filter(|r| r.row != "readseq") {
        record.memory_limit_bytes = Some(64 << 20);
    }
    let model = Model::new(records);
    let first = First::of(&model);
    let place = |group: usize| first.groups[group].1[0].place.contains("64 MiB");
    assert!(!first.sizes.contains("64 MiB") && place(0) && !place(2), "{first:?}");
}

#[test]
fn the_distributions_library_stands_for_an_engine_only_where_no_other_does() {
    let with = |engines: &[&str]| {
        let records = engines.iter().map(|e| record("core", "readseq", e, 1e6)).collect();
        let model = Model::new(records);
        First::of(&model).peers.into_iter().map(String::from).collect::<Vec<_>>()
    };
    assert_eq!(with(&[OURS, "lmdb-system", "sled-system"]), ["lmdb-system"]);
    assert_eq!(with(&[OURS, "lmdb-system", "lmdb"]), ["lmdb"]);
}

#[test]
fn a_row_that_failed_is_the_worst_and_is_seen() {
    let mut records = document();
    records[0].failed = Some("lost 3 entries".into());
    let model = Model::new(records);
    let first = First::of(&model);
    assert_eq!(first.groups[0].1[0].verdict, "Esker: failed");
}

#[test]
fn every_format_begins_with_it_and_explains_its_letters_before_any_other_table() {
    let model = Model::new(document());
    let html = html::render(&model);
    let markdown = markdown::render(&model);
    let text = text::render(&model);
    let letters = "K kill -9, F a power cut";
    for (format, out) in [("html", &html), ("markdown", &markdown), ("text", &text)] {
        let at = |what: &str| out.find(what).unwrap_or_else(|| panic!("no {what} in {format}"));
        let worst = at("in which Esker is worst, beside");
        for what in
            ["0.36× of LMDB", "Writes in key order, in batches", "decimal keys of 16 B", letters]
        {
            // A terminal breaks lines.
            if format != "text" || !what.contains(' ') {
                assert!(at(what) < worst, "{what} in {format}");
            }
        }
    }
    assert!(html.find("<svg class=\"chart") < html.find("<nav"), "a picture before a list");
    assert!(markdown.find("(first.svg)") < markdown.find("| row |"));
    assert!(html.find("id=\"worst\"") < html.find("id=\"ratios\""));
}

#[test]
fn bars_of_text_are_linear_and_none_vanishes() {
    let model = Model::new(document());
    let text = text::render(&model);
    let cells = |line: &str| line.chars().filter(|c| "█▒".contains(*c)).count();
    let of = |value: &str| cells(text.lines().find(|l| l.ends_with(value)).expect(value));
    assert_eq!((of("40,000,000/s"), of("20,000,000/s"), of("13,000,000/s")), (30, 15, 10));
    let tiny = Model::new(vec![
        record("core", "readseq", OURS, 1e9),
        record("core", "readseq", "lmdb", 1.0),
    ]);
    let text = text::render(&tiny);
    assert_eq!(cells(text.lines().find(|l| l.ends_with(" 1/s")).unwrap()), 1);
}

#[test]
fn without_a_known_engine_there_is_no_picture_and_the_rest_stands() {
    let mut records = document();
    records.retain(|r| r.engine == OURS || r.engine == "sled");
    let model = Model::new(records);
    let first = First::of(&model);
    assert!(first.is_empty() && picture::draw(&first, "m", None).is_none());
    let markdown = markdown::render(&model);
    assert!(markdown.contains("K kill -9") && !markdown.contains("first.svg"));
    assert!(html::render(&model).contains("id=\"worst\""));
}

#[test]
fn the_picture_has_bars_from_zero_and_all_of_its_words_fit() {
    let model = Model::new(document());
    let file = picture::draw(&First::of(&model), "a machine", Some("It was not quiet.")).unwrap();
    let document = roxmltree::Document::parse(&file).unwrap();
    let number = |n: &roxmltree::Node<'_, '_>, name: &str| {
        n.attribute(name).unwrap().parse::<f64>().unwrap()
    };
    let bars: Vec<_> = document.descendants().filter(|n| n.has_tag_name("rect")).collect();
    assert_eq!(bars.len(), 18, "six rows, three engines each");
    // Random reads are the first panel: Esker, LevelDB, LMDB.
    let widths: Vec<f64> = bars[..3].iter().map(|b| number(b, "width")).collect();
    assert!((widths[1] / widths[0] - 1.0 / 3.0).abs() < 0.01, "{widths:?}");
    let (width, height) =
        (number(&document.root_element(), "width"), number(&document.root_element(), "height"));
    for node in document.descendants().filter(|n| n.has_tag_name("text")) {
        let group =
            node.ancestors().find_map(|n| n.attribute("transform")).unwrap_or("translate(0 0)");
        let moved =
            group.trim_start_matches("translate(").trim_end_matches(')').split_once(' ').unwrap();
        let moved: (f64, f64) = (moved.0.parse().unwrap(), moved.1.parse().unwrap());
        let (x, y) = (number(&node, "x") + moved.0, number(&node, "y") + moved.1);
        let small = node.attribute("class").unwrap().starts_with("small");
        let size = if small { 10.0 } else { 11.5 };
        let end = match node.attribute("text-anchor") {
            Some("end") => x,
            _ => x + crate::report::text::width(node.text().unwrap_or(""), size),
        };
        assert!(
            end <= width + 0.5 && y < height && y > 0.0,
            "{:?} ends at {end}, {y}",
            node.text()
        );
    }
    let words: String =
        document.descendants().filter_map(|n| n.text()).collect::<Vec<_>>().join(" ");
    assert!(
        words.contains("1,000,000 entries, decimal keys of 16 B") && words.contains("a machine")
    );
}

/// What the published runs lost is asked for by the suite that a report begins with.
#[test]
fn no_row_that_a_published_run_lost_is_left_out_of_first() {
    let results = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results");
    let mut left_out = Vec::new();
    for run in ["first", "ycsb", "motion"] {
        let model = Model::new(crate::report::input::read(&results.join(run)).unwrap());
        for (section, row) in model.rows() {
            let stand = row.standing_among(&|engine| is_peer(engine, &model.engines));
            let is_lost = stand.is_some_and(|s| s.ratio < 1.0 && !s.alike());
            let (suite, key) = (section.suite.as_str(), row.key());
            let is_usual = Group::of(suite, key)
                .is_some_and(|g| g.usual().iter().any(|names| names[0] == key));
            if is_lost && !is_usual && !crate::first::LOST.contains(&(suite, key)) {
                left_out.push(format!("{run}: {suite} {key}"));
            }
        }
    }
    assert!(left_out.is_empty(), "LOST in first.rs lacks {left_out:?}");
}
