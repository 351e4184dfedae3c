//! Keys that are hard on heads and prefixes.

use std::collections::BTreeSet;

use super::*;

/// Puts the keys in, then checks every way to find them.
fn check(keys: &[Vec<u8>]) {
    for order in orders() {
        let log = Log::new(keys.len());
        let index = Index::new(order.clone());
        for (i, key) in keys.iter().enumerate() {
            put(&index, &log, key);
            if i < 40 || i % 97 == 0 {
                assert!(order.compare(log.key(index.get(&log, key).unwrap()), key).is_eq());
            }
        }
        let mut sorted: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
        sorted.sort_by(|a, b| order.compare(a, b));
        sorted.dedup_by(|a, b| order.compare(a, b).is_eq());
        assert_eq!(index.len(), sorted.len());
        let same = |found: &[&[u8]]| {
            found.len() == sorted.len()
                && found.iter().zip(&sorted).all(|(a, b)| order.compare(a, b).is_eq())
        };
        let (up, mut down) = walk(&index, &log);
        down.reverse();
        assert!(same(&up) && same(&down), "{order:?}");
        for key in keys {
            assert!(order.compare(log.key(index.get(&log, key).unwrap()), key).is_eq());
            let longer = [key, &b"\0"[..]].concat();
            let present = sorted.binary_search_by(|k| order.compare(k, &longer)).is_ok();
            assert_eq!(index.get(&log, &longer).is_some(), present);
        }
    }
}

/// A fixed shuffle.
fn shuffled(mut keys: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let mut state = 1u64;
    for i in (1..keys.len()).rev() {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        keys.swap(i, (state >> 33) as usize % (i + 1));
    }
    keys
}

/// In order, backwards and shuffled. Miri gets one in `miri` of the keys.
fn check_all_ways(keys: Vec<Vec<u8>>, miri: usize) {
    let keys: Vec<_> = keys.into_iter().step_by(if cfg!(miri) { miri } else { 1 }).collect();
    check(&keys);
    check(&keys.iter().rev().cloned().collect::<Vec<_>>());
    check(&shuffled(keys));
}

#[test]
fn an_empty_index_has_nothing() {
    for order in orders() {
        let (log, index) = (Log::new(0), Index::new(order));
        assert_eq!((index.get(&log, b""), index.get(&log, b"a"), index.len()), (None, None, 0));
        let mut cursor = IndexCursor::new();
        assert_eq!(cursor.current(), None);
        cursor.first(&index, &log);
        assert_eq!(cursor.current(), None);
        cursor.last(&index, &log);
        assert_eq!(cursor.current(), None);
        cursor.seek(&index, &log, b"a");
        assert_eq!(cursor.current(), None);
        cursor.seek_for_prev(&index, &log, b"a");
        assert_eq!(cursor.current(), None);
    }
}

#[test]
fn trailing_zeros_make_another_key() {
    let mut keys = vec![Vec::new()];
    for n in 0..20 {
        keys.push(vec![0; n]);
        keys.push([&b"a"[..], &vec![0; n]].concat());
        keys.push([&b"abcdefgh"[..], &vec![0; n]].concat());
    }
    check_all_ways(keys, 2);
}

#[test]
fn keys_that_are_prefixes_of_each_other() {
    let text = b"the quick brown fox jumps over the lazy dog, and then over all the others too";
    check_all_ways((0..text.len()).map(|n| text[..n].to_vec()).collect(), 3);
}

#[test]
fn long_keys() {
    let long = vec![b'x'; if cfg!(miri) { 1 << 10 } else { 64 << 10 }];
    let mut keys = vec![long.clone()];
    for at in (0..long.len()).step_by(long.len() / 21) {
        let mut key = long.clone();
        key[at] = b'y';
        keys.push(key);
        keys.push(long[..at].to_vec());
    }
    check_all_ways(keys, 16);
}

