//! One suite for everything that walks entries: memtable, table, run, merge and the public cursor,
//! each against a sorted list.

use std::path::Path;
use std::sync::Arc;

use super::cursor::Cursor as Public;
use super::loaded::{LoadedRun, LoadedTable};
use super::merge_cursor::MergeCursor;
use super::run_cursor::RunCursor;
use super::source::SourceCursor;
use super::super_version::SuperVersion;
use crate::Result;
use crate::env::{Env, Lock, OsEnv};
use crate::filename;
use crate::key::{Comparator, InternalCursor, KeyOrder, Kind, Seq, Stored, key_hash};
use crate::memtable::Memtable;
use crate::obsolete_files::ObsoleteFiles;
use crate::table::{Table, TableBuilder, TableOptions};
use crate::util::Rng;
use crate::version::KeyspaceVersion;
use crate::wal::{LogWriter, Segment};

#[derive(Debug, Clone, PartialEq, Eq)]
struct Expected {
    key: Vec<u8>,
    seq: Seq,
    kind: Kind,
    value: Vec<u8>,
}

struct NoCase;

impl Comparator for NoCase {
    fn name(&self) -> &str {
        "test.nocase"
    }
    fn compare(&self, a: &[u8], b: &[u8]) -> std::cmp::Ordering {
        a.to_ascii_lowercase().cmp(&b.to_ascii_lowercase())
    }
}

/// What is walked: entries in order, and where their files are.
#[derive(Clone)]
struct Data {
    name: &'static str,
    order: KeyOrder,
    entries: Vec<Expected>,
}

impl Data {
    /// Each write is (key, whether it is a put); sequences are the places in the list.
    fn new(name: &'static str, order: KeyOrder, writes: Vec<(Vec<u8>, bool)>) -> Data {
        let entry = |(at, (key, put)): (usize, (Vec<u8>, bool))| {
            let seq = at as Seq + 1;
            let value =
                if put { format!("{seq}:").repeat(1 + at % 40).into_bytes() } else { vec![] };
            Expected { key, seq, kind: if put { Kind::Put } else { Kind::Delete }, value }
        };
        let mut entries: Vec<Expected> = writes.into_iter().enumerate().map(entry).collect();
        entries.sort_by(|a, b| order.compare(&a.key, &b.key).then(b.seq.cmp(&a.seq)));
        Data { name, order, entries }
    }

    /// Every key, and its neighbours that may not be there.
    fn probes(&self) -> Vec<Vec<u8>> {
        let mut probes: Vec<Vec<u8>> = vec![vec![], vec![0xff; 40]];
        for e in &self.entries {
            probes.push(e.key.clone());
            probes.push([&e.key[..], &[0]].concat());
            probes.push(e.key[..e.key.len().saturating_sub(1)].to_vec());
            probes.push(e.key.to_ascii_uppercase());
        }
        probes.sort();
        probes.dedup();
        probes
    }

    /// What a reader at `seq` sees: of each key the newest version, unless that is a delete.
    fn visible(&self, seq: Seq) -> Vec<Expected> {
        let mut seen: Vec<Expected> = Vec::new();
        let mut last: Option<&Expected> = None;
        for e in self.entries.iter().filter(|e| e.seq <= seq) {
            let older = last.is_some_and(|l| self.order.compare(&l.key, &e.key).is_eq());
            last = Some(e);
            if !older && e.kind == Kind::Put {
                // The public cursor tells no sequences.
                seen.push(Expected { seq: 0, ..e.clone() });
            }
        }
        seen
    }
}

