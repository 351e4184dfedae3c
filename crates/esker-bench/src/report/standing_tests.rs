//! Who is first, by how much, and when nobody can say so.

use super::*;
use crate::report::model::Model;
use crate::turns::MACHINE;

fn record(engine: &str, row: &str, value: f64, unit: Unit, class: &str) -> Record {
    Record {
        engine: engine.into(),
        row: row.into(),
        value: Some(value),
        unit: Some(unit),
        class: Some(class.into()),
        ..Record::default()
    }
}

#[test]
fn the_best_peer_is_of_our_class_and_only_rates_that_all_are_held_to_are_left_out() {
    let model = Model::new(vec![
        record("lmdb", "w", 90.0, Unit::OpsPerSecond, "F"),
        record("leveldb", "w", 40.0, Unit::OpsPerSecond, "K"),
        record(OURS, "w", 50.0, Unit::OpsPerSecond, "K"),
        record(OURS, "disk", 50.0, Unit::Bytes, "K"),
        record("lmdb", "disk", 25.0, Unit::Bytes, "K"),
        record(MACHINE, "limit.memcpy", 1.0, Unit::Bytes, "K"),
    ]);
    let rows = &model.sections[0].rows;
    let standing = rows[0].standing().unwrap();
    assert_eq!((standing.peer.as_str(), standing.ratio), ("leveldb", 1.25));
    let standing = rows[1].standing().unwrap();
    assert_eq!((standing.peer.as_str(), standing.ratio), ("lmdb", 0.5));
    let rate = |engine: &str, row: &str, unit: Unit| Record {
        target: Some(0.0),
        ..record(engine, row, 10_000.0, unit, "K")
    };
    let both = |row: &str, unit: Unit| vec![rate(OURS, row, unit), rate("lmdb", row, unit)];
    let held = Model::new([both("writes", Unit::OpsPerSecond), both("disk", Unit::Bytes)].concat());
    let compared = held.sections[0].rows.iter().map(|r| r.standing().is_some());
    assert_eq!(compared.collect::<Vec<_>>(), [false, true]);
    assert_eq!(model.limits.len(), 1);
    assert_eq!(model.engines, [OURS, "leveldb", "lmdb"]);
}

#[test]
fn times_too_short_to_be_noticed_are_alike() {
    let shown = |unit: Unit, ours: f64, theirs: f64| {
        let of = |engine: &str, value| record(engine, "r", value, unit, "K");
        let model = Model::new(vec![of(OURS, ours), of("lmdb", theirs)]);
        model.sections[0].rows[0].standing().map(|s| s.shown())
    };
    let (nothing, something) = (40e-9, 20e-3);
    assert_eq!(shown(Unit::Seconds, nothing, 900e-6).as_deref(), Some(ALIKE));
    assert_eq!(shown(Unit::Seconds, something, nothing).as_deref(), Some("<0.050×"));
    assert_eq!(shown(Unit::Seconds, nothing, something).as_deref(), Some(">20×"));
    assert_eq!(shown(Unit::Seconds, something, 2.0 * something).as_deref(), Some("2.0×"));
    assert_eq!(shown(Unit::Seconds, 0.0, something).as_deref(), Some(">20×"));
    // A store that opens in 171 µs is three times as fast as one that takes 488.
    assert_eq!(shown(Unit::Milliseconds, 0.488, 0.171).as_deref(), Some("0.35×"));
}

#[test]
fn who_needs_nothing_is_first() {
    let standing = |unit: Unit, ours: f64, lmdb: f64, leveldb: f64| {
        let of = |engine: &str, value| record(engine, "r", value, unit, "K");
        let model = Model::new(vec![of(OURS, ours), of("lmdb", lmdb), of("leveldb", leveldb)]);
        let standing = model.sections[0].rows[0].standing().unwrap();
        (standing.peer.clone(), standing.shown())
    };
    let told = |peer: &str, shown: &str| (peer.to_string(), shown.to_string());
    assert_eq!(standing(Unit::Bytes, 71.0, 0.0, 67.0), told("lmdb", "<0.001×"));
    assert_eq!(standing(Unit::Bytes, 0.0, 9.0, 67.0), told("lmdb", ">1,000×"));
    assert_eq!(standing(Unit::Bytes, 0.0, 0.0, 67.0), told("lmdb", ALIKE));
    assert_eq!(standing(Unit::OpsPerSecond, 0.0, 9.0, 3.0), told("lmdb", "<0.001×"));
    assert_eq!(standing(Unit::OpsPerSecond, 9.0, 0.0, 3.0), told("leveldb", "3.0×"));
}

/// Engines by the figures of their repetitions, in one row.
fn row<const N: usize>(unit: Unit, figures: [(&str, &[f64]); N]) -> Row {
    let record = |(engine, runs): (&str, &[f64])| {
        let mut sorted = runs.to_vec();
        sorted.sort_by(f64::total_cmp);
        let median = (sorted[(runs.len() - 1) / 2] + sorted[runs.len() / 2]) / 2.0;
        Record { runs: Some(runs.to_vec()), ..record(engine, "r", median, unit, "K") }
    };
    Row { name: "r".into(), unit, records: figures.map(record).to_vec() }
}

fn told_apart(row: &Row, engine: &str) -> Option<bool> {
    row.beside_the_best(engine, &|_| true).unwrap().told_apart
}

