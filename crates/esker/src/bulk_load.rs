//! Bulk loads: sorted entries straight into tables, past the log.
//!
//! The tables become one run above everything there is, under one new sequence, all at once. The first
//! entries are held back until a dictionary is chosen by them. Later ones are asked at each quarter of a
//! table whether another has become clearly better; then a new table begins.

use std::sync::Arc;

use crate::comparator::{self, refuse_from_comparator};
use crate::error::{Error, Result};
use crate::filename;
use crate::key::{Kind, Stored};
use crate::options::Compression;
use crate::read::LoadedTable;
use crate::store::apply::KeyspaceEdit;
use crate::store::{DirLock, KeyspaceState, Store};
use crate::table::{Dictionary, SAMPLE, TableBuilder, TableOptions};
use crate::version::TableMeta;
use crate::write::{check_key, check_value};

impl Store {
    /// See [`Keyspace::try_bulk_load`](crate::Keyspace::try_bulk_load).
    pub(crate) fn bulk_load<K: AsRef<[u8]>, V: AsRef<[u8]>, E: From<Error>>(
        &self,
        ks: &KeyspaceState,
        entries: impl IntoIterator<Item = Result<(K, V), E>>,
    ) -> Result<u64, E> {
        refuse_from_comparator()?;
        self.check_writable()?;
        let held_dir = self.hold_dir()?;
        let full = self.table_sizes().full;
        let mut load = BulkLoad {
            store: self,
            ks,
            held_dir,
            builder: None,
            numbers: Vec::new(),
            named: false,
            done: Vec::new(),
            full,
            held: FirstEntries {
                entries: Vec::new(),
                bytes: 0,
                open: ks.compression != Compression::None,
            },
            samples: Samples::default(),
            look_at: full / 4,
            dictionary: None,
        };
        let mut refused = None;
        let loaded = comparator::catch(|| {
            let Some(count) = load.read_all(entries, &mut refused)? else { return Ok(0) };
            load.apply_edit()?;
            load.numbers.clear();
            Ok(count)
        });
        match refused {
            Some(e) => Err(e),
            None => Ok(loaded?),
        }
    }
}

/// A bulk load under way. What it made is removed with it, also when the user's iterator panics. No lock
/// is held while that runs: it may use the store.
struct BulkLoad<'a> {
    store: &'a Store,
    ks: &'a KeyspaceState,
    /// The tables being written are nobody else's, also when the store is closed meanwhile.
    held_dir: DirLock,
    builder: Option<TableBuilder>,
    /// The tables that it made and that no version names.
    numbers: Vec<u64>,
    /// Whether an edit with them was written: where writes stopped then, the manifest may name them.
    named: bool,
    done: Vec<TableMeta>,
    /// Size from which another table is begun.
    full: u64,
    held: FirstEntries,
    samples: Samples,
    /// Size of the present table at which the samples are asked next.
    look_at: u64,
    /// Of the present table and of the next.
    dictionary: Option<Arc<Dictionary>>,
}

impl Drop for BulkLoad<'_> {
    fn drop(&mut self) {
        drop(self.builder.take());
        if !self.named || self.store.halt_cause().is_none() {
            self.store.remove_tables(Ok(DirLock::clone(&self.held_dir)), &self.numbers);
        }
    }
}

/// The first entries of a load.
struct FirstEntries {
    entries: Vec<(Vec<u8>, Vec<u8>)>,
    bytes: usize,
    /// Whether there is room for another.
    open: bool,
}

impl FirstEntries {
    /// Most entries, and most bytes of keys and values.
    const ENTRIES: usize = 1024;
    const BYTES: usize = 1 << 20;

    /// False when it does not fit: from then on nothing does.
    fn push(&mut self, key: &[u8], value: &[u8]) -> bool {
        self.bytes = self.bytes.saturating_add(key.len() + value.len());
        self.open &= self.entries.len() < Self::ENTRIES && self.bytes <= Self::BYTES;
        if self.open {
            self.entries.push((key.to_vec(), value.to_vec()));
        }
        self.open
    }
}

/// Values picked evenly out of all that come.
#[derive(Default)]
struct Samples {
    values: Vec<Vec<u8>>,
    seen: usize,
    /// log2 of how many come for each that is picked.
    stride: u32,
}

impl Samples {
    const MOST: usize = 1024;

    fn note(&mut self, value: &[u8]) {
        if self.seen.trailing_zeros() >= self.stride && value.len() <= SAMPLE {
            if self.values.len() == Self::MOST {
                let mut at = 0;
                self.values.retain(|_| {
                    at += 1;
                    at % 2 == 1
                });
                self.stride += 1;
            }
            self.values.push(value.to_vec());
        }
        self.seen += 1;
    }

