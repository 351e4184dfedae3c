//! What the user asks for by name: bulk loads, compaction, sizes, checkpoints, resuming.

use std::ops::{Bound, RangeBounds};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::env::{OpenMode, create_dir_durably};
use crate::error::{Error, Result};
use crate::key::{Kind, Stored};
use crate::merge::clusters;
use crate::options::Compression;
use crate::read::LoadedTable;
use crate::store::install::Outcome;
use crate::store::{KeyspaceState, Store};
use crate::table::{self, Dictionary, SAMPLE, TableBuilder, TableOptions, TableSummary};
use crate::version::{Manifest, State, TableMeta};
use crate::worker::describe;
use crate::write::{check_key, check_value};

impl Store {
    /// See [`Keyspace::bulk_load`](crate::Keyspace::bulk_load).
    pub(crate) fn bulk_load<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        ks: &KeyspaceState,
        entries: impl IntoIterator<Item = (K, V)>,
    ) -> Result<u64> {
        self.check_writable()?;
        let mut load = Load {
            store: self,
            ks,
            builder: None,
            numbers: Vec::new(),
            done: Vec::new(),
            held: Held { entries: Vec::new(), bytes: 0, open: ks.compression != Compression::None },
            samples: Samples::default(),
            look_at: self.options.table_bytes() / 4,
            dictionary: None,
        };
        let result = load.read_all(entries).and_then(|n| {
            load.install()?;
            Ok(n)
        });
        if result.is_err() {
            if let Some(builder) = load.builder.take() {
                drop(builder.abandon());
            }
            self.remove_tables(&load.numbers);
        }
        result
    }

    /// See [`Keyspace::compact_range`](crate::Keyspace::compact_range).
    pub(crate) fn compact<K: AsRef<[u8]>>(
        &self,
        ks: &KeyspaceState,
        range: &impl RangeBounds<K>,
    ) -> Result<()> {
        self.seal_active()?;
        let low: Bound<&[u8]> = range.start_bound().map(|k| k.as_ref());
        let high: Bound<&[u8]> = range.end_bound().map(|k| k.as_ref());
        let _job = self.jobs.lock();
        let view = ks.view.load_full();
        let memtables = self.sealed(&view);
        let inputs = describe(&memtables);
        let runs = view.version.runs();
        if memtables.is_empty() && runs.is_empty() {
            return Ok(());
        }
        let chosen: std::collections::HashSet<u64> = runs
            .iter()
            .flat_map(|r| &r.tables()[r.overlapping(&ks.order, low, high)])
            .map(|t| t.meta.number)
            .collect();
        let all = 0..runs.len();
        let rewrite = |t: &TableMeta| chosen.contains(&t.number);
        let parts = clusters::clusters(
            &ks.order,
            &inputs,
            runs,
            all.clone(),
            self.options.table_bytes(),
            rewrite,
        );
        self.merge(ks, &view, memtables, all, parts, Vec::new())
    }

    /// See [`Keyspace::approximate_size`](crate::Keyspace::approximate_size).
    pub(crate) fn approximate_size<K: AsRef<[u8]>>(
        &self,
        ks: &KeyspaceState,
        range: &impl RangeBounds<K>,
    ) -> u64 {
        let low: Bound<&[u8]> = range.start_bound().map(|k| k.as_ref());
        let high: Bound<&[u8]> = range.end_bound().map(|k| k.as_ref());
        let view = ks.view.load();
        let mut bytes = 0;
        for run in view.version.runs() {
            for t in &run.tables()[run.overlapping(&ks.order, low, high)] {
                let offset = |bound: Bound<&[u8]>, open: u64| match bound {
                    Bound::Unbounded => open,
                    Bound::Included(k) | Bound::Excluded(k) => t.table.approximate_offset(k),
                };
                let part = offset(high, t.meta.size).saturating_sub(offset(low, 0));
                // Separated values in proportion.
                let separated = u128::from(t.meta.separated_bytes()) * u128::from(part);
                bytes += part + (separated / u128::from(t.meta.size.max(1))) as u64;
            }
        }
        bytes
    }

    /// See [`Db::resume`](crate::Db::resume).
    pub(crate) fn resume(&self) -> Result<()> {
        if self.closed.load(Ordering::Relaxed) {
            return Err(Error::Closed);
        }
        let _job = self.jobs.lock();
        let mut w = self.writer.lock();
        if self.halt_cause().is_none() {
            return Ok(());
        }
        // What the failed manifest holds is unknown; a new one holds everything.
        {
            let mut control = self.control.lock();
            let manifest = control.manifest_mut().ok_or(Error::ReadOnly)?;
            manifest.replace()?;
            self.segments.note_manifest(control.manifest_end());
        }
        // A new segment; the old ones may never be synced again, so their entries go to tables.
        let sync_failed = self.sync.failed().is_some();
        self.clear_halt();
        let resumed = (|| {
            if sync_failed {
                self.rotate_after_failure(&mut w)?;
            } else {
                self.rotate(&mut w, 0)?;
            }
            // Also where an earlier attempt got no further than the new segment.
            self.flush_together(self.distrusted.load(Ordering::Acquire))?;
            // Nothing leads from a segment that failed to the new one: unless the flush said so, the
            // manifest must say that the log starts there, before anything is promised in it.
            self.advance_log()
        })();
        if let Err(e) = &resumed {
            let cause: &Error = e;
            self.halt(cause.clone());
        }
        drop(w);
        self.signal.wake();
        resumed
    }

    /// Writes all memtables below segment `upto` into tables, on this thread.
    fn flush_upto(&self, ks: &KeyspaceState, upto: u64) -> Result<()> {
        let view = ks.view.load_full();
        let Some((memtables, parts)) = self.whole_flush(ks, &view, upto) else { return Ok(()) };
        self.merge(ks, &view, memtables, 0..0, parts, Vec::new())
    }

    /// See [`Db::checkpoint`](crate::Db::checkpoint).
    pub(crate) fn checkpoint(&self, dir: &Path) -> Result<()> {
        self.check_writable()?;
        if self.env.exists(dir).map_err(|e| Error::io("create", dir, e))? {
            let e = std::io::Error::from(std::io::ErrorKind::AlreadyExists);
            return Err(Error::io("create", dir, e));
        }
        create_dir_durably(&*self.env, dir).map_err(|e| Error::io("create", dir, e))?;
        // The copy is locked like any store; who opens it read-only must not have to make the file.
        let lock = dir.join(crate::store::LOCK);
        let locked = self.env.lock(&lock).map_err(|e| Error::io("lock", &lock, e));
        let result = locked.and_then(|_guard| self.copy_to(dir));
        if result.is_err() {
            if let Ok(names) = self.env.list(dir) {
                crate::purge::remove_files(&*self.env, dir, &names);
            }
            drop(self.env.remove_dir(dir));
        }
        result
    }

    /// Everything up to now is in tables of one consistent version, whose files are linked.
    fn copy_to(&self, dir: &Path) -> Result<()> {
        let (state, _views) = self.flushed_version()?;
        for table in state.keyspaces.values().flat_map(|k| k.version.tables()) {
            self.share(dir, &table::file_name(table.number))?;
        }
        for number in state.segment_references().into_keys() {
            self.share(dir, &crate::log::file_name(number))?;
        }
        self.env.sync_dir(dir).map_err(|e| Error::io("sync", dir, e))?;
        let mut copy = state;
        // Segments below are kept for their values only.
        copy.log_start = self.next_file.load(Ordering::Relaxed);
        copy.next_file = copy.log_start + 1;
        copy.close(copy.log_start);
        drop(Manifest::create(Arc::clone(&self.env), dir, copy)?);
        Ok(())
    }

    /// A version with everything that was written before the call in tables, in all keyspaces up
    /// to the same moment, and views that keep its files. No merge can run meanwhile, as the jobs
    /// lock is held while it is taken.
    fn flushed_version(&self) -> Result<(State, Vec<Arc<crate::read::SuperVersion>>)> {
        let _job = self.jobs.lock();
        let upto = {
            let mut w = self.writer.lock();
            self.check_writable()?;
            if w.has_entries() {
                self.rotate(&mut w, 0)?;
            }
            w.active_number()
        };
        for ks in self.all_keyspaces() {
            self.flush_upto(&ks, upto)?;
        }
        let views = self.all_keyspaces().iter().map(|k| k.view.load_full()).collect();
        Ok((self.control.lock().state().clone(), views))
    }

    /// Links a file into `dir`, or copies it where the file system cannot.
    fn share(&self, dir: &Path, name: &str) -> Result<()> {
        let (from, to) = (self.dir.join(name), dir.join(name));
        if self.env.hard_link(&from, &to).is_ok() {
            return Ok(());
        }
        let source =
            self.env.open(&from, OpenMode::Read).map_err(|e| Error::io("open", &from, e))?;
        let target =
            self.env.open(&to, OpenMode::CreateNew).map_err(|e| Error::io("create", &to, e))?;
        let len = source.len().map_err(|e| Error::io("read", &from, e))?;
        let mut buf = vec![0; 1 << 20];
        let mut at = 0;
        while at < len {
            let n = (len - at).min(buf.len() as u64) as usize;
            source.read_exact_at(&mut buf[..n], at).map_err(|e| Error::io("read", &from, e))?;
            target.write_all_at(&buf[..n], at).map_err(|e| Error::io("write", &to, e))?;
            at += n as u64;
        }
        target.sync().map_err(|e| Error::io("sync", &to, e))
    }
}

