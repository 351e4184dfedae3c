//! One suite for everything that walks entries: memtable, table, run, merge and the public cursor,
//! each against a sorted list.

mod data;
mod suite;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use self::data::{Data, Expected, TestDir, data};
use self::suite::{conforms, conforms_but_for_versions};
use super::cursor::Cursor as Public;
use super::loaded::LoadedRun;
use super::merge_cursor::MergeCursor;
use super::run_cursor::RunCursor;
use super::source::SourceCursor;
use super::super_version::SuperVersion;
use crate::Result;
use crate::env::Lock;
use crate::key::{Comparator, InternalCursor, KeyOrder, Kind, Seq, Stored};
use crate::memtable::Memtable;
use crate::util::Rng;
use crate::version::KeyspaceVersion;

#[test]
fn a_memtable_conforms() {
    for data in data() {
        let memtable = TestDir::new().memtable(&data.entries, &data.order);
        conforms_but_for_versions(data.name, &data.order, &data.entries, &data.probes(), &|| {
            Box::new(memtable.cursor())
        });
    }
}

#[test]
fn a_table_conforms() {
    for data in data().into_iter().filter(|d| !d.entries.is_empty()) {
        let table = TestDir::new().table(&data.entries, &data.order);
        conforms(data.name, &data.order, &data.entries, &data.probes(), &|| {
            Box::new(table.table.cursor())
        });
    }
}

#[test]
fn a_run_conforms() {
    for data in data() {
        for tables in [1, 3, 50] {
            let Some(run) = TestDir::new().run(&data.entries, &data.order, tables) else {
                continue;
            };
            conforms(data.name, &data.order, &data.entries, &data.probes(), &|| {
                Box::new(RunCursor::new(Arc::clone(&run), data.order.clone()))
            });
        }
    }
}

#[test]
fn a_merge_conforms() {
    for (seed, data) in data().into_iter().flat_map(|d| [d.clone(), d]).enumerate() {
        let (memtables, runs) = TestDir::new().sources(&data, seed as u64 + 1);
        conforms_but_for_versions(data.name, &data.order, &data.entries, &data.probes(), &|| {
            let mut sources: Vec<SourceCursor> =
                memtables.iter().map(|m| SourceCursor::Memtable(m.cursor())).collect();
            let run = |r: &Arc<LoadedRun>| RunCursor::new(Arc::clone(r), data.order.clone());
            sources.extend(runs.iter().map(|r| SourceCursor::Run(run(r))));
            Box::new(MergeCursor::new(data.order.clone(), sources))
        });
    }
}

#[test]
fn a_source_that_stays_in_front_stops_at_each_key_of_another() {
    let dir = TestDir::new();
    let order = KeyOrder::Bytewise;
    let entry = |key: u8, seq: Seq, kind: Kind| {
        let value = if kind == Kind::Put { vec![seq as u8; 3] } else { vec![] };
        Expected { key: vec![b'k', key], seq, kind, value }
    };
    let many: Vec<Expected> = (1..=160).map(|n| entry(n, 100, Kind::Put)).collect();
    for (at, one) in (1..=160u8).step_by(3).enumerate() {
        for (seq, kind) in [(99, Kind::Put), (101, Kind::Put), (101, Kind::Delete)] {
            let one = [entry(one, seq, kind)];
            let mut data =
                Data { name: "many and one", order: order.clone(), entries: many.clone() };
            data.entries.extend(one.clone());
            data.entries.sort_by(|a, b| a.key.cmp(&b.key).then(b.seq.cmp(&a.seq)));
            let (in_memtable, in_run): (&[_], &[_]) =
                if at % 2 == 0 { (&many, &one) } else { (&one, &many) };
            let memtables = vec![dir.memtable(in_memtable, &order)];
            let super_version =
                super_version(memtables, dir.run(in_run, &order, 1).into_iter().collect());
            let mut c = Adapter(Public::new(super_version, &order, Seq::MAX >> 8, false, None));
            let mut expected: Vec<_> =
                data.visible(Seq::MAX).into_iter().map(|e| (e.key, e.value)).collect();
            for forward in [true, false] {
                let mut walked = Vec::new();
                c.edge(forward).unwrap();
                while c.valid() {
                    let Stored::Inline(value) = c.stored() else { unreachable!() };
                    walked.push((c.key().to_vec(), value.to_vec()));
                    c.step(forward).unwrap();
                }
                assert!(
                    walked == expected,
                    "{:?}, {kind:?} of {seq}, forward: {forward}",
                    one[0].key
                );
                expected.reverse();
            }
        }
    }
}