#[test]
fn a_key_that_breaks_a_long_prefix() {
    for prefix in [1, 7, 8, 9, 31, 32, 33, 39, 40, 41, 100] {
        let mut keys: Vec<_> = (0..40)
            .map(|n| [&vec![b'p'; prefix][..], format!("{n:04}").as_bytes()].concat())
            .collect();
        for at in [0, prefix / 2, prefix - 1] {
            for other in [b'a', b'z'] {
                let mut key = vec![b'p'; prefix];
                key[at] = other;
                keys.push(key.clone());
                keys.push(key[..=at].to_vec());
                keys.push(keys[0][..at].to_vec());
            }
        }
        check(&keys);
        check(&shuffled(keys));
        if cfg!(miri) && prefix > 1 {
            break;
        }
    }
}

#[test]
fn decimal_numbers() {
    check_all_ways((0..5000).map(|n| format!("{n:016}").into_bytes()).collect(), 100);
}

#[test]
fn fields_of_users() {
    let fields = ["address", "email", "name", "phone"];
    let key = |n: usize| format!("user:{:06}:{}", n / 4, fields[n % 4]).into_bytes();
    check_all_ways((0..4000).map(key).collect(), 100);
}

#[test]
fn few_bytes_far_behind() {
    // Heads of whatever place cannot tell many of these apart.
    let key = |n: usize| format!("{:03}{:60}{:03}", n / 40, "", n % 40).into_bytes();
    check_all_ways((0..2000).map(key).collect(), 50);
}

#[test]
fn runs_that_take_turns() {
    // Each of the runs goes up on its own, in the middle of the others.
    let key = |n: usize| format!("{:03}:{:08}", n % 7, n / 7).into_bytes();
    check_all_ways((0..4000).map(key).collect(), 100);
    let mut keys = BTreeSet::new();
    keys.extend((0..4000).map(key));
    check(&keys.into_iter().step_by(if cfg!(miri) { 100 } else { 1 }).collect::<Vec<_>>());
}

#[test]
fn keys_in_order_fill_their_leaves() {
    let keys: usize = if cfg!(miri) { 100 } else { 30_000 };
    let (log, index) = (Log::new(keys), Index::new(KeyOrder::Bytewise));
    for n in 0..keys {
        put(&index, &log, format!("{n:016}").as_bytes());
    }
    // A leaf of 15 takes 256 bytes; chunks double, so up to half of them may be unused.
    assert!(index.memory() < keys * 2 * 20 + 8192, "{}", index.memory());
}

#[test]
fn a_cursor_keeps_to_its_index() {
    let (log, a, b) =
        (Log::new(64), Index::new(KeyOrder::Bytewise), Index::new(KeyOrder::Bytewise));
    for n in 0..32u8 {
        put(&a, &log, &[n]);
        put(&b, &log, &[n]);
    }
    let mut cursor = IndexCursor::new();
    cursor.first(&a, &log);
    let walk = || {
        while cursor.current().is_some() {
            cursor.next(&b, &log);
        }
    };
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(walk)).is_err());
}

#[test]
fn a_walk_comes_to_what_it_was_told_it_probably_would() {
    let keys = shuffled((0..500u32).map(|n| n.to_be_bytes().to_vec()).collect());
    let log = Log::new(keys.len());
    let index = Index::new(KeyOrder::Bytewise);
    keys.iter().for_each(|key| _ = put(&index, &log, key));
    let told = |forward: bool| {
        let mut cursor = IndexCursor::new();
        if forward {
            cursor.first(&index, &log)
        } else {
            cursor.last(&index, &log)
        }
        let (mut refs, mut told) = (Vec::new(), Vec::new());
        while let Some(r) = cursor.current() {
            // A leaf has seven at least, but for the first ones and the last.
            told.extend((0..6).map(|n| (refs.len() + 1 + n, cursor.probably(&index, forward, n))));
            refs.push(r);
            if forward { cursor.next(&index, &log) } else { cursor.prev(&index, &log) }
        }
        assert_eq!(refs.len(), keys.len());
        told.into_iter().filter(|(at, r)| *r == refs.get(*at).copied()).count()
    };
    for forward in [true, false] {
        let right = told(forward);
        assert!(right > 6 * keys.len() * 99 / 100, "{right} of {}", 6 * keys.len());
    }
}
