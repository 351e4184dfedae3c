//! Where much was deleted, walks leap; and find all the same what is there, whoever writes beside them.
//!
//! `ESKER_SECONDS=n` sets how long (2, or 8), `ESKER_SEED=n` the seed.

mod common;

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use common::rng::Rng;
use common::{number, quick_or_full, seed};
use esker::{
    Comparator, Compression, Db, KeyOrder, Keyspace, KeyspaceOptions, Options, ReadableKeyspace,
    WriteBatch,
};

/// Keys go so far, and each belongs to one of the threads.
const KEYS: u64 = 6000;
const THREADS: u64 = 3;

/// Bytewise, and counts.
struct Counting(Arc<AtomicU64>);

impl Comparator for Counting {
    fn name(&self) -> &str {
        "test.counting"
    }
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        self.0.fetch_add(1, Relaxed);
        a.cmp(b)
    }
}

fn key(n: u64) -> [u8; 8] {
    n.to_be_bytes()
}

/// One thread, and what it wrote to its keys.
struct Writer<'a> {
    db: &'a Db,
    space: &'a Keyspace,
    mine: u64,
    reverse: bool,
    rng: Rng,
    model: BTreeMap<u64, u64>,
}

impl Writer<'_> {
    fn own(&mut self) -> u64 {
        self.rng.below((KEYS / THREADS) as usize) as u64 * THREADS + self.mine
    }

    fn put(&mut self) {
        let (n, value) = (self.own(), self.rng.next());
        if self.rng.below(2) == 0 {
            self.space.put(key(n), value.to_le_bytes()).unwrap();
        } else {
            let mut batch = WriteBatch::new();
            batch.put_in(self.space, key(n), value.to_le_bytes());
            self.db.write(batch).unwrap();
        }
        self.model.insert(n, value);
    }

    /// Many neighbours at once, one by one or as a batch.
    fn delete(&mut self) {
        let first = self.own();
        let many = self.rng.below(200) as u64;
        let keys = (0..many).map(|i| first + i * THREADS).filter(|n| *n < KEYS);
        let mut batch = WriteBatch::new();
        for n in keys {
            match many % 2 {
                0 => self.space.delete(key(n)).unwrap(),
                _ => batch.delete_in(self.space, key(n)),
            }
            self.model.remove(&n);
        }
        self.db.write(batch).unwrap();
    }

    fn load(&mut self) {
        let (first, value) = (self.own(), self.rng.next());
        let mut keys: Vec<u64> =
            (0..20).map(|i| first + i * 3 * THREADS).filter(|n| *n < KEYS).collect();
        self.model.extend(keys.iter().map(|n| (*n, value)));
        if self.reverse {
            keys.reverse();
        }
        self.space.bulk_load(keys.iter().map(|n| (key(*n), value.to_le_bytes()))).unwrap();
    }

    /// The keys of this thread that a walk comes to, from some place on or back, against the model.
    fn check(&mut self, space: &impl ReadableKeyspace, model: &BTreeMap<u64, u64>) {
        let (start, back) = (self.own(), self.rng.below(2) == 0);
        let ascending = back == self.reverse;
        let mut cursor = space.cursor();
        let (from, on) = match (self.rng.below(3), back) {
            (0, false) => (None, cursor.first()),
            (0, true) => (None, cursor.last()),
            (_, false) => (Some(start), cursor.seek(key(start))),
            (_, true) => (Some(start), cursor.seek_for_prev(key(start))),
        };
        let entries = |(n, value): (&u64, &u64)| (*n, *value);
        let expected: Vec<(u64, u64)> = match ascending {
            true => model.range(from.unwrap_or(0)..).take(30).map(entries).collect(),
            false => model.range(..=from.unwrap_or(KEYS)).rev().take(30).map(entries).collect(),
        };
        let (mut found, mut on) = (Vec::new(), on.unwrap());
        while on && found.len() < 30 {
            let n = u64::from_be_bytes(*cursor.key().first_chunk().unwrap());
            if n % THREADS == self.mine {
                found.push((n, u64::from_le_bytes(*cursor.value().first_chunk().unwrap())));
            }
            on = if back { cursor.prev() } else { cursor.next() }.unwrap();
        }
        assert_eq!(found, expected, "from {from:?}, back: {back}");
    }

    fn run(&mut self, until: Instant) -> u64 {
        let mut checks = 0;
        let mut old = None;
        while Instant::now() < until {
            match self.rng.below(40) {
                0..8 => self.put(),
                8..10 => self.delete(),
                10 if self.rng.below(40) == 0 => self.load(),
                11 if self.rng.below(100) == 0 => self.db.flush().unwrap(),
                12 if self.rng.below(10) == 0 => {
                    old = Some((self.space.at(&self.db.snapshot()), self.model.clone()));
                }
                13..17 => {
                    if let Some((view, model)) = &old {
                        self.check(view, model);
                    }
                }
                _ => {
                    let model = std::mem::take(&mut self.model);
                    self.check(self.space, &model);
                    self.model = model;
                    checks += 1;
                }
            }
        }
        checks
    }
}