/// Walks of many steps that turn now and then, over memtables and runs in which no key has two versions, by readers that do
/// not see all: what makes them take entries in chunks.
#[test]
fn long_walks_conform() {
    for seed in 0..300 {
        let mut rng = Rng::new(seed);
        let order = [KeyOrder::Bytewise, KeyOrder::Reverse][rng.below(2)].clone();
        let shape = rng.below(4);
        let keys = 10 + rng.below(500);
        let key = |n: usize| match shape {
            0 => format!("{n:016}").into_bytes(),
            1 => format!("{}/{}", "abc".repeat(1 + n % 3), n / 3).into_bytes(),
            // To an abbreviated key zeros look like its end.
            2 => {
                [vec![0; n % 5], vec![(n / 100) as u8, (n / 5 % 20) as u8], vec![0; n % 3]].concat()
            }
            _ => [vec![b'k'; 300 * (n % 3)], n.to_string().into_bytes()].concat(),
        };
        let often_dead = rng.below(3);
        let mut dead_until = 0;
        let writes = (0..2 * keys).map(|at| {
            if rng.below(60) == 0 {
                dead_until = at + rng.below(30);
            }
            let n = if at < dead_until { at % keys } else { rng.below(keys) };
            (key(n), at >= dead_until && rng.below(10) >= often_dead)
        });
        let data = Data::new("long walks", order.clone(), writes.collect());
        let dir = TestDir::new();
        let super_version = {
            let (memtables, runs) = dir.unique_sources(&data, &mut rng);
            super_version(memtables, runs)
        };
        for turn in 0..4 {
            let seq = if turn == 0 { Seq::MAX >> 8 } else { rng.below(2 * keys) as Seq };
            let (seen, keys_only) = (data.visible(seq), turn == 3);
            let cursor = Public::new(Arc::clone(&super_version), &order, seq, keys_only, None);
            walks_and_turns(
                cursor,
                &seen,
                keys_only,
                &mut rng,
                &format!("seed {seed}, walk {turn}"),
            );
        }
    }
}

fn walks_and_turns(
    mut cursor: Public,
    seen: &[Expected],
    keys_only: bool,
    rng: &mut Rng,
    what: &str,
) {
    for start in 0..3 {
        let mut at = [0, seen.len().wrapping_sub(1), rng.below(seen.len().max(1))][start];
        match (start, seen.get(at)) {
            (0, _) => cursor.first().unwrap(),
            (1, _) => cursor.last().unwrap(),
            (_, Some(e)) => cursor.seek(&e.key).unwrap(),
            (_, None) => continue,
        };
        let (mut forward, mut left) = (start != 1, 0);
        for step in 0..2 * seen.len() {
            assert_eq!(cursor.valid(), at < seen.len(), "{what}, {start}: step {step}, entry {at}");
            let Some(e) = seen.get(at) else { break };
            assert!(cursor.key() == e.key, "{what}, {start}: step {step}, key {at}");
            let value: &[u8] = if keys_only { &[] } else { &e.value };
            assert!(cursor.value() == value, "{what}, {start}: step {step}, value {at}");
            if left == 0 {
                (forward, left) =
                    (rng.below(2) == 0 || step == 0 && start != 1, 1 + rng.below(100));
            }
            left -= 1;
            at = at.wrapping_add(if forward { 1 } else { usize::MAX });
            cursor.step(forward).unwrap();
        }
    }
}

/// An order that counts what it is asked.
#[derive(Default)]
struct Counting(AtomicUsize);

