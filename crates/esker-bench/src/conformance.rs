//! What every adapter must do, checked against a sorted map. What an engine says it has no call
//! for is left out of the map, and told.

use crate::engine::{
    Access, Class, Config, Direction, Engine, Hint, Reader, Sync, Unsupported, Writer,
};
use crate::engines::built;
use anyhow::{Context, Result, ensure};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

type Entry = (Vec<u8>, Vec<u8>);

/// Lengths of values: none, one byte, usual ones, larger than a page of any engine.
const VALUE_LENGTHS: [usize; 6] = [0, 1, 100, 1000, 5000, 100_000];

/// Settings as a small benchmark would have them.
pub fn config(sync: Sync, compression: bool) -> Config {
    Config {
        memory: 16 << 20,
        compression,
        sync,
        expected_bytes: 64 << 20,
        entry_bytes: 128,
        larger_than_memory: false,
        shared: true,
        only_reads: false,
        tuning: BTreeMap::new(),
    }
}

/// Checks an engine in an empty directory; what it said it has no call for.
pub fn check<E: Engine>(dir: &Path, config: &Config) -> Result<BTreeSet<String>> {
    let mut check = Check { model: BTreeMap::new(), unsupported: BTreeSet::new() };
    let store = dir.join("any");
    let engine = E::open(&store, config).context("open")?;
    ensure!(!engine.settings().is_empty(), "settings must say what is in force");
    check.compare(&engine).context("an empty store")?;
    check.write_one_by_one(&engine)?;
    check.compare(&engine).context("after writes")?;
    check.write_batches(&engine)?;
    check.compare(&engine).context("after batches")?;
    check.abandon_a_batch(&engine).context("a batch that is abandoned")?;
    check.follow(&engine).context("a reader beside a writer")?;
    if config.shared {
        check.threads(&engine).context("threads")?;
    }
    engine.settle_fully().context("settle")?;
    check.compare(&engine).context("settled")?;
    if engine.set_memory(config.memory * 4).context("more memory")? {
        check.write_one_by_one(&engine).context("with more memory")?;
        engine.set_memory(config.memory).context("less memory")?;
        check.compare(&engine).context("with less memory again")?;
    }
    engine.close().context("close")?;
    E::put_in_order(&store, config).context("put in order")?;

    let engine = E::open(&store, config).context("open again")?;
    check.compare(&engine).context("opened again")?;
    check.write_one_by_one(&engine)?;
    check.compare(&engine).context("after writes to a store opened again")?;
    engine.close()?;

    check.model.clear();
    let engine = E::open(&dir.join("ascending"), config).context("open")?;
    check.ascending(&engine).context("ascending keys")?;
    check.compare(&engine).context("after ascending keys")?;
    engine.close()?;
    Ok(check.unsupported)
}

/// [`check`] of every variant: both durabilities, one thread alone, compression, the settings for a store larger than
/// memory and, where there are any, the bulk path and the library's defaults. Whether the class that is told is one of the
/// durability is checked too. Outside a campaign (`ESKER_CAMPAIGN=1`) only writes that are buffered: with all of them the slowest
/// engine takes forty seconds.
pub fn check_all<E: Engine>(dir: &Path) -> Result<BTreeSet<String>> {
    let usual = config(Sync::Buffered, false);
    let mut variants = vec![("buffered", usual.clone())];
    if std::env::var_os("ESKER_CAMPAIGN").is_some() {
        let bulk = BTreeMap::from([("bulk".to_string(), "1".to_string())]);
        let defaults = built::tuning_of(built::DEFAULT).into_iter().collect();
        variants.extend([
            ("synced", config(Sync::Synced, false)),
            ("bulk", Config { tuning: bulk, ..usual.clone() }),
            ("alone", Config { shared: false, ..usual.clone() }),
            ("compressed", config(Sync::Buffered, true)),
            ("larger", Config { larger_than_memory: true, ..usual.clone() }),
            ("defaults", Config { tuning: defaults, ..usual }),
        ]);
    }
    let mut unsupported = BTreeSet::new();
    for (name, config) in variants {
        let dir = dir.join(name);
        std::fs::create_dir_all(&dir)?;
        unsupported.extend(check::<E>(&dir, &config).context(name)?);
        let class = E::open(&dir.join("any"), &config)?.class();
        let fits = (class == Class::F) == (config.sync == Sync::Synced);
        ensure!(fits, "{name}: writes {:?}, but class {class:?}", config.sync);
    }
    Ok(unsupported)
}

struct Check {
    model: BTreeMap<Vec<u8>, Vec<u8>>,
    unsupported: BTreeSet<String>,
}

