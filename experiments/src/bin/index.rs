//! Experiment (c): the memtable's index against a skiplist and a plain B-tree.
//!
//! Nanoseconds per insert, get and step, one thread, from 10 thousand to a million entries, for
//! 16-byte decimal keys in order and at random, for 16 random bytes, and for fields of users
//! (`u:0001234:emails`) at random. Keys lie in a flat log of 128-byte records, and Esker's tree
//! reads them there, as it will in the store. The other two own their keys as `[u8; 16]` inside
//! the node, the best case for them. A get reads a byte of the record's value, whichever structure
//! found it. Processor time, the least of several rounds, since other programs may run beside.
#![cfg_attr(test, allow(dead_code, unused_imports))]

// The store's own source files. Not in test builds: their tests belong to the store.
#[cfg(not(test))]
#[path = "../../../crates/esker/src/util/abbreviated_key.rs"]
#[allow(dead_code)]
mod abbreviated_key;
#[cfg(not(test))]
#[path = "../../../crates/esker/src/memtable/index/mod.rs"]
#[allow(dead_code, missing_docs)]
mod index;
#[cfg(not(test))]
#[path = "../../../crates/esker/src/key.rs"]
#[allow(dead_code)]
mod key;
#[cfg(not(test))]
#[path = "../../../crates/esker/src/util/prefetch.rs"]
mod prefetch;
#[cfg(not(test))]
mod util {
    pub(crate) use crate::abbreviated_key;
    pub(crate) use crate::prefetch::prefetch;

    /// Stands for the engine's module, of which the index needs the atomics only.
    pub(crate) mod sync {
        pub(crate) use std::hint::spin_loop;
        pub(crate) use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, fence};
        pub(crate) use std::thread::yield_now;

        macro_rules! atomics {
            ($atomic:ident::new($value:expr); $len:expr) => {
                [const { $atomic::new($value) }; $len]
            };
        }
        pub(crate) use atomics;
    }
}
/// What key.rs expects of its crate.
pub type Result<T> = std::result::Result<T, ()>;

#[cfg(not(test))]
fn main() {
    run::main();
}

#[cfg(test)]
fn main() {}

#[cfg(not(test))]
mod run {
    use std::collections::BTreeMap;
    use std::hint::black_box;

    use crossbeam_skiplist::SkipMap;
    use experiments::{Random, key16};

    use crate::index::{Index, IndexCursor, KeySource};
    use crate::key::KeyOrder;

    type Key = [u8; 16];
    /// A record of the log: sequence and lengths, the key, a value of 100 bytes or less.
    const RECORD: usize = 128;
    const KEY_AT: usize = 12;

    /// The log: records one after another.
    struct Log(Vec<u8>);

    impl KeySource for Log {
        #[inline]
        fn key(&self, r: u32) -> &[u8] {
            let at = r as usize * RECORD + KEY_AT;
            &self.0[at..at + 16]
        }
    }

    impl Log {
        fn new(keys: &[Key]) -> Log {
            let mut log = vec![1; keys.len() * RECORD];
            for (record, key) in log.chunks_mut(RECORD).zip(keys) {
                record[KEY_AT..KEY_AT + 16].copy_from_slice(key);
            }
            Log(log)
        }
        fn value(&self, r: u32) -> u8 {
            self.0[r as usize * RECORD + KEY_AT + 16]
        }
    }

    fn shuffle<T>(items: &mut [T], seed: u64) {
        let mut random = Random(seed);
        for i in (1..items.len()).rev() {
            items.swap(i, random.below(i as u64 + 1) as usize);
        }
    }

    /// One of four fields of a user: most of the key is the same as its neighbour's.
    fn field(n: usize) -> Key {
        let name = ["addres", "emails", "family", "phones"][n % 4];
        let mut key = [0; 16];
        key.copy_from_slice(format!("u:{:07}:{name}", n / 4).as_bytes());
        key
    }

    /// Keys in the order they are inserted in.
    fn keys(kind: &str, n: usize) -> Vec<Key> {
        let mut random = Random(7);
        let mut binary = || {
            let mut key = [0; 16];
            key[..8].copy_from_slice(&random.next_u64().to_be_bytes());
            key[8..].copy_from_slice(&random.next_u64().to_be_bytes());
            key
        };
        let mut keys: Vec<Key> = match kind {
            "binary" => (0..n).map(|_| binary()).collect(),
            "fields" => (0..n).map(field).collect(),
            _ => (0..n as u64).map(key16).collect(),
        };
        if kind != "in order" {
            shuffle(&mut keys, 1);
        }
        keys
    }

    /// Time this thread has had the processor for: other programs may run beside.
    fn cpu_ns() -> u64 {
        // Linux's `struct timespec` on a 64-bit machine, and CLOCK_THREAD_CPUTIME_ID.
        unsafe extern "C" {
            fn clock_gettime(clock: i32, time: *mut [i64; 2]) -> i32;
        }
        let mut time = [0; 2];
        // SAFETY: the call writes one timespec.
        let failed = unsafe { clock_gettime(3, &mut time) };
        assert_eq!(failed, 0);
        time[0] as u64 * 1_000_000_000 + time[1] as u64
    }