impl Comparator for Counting {
    fn name(&self) -> &str {
        "test.counting"
    }
    fn compare(&self, a: &[u8], b: &[u8]) -> std::cmp::Ordering {
        self.0.fetch_add(1, Ordering::Relaxed);
        a.cmp(b)
    }
}

/// A walk met each of them, so `put(k)` and `iter().next_back()` in turns took longer each time.
#[test]
fn a_walk_passed_all_versions_of_a_key_one_by_one() {
    let counting = Arc::new(Counting::default());
    let order = KeyOrder::Custom(counting.clone());
    let entry = |(key, seq): (&str, Seq)| {
        let (key, value) = (key.as_bytes().to_vec(), seq.to_string().into_bytes());
        Expected { key, seq, kind: Kind::Put, value }
    };
    let often = |n: Seq| [("a", 1), ("c", 2)].into_iter().chain((0..n).map(|i| ("b", 10 + i)));
    let dir = TestDir::new();
    let below: Vec<Expected> = [("b", 0), ("d", 0)].map(entry).into();
    let run: Vec<_> = dir.run(&below, &order, 1).into_iter().collect();
    for runs in [vec![], run] {
        let asked = [3, 3000].map(|n| {
            let memtable = dir.memtable(&often(n).map(entry).collect::<Vec<_>>(), &order);
            let newest = (9 + n).to_string();
            let mut c =
                Public::new(super_version(vec![memtable], runs.clone()), &order, 5000, false, None);
            let before = counting.0.load(Ordering::Relaxed);
            assert!(c.seek_for_prev("b").unwrap() && c.value() == newest.as_bytes());
            assert!(c.prev().unwrap() && c.key() == b"a");
            assert!(c.next().unwrap() && c.value() == newest.as_bytes());
            assert!(c.next().unwrap() && c.key() == b"c");
            assert!(c.prev().unwrap() && c.value() == newest.as_bytes());
            assert!(c.next().unwrap() && c.key() == b"c");
            assert!(c.seek("b").unwrap() && c.value() == newest.as_bytes());
            assert!(c.prev().unwrap() && c.key() == b"a");
            counting.0.load(Ordering::Relaxed) - before
        });
        assert!(asked[1] < 2 * asked[0], "comparisons with 3 versions and 3000: {asked:?}");
    }
}

/// As a repair may leave them that had to guess which tables belong to the store: the run counts then.
#[test]
fn of_two_entries_with_one_sequence_that_in_the_newer_run_is_seen_both_ways() {
    let order = KeyOrder::Bytewise;
    let dir = TestDir::new();
    let entry = |key: &str, kind, value: &str| {
        let (key, value) = (key.as_bytes().to_vec(), value.as_bytes().to_vec());
        Expected { key, seq: 5, kind, value }
    };
    let [put, delete] = [Kind::Put, Kind::Delete];
    let newer = [entry("a", put, "new"), entry("b", delete, ""), entry("c", put, "new")];
    let older = [entry("a", put, "old"), entry("b", put, "old"), entry("c", delete, "")];
    let runs = [&newer, &older].map(|entries| dir.run(entries, &order, 1).unwrap());
    let mut c = Adapter(Public::new(super_version(vec![], runs.into()), &order, 9, false, None));
    for (forward, expected) in [(true, ["a", "c"]), (false, ["c", "a"])] {
        let mut keys = Vec::new();
        c.edge(forward).unwrap();
        while c.valid() {
            assert_eq!(c.stored(), Stored::Inline(b"new"));
            keys.push(c.key().to_vec());
            c.step(forward).unwrap();
        }
        assert_eq!(keys, expected.map(|key| key.as_bytes()), "forward: {forward}");
    }
}