fn play(order: impl Into<KeyOrder>, reverse: bool) {
    let seed = seed("gaps");
    let dir = tempfile::tempdir().unwrap();
    let options =
        Options::new().memory(1 << 20).segment_size(128 << 10).compression(Compression::None);
    let db = options.open(dir.path().join("db")).unwrap();
    let space = &db.create_keyspace("space", KeyspaceOptions::new().comparator(order)).unwrap();
    let seconds = number("ESKER_SECONDS").unwrap_or(quick_or_full(2, 8));
    let until = Instant::now() + Duration::from_secs(seconds);
    let checks: u64 = std::thread::scope(|scope| {
        let writer = |mine| {
            let rng = Rng::new(seed.wrapping_add(mine));
            let mut writer = Writer { db: &db, space, mine, reverse, rng, model: BTreeMap::new() };
            scope.spawn(move || writer.run(until))
        };
        let all: Vec<_> = (0..THREADS).map(writer).collect();
        all.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    println!("{checks} walks compared");
}

#[test]
fn walks_over_deleted_ranges_find_what_is_there() {
    play(KeyOrder::Bytewise, false);
}

#[test]
fn walks_over_deleted_ranges_in_reverse_order() {
    play(KeyOrder::Reverse, true);
}

#[test]
fn walks_over_deleted_ranges_under_a_comparator() {
    play(Counting(Arc::default()), false);
}

/// Who takes the first entry of many and deletes it, with a new cursor each time, passed all that were taken before.
#[test]
fn a_pop_cost_more_with_each_one_before() {
    let compared = Arc::new(AtomicU64::new(0));
    let dir = tempfile::tempdir().unwrap();
    let db = Options::new()
        .comparator(Counting(Arc::clone(&compared)))
        .open(dir.path().join("db"))
        .unwrap();
    let comparisons = |n: u64, pop: &dyn Fn()| {
        let before = compared.load(Relaxed);
        (0..n).for_each(|_| pop());
        (compared.load(Relaxed) - before) / n
    };
    // A queue with a backlog, by cursors, by iterators and by a search for a prefix; and a stack.
    type Pop = (&'static str, u64, fn(&Db) -> Vec<u8>);
    let pops: [Pop; 4] = [
        ("a cursor", 80, |db| {
            let mut cursor = db.cursor();
            assert!(cursor.first().unwrap());
            cursor.key().to_vec()
        }),
        ("an iterator", 100, |db| db.iter().next().unwrap().unwrap().0.to_vec()),
        ("a search", 120, |db| {
            let mut cursor = db.cursor();
            assert!(cursor.seek(key(0)).unwrap());
            cursor.key().to_vec()
        }),
        ("the end", 220, |db| db.iter().next_back().unwrap().unwrap().0.to_vec()),
    ];
    for (what, most, pop) in pops {
        (0..10_000).for_each(|n| db.put(key(n), "entry").unwrap());
        let pop = || db.delete(pop(&db)).unwrap();
        let first = comparisons(1000, &pop);
        comparisons(7000, &pop);
        let last = comparisons(1000, &pop);
        println!("{what}: {first} comparisons a pop, {last} after 8,000");
        assert!(last < most, "{what}: {first} comparisons a pop, {last} after 8,000");
        assert_eq!(db.iter().count(), 1000);
    }
}

/// Keys that live, and between each and the next so many that were deleted.
struct DeletedRanges {
    ranges: u64,
    dead: u64,
    /// Bytes that all keys begin with.
    long: usize,
    db: Db,
    compared: Arc<AtomicU64>,
    /// From before the deletes: compactions keep what is dead.
    _before: Option<esker::Snapshot>,
    _dir: tempfile::TempDir,
}

impl DeletedRanges {
    fn new(ranges: u64, dead: u64, long: usize) -> DeletedRanges {
        let compared = Arc::new(AtomicU64::new(0));
        let dir = tempfile::tempdir().unwrap();
        let order = Counting(Arc::clone(&compared));
        let db = Options::new().comparator(order).open(dir.path().join("db")).unwrap();
        let mut all = DeletedRanges { ranges, dead, long, db, compared, _before: None, _dir: dir };
        (0..all.keys()).for_each(|n| all.db.put(all.key(n), "entry").unwrap());
        all._before = Some(all.db.snapshot());
        // Some of what is dead lies in tables, some in memory.
        let dead = (0..all.keys()).filter(|n| !all.lives(*n));
        let (first, second): (Vec<u64>, Vec<u64>) = dead.partition(|n| n % 3 == 0);
        first.into_iter().for_each(|n| all.db.delete(all.key(n)).unwrap());
        all.db.flush().unwrap();
        second.into_iter().for_each(|n| all.db.delete(all.key(n)).unwrap());
        all
    }

    fn keys(&self) -> u64 {
        self.ranges * (self.dead + 1) + 1
    }

    fn lives(&self, n: u64) -> bool {
        n.is_multiple_of(self.dead + 1)
    }

    fn key(&self, n: u64) -> Vec<u8> {
        [&vec![b'k'; self.long][..], &key(n)].concat()
    }

    /// Searches from random places, both ways, find what lives, and compare little once somebody has passed what is dead.
    fn search(&self, what: &str, mut cursor: impl FnMut(u64, &mut dyn FnMut(&mut esker::Cursor))) {
        const SEARCHES: u64 = 3000;
        let mut rng = Rng::new(seed("ranges"));
        let before = self.compared.load(Relaxed);
        for turn in 0..SEARCHES {
            let n = rng.below(self.keys() as usize) as u64;
            cursor(turn, &mut |cursor| {
                let wide = self.dead + 1;
                let (found, expected) = match turn % 2 {
                    0 => (cursor.seek(self.key(n)), n.div_ceil(wide) * wide),
                    _ => (cursor.seek_for_prev(self.key(n)), n / wide * wide),
                };
                assert!(found.unwrap(), "{what}");
                assert_eq!(cursor.key(), self.key(expected), "{what}, from {n}");
            });
        }
        let compared = self.compared.load(Relaxed) - before;
        let budget = SEARCHES * 200 + self.keys() * 16;
        println!("{what}: {compared} comparisons of {budget}");
        assert!(compared < budget, "{what}: {compared} comparisons, not {budget}");
    }

    fn search_as_anybody_would(&self, what: &str) {
        self.search(&format!("{what}, new cursors"), |_, search| search(&mut self.db.cursor()));
        // Somebody writes elsewhere: these read what is past.
        let write = |turn: u64| self.db.put([b'z', turn as u8], "elsewhere").unwrap();
        let mut kept = self.db.cursor();
        self.search(&format!("{what}, a cursor that is kept"), |turn, search| {
            write(turn);
            search(&mut kept);
        });
        let snapshot = self.db.snapshot();
        self.search(&format!("{what}, cursors of a snapshot"), |turn, search| {
            write(turn);
            search(&mut self.db.at(&snapshot).cursor());
        });
    }
}

/// The next search that began before what was known passed all that lay between, each time.
#[test]
fn searches_into_a_deleted_range_from_ever_other_places() {
    DeletedRanges::new(1, 40_000, 0).search_as_anybody_would("one range");
}

/// Only 32 gaps were kept.
#[test]
fn searches_into_more_deleted_ranges_than_were_kept() {
    DeletedRanges::new(800, 100, 0).search_as_anybody_would("800 ranges");
}

/// Gaps beside keys of more than 512 bytes were not kept.
#[test]
fn searches_into_deleted_ranges_of_long_keys() {
    DeletedRanges::new(20, 1500, 600).search_as_anybody_would("long keys");
}

/// A search that passes a few dead keys has their gap measured, and paid for all that were dead behind it.
#[test]
fn a_search_paid_for_dead_keys_that_it_never_came_to() {
    let compared = Arc::new(AtomicU64::new(0));
    let dir = tempfile::tempdir().unwrap();
    let order = Counting(Arc::clone(&compared));
    let db = Options::new().comparator(order).open(dir.path().join("db")).unwrap();
    (0..=40_000).for_each(|n| db.put(key(n), "entry").unwrap());
    (0..40_000).for_each(|n| db.delete(key(n)).unwrap());
    let mut cursor = db.cursor();
    let before = compared.load(Relaxed);
    assert!(cursor.seek(key(39_980)).unwrap());
    let compared = compared.load(Relaxed) - before;
    assert_eq!(cursor.key(), key(40_000));
    println!("{compared} comparisons");
    assert!(compared < 20_000, "{compared} comparisons to pass 20 dead keys");
}
