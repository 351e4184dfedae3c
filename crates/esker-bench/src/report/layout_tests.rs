//! The promises of the layout.

use super::*;
use crate::report::format;

fn bar(name: &str, value: f64, spread: f64) -> Bar {
    Bar {
        name: name.into(),
        mark: "K".into(),
        value: Some(value),
        range: (spread > 0.0).then_some((value * (1.0 - spread), value * (1.0 + spread))),
        shown: format::rounded(value),
        kind: Kind::Peer,
    }
}

#[test]
fn bars_and_labels_stay_within_the_panel() {
    let long = "an-engine-with-a-name-that-is-much-too-long-for-a-column";
    for values in [[1.0, 2.0, 3.0], [7e6, 1.2e3, 4e2], [1e-3, 0.5, 4e9], [5.0, 5.0, 5.0]] {
        let all: Vec<Bar> =
            values.iter().zip(["a", long, "c"]).map(|(v, n)| bar(n, *v, 0.3)).collect();
        for width in [300.0, 360.0] {
            let layout = bars(&all, width, 0.0, format::short, Scale::for_bars);
            for (placed, bar) in layout.placed.iter().zip(&all) {
                assert!(text::width(&placed.name, LABEL) <= layout.names_end + 0.01);
                assert!(placed.length >= 0.0 && layout.start + placed.length <= width);
                let (low, high) = placed.range.unwrap();
                assert!(layout.start <= low && low < high && high < placed.value_x);
                let end = placed.value_x + text::width(&bar.shown, LABEL);
                assert!(end <= width + 0.01, "{} ends at {end} of {width}", bar.shown);
            }
            for pair in layout.placed.windows(2) {
                assert!(pair[0].top + layout.thickness < pair[1].top);
            }
        }
    }
}

#[test]
fn lengths_are_proportional_to_values() {
    let all = [bar("a", 100.0, 0.0), bar("b", 50.0, 0.0), bar("c", 10.0, 0.0)];
    let layout = bars(&all, 360.0, 0.0, format::short, Scale::for_bars);
    assert!(!layout.scale.log);
    for (placed, bar) in layout.placed.iter().zip(&all) {
        let share = placed.length / layout.placed[0].length;
        assert!((share - bar.value.unwrap() / 100.0).abs() < 1e-9);
    }
    // On a logarithmic axis equal ratios are equal distances.
    let all = [bar("a", 1e6, 0.0), bar("b", 1e4, 0.0), bar("c", 1e2, 0.0)];
    let layout = bars(&all, 360.0, 0.0, format::short, Scale::for_bars);
    assert!(layout.scale.log);
    let [a, b, c] = [0, 1, 2].map(|i: usize| layout.placed[i].length);
    assert!((a - b - (b - c)).abs() < 1e-9 && c > 0.0);
}

#[test]
fn what_was_not_measured_has_a_text_and_no_bar() {
    let absent = Bar { value: None, shown: "not supported".into(), ..bar("x", 0.0, 0.0) };
    let layout = bars(&[bar("a", 3.0, 0.0), absent], 360.0, 0.0, format::short, Scale::for_bars);
    assert_eq!(layout.placed[1].length, 0.0);
    assert!(layout.placed[1].value_x < layout.start + GAP);
}

#[test]
fn tick_texts_do_not_touch() {
    for to in [3.0, 999.0, 123_456.0, 9.9e9] {
        for log in [false, true] {
            let scale = Scale { log, from: if log { to / 1e6 } else { 0.0 }, to };
            let ticks = ticks(&scale, 100.0, 150.0, format::short);
            assert!(!ticks.is_empty());
            for pair in ticks.windows(2) {
                let half = |t: &(f64, String)| text::width(&t.1, SMALL) / 2.0;
                assert!(pair[0].0 + half(&pair[0]) < pair[1].0 - half(&pair[1]), "{ticks:?}");
            }
        }
    }
}

#[test]
fn labels_move_apart_and_no_further() {
    let check = |wanted: &[f64], pitch: f64, from: f64, to: f64| {
        let places = apart(wanted, pitch, from, to);
        let mut order: Vec<usize> = (0..wanted.len()).collect();
        order.sort_by(|a, b| {
            wanted[*a].total_cmp(&wanted[*b]).then(places[*a].total_cmp(&places[*b]))
        });
        let fits = pitch.min((to - from) / (wanted.len().max(2) - 1) as f64);
        for pair in order.windows(2) {
            assert!(places[pair[1]] - places[pair[0]] >= fits - 1e-6, "{wanted:?} -> {places:?}");
        }
        assert!(places.iter().all(|p| *p >= from - 1e-6 && *p <= to + 1e-6), "{places:?}");
        places
    };
    assert_eq!(check(&[10.0, 50.0, 90.0], 12.0, 0.0, 100.0), [10.0, 50.0, 90.0]);
    assert_eq!(check(&[50.0, 50.0], 10.0, 0.0, 100.0), [45.0, 55.0]);
    check(&[0.0, 0.0, 0.0, 99.0, 100.0], 12.0, 0.0, 100.0);
    check(&[5.0; 30], 12.0, 0.0, 100.0);
    check(&[70.0, 30.0, 31.0, 69.0, 50.0, 50.5], 13.0, 0.0, 100.0);
    assert!(apart(&[], 12.0, 0.0, 100.0).is_empty());
}
