//! One test of what the traits promise, run over every engine that is installed.

use super::with_engine;
use crate::engine::{Access, Class, Config, Direction, Engine, Hint, Reader, Sync, Writer};
use anyhow::{Context, Result, ensure};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn config(sync: Sync, compression: bool) -> Config {
    Config {
        memory: 32 << 20,
        compression,
        sync,
        expected_bytes: 16 << 20,
        larger_than_memory: false,
        tuning: BTreeMap::new(),
    }
}

/// Bytes that differ from value to value and do not compress to nothing.
fn value(len: usize, seed: u64) -> Vec<u8> {
    (0..len as u64).map(|i| (crate::data::mix(seed ^ (i / 3)) >> 24) as u8).collect()
}

/// Keys whose order as bytes is no other order: signed, by length, or as text.
fn odd_keys() -> Vec<Vec<u8>> {
    let mut keys: Vec<Vec<u8>> =
        [&b"a"[..], b"ab", b"b", b"B", b"a\0", b"a\0\0b", b"\x7f", b"\x80"]
            .iter()
            .chain(
                [&b"\xff"[..], b"\xff\xff", b"\xfe\xff", b"\0", b"\0\0", b"%", b"'", b"\xc3\xa9"]
                    .iter(),
            )
            .map(|key| key.to_vec())
            .collect();
    keys.push(vec![b'k'; 300]);
    keys
}

/// The store holds what the model holds, seen by every kind of read.
fn same(reader: &mut impl Reader, model: &Model) -> Result<()> {
    for (key, value) in model {
        let got = reader.get(key, <[u8]>::to_vec)?;
        let name = key.escape_ascii();
        ensure!(got.as_ref() == Some(value), "get {name}: {:?}", got.map(|v| v.len()));
        let mut near = key.clone();
        near.push(0);
        if !model.contains_key(&near) {
            ensure!(reader.get(&near, |_| ())?.is_none(), "found {}", near.escape_ascii());
        }
        for count in [1, 3, 11] {
            for from in [key, &near] {
                let mut seen = Vec::new();
                let n = reader.seek(from, count, |k, v| seen.push((k.to_vec(), v.to_vec())))?;
                let expected: Vec<_> = model.range(from.clone()..).take(count as usize).collect();
                ensure!(n == expected.len() as u64 && n == seen.len() as u64, "seek {name}: {n}");
                let equal = seen.iter().zip(&expected).all(|(a, b)| a.0 == *b.0 && a.1 == *b.1);
                ensure!(equal, "seek {name}, {count} entries: others");
            }
        }
    }
    for direction in [Direction::Forward, Direction::Reverse] {
        let mut seen = Vec::new();
        let n = reader.scan(direction, |k, v| seen.push((k.to_vec(), v.to_vec())))?;
        if direction == Direction::Reverse {
            seen.reverse();
        }
        ensure!(n == model.len() as u64, "scan {direction:?}: {n} of {}", model.len());
        ensure!(seen.iter().map(|(k, v)| (k, v)).eq(model), "scan {direction:?}: others");
    }
    let past_the_end = reader.seek(&[0xff; 8], 5, |_, _| ())?;
    ensure!(past_the_end == 0, "seek past the end: {past_the_end}");
    Ok(())
}

fn put(writer: &mut impl Writer, model: &mut Model, key: &[u8], value: Vec<u8>) -> Result<()> {
    writer.put(key, &value)?;
    model.insert(key.to_vec(), value);
    Ok(())
}

/// Single writes, overwrites, deletes and batches.
fn write_all(writer: &mut impl Writer, model: &mut Model) -> Result<()> {
    for (i, key) in odd_keys().iter().enumerate() {
        put(writer, model, key, value([0, 1, 100, 100_000][i % 4], i as u64))?;
    }
    for i in 0..600u64 {
        let key = format!("key{:06}", crate::data::mix(i) % 1000);
        put(writer, model, key.as_bytes(), value(100, i))?;
    }
    // Longer, shorter, empty, and long from short.
    for (i, len) in [1000, 10, 0, 100_000, 1].into_iter().enumerate() {
        let key = model.keys().nth(i * 30).context("there are 600")?.clone();
        put(writer, model, &key, value(len, 7000 + i as u64))?;
    }
    for key in model.keys().step_by(7).cloned().collect::<Vec<_>>() {
        writer.delete(&key)?;
        model.remove(&key);
    }
    writer.delete(b"never there")?;
    writer.batch_commit().context("an empty batch")?;
    for round in 0..3u64 {
        for i in 0..1000u64 {
            let (key, len) = (format!("batch{:05}", i * (round + 1)), (i % 200) as usize);
            let value = value(len, round << 32 | i);
            writer.batch_put(key.as_bytes(), &value)?;
            model.insert(key.into_bytes(), value);
        }
        // One key twice in a batch: the last one counts.
        for len in [5, 9] {
            let value = value(len, round);
            writer.batch_put(b"twice", &value)?;
            model.insert(b"twice".to_vec(), value);
        }
        for i in 0..3u64 {
            let (key, value) = (format!("large{i}"), value(100_000, i + round));
            writer.batch_put(key.as_bytes(), &value)?;
            model.insert(key.into_bytes(), value);
        }
        writer.batch_commit()?;
    }
    Ok(())
}