#[test]
fn ratios_are_to_the_best_of_the_class() {
    let with_class = |unit: Unit| {
        let of = |engine, value, class| record(engine, "r", value, unit, class);
        let records = vec![of(OURS, 300.0, "K"), of("x", 150.0, "K"), of("y", 900.0, "V")];
        Row { name: "r".into(), unit, records }
    };
    let ratio = |row: &Row, engine: &str| Some(row.beside_the_best(engine, &|_| true)?.ratio);
    let rates = with_class(Unit::OpsPerSecond);
    assert_eq!([OURS, "x", "y"].map(|e| ratio(&rates, e)), [Some(2.0), Some(0.5), None]);
    assert_eq!(ratio(&with_class(Unit::Seconds), OURS), Some(0.5));
}

#[test]
fn medians_whose_intervals_overlap_cannot_be_told_apart() {
    let rates = |others: &[(&str, &[f64])]| {
        let mut row = row(Unit::OpsPerSecond, [(OURS, &[100.0, 110.0, 120.0])]);
        for (engine, runs) in others {
            row.records.extend(self::row(Unit::OpsPerSecond, [(*engine, *runs)]).records);
        }
        row
    };
    let far: (&str, &[f64]) = ("x", &[60.0, 65.0, 70.0]);
    assert_eq!(told_apart(&rates(&[far]), OURS), Some(true));
    let near = rates(&[far, ("y", &[95.0, 99.0, 101.0])]);
    assert_eq!(told_apart(&near, OURS), Some(false));
    assert_eq!(told_apart(&near, "x"), Some(true));
    let wide = rates(&[("x", &[70.0, 72.5, 75.0]), ("y", &[40.0, 60.0, 130.0])]);
    let standing = wide.beside_the_best(OURS, &|_| true).unwrap();
    assert_eq!((standing.ratio, standing.peer.as_str()), (110.0 / 72.5, "x"));
    assert!(standing.alike(), "y is not the best, and may be");
    let ahead: (&str, &[f64]) = ("x", &[200.0, 210.0, 220.0]);
    let behind = rates(&[ahead, ("y", &[80.0, 105.0, 140.0])]);
    assert_eq!(told_apart(&behind, OURS), Some(true), "y hides no defeat by x");
}

#[test]
fn too_few_draws_tell_nothing() {
    let twice = row(Unit::OpsPerSecond, [(OURS, &[2.0, 2.1]), ("x", &[1.0, 1.1])]);
    assert_eq!(told_apart(&twice, OURS), None);
    let open = row(Unit::Milliseconds, [(OURS, &[0.488]), ("x", &[0.171])]);
    assert_eq!(told_apart(&open, OURS), None);
    // Where neither takes a millisecond there is nothing to tell.
    let settle = row(Unit::Seconds, [(OURS, &[40e-9]), ("x", &[900e-6])]);
    assert_eq!(told_apart(&settle, OURS), Some(false));
}

#[test]
fn too_few_draws_within_a_tenth_name_nobody_first() {
    let shown = |unit: Unit, name: &str, ours: &[f64], theirs: &[f64]| {
        let row = Row { name: name.into(), ..row(unit, [(OURS, ours), ("x", theirs)]) };
        row.beside_the_best(OURS, &|_| true).unwrap().told_apart
    };
    for unit in [Unit::OpsPerSecond, Unit::Milliseconds, Unit::Seconds, Unit::Times] {
        for (ours, theirs) in [(10.0, 10.9), (10.9, 10.0), (10.0, 10.0)] {
            assert_eq!(shown(unit, "r", &[ours], &[theirs]), Some(false), "{ours} {theirs}");
            let twice = [ours, ours + 0.01];
            assert_eq!(shown(unit, "r", &twice, &[theirs]), Some(false), "{ours} {theirs}");
        }
        for (ours, theirs) in [(10.0, 11.2), (11.2, 10.0)] {
            assert_eq!(shown(unit, "r", &[ours], &[theirs]), None, "{ours} {theirs}");
        }
    }
    let often = ([10.0, 10.01, 10.02], [10.1, 10.11, 10.12]);
    assert_eq!(shown(Unit::OpsPerSecond, "r", &often.0, &often.1), Some(true));
    let mut beside = row(Unit::OpsPerSecond, [(OURS, &[10.5, 10.51, 10.52]), ("x", &[9.9; 3])]);
    assert_eq!(told_apart(&beside, OURS), Some(true));
    beside.records.extend(row(Unit::OpsPerSecond, [("y", &[9.8])]).records);
    assert_eq!(told_apart(&beside, OURS), Some(false), "y was measured once, and may be first");
    // Files are as large another time; memory is not.
    for (name, apart) in [("disk.settled", None), ("memory", Some(false))] {
        assert_eq!(shown(Unit::Bytes, name, &[91e6], &[99e6]), apart, "{name}");
    }
    assert_eq!(shown(Unit::Bytes, "disk", &[91e6], &[91e6]), Some(false));
    // What a row is called does not say what it counts.
    let called = |key: &str, name: &str| {
        let mut row =
            Row { name: name.into(), ..row(Unit::Bytes, [(OURS, &[91e6]), ("x", &[99e6])]) };
        row.records.iter_mut().for_each(|r| r.key = Some(key.into()));
        told_apart(&row, OURS)
    };
    for (key, apart) in [("disk", None), ("disk.settled", None), ("memory", Some(false))] {
        assert_eq!(called(key, "Size of all files"), apart, "{key}");
        assert_eq!(called(key, "disk"), apart, "{key}");
    }
}