/// Bytes that differ with `seed`, half of them compressible.
fn bytes(seed: u64, len: usize) -> Vec<u8> {
    let byte = |i: usize| (seed.wrapping_mul(0x9E37_79B9).wrapping_add(i as u64 / 2) >> 3) as u8;
    (0..len).map(byte).collect()
}

fn key(number: u64) -> Vec<u8> {
    format!("{number:016}").into_bytes()
}

/// Keys whose order is that of their bytes and of nothing else: prefixes, zeros, high bytes, letters.
fn odd_keys() -> Vec<Vec<u8>> {
    let mut keys = vec![b"k".to_vec(), b"k\0".to_vec(), b"k\0\0".to_vec(), b"kk".to_vec()];
    keys.extend([b"B".to_vec(), b"b".to_vec(), b"%".to_vec(), b"'".to_vec(), "é".into()]);
    keys.extend([vec![0], vec![0, 1], vec![0x7F], vec![0x80], vec![0xFF], vec![0xFF; 8]]);
    keys.extend([vec![b'x'; 100], [vec![b'x'; 99], vec![b'y']].concat()]);
    keys
}

/// Looks for a key that is there, or for the first behind it, in one of three ways.
fn look(reader: &mut impl Reader, key: &[u8], way: u64) -> Result<Option<Vec<u8>>> {
    let mut seen = None;
    match way {
        0 => seen = reader.get(key, <[u8]>::to_vec)?,
        1 => {
            reader.seek(key, 1, |_, value| seen = Some(value.to_vec()))?;
        }
        _ => {
            let see = |at: &[u8], value: &[u8]| {
                if at == key {
                    seen = Some(value.to_vec());
                }
            };
            reader.scan(Direction::Forward, see)?;
        }
    }
    Ok(seen)
}

impl Check {
    /// Whether it was done; what the engine has no call for is noted.
    fn supported(&mut self, outcome: Result<()>) -> Result<bool> {
        match outcome {
            Ok(()) => Ok(true),
            Err(e) if Unsupported::is_cause_of(&e) => {
                self.unsupported.insert(format!("{e:#}"));
                Ok(false)
            }
            Err(e) => Err(e),
        }
    }

    fn put(&mut self, writer: &mut impl Writer, key: &[u8], value: &[u8]) -> Result<()> {
        let outcome = writer.put(key, value);
        if self.supported(outcome).with_context(|| put_context(key, value))? {
            self.model.insert(key.to_vec(), value.to_vec());
        }
        Ok(())
    }

    fn write_one_by_one(&mut self, engine: &impl Engine) -> Result<()> {
        let mut writer = engine.writer(Hint::Any)?;
        for (i, key) in odd_keys().iter().enumerate() {
            self.put(&mut writer, key, &bytes(i as u64, 10))?;
        }
        for (i, len) in VALUE_LENGTHS.into_iter().cycle().take(60).enumerate() {
            // Scattered, and some of them twice: overwritten with values of another length.
            let number = i as u64 * 7 % 50 * 1000;
            self.put(&mut writer, &key(number), &bytes(number + 1, len))?;
        }
        for number in (0..50).step_by(3) {
            // Some are there, some are not.
            let key = key(number * 500);
            writer.delete(&key).context("delete")?;
            self.model.remove(&key);
        }
        Ok(())
    }

    fn write_batches(&mut self, engine: &impl Engine) -> Result<()> {
        let mut writer = engine.writer(Hint::Any)?;
        writer.batch_commit().context("an empty batch")?;
        for round in 0..3u64 {
            for i in 0..500 {
                // The second half of a round overwrites what the first half wrote.
                let key = key(i * 37 % 250 * 100 + round);
                let value = bytes(i + round * 1000, 80);
                writer.batch_put(&key, &value).context("batch_put")?;
                self.model.insert(key, value);
            }
            writer.batch_commit().context("batch_commit")?;
        }
        Ok(())
    }

    /// A writer that is dropped with a batch begun leaves nothing of it and blocks nobody.
    fn abandon_a_batch(&mut self, engine: &impl Engine) -> Result<()> {
        let mut writer = engine.writer(Hint::Any)?;
        writer.batch_put(b"abandoned", b"some value")?;
        drop(writer);
        if engine.reader(Access::Quiet)?.get(b"abandoned", |_| ())?.is_some() {
            let why = "the engine has no batches that are written all or nothing";
            self.unsupported.insert(Unsupported::new(why).to_string());
            engine.writer(Hint::Any)?.delete(b"abandoned")?;
        }
        Ok(())
    }