fn data() -> Vec<Data> {
    let puts = |keys: Vec<Vec<u8>>| keys.into_iter().map(|k| (k, true)).collect::<Vec<_>>();
    let numbers = |n: u32| (0..n).map(|i| (i * 7919 % n).to_be_bytes().to_vec()).collect();
    let mut rng = Rng::new(7);
    let words: Vec<(Vec<u8>, bool)> = (0..500)
        .map(|_| {
            let len = rng.below(4);
            let key = (0..len).map(|_| b"abABc"[rng.below(5)]).collect();
            (key, rng.below(4) > 0)
        })
        .collect();
    let edges: Vec<(Vec<u8>, bool)> = (0..400)
        .map(|_| {
            let len = rng.below(20);
            let key = (0..len).map(|_| [0, 1, 0x7f, 0x80, 0xff][rng.below(5)]).collect();
            (key, rng.below(5) > 0)
        })
        .collect();
    let long = |n: usize| -> Vec<Vec<u8>> {
        (0..n)
            .map(|i| format!("{}{:05}", "p".repeat(i % 3 * 200), i * 37 % n).into_bytes())
            .collect()
    };
    let no_case = KeyOrder::Custom(Arc::new(NoCase));
    vec![
        Data::new("nothing", KeyOrder::Bytewise, vec![]),
        Data::new("the empty key", KeyOrder::Bytewise, vec![(vec![], true)]),
        Data::new("one key, many versions", KeyOrder::Bytewise, vec![(b"k".to_vec(), true); 100]),
        Data::new(
            "only deletes",
            KeyOrder::Bytewise,
            vec![(b"a".to_vec(), false), (b"b".to_vec(), false)],
        ),
        Data::new("numbers", KeyOrder::Bytewise, puts(numbers(600))),
        Data::new("numbers, reverse", KeyOrder::Reverse, puts(numbers(300))),
        Data::new("long keys", KeyOrder::Bytewise, puts(long(300))),
        Data::new("words", KeyOrder::Bytewise, words.clone()),
        Data::new("words, reverse", KeyOrder::Reverse, words.clone()),
        Data::new("words without case", no_case.clone(), words),
        Data::new("edges", KeyOrder::Bytewise, edges.clone()),
        Data::new("edges, reverse", KeyOrder::Reverse, edges),
    ]
}

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
fn conforms(
    what: &str,
    order: &KeyOrder,
    expected: &[Expected],
    probes: &[Vec<u8>],
    make: &dyn Fn() -> Box<dyn InternalCursor>,
) {
    let n = expected.len();
    let mut cursor = make();
    let c = &mut *cursor;
    assert!(!c.valid(), "{what}: a new cursor is nowhere");

    c.first().unwrap();
    for at in 0..n {
        check(c, expected, at, what);
        c.next().unwrap();
    }
    check(c, expected, n, what);
    c.last().unwrap();
    for at in (0..n).rev() {
        check(c, expected, at, what);
        c.prev().unwrap();
    }
    check(c, expected, n, what);

    for probe in probes {
        let what = format!("{what}: \"{}\"", probe.escape_ascii());
        let at = expected.partition_point(|e| order.compare(&e.key, probe).is_lt());
        c.seek(probe).unwrap();
        check(c, expected, at, &what);
        step_about(c, expected, at, &what);
        let at = expected.partition_point(|e| order.compare(&e.key, probe).is_le()).wrapping_sub(1);
        c.seek_for_prev(probe).unwrap();
        check(c, expected, at, &what);
        step_about(c, expected, at, &what);
    }

    // Two steps on and one back, and the other way round, over everything.
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

/// A directory for files, numbered on.
struct TestDir {
    env: Arc<dyn Env>,
    dir: tempfile::TempDir,
    next: std::cell::Cell<u64>,
}

impl TestDir {
    fn new() -> TestDir {
        let dir = tempfile::tempdir().unwrap();
        TestDir { env: Arc::new(OsEnv::new()), dir, next: std::cell::Cell::new(1) }
    }

    fn number(&self) -> u64 {
        self.next.replace(self.next.get() + 1)
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    fn memtable(&self, entries: &[Expected], order: &KeyOrder) -> Arc<Memtable> {
        let segment =
            Segment::create(&self.env, self.path(), self.number(), 1 << 20, None).unwrap();
        let segment = Arc::new(segment);
        let mut appender = LogWriter::new(Arc::clone(&segment));
        let memtable = Arc::new(Memtable::new(segment, order.clone(), usize::MAX, Arc::default()));
        let mut by_age: Vec<&Expected> = entries.iter().collect();
        by_age.sort_by_key(|e| e.seq);
        for e in by_age {
            let r = appender.append_one(e.seq, 0, e.kind, &e.key, &e.value).unwrap();
            memtable.insert(r, &e.key, key_hash(&e.key), e.seq, e.value.len());
        }
        memtable
    }

    fn table(&self, entries: &[Expected], order: &KeyOrder) -> Arc<LoadedTable> {
        let number = self.number();
        let path = self.path().join(filename::table(number));
        let options = TableOptions { order: order.clone(), ..TableOptions::default() };
        let mut builder = TableBuilder::new(&self.env, &path, number, options).unwrap();
        for e in entries {
            builder.add(&e.key, Some(e.seq), e.kind, Stored::Inline(&e.value)).unwrap();
        }
        let meta = builder.finish().unwrap();
        let opened = Table::open(&*self.env, &path, number, meta.size, order.clone(), 0).unwrap();
        Arc::new(LoadedTable::new(
            Arc::new(opened),
            meta,
            vec![],
            path,
            Arc::new(ObsoleteFiles::default()),
        ))
    }

    /// A run of about `tables` tables.
    fn run(&self, entries: &[Expected], order: &KeyOrder, tables: usize) -> Option<Arc<LoadedRun>> {
        let mut parts: Vec<(u64, Arc<LoadedTable>)> = Vec::new();
        let mut rest = entries;
        while !rest.is_empty() {
            let mut end = (entries.len() / tables).clamp(1, rest.len());
            // Versions of one key never straddle two tables.
            while end < rest.len() && order.compare(&rest[end - 1].key, &rest[end].key).is_eq() {
                end += 1;
            }
            parts.push((1, self.table(&rest[..end], order)));
            rest = &rest[end..];
        }
        let version = KeyspaceVersion::default().edit(Some(order), &[], parts).unwrap();
        version.runs().first().cloned()
    }

    /// The entries dealt out to some memtables and runs: at random one by one, or, from an odd seed, some that follow
    /// each other to the same one.
    fn sources(&self, data: &Data, seed: u64) -> (Vec<Arc<Memtable>>, Vec<Arc<LoadedRun>>) {
        let mut rng = Rng::new(seed);
        let mut parts: Vec<Vec<Expected>> = vec![Vec::new(); 2 + rng.below(4)];
        let mut to = 0;
        for e in &data.entries {
            if seed.is_multiple_of(2) || rng.below(16) == 0 {
                to = rng.below(parts.len());
            }
            parts[to].push(e.clone());
        }
        let (mut memtables, mut runs) = (Vec::new(), Vec::new());
        for (at, part) in parts.iter().enumerate() {
            if at % 2 == 0 {
                memtables.push(self.memtable(part, &data.order));
            } else {
                runs.extend(self.run(part, &data.order, 1 + at));
            }
        }
        (memtables, runs)
    }
}

#[test]
fn a_memtable_conforms() {
    for data in data() {
        let memtable = TestDir::new().memtable(&data.entries, &data.order);
        conforms(data.name, &data.order, &data.entries, &data.probes(), &|| {
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
        conforms(data.name, &data.order, &data.entries, &data.probes(), &|| {
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
            let view = view(memtables, dir.run(in_run, &order, 1).into_iter().collect());
            let mut c = Adapter(Public::new(view, &order, Seq::MAX >> 8, false, None));
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

fn view(memtables: Vec<Arc<Memtable>>, runs: Vec<Arc<LoadedRun>>) -> Arc<SuperVersion> {
    let lock: Arc<dyn Lock> = Arc::new(());
    Arc::new(SuperVersion { memtables, version: KeyspaceVersion::of(runs), lock })
}

#[test]
fn the_public_cursor_conforms_at_every_age() {
    for (seed, data) in data().into_iter().flat_map(|d| [d.clone(), d]).enumerate() {
        let (memtables, runs) = TestDir::new().sources(&data, seed as u64 + 100);
        let view = view(memtables, runs);
        let newest = data.entries.len() as Seq;
        for seq in [0, 1, newest / 3, newest / 2, newest.saturating_sub(1), newest, Seq::MAX >> 8] {
            let what = format!("{} at {seq}", data.name);
            conforms(&what, &data.order, &data.visible(seq), &data.probes(), &|| {
                Box::new(Adapter(Public::new(Arc::clone(&view), &data.order, seq, false, None)))
            });
        }
    }
}

#[test]
fn the_public_cursor_over_one_run_conforms() {
    for data in data() {
        let runs = TestDir::new().run(&data.entries, &data.order, 3).into_iter().collect();
        let view = view(vec![], runs);
        let visible = data.visible(Seq::MAX);
        conforms(data.name, &data.order, &visible, &data.probes(), &|| {
            Box::new(Adapter(Public::new(
                Arc::clone(&view),
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
        for view in [view(memtables, runs), view(vec![], alone)] {
            let mut c = Public::new(view, &data.order, Seq::MAX >> 8, false, None);
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
