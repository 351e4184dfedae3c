//! What the suite walks: entries of several shapes, and sources that hold them.

use std::path::Path;
use std::sync::Arc;

use super::super::loaded::{LoadedRun, LoadedTable};
use crate::env::{Env, OsEnv};
use crate::filename;
use crate::key::{Comparator, KeyOrder, Kind, Seq, Stored, key_hash};
use crate::memtable::Memtable;
use crate::table::{Table, TableBuilder, TableOptions};
use crate::util::Rng;
use crate::version::KeyspaceVersion;
use crate::wal::{LogWriter, Segment};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Expected {
    pub(super) key: Vec<u8>,
    pub(super) seq: Seq,
    pub(super) kind: Kind,
    pub(super) value: Vec<u8>,
}

pub(super) struct NoCase;

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
pub(super) struct Data {
    pub(super) name: &'static str,
    pub(super) order: KeyOrder,
    pub(super) entries: Vec<Expected>,
}

impl Data {
    /// Each write is (key, whether it is a put); sequences are the places in the list.
    pub(super) fn new(name: &'static str, order: KeyOrder, writes: Vec<(Vec<u8>, bool)>) -> Data {
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
    pub(super) fn probes(&self) -> Vec<Vec<u8>> {
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
    pub(super) fn visible(&self, seq: Seq) -> Vec<Expected> {
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

pub(super) fn data() -> Vec<Data> {
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

/// A directory for files, numbered on.
pub(super) struct TestDir {
    env: Arc<dyn Env>,
    dir: tempfile::TempDir,
    next: std::cell::Cell<u64>,
}

impl TestDir {
    pub(super) fn new() -> TestDir {
        let dir = tempfile::tempdir().unwrap();
        TestDir { env: Arc::new(OsEnv::new()), dir, next: std::cell::Cell::new(1) }
    }

    fn number(&self) -> u64 {
        self.next.replace(self.next.get() + 1)
    }

    pub(super) fn path(&self) -> &Path {
        self.dir.path()
    }

    pub(super) fn memtable(&self, entries: &[Expected], order: &KeyOrder) -> Arc<Memtable> {
        let segment =
            Segment::create(&self.env, self.path(), self.number(), 1 << 20, None).unwrap();
        let segment = Arc::new(segment);
        let mut log_writer = LogWriter::new(Arc::clone(&segment));
        let memtable = Arc::new(Memtable::new(segment, order.clone(), usize::MAX, Arc::default()));
        let mut by_age: Vec<&Expected> = entries.iter().collect();
        by_age.sort_by_key(|e| e.seq);
        for e in by_age {
            let r = log_writer.append_one(e.seq, 0, e.kind, &e.key, &e.value).unwrap();
            memtable.insert(r, &e.key, key_hash(&e.key), e.seq, e.value.len());
        }
        memtable
    }

    pub(super) fn table(&self, entries: &[Expected], order: &KeyOrder) -> Arc<LoadedTable> {
        let number = self.number();
        let path = self.path().join(filename::table(number));
        let options = TableOptions { order: order.clone(), ..TableOptions::default() };
        let mut builder = TableBuilder::new(&self.env, &path, number, options).unwrap();
        for e in entries {
            builder.add(&e.key, Some(e.seq), e.kind, Stored::Inline(&e.value)).unwrap();
        }
        let meta = builder.finish().unwrap();
        let opened = Table::open(&*self.env, &path, number, meta.size, order.clone(), 0).unwrap();
        Arc::new(LoadedTable::new(Arc::new(opened), meta, vec![], Arc::default()))
    }

    /// A run of about `tables` tables.
    pub(super) fn run(
        &self,
        entries: &[Expected],
        order: &KeyOrder,
        tables: usize,
    ) -> Option<Arc<LoadedRun>> {
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
    pub(super) fn sources(
        &self,
        data: &Data,
        seed: u64,
    ) -> (Vec<Arc<Memtable>>, Vec<Arc<LoadedRun>>) {
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

    /// The same where no run has two versions of a key.
    pub(super) fn unique_sources(
        &self,
        data: &Data,
        rng: &mut Rng,
    ) -> (Vec<Arc<Memtable>>, Vec<Arc<LoadedRun>>) {
        let (tables, alone) = ([1, 1, 2, 7], rng.below(2) == 0);
        let mut parts: Vec<Vec<Expected>> = vec![Vec::new(); 2 + rng.below(4)];
        let memtables = rng.below(parts.len());
        let mut to = 0;
        for e in &data.entries {
            if alone || rng.below(40) == 0 {
                to = rng.below(parts.len());
            }
            let has = |part: &[Expected]| part.last().is_some_and(|last| last.key == e.key);
            // A memtable takes all versions, and each other part one.
            let free = (to..parts.len()).chain(0..to).find(|p| *p < memtables || !has(&parts[*p]));
            match free {
                Some(part) => parts[part].push(e.clone()),
                None => parts.push(vec![e.clone()]),
            }
        }
        let (in_memtables, in_runs) = parts.split_at(memtables);
        let runs = in_runs
            .iter()
            .filter_map(|part| self.run(part, &data.order, tables[rng.below(tables.len())]));
        (in_memtables.iter().map(|part| self.memtable(part, &data.order)).collect(), runs.collect())
    }
}