    /// A reader that lives beside a writer sees what is written within some reads, and seeks.
    fn follow(&mut self, engine: &impl Engine) -> Result<()> {
        let mut reader = engine.reader(Access::BesideWriter)?;
        let mut writer = engine.writer(Hint::Any)?;
        for round in 0..8u64 {
            let (key, value) = (key(123), bytes(round + 99, 60));
            self.put(&mut writer, &key, &value)?;
            let mut seen = None;
            for _ in 0..2000 {
                seen = look(&mut reader, &key, round / 4)?;
                if seen.as_ref() == Some(&value) {
                    break;
                }
                // What is held for a time, not for a count of reads, is given up by then.
                std::thread::sleep(std::time::Duration::from_micros(10));
            }
            ensure!(seen.as_ref() == Some(&value), "it never saw what was written");
        }
        for access in [Access::BesideWriter, Access::Settling, Access::Quiet] {
            let mut reader = engine.reader(access)?;
            for round in 0..8u64 {
                let (key, value) = (key(124), bytes(round + 199, 60));
                // What it has begun before goes on or is given up; in either case nobody waits for it.
                reader.seek(&key, 1, |_, _| ())?;
                self.put(&mut writer, &key, &value)?;
                reader.renew()?;
                let seen = look(&mut reader, &key, round % 2)?;
                ensure!(seen == Some(value), "{access:?}: renewed, it saw what was there before");
            }
            for round in 0..6u64 {
                let (key, value) = (key(124), bytes(round + 299, 60));
                reader.seek(&key, 1, |_, _| ())?;
                reader.yield_view()?;
                self.put(&mut writer, &key, &value)?;
                reader.yield_view()?;
                reader.renew()?;
                reader.yield_view()?;
                let seen = look(&mut reader, &key, round % 3)?;
                ensure!(seen == Some(value), "{access:?}: after a view was yielded");
            }
            // It may go while it has none.
            reader.yield_view()?;
        }
        Ok(())
    }

    /// Threads that write and read at once.
    fn threads(&mut self, engine: &impl Engine) -> Result<()> {
        let of_thread = |thread: u64, i: u64| (key(2_000_000 + i * 4 + thread), bytes(i, 40));
        let model = &self.model;
        std::thread::scope(|scope| -> Result<()> {
            let write = |thread: u64| -> Result<()> {
                let mut writer = engine.writer(Hint::Any)?;
                for i in 0..100u64 {
                    let (key, value) = of_thread(thread, i);
                    writer.put(&key, &value)?;
                }
                Ok(())
            };
            let read = || -> Result<()> {
                let mut reader = engine.reader(Access::BesideWriter)?;
                for (key, value) in model {
                    let same = reader.get(key, |found| found == value.as_slice())?;
                    ensure!(same == Some(true), "get {}: {}", key.escape_ascii(), told(same));
                }
                Ok(())
            };
            let writers: Vec<_> = (0..4).map(|t| scope.spawn(move || write(t))).collect();
            let readers: Vec<_> = (0..2).map(|_| scope.spawn(read)).collect();
            for thread in writers.into_iter().chain(readers) {
                thread.join().ok().context("a thread panicked")??;
            }
            Ok(())
        })?;
        self.model.extend((0..400).map(|n| of_thread(n % 4, n / 4)));
        self.compare(engine)
    }

    fn ascending(&mut self, engine: &impl Engine) -> Result<()> {
        let mut writer = engine.writer(Hint::Ascending)?;
        for number in 0..500 {
            self.put(&mut writer, &key(number), &bytes(number, 100))?;
        }
        for number in 500..3000 {
            let value = bytes(number, 100);
            writer.batch_put(&key(number), &value).context("batch_put")?;
            self.model.insert(key(number), value);
            if number % 100 == 99 {
                writer.batch_commit().context("batch_commit")?;
            }
        }
        writer.batch_commit()
    }

    /// Compares everything: point reads, seeks, scans both ways.
    fn compare(&mut self, engine: &impl Engine) -> Result<()> {
        let mut reader = engine.reader(Access::Quiet)?;
        for (key, value) in &self.model {
            let same = reader.get(key, |found| found == value.as_slice())?;
            ensure!(same == Some(true), "get {}: {}", key.escape_ascii(), told(same));
        }
        for absent in [&b"absent"[..], &key(1_000_001), b"0"] {
            ensure!(reader.get(absent, |_| ())?.is_none(), "get found a key that is not there");
        }
        self.compare_seeks(&mut reader)?;
        for direction in [Direction::Forward, Direction::Reverse] {
            let mut seen: Vec<Entry> = Vec::new();
            let count = reader.scan(direction, |k, v| seen.push((k.to_vec(), v.to_vec())));
            let (count, outcome) = (count.as_ref().ok().copied(), count.map(|_| ()));
            if !self.supported(outcome).with_context(|| format!("scan {direction:?}"))? {
                continue;
            }
            ensure!(count == Some(seen.len() as u64), "scan {direction:?} miscounts");
            if direction == Direction::Reverse {
                seen.reverse();
            }
            self.same(&seen, b"", u64::MAX).with_context(|| format!("scan {direction:?}"))?;
        }
        Ok(())
    }