/// It went through all that a key was put since.
#[test]
fn a_get_at_a_snapshot_looked_into_memtables_that_came_later() {
    let counting = Arc::new(Counting::default());
    let order = KeyOrder::Custom(counting.clone());
    let entry = |seq: Seq| Expected { key: b"k".into(), seq, kind: Kind::Put, value: vec![] };
    let memtable = TestDir::new().memtable(&[entry(10), entry(11)], &order);
    let hash = crate::key::key_hash(b"k");
    assert!(memtable.get(b"k", hash, 10).is_some_and(|r| r.seq == 10));
    let before = counting.0.load(Ordering::Relaxed);
    assert!(memtable.get(b"k", hash, 9).is_none());
    assert_eq!(counting.0.load(Ordering::Relaxed), before);
}

/// The public cursor in the shape of the suite.
struct Adapter(Public);

impl InternalCursor for Adapter {
    fn valid(&self) -> bool {
        self.0.valid()
    }
    fn edge(&mut self, forward: bool) -> Result<()> {
        let moved = if forward { self.0.first() } else { self.0.last() };
        moved.map(|on| assert_eq!(on, self.0.valid()))
    }
    fn search(&mut self, key: &[u8], forward: bool) -> Result<()> {
        let moved = if forward { self.0.seek(key) } else { self.0.seek_for_prev(key) };
        moved.map(|on| assert_eq!(on, self.0.valid()))
    }
    fn step(&mut self, forward: bool) -> Result<()> {
        let moved = if forward { self.0.next() } else { self.0.prev() };
        moved.map(|on| assert_eq!(on, self.0.valid()))
    }
    fn key(&self) -> &[u8] {
        self.0.key()
    }
    fn seq(&self) -> Seq {
        0
    }
    fn kind(&self) -> Kind {
        Kind::Put
    }
    fn stored(&self) -> Stored<'_> {
        Stored::Inline(self.0.value())
    }
}

fn super_version(memtables: Vec<Arc<Memtable>>, runs: Vec<Arc<LoadedRun>>) -> Arc<SuperVersion> {
    let lock: Arc<dyn Lock> = Arc::new(());
    Arc::new(SuperVersion { memtables, version: KeyspaceVersion::of(runs), lock })
}

#[test]
fn the_public_cursor_conforms_at_every_age() {
    for (seed, data) in data().into_iter().flat_map(|d| [d.clone(), d]).enumerate() {
        let (memtables, runs) = TestDir::new().sources(&data, seed as u64 + 100);
        let super_version = super_version(memtables, runs);
        let newest = data.entries.len() as Seq;
        for seq in [0, 1, newest / 3, newest / 2, newest.saturating_sub(1), newest, Seq::MAX >> 8] {
            let what = format!("{} at {seq}", data.name);
            conforms(&what, &data.order, &data.visible(seq), &data.probes(), &|| {
                Box::new(Adapter(Public::new(
                    Arc::clone(&super_version),
                    &data.order,
                    seq,
                    false,
                    None,
                )))
            });
        }
    }
}

#[test]
fn the_public_cursor_over_one_run_conforms() {
    for data in data() {
        let runs = TestDir::new().run(&data.entries, &data.order, 3).into_iter().collect();
        let super_version = super_version(vec![], runs);
        let visible = data.visible(Seq::MAX);
        conforms(data.name, &data.order, &visible, &data.probes(), &|| {
            Box::new(Adapter(Public::new(
                Arc::clone(&super_version),
                &data.order,
                Seq::MAX >> 8,
                false,
                None,
            )))
        });
    }
}

#[test]
fn off_its_entries_the_public_cursor_stays_where_it_is() {
    for data in data() {
        let (memtables, runs) = TestDir::new().sources(&data, 5);
        let alone = TestDir::new().run(&data.entries, &data.order, 3).into_iter().collect();
        for super_version in [super_version(memtables, runs), super_version(vec![], alone)] {
            let mut c = Public::new(super_version, &data.order, Seq::MAX >> 8, false, None);
            assert!(!c.next().unwrap() && !c.prev().unwrap(), "{}: a new cursor moves", data.name);
            assert!(c.key().is_empty() && c.value().is_empty());
            if c.last().unwrap() {
                assert!(
                    !c.next().unwrap() && !c.next().unwrap() && !c.prev().unwrap(),
                    "{}",
                    data.name
                );
            }
        }
    }
}
