//! What is known of dead keys, without a store.

use super::*;
use KeyOrder::Bytewise;

fn behind(key: &str) -> Boundary {
    if key.is_empty() { Boundary::Front } else { Boundary::Behind(key.into()) }
}

fn before(key: &str) -> Boundary {
    if key.is_empty() { Boundary::Back } else { Boundary::Before(key.into()) }
}

fn finish(gaps: &KeyGaps, held: Arc<()>, seq: Seq, from: &str, to: &str) {
    gaps.end(&held, &Bytewise, seq, behind(from), before(to));
    drop(held);
    gaps.tidy();
}

fn learn(gaps: &KeyGaps, at: &str, seq: Seq, after: &str, before: &str) {
    let id = gaps.measure(at.as_bytes()).unwrap();
    finish(gaps, id, seq, after, before);
}

fn at(gaps: &KeyGaps, key: &str, seq: Seq) -> GapLookup {
    let [forward, back] = [true, false].map(|way| gaps.at(&Bytewise, key.as_bytes(), seq, way));
    assert_eq!(matches!(forward, GapLookup::End(_)), matches!(back, GapLookup::End(_)));
    forward
}

fn to(key: &str) -> GapLookup {
    GapLookup::End(before(key))
}

fn back_to(key: &str) -> GapLookup {
    GapLookup::End(behind(key))
}

#[test]
fn a_gap_holds_for_readers_from_its_sequence_on_until_a_put_cuts_it() {
    let gaps = KeyGaps::default();
    assert!(!gaps.listening());
    learn(&gaps, "m", 7, "c", "t");
    assert!(gaps.listening());
    assert_eq!(at(&gaps, "d", 7), to("t"));
    assert_eq!(gaps.at(&Bytewise, b"d", 7, false), back_to("c"));
    assert_eq!(at(&gaps, "d", 6), GapLookup::TooOld);
    assert_eq!(at(&gaps, "c", 7), GapLookup::Unknown);
    assert_eq!(at(&gaps, "t", 7), GapLookup::Unknown);
    gaps.note_put(&Bytewise, 8, b"m");
    assert_eq!(at(&gaps, "d", 9), to("m"));
    assert_eq!(at(&gaps, "n", 9), to("t"));
    assert_eq!(at(&gaps, "m", 9), GapLookup::Unknown);
    gaps.note_put(&Bytewise, 4, b"z");
    assert_eq!(at(&gaps, "n", 9), to("t"));
    gaps.forget();
    assert_eq!(at(&gaps, "n", 9), GapLookup::Unknown);
    assert!(!gaps.listening());
}

#[test]
fn the_ends_of_the_keyspace() {
    let gaps = KeyGaps::default();
    assert_eq!(gaps.at_edge(1, true), None);
    learn(&gaps, "b", 1, "", "f");
    learn(&gaps, "x", 2, "p", "");
    assert_eq!(gaps.at_edge(1, true), Some(before("f")));
    assert_eq!(gaps.at_edge(1, false), None, "it is older");
    assert_eq!(gaps.at_edge(2, false), Some(behind("p")));
    // Everything between died: one gap takes the place of both.
    learn(&gaps, "g", 3, "", "");
    assert_eq!(gaps.at_edge(3, true), Some(Boundary::Back));
    assert_eq!(gaps.at_edge(3, false), Some(Boundary::Front));
    gaps.note_put(&Bytewise, 4, b"");
    assert_eq!(gaps.at_edge(3, true), Some(Boundary::Before(Vec::new())));
}

#[test]
fn what_is_put_while_a_gap_is_measured_ends_it() {
    let gaps = KeyGaps::default();
    let measuring = gaps.measure(b"m").unwrap();
    for key in ["b", "k", "d", "s", "p", "y"] {
        gaps.note_put(&Bytewise, 4, key.as_bytes());
    }
    finish(&gaps, measuring, 5, "e", "q");
    assert_eq!(at(&gaps, "m", 5), to("p"));
    assert_eq!(gaps.at(&Bytewise, b"m", 5, false), back_to("k"));
    // The nearest of both.
    let measuring = gaps.measure(b"x").unwrap();
    gaps.note_put(&Bytewise, 4, b"t");
    finish(&gaps, measuring, 6, "w", "");
    assert_eq!(at(&gaps, "x", 6), to(""));
    // The very key, a bulk load, a measurement that is given up.
    let measuring = gaps.measure(b"c").unwrap();
    gaps.note_put(&Bytewise, 4, b"c");
    finish(&gaps, measuring, 7, "", "k");
    assert_eq!(at(&gaps, "c", 7), GapLookup::Unknown);
    let measuring = gaps.measure(b"c").unwrap();
    gaps.forget();
    finish(&gaps, measuring, 7, "", "k");
    assert_eq!(at(&gaps, "c", 7), GapLookup::Unknown);
    drop(gaps.measure(b"c").unwrap());
    gaps.tidy();
    assert!(!gaps.listening());
}

/// The front of a queue: "c" to "g" are taken, "g" was the first when that was measured.
fn extended(gaps: &KeyGaps, seq: Seq) -> bool {
    gaps.extend(&Bytewise, seq, Boundary::Before(b"g".into()), before("k"));
    let end = at(gaps, "d", 99);
    assert!(end == to("g") || end == to("k"), "{end:?}");
    end == to("k")
}

fn with_a_front() -> KeyGaps {
    let gaps = KeyGaps::default();
    learn(&gaps, "d", 7, "b", "g");
    gaps
}