/// A bulk load under way.
///
/// The first entries are held back until a dictionary is chosen by them. Later ones are asked at each
/// quarter of a table whether another has become clearly better; then a new table begins.
struct Load<'a> {
    store: &'a Store,
    ks: &'a KeyspaceState,
    builder: Option<TableBuilder>,
    numbers: Vec<u64>,
    done: Vec<TableSummary>,
    held: Held,
    samples: Samples,
    /// Size of the present table at which the samples are asked next.
    look_at: u64,
    /// Of the present table and of the next.
    dictionary: Option<Arc<Dictionary>>,
}

/// The first entries of a load.
struct Held {
    entries: Vec<(Vec<u8>, Vec<u8>)>,
    bytes: usize,
    /// Whether there is room for another.
    open: bool,
}

impl Held {
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

impl Load<'_> {
    fn read_all<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &mut self,
        entries: impl IntoIterator<Item = (K, V)>,
    ) -> Result<u64> {
        let mut last: Option<Vec<u8>> = None;
        let mut position = 0;
        for (key, value) in entries {
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
        Ok(position)
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
        self.roll(self.store.options.table_bytes())?;
        // Values stay in the tables whatever their size: there is no log segment for them.
        self.builder()?.add(key, None, Kind::Put, Stored::Inline(value))
    }

    /// Asks the samples whether the dictionary still fits, when it is time to.
    fn look_again(&mut self) -> Result<()> {
        if self.builder.as_ref().is_none_or(|b| b.size_estimate() < self.look_at) {
            return Ok(());
        }
        self.look_at += self.store.options.table_bytes() / 4;
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
            let number = self.store.new_file_number();
            let path = self.store.dir.join(table::file_name(number));
            let options = TableOptions {
                order: self.ks.order.clone(),
                keyspace: self.ks.id,
                block_size: self.store.options.block_size,
                compression: self.ks.compression,
                dictionary: self.dictionary.clone(),
            };
            self.numbers.push(number);
            self.builder = Some(TableBuilder::new(&self.store.env, &path, number, options)?);
        }
        Ok(self.builder.as_mut().expect("just made"))
    }

    fn roll(&mut self, target: u64) -> Result<()> {
        if self.builder.as_ref().is_some_and(|b| b.size_estimate() >= target)
            && let Some(builder) = self.builder.take()
        {
            self.done.push(builder.finish()?);
            self.look_at = self.store.options.table_bytes() / 4;
        }
        Ok(())
    }

    /// Puts the tables above everything there is, under one new sequence.
    fn install(&mut self) -> Result<()> {
        if self.done.is_empty() {
            return Ok(());
        }
        let store = self.store;
        let _job = store.jobs.lock();
        let mut w = store.writer.lock();
        store.check_writable()?;
        // What is in memtables is older than the load and must not lie above it.
        if self.ks.view.load().memtables.iter().any(|m| !m.is_empty()) {
            store.rotate(&mut w, 0)?;
            store.flush_upto(self.ks, w.active_number())?;
        }
        let seq = w.last_seq + 1;
        let run = store.next_run(self.ks);
        let mut added: Vec<(u64, Arc<LoadedTable>)> = Vec::new();
        for summary in self.done.drain(..) {
            added.push((run, store.load_table(self.ks, summary, seq)?));
        }
        // Its sequence lies between two frames of the log: the seal of one segment accounts for it,
        // and the log is durable before the load is, as the load comes after it.
        w.last_seq = seq;
        // Should there be no room for another segment, the log goes on in this one without a gap.
        store.rotate(&mut w, 0).inspect_err(|_| w.last_seq = seq - 1)?;
        store.sync.sync_all().inspect_err(|e| store.halt(e.clone()))?;
        store.install(self.ks, Outcome { added, ..Outcome::default() })?;
        store.visible.0.set(seq);
        Ok(())
    }
}