/// A writer that is dropped with a batch begun leaves nothing of it and blocks nobody.
fn abandon_a_batch<E: Engine>(engine: &E) -> Result<()> {
    let mut writer = engine.writer(Hint::Any)?;
    writer.batch_put(b"abandoned", b"x")?;
    drop(writer);
    let found = engine.reader(Access::Quiet)?.get(b"abandoned", |_| ())?;
    ensure!(found.is_none(), "a batch that was never committed is there");
    Ok(())
}

/// Ascending keys into an empty store, with the hint that says so.
fn ascending<E: Engine>(dir: &Path, config: &Config) -> Result<()> {
    let engine = E::open(dir, config)?;
    let mut model = Model::new();
    let mut writer = engine.writer(Hint::Ascending)?;
    for i in 0..2000u64 {
        put(&mut writer, &mut model, format!("{i:08}").as_bytes(), value(50, i))?;
    }
    for i in 2000..4000u64 {
        let (key, value) = (format!("{i:08}"), value(50, i));
        writer.batch_put(key.as_bytes(), &value)?;
        model.insert(key.into_bytes(), value);
        if i % 500 == 499 {
            writer.batch_commit()?;
        }
    }
    drop(writer);
    same(&mut engine.reader(Access::Quiet)?, &model)?;
    engine.close()?;
    let engine = E::open(dir, config).context("reopen")?;
    same(&mut engine.reader(Access::Quiet)?, &model).context("reopened")?;
    engine.close()
}

/// A reader beside a writer comes to see what was written after it was made.
fn readers_move_on<E: Engine>(engine: &E) -> Result<()> {
    let mut reader = engine.reader(Access::BesideWriter)?;
    reader.get(b"news", |_| ())?;
    reader.seek(b"news", 1, |_, _| ())?;
    std::thread::scope(|scope| {
        let write = move || engine.writer(Hint::Any)?.put(b"news", b"1");
        scope.spawn(write).join().ok().context("the writer panicked")?
    })?;
    std::thread::sleep(Duration::from_millis(5));
    // Some engines count reads, others look at the clock.
    let mut seen = None;
    for _ in 0..1000 {
        seen = reader.get(b"news", <[u8]>::to_vec)?;
    }
    ensure!(seen.as_deref() == Some(b"1"), "gets stay with an old view: {seen:?}");
    drop(reader);
    engine.writer(Hint::Any)?.delete(b"news")
}

/// Threads that write and read at once.
fn threads<E: Engine>(engine: &E, model: &mut Model) -> Result<()> {
    std::thread::scope(|scope| -> Result<()> {
        let write = |thread: u64| -> Result<()> {
            let mut writer = engine.writer(Hint::Any)?;
            for i in 0..100u64 {
                let (key, value) = (format!("t{:05}", i * 4 + thread), value(40, i));
                writer.put(key.as_bytes(), &value)?;
            }
            Ok(())
        };
        let read = |model: &Model| -> Result<()> {
            let mut reader = engine.reader(Access::BesideWriter)?;
            for (key, value) in model {
                let got = reader.get(key, |v| v == value)?;
                ensure!(got == Some(true), "{} beside a writer", key.escape_ascii());
            }
            Ok(())
        };
        let model = &*model;
        let writers: Vec<_> = (0..4).map(|t| scope.spawn(move || write(t))).collect();
        let readers: Vec<_> = (0..2).map(|_| scope.spawn(move || read(model))).collect();
        for thread in writers.into_iter().chain(readers) {
            thread.join().ok().context("a thread panicked")??;
        }
        Ok(())
    })?;
    for i in 0..100u64 {
        for thread in 0..4 {
            model.insert(format!("t{:05}", i * 4 + thread).into_bytes(), value(40, i));
        }
    }
    Ok(())
}

