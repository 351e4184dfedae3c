//! Readers beside a writer.

use std::sync::LazyLock;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::thread;

use super::*;

/// A contributor's run is shorter; this file is compiled outside of the crate too.
static KEYS: LazyLock<usize> = LazyLock::new(|| match std::env::var_os("ESKER_CAMPAIGN") {
    _ if cfg!(miri) => 150,
    Some(_) => 20_000,
    None => 4_000,
});

/// One writer puts `key(0)`, `key(1)` and so on; three readers get and scan. A reader that starts
/// after n keys were in must find all of them, in order.
fn race(order: KeyOrder, key: impl Fn(usize) -> Vec<u8> + Sync) {
    let (log, index) = (Log::new(*KEYS), Index::new(order.clone()));
    let (done, published) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        for reader in 0..3usize {
            let (log, index, order, key) = (&log, &index, &order, &key);
            let (done, published) = (&done, &published);
            scope.spawn(move || {
                let mut seed = reader as u64 + 1;
                let mut more = true;
                while more {
                    more = !done.load(Acquire);
                    let before = published.load(Acquire);
                    match reader {
                        0 => gets(index, log, before, key, &mut seed),
                        _ => scan(index, log, order, before, reader == 1),
                    }
                }
            });
        }
        for n in 0..*KEYS {
            put(&index, &log, &key(n));
            published.store(n + 1, Release);
        }
        done.store(true, Release);
    });
}

fn gets(index: &Index, log: &Log, before: usize, key: &impl Fn(usize) -> Vec<u8>, seed: &mut u64) {
    for _ in 0..if cfg!(miri) { 5 } else { 1000 }.min(before) {
        *seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let n = (*seed >> 33) as usize % before;
        let wanted = key(n);
        assert_eq!(index.get(log, &wanted), Some(n as u32));
        let mut cursor = IndexCursor::new();
        // In steps, as where several are searched; some of the way, or all of it.
        cursor.approach(index);
        for _ in 0..n % 8 {
            cursor.come_nearer(index, log, &wanted);
        }
        cursor.seek(index, log, &wanted);
        assert_eq!(cursor.current(), Some(n as u32));
        // There and back again, which may lead into another leaf.
        cursor.prev(index, log);
        if let Some(r) = cursor.current() {
            assert!(index.order.compare(log.key(r), &wanted).is_lt());
            while index.order.compare(log.key(cursor.current().unwrap()), &wanted).is_lt() {
                cursor.next(index, log);
            }
            assert_eq!(cursor.current(), Some(n as u32));
        }
        cursor.seek_for_prev(index, log, &wanted);
        assert_eq!(cursor.current(), Some(n as u32));
    }
}

fn scan(index: &Index, log: &Log, order: &KeyOrder, before: usize, up: bool) {
    let mut cursor = IndexCursor::new();
    let (mut old, mut last) = (0, None);
    if up {
        cursor.first(index, log)
    } else {
        cursor.last(index, log)
    }
    while let Some(r) = cursor.current() {
        old += usize::from((r as usize) < before);
        if let Some(last) = last {
            let (a, b) = if up { (last, r) } else { (r, last) };
            assert!(order.compare(log.key(a), log.key(b)).is_lt());
        }
        last = Some(r);
        if up { cursor.next(index, log) } else { cursor.prev(index, log) }
    }
    assert_eq!(old, before);
}

/// Visits every number below `KEYS` once, in no order.
fn scattered(n: usize) -> usize {
    n * 7919 % *KEYS
}

#[test]
fn readers_of_scattered_keys() {
    race(KeyOrder::Bytewise, |n| format!("{:016}", scattered(n)).into_bytes());
}

#[test]
fn readers_of_keys_in_order() {
    race(KeyOrder::Bytewise, |n| format!("{n:016}").into_bytes());
}

#[test]
fn readers_of_keys_backwards() {
    race(KeyOrder::Bytewise, |n| format!("{:016}", *KEYS - n).into_bytes());
}

#[test]
fn readers_in_the_reverse_order() {
    race(KeyOrder::Reverse, |n| format!("user:{:06}:field", scattered(n)).into_bytes());
}

#[test]
fn readers_of_a_custom_order() {
    race(KeyOrder::Custom(Arc::new(CaseInsensitive)), |n| {
        format!("Key{:06}", scattered(n)).into_bytes()
    });
}

#[test]
fn readers_of_long_prefixes() {
    // Prefixes that do not fit in a node, that break, and that grow back.
    race(KeyOrder::Bytewise, |n| {
        let n = scattered(n);
        format!("{}{:50}{:06}", n % 3, "", n).into_bytes()
    });
}
