//! Random operations do what they do to a sorted map.

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Unbounded};

use proptest::prelude::*;

use super::*;

/// A key that sorts by a given order.
#[derive(Clone)]
struct Ordered(Vec<u8>, KeyOrder);

impl Ord for Ordered {
    fn cmp(&self, other: &Ordered) -> Ordering {
        self.1.compare(&self.0, &other.0)
    }
}
impl PartialOrd for Ordered {
    fn partial_cmp(&self, other: &Ordered) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl PartialEq for Ordered {
    fn eq(&self, other: &Ordered) -> bool {
        self.cmp(other).is_eq()
    }
}
impl Eq for Ordered {}

#[derive(Debug, Clone)]
enum Op {
    Put(Vec<u8>),
    /// So many keys that follow each other, up or down.
    Run(Vec<u8>, u8, bool),
    Get(Vec<u8>),
    Seek(Vec<u8>),
    SeekForPrev(Vec<u8>),
    First,
    Last,
    Next,
    Prev,
    Count(Vec<u8>, Vec<u8>),
}

/// Keys that collide: few letters, both cases, zeros; short ones and ones with long common parts.
fn key() -> impl Strategy<Value = Vec<u8>> {
    let letter = prop::sample::select(b"\0\0aAbB\xFF".to_vec());
    let short = prop::collection::vec(letter.clone(), 0..5);
    let parts = prop::collection::vec(letter, 0..4);
    let long = (prop::sample::select(vec![3usize, 8, 9, 31, 32, 33, 40, 70]), parts.clone())
        .prop_map(|(n, tail)| [vec![b'k'; n], tail].concat());
    let number = (0u32..3000).prop_map(|n| format!("{n:016}").into_bytes());
    let field = (0u32..40, parts)
        .prop_map(|(n, tail)| [format!("user:{n:06}:").as_bytes(), &tail].concat());
    prop_oneof![2 => short, 2 => long, 3 => number, 2 => field]
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        10 => key().prop_map(Op::Put),
        1 => (key(), 1u8..60, any::<bool>()).prop_map(|(k, n, up)| Op::Run(k, n, up)),
        3 => key().prop_map(Op::Get),
        1 => key().prop_map(Op::Seek),
        1 => key().prop_map(Op::SeekForPrev),
        1 => Just(Op::First),
        1 => Just(Op::Last),
        4 => Just(Op::Next),
        4 => Just(Op::Prev),
        1 => (key(), key()).prop_map(|(a, b)| Op::Count(a, b)),
    ]
}

fn run(order: KeyOrder, ops: Vec<Op>) {
    let log = Log::new(ops.len() * 60);
    let index = Index::new(order.clone());
    let mut model = BTreeMap::new();
    let ordered = |key: &[u8]| Ordered(key.to_vec(), order.clone());
    let insert = |model: &mut BTreeMap<Ordered, u32>, key: &[u8]| {
        let (old, new) = put(&index, &log, key);
        assert_eq!(old, model.insert(ordered(key), new));
    };
    let mut cursor = IndexCursor::new();
    // The cursor's place in the model. After a put the cursor's leaf may be out of date, which it
    // may be; it is positioned again before it is compared.
    let mut place: Option<Ordered> = None;
    let mut stale = true;
    for op in ops {
        match op {
            Op::Put(key) => {
                insert(&mut model, &key);
                stale = true;
            }
            Op::Run(key, n, up) => {
                for i in 0..n {
                    let last = if up { i } else { n - i };
                    insert(&mut model, &[&key[..], &[last]].concat());
                }
                stale = true;
            }
            Op::Get(key) => {
                assert_eq!(index.get(&log, &key), model.get(&ordered(&key)).copied());
            }
            Op::Seek(key) => {
                cursor.approach(&index);
                while cursor.come_nearer(&index, &log, &key) {}
                cursor.seek(&index, &log, &key);
                place = model.range(ordered(&key)..).next().map(|(k, _)| k.clone());
                stale = false;
            }
            Op::SeekForPrev(key) => {
                cursor.seek_for_prev(&index, &log, &key);
                place = model.range(..=ordered(&key)).next_back().map(|(k, _)| k.clone());
                stale = false;
            }
            Op::First => {
                cursor.first(&index, &log);
                place = model.keys().next().cloned();
                stale = false;
            }
            Op::Last => {
                cursor.last(&index, &log);
                place = model.keys().next_back().cloned();
                stale = false;
            }
            Op::Count(a, b) => {
                let (low, high) = (ordered(&a).min(ordered(&b)), ordered(&a).max(ordered(&b)));
                let mut from = IndexCursor::new();
                from.seek(&index, &log, &low.0);
                let all = from.sum_until(&index, &log, Some(&high.0), |_| 1);
                assert_eq!(all, model.range(&low..&high).count() as u64);
                from.seek(&index, &log, &low.0);
                let to_the_end = from.sum_until(&index, &log, None, |_| 1);
                assert_eq!(to_the_end, model.range(&low..).count() as u64);
            }
            Op::Next | Op::Prev => {
                let Some(from) = place.clone() else { continue };
                if stale {
                    cursor.seek(&index, &log, &from.0);
                    stale = false;
                }
                if matches!(op, Op::Next) {
                    cursor.next(&index, &log);
                    place = model.range((Excluded(from), Unbounded)).next().map(|(k, _)| k.clone());
                } else {
                    cursor.prev(&index, &log);
                    place = model.range(..from).next_back().map(|(k, _)| k.clone());
                }
            }
        }
        if !stale {
            assert_eq!(cursor.current(), place.as_ref().map(|k| model[k]));
        }
        assert_eq!(index.len(), model.len());
    }
    let (up, mut down) = walk(&index, &log);
    down.reverse();
    let keys: Vec<&[u8]> = model.values().map(|&r| log.key(r)).collect();
    assert!(up == keys && down == keys);
}

/// Operations per case and cases: Miri is a thousand times slower.
const OPS: usize = if cfg!(miri) { 40 } else { 600 };
const CASES: u32 = if cfg!(miri) { 3 } else { 150 };

proptest! {
    #![proptest_config(ProptestConfig {
        cases: CASES,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn does_what_a_sorted_map_does(ops in prop::collection::vec(op(), 0..OPS)) {
        for order in orders() {
            run(order, ops.clone());
        }
    }
}