    /// Those of the first half, each before one of the second: a dictionary made of the former is
    /// then tried on the latter, as it will be on what comes.
    fn by_halves(&self) -> Vec<&[u8]> {
        let (first, second) = self.values.split_at(self.values.len() / 2);
        first.iter().zip(second).flat_map(|(a, b)| [&a[..], &b[..]]).collect()
    }
}

impl BulkLoad<'_> {
    /// Returns how many there were; `None` when one was the user's error, which is then in `refused`.
    fn read_all<K: AsRef<[u8]>, V: AsRef<[u8]>, E>(
        &mut self,
        entries: impl IntoIterator<Item = Result<(K, V), E>>,
        refused: &mut Option<E>,
    ) -> Result<Option<u64>> {
        let mut last: Option<Vec<u8>> = None;
        let mut position = 0;
        for entry in entries {
            // The file of the table under way is the parent's as well, at the same place.
            self.store.check_process()?;
            let (key, value) = match entry {
                Ok(entry) => entry,
                Err(e) => {
                    *refused = Some(e);
                    return Ok(None);
                }
            };
            let (key, value) = (key.as_ref(), value.as_ref());
            check_key(key)?;
            check_value(value)?;
            if last.as_ref().is_some_and(|l| self.ks.order.compare(l, key).is_ge()) {
                return Err(Error::NotSorted { position });
            }
            if !self.held.push(key, value) {
                self.release()?;
                self.add(key, value)?;
            }
            let last = last.get_or_insert_default();
            last.clear();
            last.extend_from_slice(key);
            position += 1;
        }
        self.release()?;
        self.roll(0)?;
        Ok(Some(position))
    }

    /// Chooses a dictionary by what was held back, and adds that.
    fn release(&mut self) -> Result<()> {
        self.held.open = false;
        let held = std::mem::take(&mut self.held.entries);
        if held.is_empty() {
            return Ok(());
        }
        let samples: Vec<&[u8]> = held.iter().map(|(_, value)| &value[..]).collect();
        self.dictionary = Dictionary::choose(self.ks.compression, None, &samples);
        held.iter().try_for_each(|(key, value)| self.add(key, value))
    }

    fn add(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        if self.ks.compression != Compression::None {
            self.samples.note(value);
            self.look_again()?;
        }
        self.roll(self.full)?;
        // Values stay in the tables whatever their size: there is no log segment for them.
        self.builder()?.add(key, None, Kind::Put, Stored::Inline(value))
    }

    /// Asks the samples whether the dictionary still fits, when it is time to.
    fn look_again(&mut self) -> Result<()> {
        if self.builder.as_ref().is_none_or(|b| b.size_estimate() < self.look_at) {
            return Ok(());
        }
        self.look_at += self.full / 4;
        let samples = std::mem::take(&mut self.samples);
        let known = self.dictionary.as_ref();
        let chosen = Dictionary::choose(self.ks.compression, known, &samples.by_halves());
        let id = |d: &Option<Arc<Dictionary>>| d.as_ref().map(|d| d.id());
        // One that does not help does no harm: it may help what comes.
        if chosen.is_some() && id(&chosen) != id(&self.dictionary) {
            self.roll(0)?;
            self.dictionary = chosen;
        }
        Ok(())
    }

    fn builder(&mut self) -> Result<&mut TableBuilder> {
        if self.builder.is_none() {
            let number = self.store.new_file_number()?;
            let path = self.store.dir.join(filename::table(number));
            let options = TableOptions {
                order: self.ks.order.clone(),
                keyspace: self.ks.id,
                block_size: self.store.options.block_size,
                compression: self.ks.compression,
                dictionary: self.dictionary.clone(),
            };
            self.builder = Some(TableBuilder::new(&self.store.env, &path, number, options)?);
            // Only now: a file that was there before is not this load's to remove.
            self.numbers.push(number);
        }
        Ok(self.builder.as_mut().expect("just made"))
    }

    fn roll(&mut self, target: u64) -> Result<()> {
        if self.builder.as_ref().is_some_and(|b| b.size_estimate() >= target)
            && let Some(builder) = self.builder.take()
        {
            self.done.push(builder.finish()?);
            self.store.check_room_for_load(&self.done)?;
            let loaded: u64 = self.done.iter().map(|t| t.size).sum();
            self.full = self.store.options.table_sizes(self.store.table_bytes() + loaded).full;
            self.look_at = self.full / 4;
        }
        Ok(())
    }

    /// Puts the tables above everything there is, under one new sequence.
    fn apply_edit(&mut self) -> Result<()> {
        if self.done.is_empty() {
            return Ok(());
        }
        let store = self.store;
        let _job = store.jobs.lock();
        store.make_room_for_a_run(self.ks)?;
        let mut w = store.writer.lock();
        store.check_writable()?;
        store.check_names(&self.numbers)?;
        // What is in memtables is older than the load and must not lie above it.
        if self.ks.super_version.load().memtables.iter().any(|m| !m.is_empty()) {
            store.rotate(&mut w)?;
            // Writers wait for it, behind the lock.
            let _awaited = store.signal.await_flush();
            store.flush_upto(self.ks, w.active_number())?;
        }
        // What came into the log since the last table needs room too.
        store.check_room_for_load(&self.done)?;
        let seq = w.last_seq + 1;
        let run = store.next_run(self.ks);
        let mut added: Vec<(u64, Arc<LoadedTable>)> = Vec::new();
        for meta in self.done.drain(..) {
            added.push((run, Arc::new(store.load_table(self.ks, meta.based_on(seq))?)));
        }
        // Its sequence lies between two frames of the log: the seal of one segment accounts for it,
        // and the log is durable before the load is, as the load comes after it.
        w.last_seq = seq;
        // Should there be no room for another segment, the log goes on in this one without a gap.
        store.rotate(&mut w).inspect_err(|_| w.last_seq = seq - 1)?;
        store.sync.sync_all().inspect_err(|_| store.halt_if_unsynced())?;
        // No measurement begins before readers see the load: that takes the lock held here.
        self.ks.gaps.forget();
        self.named = true;
        store.apply_edit(self.ks, KeyspaceEdit { added, ..KeyspaceEdit::default() })?;
        store.visible.0.set(seq);
        // Nothing else but that edit knows of the load: were it cut off, that would not show. Where `CURRENT` cannot be
        // written, the one there is as true; the load stands, and its tables must not go with an error.
        drop(store.version_set.lock().tell_manifest_length());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use crate::env::Env;
    use crate::env::sim::SimEnv;
    use crate::{Compression, Db, Error, KeyspaceOptions, Options, filename};

    /// Writes stop while a load reads: no manifest can name its tables, and they were kept as if one did.
    #[test]
    fn a_load_that_a_halt_interrupts_leaves_no_tables() {
        let env = Arc::new(SimEnv::new(1, true));
        let options = Options::new().memory(16 << 20).compression(Compression::None);
        let open = Db::open_in(Arc::<SimEnv>::clone(&env), Path::new("/db"), options);
        let db = open.unwrap();
        let rows = (0..10_000u32).map(|n| {
            if n == 9_999 {
                db.store().halt(Error::io(
                    "sync",
                    Path::new("/db"),
                    std::io::ErrorKind::Other.into(),
                ));
            }
            (n.to_be_bytes(), [n as u8; 2_000])
        });
        let tables = || {
            let names = env.list(Path::new("/db")).unwrap();
            names.iter().filter(|n| filename::table_number(n).is_some()).count()
        };
        let mut most = 0;
        let e = db.bulk_load(rows.inspect(|_| most = most.max(tables()))).unwrap_err();
        assert!(matches!(e, Error::Halted { .. }), "{e}");
        assert!(most > 1 && tables() == 0, "{most}, {} left", tables());
    }

    /// Each left the segment that it had sealed, of tens of megabytes, in the log: only flushes gave any up, and a worker
    /// with nothing else to do.
    #[test]
    fn loads_one_after_the_other_left_a_log_segment_each() {
        let env = Arc::new(SimEnv::new(1, true));
        let db = Db::open_in(env, Path::new("/db"), Options::new()).unwrap();
        db.put("first", "").unwrap();
        for load in 0..20u8 {
            db.bulk_load((0..100u8).map(|n| ([n, load], [load]))).unwrap();
        }
        let segments = db.store().segments.totals().log_segments;
        assert!(segments <= 2, "{segments} segments");
        for load in 0..20u8 {
            assert_eq!(db.get([99, load]).unwrap().as_deref(), Some(&[load][..]));
        }
    }

    /// The writer went on to hold the memtable that it had put into last.
    #[test]
    fn a_dropped_keyspace_leaves_no_memtable() {
        let env = Arc::new(SimEnv::new(1, true));
        let db = Db::open_in(env, Path::new("/db"), Options::new()).unwrap();
        let other = db.create_keyspace("other", KeyspaceOptions::new()).unwrap();
        other.put("key", "value").unwrap();
        let memtable = Arc::downgrade(&other.state.super_version.load().memtables[0]);
        drop(other);
        db.drop_keyspace("other").unwrap();
        assert!(memtable.upgrade().is_none());
    }
}
