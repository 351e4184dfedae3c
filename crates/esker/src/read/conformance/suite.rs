//! The suite: each walk there is against a sorted list.

use super::data::Expected;
use crate::key::{InternalCursor, KeyOrder, Stored};
use crate::util::Rng;

/// Expected `at` of the list is where the cursor is; past the end: nowhere.
fn check(c: &dyn InternalCursor, expected: &[Expected], at: usize, what: &str) {
    assert_eq!(c.valid(), at < expected.len(), "{what}: valid, expected entry {at}");
    if let Some(e) = expected.get(at) {
        let Stored::Inline(value) = c.stored() else { panic!("{what}: {:?}", c.stored()) };
        let got =
            Expected { key: c.key().to_vec(), seq: c.seq(), kind: c.kind(), value: value.to_vec() };
        assert_eq!(&got, e, "{what}: entry {at}");
    }
}

/// The suite. `make` gives a new cursor over `expected`.
pub(super) fn conforms(
    what: &str,
    order: &KeyOrder,
    expected: &[Expected],
    probes: &[Vec<u8>],
    make: &dyn Fn() -> Box<dyn InternalCursor>,
) {
    let mut cursor = make();
    let c = &mut *cursor;
    walks_on(c, order, expected, probes, what);
    c.last().unwrap();
    for at in (0..expected.len()).rev() {
        check(c, expected, at, what);
        c.prev().unwrap();
    }
    check(c, expected, expected.len(), what);
    for probe in probes {
        let what = format!("{what}: \"{}\"", probe.escape_ascii());
        let at = expected.partition_point(|e| order.compare(&e.key, probe).is_lt());
        c.seek(probe).unwrap();
        step_about(c, expected, at, &what);
        let at = expected.partition_point(|e| order.compare(&e.key, probe).is_le()).wrapping_sub(1);
        c.seek_for_prev(probe).unwrap();
        check(c, expected, at, &what);
        step_about(c, expected, at, &what);
    }
    turns(c, order, expected, probes, what);
}

/// The same for those that give the versions of a key in an order of their own in a walk back: the keys are as they
/// should be, and all versions are there.
pub(super) fn conforms_but_for_versions(
    what: &str,
    order: &KeyOrder,
    expected: &[Expected],
    probes: &[Vec<u8>],
    make: &dyn Fn() -> Box<dyn InternalCursor>,
) {
    if expected.is_sorted_by(|a, b| order.compare(&a.key, &b.key).is_lt()) {
        return conforms(what, order, expected, probes, make);
    }
    let mut cursor = make();
    let c = &mut *cursor;
    walks_on(c, order, expected, probes, what);
    c.last().unwrap();
    let mut back = walked_back(c, usize::MAX);
    assert!(back.is_sorted_by(|a, b| order.compare(&a.key, &b.key).is_ge()), "{what}: back");
    back.sort_by(|a, b| order.compare(&a.key, &b.key).then(b.seq.cmp(&a.seq)));
    assert_eq!(back, expected, "{what}: back");
    for probe in probes {
        let upto = expected.partition_point(|e| order.compare(&e.key, probe).is_le());
        c.seek_for_prev(probe).unwrap();
        let (back, there) = (walked_back(c, 30), expected[..upto].iter().rev());
        let same = back.iter().zip(there).all(|(a, b)| order.compare(&a.key, &b.key).is_eq());
        assert!(
            same && back.len() == upto.min(30),
            "{what}: back from \"{}\"",
            probe.escape_ascii()
        );
    }
}

/// The entries from here back as they come, so many at most.
fn walked_back(c: &mut dyn InternalCursor, most: usize) -> Vec<Expected> {
    let mut back = Vec::new();
    while c.valid() && back.len() < most {
        let Stored::Inline(value) = c.stored() else { panic!("{:?}", c.stored()) };
        let value = value.to_vec();
        back.push(Expected { key: c.key().to_vec(), seq: c.seq(), kind: c.kind(), value });
        c.prev().unwrap();
    }
    back
}

/// A new cursor, from the first entry on, and from each probe.
fn walks_on(
    c: &mut dyn InternalCursor,
    order: &KeyOrder,
    expected: &[Expected],
    probes: &[Vec<u8>],
    what: &str,
) {
    assert!(!c.valid(), "{what}: a new cursor is nowhere");
    c.first().unwrap();
    for at in 0..expected.len() {
        check(c, expected, at, what);
        c.next().unwrap();
    }
    check(c, expected, expected.len(), what);
    for probe in probes {
        let what = format!("{what}: \"{}\"", probe.escape_ascii());
        let at = expected.partition_point(|e| order.compare(&e.key, probe).is_lt());
        c.seek(probe).unwrap();
        check(c, expected, at, &what);
    }
}

/// Two steps on and one back, and the other way round, over everything; and any move after any other.
fn turns(
    c: &mut dyn InternalCursor,
    order: &KeyOrder,
    expected: &[Expected],
    probes: &[Vec<u8>],
    what: &str,
) {
    let n = expected.len();
    c.first().unwrap();
    for at in 0..n {
        if at + 1 < n {
            c.next().unwrap();
            check(c, expected, at + 1, what);
            c.prev().unwrap();
        }
        check(c, expected, at, what);
        c.next().unwrap();
    }
    c.last().unwrap();
    for at in (0..n).rev() {
        if at > 0 {
            c.prev().unwrap();
            check(c, expected, at - 1, what);
            c.next().unwrap();
        }
        check(c, expected, at, what);
        c.prev().unwrap();
    }
    led_about(c, order, expected, probes, what);
}

/// From entry `at`: back and on again, on and back again, as far as there are entries.
fn step_about(c: &mut dyn InternalCursor, expected: &[Expected], at: usize, what: &str) {
    if at >= expected.len() {
        return;
    }
    if at > 0 {
        c.prev().unwrap();
        check(c, expected, at - 1, what);
        c.next().unwrap();
        check(c, expected, at, what);
    }
    if at + 1 < expected.len() {
        c.next().unwrap();
        check(c, expected, at + 1, what);
        c.prev().unwrap();
        check(c, expected, at, what);
    }
}

/// Any move after any other.
fn led_about(
    c: &mut dyn InternalCursor,
    order: &KeyOrder,
    expected: &[Expected],
    probes: &[Vec<u8>],
    what: &str,
) {
    let n = expected.len();
    let mut rng = Rng::new(99);
    let mut at = usize::MAX;
    for _ in 0..4000 {
        match rng.below(if at < n { 20 } else { 4 }) {
            0 => {
                c.first().unwrap();
                at = 0;
            }
            1 => {
                c.last().unwrap();
                at = n.wrapping_sub(1);
            }
            2 => {
                let probe = &probes[rng.below(probes.len())];
                c.seek(probe).unwrap();
                at = expected.partition_point(|e| order.compare(&e.key, probe).is_lt());
            }
            3 => {
                let probe = &probes[rng.below(probes.len())];
                c.seek_for_prev(probe).unwrap();
                at = expected
                    .partition_point(|e| order.compare(&e.key, probe).is_le())
                    .wrapping_sub(1);
            }
            4..12 => {
                c.next().unwrap();
                at += 1;
            }
            _ => {
                c.prev().unwrap();
                at = at.wrapping_sub(1);
            }
        }
        check(c, expected, at, what);
    }
}