    /// Builds several times; the lowest cost of an insert and the last one built. Freeing is not
    /// counted.
    fn build<T>(rounds: usize, inserts: usize, mut f: impl FnMut() -> T) -> (f64, T) {
        let mut least = f64::MAX;
        let mut last = None;
        for _ in 0..rounds {
            drop(last.take());
            let start = cpu_ns();
            last = Some(f());
            least = least.min((cpu_ns() - start) as f64 / inserts as f64);
        }
        (least, last.unwrap())
    }

    /// The lowest cost of one of `ops` operations.
    fn least_ns(rounds: usize, ops: usize, f: impl FnMut()) -> f64 {
        build(rounds, ops, f).0
    }

    /// Costs of insert, get, a step forward and a step back in ns; bytes per key if known.
    struct Row([f64; 4], usize);

    fn esker(keys: &[Key], asked: &[Key], rounds: usize) -> Row {
        let n = keys.len();
        // The log is filled beforehand: copying records is not the index's cost.
        let log = Log::new(keys);
        let (insert, index) = build(rounds, keys.len(), || {
            let index = Index::new(KeyOrder::Bytewise);
            for (r, key) in keys.iter().enumerate() {
                // SAFETY: one thread.
                unsafe { index.upsert(&log, key, |_| r as u32) };
            }
            index
        });
        let get = least_ns(rounds, n, || {
            for key in asked {
                black_box(log.value(index.get(&log, key).unwrap()));
            }
        });
        let mut cursor = IndexCursor::new();
        let next = least_ns(rounds, n, || {
            cursor.first(&index, &log);
            while let Some(r) = cursor.current() {
                black_box(r);
                cursor.next(&index, &log);
            }
        });
        let prev = least_ns(rounds, n, || {
            cursor.last(&index, &log);
            while let Some(r) = cursor.current() {
                black_box(r);
                cursor.prev(&index, &log);
            }
        });
        Row([insert, get, next, prev], index.memory() / keys.len())
    }

    fn skiplist(keys: &[Key], asked: &[Key], rounds: usize) -> Row {
        let (n, log) = (keys.len(), Log::new(keys));
        let (insert, map) = build(rounds, keys.len(), || {
            let map = SkipMap::new();
            for (r, key) in keys.iter().enumerate() {
                map.insert(*key, r as u32);
            }
            map
        });
        let get = least_ns(rounds, n, || {
            for key in asked {
                black_box(log.value(*map.get(key).unwrap().value()));
            }
        });
        let next = least_ns(rounds, n, || map.iter().for_each(|e| drop(black_box(e))));
        let prev = least_ns(rounds, n, || map.iter().rev().for_each(|e| drop(black_box(e))));
        Row([insert, get, next, prev], 0)
    }

    fn btree(keys: &[Key], asked: &[Key], rounds: usize) -> Row {
        let (n, log) = (keys.len(), Log::new(keys));
        let (insert, map) = build(rounds, keys.len(), || {
            let mut map = BTreeMap::new();
            for (r, key) in keys.iter().enumerate() {
                map.insert(*key, r as u32);
            }
            map
        });
        let get = least_ns(rounds, n, || {
            for key in asked {
                black_box(log.value(*map.get(key).unwrap()));
            }
        });
        let next = least_ns(rounds, n, || map.iter().for_each(|e| _ = black_box(e)));
        let prev = least_ns(rounds, n, || map.iter().rev().for_each(|e| _ = black_box(e)));
        Row([insert, get, next, prev], 0)
    }

    /// An argument names the one structure to run, and a second one the number of entries.
    pub(super) fn main() {
        let only = std::env::args().nth(1);
        let size: Option<usize> = std::env::args().nth(2).and_then(|n| n.parse().ok());
        println!("| entries | keys | structure | insert | get | next | prev | bytes/key |");
        println!("|--:|---|---|--:|--:|--:|--:|--:|");
        for n in [10_000, 100_000, 500_000, 1_000_000] {
            if size.is_some_and(|size| size != n) {
                continue;
            }
            let rounds = (5_000_000 / n).clamp(5, 60);
            for kind in ["in order", "random", "binary", "fields"] {
                let keys = keys(kind, n);
                let mut asked = keys.clone();
                if kind != "in order" {
                    shuffle(&mut asked, 2);
                }
                type Measure = fn(&[Key], &[Key], usize) -> Row;
                let all: [(&str, Measure); 3] =
                    [("esker", esker), ("skiplist", skiplist), ("BTreeMap", btree)];
                for (name, measure) in all {
                    if only.as_ref().is_some_and(|only| only != name && only != "all") {
                        continue;
                    }
                    let Row([insert, get, next, prev], bytes) = measure(&keys, &asked, rounds);
                    let bytes = if bytes == 0 { "-".into() } else { bytes.to_string() };
                    println!(
                        "| {n} | {kind} | {name} | {insert:.0} | {get:.0} | {next:.1} | {prev:.1} | {bytes} |"
                    );
                }
            }
        }
    }
}