#[test]
fn a_gap_becomes_longer_without_a_measurement_where_all_puts_since_are_known() {
    let gaps = with_a_front();
    assert!(extended(&gaps, 8));
    assert_eq!(gaps.at(&Bytewise, b"d", 8, false), back_to("b"));
    assert_eq!(at(&gaps, "d", 7), GapLookup::TooOld, "it is as true as the youngest part");
    // What was put elsewhere, and what the reader saw and somebody has deleted since.
    let gaps = with_a_front();
    ["x", "a", "k"].iter().for_each(|key| gaps.note_put(&Bytewise, 9, key.as_bytes()));
    gaps.note_put(&Bytewise, 8, b"h");
    assert!(extended(&gaps, 8));
}

#[test]
fn a_gap_does_not_become_longer_over_what_may_have_been_put_since() {
    // A put between, of a moment that the reader does not see.
    for key in ["g", "h"] {
        let gaps = with_a_front();
        gaps.note_put(&Bytewise, 9, key.as_bytes());
        assert!(!extended(&gaps, 8), "{key}");
    }
    // The reader is older than all that is known, or nothing is.
    assert!(!extended(&with_a_front(), 6));
    let gaps = with_a_front();
    gaps.forget();
    gaps.extend(&Bytewise, 8, Boundary::Before(b"g".into()), before("k"));
    assert_eq!(at(&gaps, "h", 99), GapLookup::Unknown);
    assert!(!gaps.listening());
}

#[test]
fn several_places_are_measured_at_a_time_and_each_is_told() {
    let gaps = KeyGaps::default();
    let all: Vec<Arc<()>> = (0..MOST_MEASURED).map(|_| gaps.measure(b"m").unwrap()).collect();
    assert_eq!(gaps.measure(b"a"), None, "there is an end to it");
    gaps.note_put(&Bytewise, 4, b"p");
    for held in all {
        finish(&gaps, held, 5, "c", "t");
        assert_eq!(at(&gaps, "m", 5), to("p"));
        assert_eq!(at(&gaps, "q", 5), GapLookup::Unknown);
    }
}

#[test]
fn a_reader_does_without_what_it_would_wait_for() {
    let gaps = with_a_front();
    let held = gaps.measure(b"m").unwrap();
    let writer = gaps.known.lock();
    assert_eq!(at(&gaps, "d", 7), GapLookup::Unknown);
    assert_eq!(gaps.at_edge(7, true), None);
    assert_eq!(gaps.measure(b"n"), None);
    gaps.extend(&Bytewise, 8, Boundary::Before(b"g".into()), before("k"));
    gaps.note_past(&Bytewise, 5, behind("c"), before("t"));
    finish(&gaps, held, 9, "l", "n");
    drop(writer);
    assert_eq!(at(&gaps, "d", 7), to("g"));
    assert_eq!(at(&gaps, "h", 9), GapLookup::Unknown);
    assert_eq!(at(&gaps, "m", 9), GapLookup::Unknown);
    assert!(gaps.known.lock().past.is_empty());
    // What was given up meanwhile ends with the next put.
    gaps.note_put(&Bytewise, 9, b"x");
    assert!(gaps.known.lock().measured.is_empty());
}

#[test]
fn what_a_reader_of_the_past_found_is_for_those_of_the_same_moment() {
    let gaps = KeyGaps::default();
    gaps.note_past(&Bytewise, 5, behind("c"), before("t"));
    assert!(!gaps.listening(), "nothing that is put changes it");
    gaps.note_put(&Bytewise, 4, b"m");
    assert_eq!(at(&gaps, "d", 5), to("t"));
    assert_eq!(at(&gaps, "d", 4), GapLookup::Unknown);
    assert_eq!(at(&gaps, "d", 6), GapLookup::Unknown);
    learn(&gaps, "f", 9, "c", "m");
    assert_eq!(at(&gaps, "d", 5), to("t"));
    assert_eq!(at(&gaps, "d", 6), GapLookup::TooOld);
    // What is of use stays, however many look once.
    for seq in 10..100 {
        gaps.note_past(&Bytewise, seq, behind("c"), before("t"));
    }
    assert_eq!(at(&gaps, "d", 5), to("t"));
    assert_eq!(gaps.known.lock().past.len(), MOST_PAST);
}

#[test]
fn gaps_take_no_more_than_their_share_of_the_memory() {
    let kept = |allowed: u64| {
        let gaps = KeyGaps::default();
        gaps.allow(allowed);
        for n in 1..500 {
            learn(&gaps, &format!("{n:04}x"), 1, &format!("{n:04}"), &format!("{:04}", n + 1));
            gaps.note_past(
                &Bytewise,
                1,
                behind(&format!("{n:04}")),
                before(&format!("{:04}", n + 1)),
            );
        }
        let found = |n: &usize| matches!(at(&gaps, &format!("{n:04}x"), 2), GapLookup::End(_));
        (1..500).filter(found).count()
    };
    let (least, some, most) = (kept(0), kept(2 << 10), kept(u64::MAX));
    assert!(0 < least && least < some && some < most && most < 40, "{least} {some} {most}");
}

#[test]
fn gaps_that_are_of_use_to_nobody_give_way() {
    let gaps = KeyGaps::default();
    let key = |n: usize| format!("{n:04}");
    for n in 1..2000 {
        learn(&gaps, &format!("{}x", key(n)), 1, &key(n), &key(n + 1));
        assert!(matches!(at(&gaps, "0001y", 1), GapLookup::End(_)), "in use");
    }
    assert_eq!(at(&gaps, "0002y", 1), GapLookup::Unknown);
    assert!(gaps.doublings.load(Relaxed) > 0, "of use to nobody");
    // Writing into a gap that nobody reads ends it.
    let gaps = KeyGaps::default();
    learn(&gaps, "m", 1, "", "");
    for n in 0..=MOST_IDLE {
        gaps.note_put(&Bytewise, 4, format!("{:08}", n).as_bytes());
    }
    assert!(!gaps.listening());
}
