//! Sequences of operations, compared with a sorted map after every reopen and now and then.

use std::collections::BTreeMap;

use super::scratch::Scratch;
use crate::{Compression, Db, KeyOrder, KeyspaceOptions, Options, Snapshot, WriteBatch};

type ModelMap = BTreeMap<Vec<u8>, Vec<u8>>;

fn options() -> Options {
    Options::new()
        .memory(1 << 20)
        .segment_size(64 << 10)
        .blob_threshold(300)
        .compression(Compression::Lz4)
}

const NAMES: [&str; 2] = ["default", "backward"];

/// Takes bytes as numbers; zeros when there are no more.
struct FuzzInput<'a>(&'a [u8]);

impl FuzzInput<'_> {
    fn byte(&mut self) -> u8 {
        let Some((&b, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        b
    }

    /// Few keys, so that they meet; some with common beginnings, one empty.
    fn key(&mut self) -> Vec<u8> {
        let n = self.byte();
        match n % 8 {
            0 => vec![n / 8],
            1 => vec![b'p'; usize::from(n / 8)],
            2 => [b"prefix/".as_slice(), &[n / 16, 0xff]].concat(),
            _ => [b"key ".as_slice(), &[n / 8]].concat(),
        }
    }

    fn value(&mut self) -> Vec<u8> {
        let (n, what) = (self.byte(), self.byte());
        let len = match n % 8 {
            0 => 0,
            1..=4 => usize::from(n),
            5 => 290 + usize::from(n) / 8,
            6 => 5000,
            _ => 70_000,
        };
        vec![what; len]
    }
}

fn check(db: &Db, models: &[ModelMap; 2], from: &[u8]) {
    for (name, model) in NAMES.iter().zip(models) {
        let keyspace = db.keyspace(name).expect("it is there");
        let mut found: Vec<_> =
            keyspace.iter().copied_out().collect::<Result<_, _>>().expect("no error");
        let mut back: Vec<_> =
            keyspace.iter().copied_out().rev().collect::<Result<_, _>>().expect("no error");
        back.reverse();
        assert!(found == back, "{name}: both directions");
        if *name == "backward" {
            found.reverse();
        }
        assert!(found.into_iter().eq(model.clone()), "{name}: not what the map holds");
        let value = keyspace.get(from).expect("no error");
        assert!(value.as_deref() == model.get(from).map(|v| &v[..]), "{name}: get");
        let first = keyspace.range(from..).copied_out().next().transpose().expect("no error");
        let wanted = match *name {
            "backward" => model.range(..=from.to_vec()).next_back(),
            _ => model.range(from.to_vec()..).next(),
        };
        assert!(first.as_ref().map(|(k, v)| (k, v)) == wanted, "{name}: a range");
    }
}

fn open(scratch: &Scratch) -> Db {
    let db = options().open(&scratch.dir).expect("it opens");
    if db.keyspace(NAMES[1]).is_err() {
        let backward = KeyspaceOptions::new().comparator(KeyOrder::Reverse);
        db.create_keyspace(NAMES[1], backward).expect("it is made");
    }
    db
}

/// Runs the operations that the bytes name.
pub(super) fn operations(data: &[u8]) {
    let scratch = Scratch::new();
    let mut input = FuzzInput(data);
    let mut models = [ModelMap::new(), ModelMap::new()];
    let mut db = open(&scratch);
    let mut snapshots: Vec<(Snapshot, [ModelMap; 2])> = Vec::new();
    for _ in 0..400 {
        if input.0.is_empty() {
            break;
        }
        let what = input.byte();
        let space = usize::from(what >> 7);
        let keyspace = db.keyspace(NAMES[space]).expect("it is there");
        match what & 0x7F {
            0..=59 => {
                let (key, value) = (input.key(), input.value());
                keyspace.put(&key, &value).expect("a write");
                models[space].insert(key, value);
            }
            60..=84 => {
                let key = input.key();
                keyspace.delete(&key).expect("a write");
                models[space].remove(&key);
            }
            85..=94 => {
                let mut batch = WriteBatch::new();
                for _ in 0..input.byte() % 8 {
                    let (key, value) = (input.key(), input.value());
                    batch.put_in(&keyspace, &key, &value);
                    models[space].insert(key, value);
                    let key = input.key();
                    batch.delete(&key);
                    models[0].remove(&key);
                }
                db.write(batch).expect("a write");
            }
            95..=99 => db.flush().expect("a flush"),
            100..=103 => {
                let (a, b) = (input.key(), input.key());
                keyspace.compact_range(a..b).expect("a compaction");
            }
            104..=106 => {
                let mut load = ModelMap::new();
                for _ in 0..input.byte() % 16 {
                    load.insert(input.key(), input.value());
                }
                let entries: Vec<_> = match space {
                    0 => load.clone().into_iter().collect(),
                    _ => load.clone().into_iter().rev().collect(),
                };
                keyspace.bulk_load(entries).expect("a load");
                models[space].extend(load);
            }
            107..=112 => snapshots.push((db.snapshot(), models.clone())),
            113..=114 => drop(snapshots.pop()),
            115..=120 => {
                let key = input.key();
                check(&db, &models, &key);
                for (snapshot, old) in &snapshots {
                    let found: Vec<_> = db
                        .at(snapshot)
                        .iter()
                        .copied_out()
                        .collect::<Result<_, _>>()
                        .expect("no error");
                    assert!(found.into_iter().eq(old[0].clone()), "a snapshot");
                }
            }
            _ => {
                snapshots.clear();
                drop(keyspace);
                if what & 1 == 0 {
                    db.close().expect("a close");
                } else {
                    drop(db);
                }
                db = open(&scratch);
            }
        }
    }
    check(&db, &models, b"key ");
    drop(snapshots);
    db.close().expect("a close");
    let report = Db::verify_path(&scratch.dir).expect("it can be verified");
    assert_eq!(report.problems, []);
    let db = open(&scratch);
    check(&db, &models, b"prefix/");
}