    fn compare_seeks(&self, reader: &mut impl Reader) -> Result<()> {
        let mut starts = vec![vec![0], key(0), key(24_999), vec![0xFF; 9], b"l".to_vec()];
        starts.extend(self.model.keys().step_by(7).cloned());
        for start in starts {
            for count in [1, 11, 100_000] {
                let mut seen: Vec<Entry> = Vec::new();
                let n = reader.seek(&start, count, |k, v| seen.push((k.to_vec(), v.to_vec())))?;
                ensure!(n == seen.len() as u64, "seek miscounts");
                self.same(&seen, &start, count)
                    .with_context(|| format!("seek {} {count}", start.escape_ascii()))?;
            }
        }
        Ok(())
    }

    /// Whether the model has just these entries, up to `count` from `start`.
    fn same(&self, seen: &[Entry], start: &[u8], count: u64) -> Result<()> {
        let want = self.model.range(start.to_vec()..).take(count.min(1 << 40) as usize);
        let mut seen = seen.iter();
        for (key, value) in want {
            let Some((k, v)) = seen.next() else {
                anyhow::bail!("it ends before {}", key.escape_ascii());
            };
            ensure!(k == key, "{} where {} belongs", k.escape_ascii(), key.escape_ascii());
            ensure!(v == value, "{} has another value", key.escape_ascii());
        }
        ensure!(seen.next().is_none(), "it does not end");
        Ok(())
    }
}

fn told(same: Option<bool>) -> &'static str {
    if same.is_some() { "another value" } else { "nothing" }
}

fn put_context(key: &[u8], value: &[u8]) -> String {
    format!("put {} with {} bytes", key.escape_ascii(), value.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engines::{self, fake::Fake, with_engine};
    use crate::external;
    use std::sync::{PoisonError, RwLock};

    /// Whose libraries are taken is a matter of the whole process: tests of the distribution's are alone.
    static LIBRARIES: RwLock<()> = RwLock::new(());

    /// One engine, in a test of its own.
    fn conforms(name: &str) {
        let _beside_others = LIBRARIES.read().unwrap_or_else(PoisonError::into_inner);
        conforms_now(name);
    }

    fn conforms_now(name: &str) {
        if let Err(e) = engines::version(name) {
            return println!("skipped {name}: {e:#}");
        }
        let dir = tempfile::tempdir().unwrap();
        let outcome = with_engine!(name, E => check_all::<E>(dir.path()));
        let unsupported = outcome.expect("every name has an engine");
        let unsupported = unsupported.unwrap_or_else(|e| panic!("{name}: {e:#}"));
        assert_eq!(unsupported, BTreeSet::new(), "{name}");
    }

    macro_rules! engines {
        ($($test:ident: $name:literal,)*) => {
            const TESTED: &[&str] = &[$($name),*];
            $(#[test] fn $test() { conforms($name) })*
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
        bdb: "bdb",
        kyoto: "kyoto",
        wiredtiger: "wiredtiger",
        wiredtiger_lsm: "wiredtiger-lsm",
        fake: "fake",
    }

    #[test]
    fn the_distributions_libraries_conform_too() {
        let _alone = LIBRARIES.write().unwrap_or_else(PoisonError::into_inner);
        for name in engines::built::system_names() {
            if let Ok(version) = engines::version(&name) {
                assert!(version.ends_with(" system"), "{name} is {version}");
            }
            conforms_now(&name);
        }
        engines::built::choose("lmdb");
    }

    #[test]
    fn every_engine_is_tested() {
        // Those of the other program are tested there.
        let here = engines::NAMES.iter().filter(|name| !external::has(name));
        let missing: Vec<_> = here.filter(|name| !TESTED.contains(name)).collect();
        assert!(missing.is_empty(), "add {missing:?} to the list above");
    }

    #[test]
    fn an_engine_that_loses_or_changes_data_does_not_conform() {
        for fault in ["lose_every", "corrupt_every"] {
            let dir = tempfile::tempdir().unwrap();
            let mut config = config(Sync::Buffered, false);
            config.tuning.insert(fault.to_string(), "40".to_string());
            let error = check::<Fake>(dir.path(), &config).unwrap_err();
            assert!(format!("{error:#}").contains("after writes: get "), "{error:#}");
        }
    }
}