fn buffered<E: Engine>(dir: &Path, compression: bool) -> Result<()> {
    let config = config(Sync::Buffered, compression);
    let mut model = Model::new();
    let engine = E::open(dir, &config)?;
    ensure!(engine.class() <= Class::K, "buffered, but class {:?}", engine.class());
    ensure!(!engine.settings().is_empty(), "no word about its settings");
    same(&mut engine.reader(Access::Quiet)?, &model).context("empty")?;
    write_all(&mut engine.writer(Hint::Any)?, &mut model).context("write")?;
    same(&mut engine.reader(Access::Quiet)?, &model).context("written")?;
    same(&mut engine.reader(Access::BesideWriter)?, &model).context("beside a writer")?;
    abandon_a_batch(&engine).context("abandon")?;
    readers_move_on(&engine).context("move on")?;
    threads(&engine, &mut model).context("threads")?;
    engine.settle().context("settle")?;
    same(&mut engine.reader(Access::Quiet)?, &model).context("settled")?;
    engine.close().context("close")?;

    let engine = E::open(dir, &config).context("reopen")?;
    same(&mut engine.reader(Access::Quiet)?, &model).context("reopened")?;
    engine.close().context("close again")
}

/// The settings for a store larger than memory and, if it has one, the bulk path, are right too.
fn variants<E: Engine>(dir: &Path) -> Result<()> {
    let mut config = config(Sync::Buffered, false);
    config.larger_than_memory = true;
    std::fs::create_dir_all(dir)?;
    config.tuning.insert("bulk".to_string(), "1".to_string());
    let engine = E::open(&dir.join("any order"), &config)?;
    let mut model = Model::new();
    write_all(&mut engine.writer(Hint::Any)?, &mut model)?;
    same(&mut engine.reader(Access::Quiet)?, &model)?;
    engine.close()?;
    ascending::<E>(&dir.join("ascending"), &config)
}

fn synced<E: Engine>(dir: &Path) -> Result<()> {
    let config = config(Sync::Synced, false);
    let mut model = Model::new();
    let engine = E::open(dir, &config)?;
    ensure!(engine.class() == Class::F, "synced, but class {:?}", engine.class());
    {
        let mut writer = engine.writer(Hint::Any)?;
        for (i, len) in [0, 1, 100, 100_000, 100].into_iter().enumerate() {
            put(&mut writer, &mut model, format!("s{i}").as_bytes(), value(len, i as u64))?;
        }
        for i in 0..10u64 {
            writer.batch_put(format!("b{i}").as_bytes(), &value(10, i))?;
            model.insert(format!("b{i}").into_bytes(), value(10, i));
        }
        writer.batch_commit()?;
        writer.delete(b"s1")?;
        model.remove(&b"s1"[..]);
    }
    same(&mut engine.reader(Access::Quiet)?, &model)?;
    engine.close()?;
    let engine = E::open(dir, &config).context("reopen")?;
    same(&mut engine.reader(Access::Quiet)?, &model).context("reopened")?;
    engine.close()
}

fn conforms<E: Engine>(name: &str) {
    match E::version() {
        Ok(version) => println!("{name} {version}"),
        Err(e) => return println!("{name} skipped: {e:#}"),
    }
    let root = tempfile::tempdir().expect("a temporary directory");
    let dir = |case| root.path().join(case);
    let all = [
        ("buffered", buffered::<E>(&dir("buffered"), false)),
        ("compressed", buffered::<E>(&dir("compressed"), true)),
        ("ascending", ascending::<E>(&dir("ascending"), &config(Sync::Buffered, false))),
        ("variants", variants::<E>(&dir("variants"))),
        ("synced", synced::<E>(&dir("synced"))),
    ];
    for (case, outcome) in all {
        outcome.unwrap_or_else(|e| panic!("{name}, {case}: {e:#}"));
    }
}

/// One engine, so that each is a test of its own; none may be forgotten.
fn engine(name: &str) {
    assert!(super::exists(name), "no engine is called {name}");
    with_engine!(name, E => conforms::<E>(name)).expect("every name has an engine");
}

macro_rules! engines {
    ($($test:ident: $name:literal,)*) => {
        const TESTED: &[&str] = &[$($name),*];
        $(#[test] fn $test() { engine($name) })*
    };
}

engines! {
    esker: "esker",
    lmdb: "lmdb",
    leveldb: "leveldb",
    hyperleveldb: "hyperleveldb",
    basho: "basho",
    rocksdb: "rocksdb",
    rocksdb_prefix: "rocksdb-prefix",
    sqlite: "sqlite",
    kyoto: "kyoto",
    bdb: "bdb",
    wiredtiger: "wiredtiger",
    wiredtiger_lsm: "wiredtiger-lsm",
    fake: "fake",
}

#[test]
fn every_engine_is_tested() {
    // Those of the other program are tested there.
    let here = super::NAMES.iter().filter(|name| !crate::external::has(name));
    let missing: Vec<_> = here.filter(|name| !TESTED.contains(name)).collect();
    assert!(missing.is_empty(), "add {missing:?} to the list above");
}
