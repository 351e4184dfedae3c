//! What the user asks for by name: compaction, sizes, checkpoints, resuming.

use std::ops::{Bound, RangeBounds};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::comparator::{self, refuse_from_comparator};
use crate::env::{LockMode, OpenMode, create_new_dir_durably};
use crate::error::{Error, Result};
use crate::merge::clusters;
use crate::store::{DirLock, KeyspaceState, LOCK, Store, lock_dir};
use crate::table;
use crate::version::{CURRENT, CURRENT_TEMP, Manifest, State, TableMeta, manifest_name};
use crate::worker::describe;

impl Store {
    /// See [`Keyspace::compact_range`](crate::Keyspace::compact_range).
    pub(crate) fn compact<K: AsRef<[u8]>>(
        &self,
        ks: &KeyspaceState,
        range: &impl RangeBounds<K>,
    ) -> Result<()> {
        refuse_from_comparator()?;
        match self.seal_active() {
            // What is in tables may make room.
            Err(e) if !e.is_no_space() => return Err(e),
            _ => {}
        }
        let low: Bound<&[u8]> = range.start_bound().map(|k| k.as_ref());
        let high: Bound<&[u8]> = range.end_bound().map(|k| k.as_ref());
        let _job = self.jobs.lock();
        self.make_room_for_a_run(ks)?;
        comparator::catch(|| self.compact_between(ks, low, high))
    }

    /// The caller holds the right to merge.
    fn compact_between(
        &self,
        ks: &KeyspaceState,
        low: Bound<&[u8]>,
        high: Bound<&[u8]>,
    ) -> Result<()> {
        let view = ks.view.load_full();
        // Asked afterwards: the view of a store that is closed is empty.
        self.check_open()?;
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
            self.table_sizes().small,
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
        refuse_from_comparator()?;
        let _job = self.jobs.lock();
        let mut w = self.writer.lock();
        self.check_open()?;
        let Some(cause) = self.halt_cause() else { return Ok(()) };
        if self.unindexed.load(Ordering::Acquire) {
            return Err(Error::Halted { cause });
        }
        // What the failed manifest holds is unknown; a new one holds everything.
        self.check_dir()?;
        {
            let mut control = self.control.lock();
            let manifest = control.manifest_mut().ok_or_else(|| self.why_no_manifest())?;
            manifest.replace()?;
            self.segments.note_manifest(control.manifest_end());
            // Here, so that a manifest that fails from now on is a halt of its own.
            self.end_halt();
        }
        // After a failed sync a new segment; the old ones may never be synced again, so their entries go to
        // tables. Asked after the halt has ended: a sync that fails from now on halts again.
        let sync_failed = self.sync.failed().is_some();
        let resumed = (|| {
            if sync_failed {
                self.rotate_after_failure(&mut w)?;
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
        // Meanwhile something may have failed elsewhere.
        resumed.and_then(|()| self.check_writable())
    }

    /// Writes all memtables below segment `upto` into tables, on this thread.
    pub(crate) fn flush_upto(&self, ks: &KeyspaceState, upto: u64) -> Result<()> {
        let view = ks.view.load_full();
        let Some((memtables, parts)) = self.whole_flush(ks, &view, upto)? else { return Ok(()) };
        self.merge(ks, &view, memtables, 0..0, parts, Vec::new())
    }

    /// See [`Db::checkpoint`](crate::Db::checkpoint).
    pub(crate) fn checkpoint(&self, dir: &Path) -> Result<()> {
        refuse_from_comparator()?;
        self.check_writable()?;
        create_new_dir_durably(&*self.env, dir).map_err(|e| Error::io("create", dir, e))?;
        let result = self.lock_new(dir).and_then(|_lock| {
            // What a manifest needs comes first, for a store that is half removed is none; the lock's
            // file last, for while it is there nobody else makes files of these names.
            let mut made = vec![CURRENT.into(), CURRENT_TEMP.into(), manifest_name(1)];
            self.copy_to(dir, &mut made).inspect_err(|_| {
                made.push(LOCK.into());
                crate::purge::remove_files(&*self.env, dir, &made);
            })
        });
        if result.is_err() {
            // It stays where something is in it: that is somebody else's.
            drop(self.env.remove_dir(dir));
        }
        result
    }

    /// Locks a directory that was just made, like any store: who opens it for reading only must not have
    /// to make the lock's file. An error when somebody was faster and there is anything in it.
    fn lock_new(&self, dir: &Path) -> Result<DirLock> {
        let error = |kind: std::io::ErrorKind| Error::io("create", dir, kind.into());
        let lock = lock_dir(&*self.env, dir, LockMode::Exclusive)?;
        let lock = lock.ok_or_else(|| error(std::io::ErrorKind::NotFound))?;
        let names = self.env.list(dir).map_err(|e| Error::io("list", dir, e))?;
        match names.iter().all(|name| name == LOCK) {
            true => Ok(lock),
            false => Err(error(std::io::ErrorKind::AlreadyExists)),
        }
    }

    /// Everything up to now is in tables of one consistent version, whose files are linked. Their names
    /// are added to `made`.
    fn copy_to(&self, dir: &Path, made: &mut Vec<String>) -> Result<()> {
        let (state, _views) = self.flushed_version()?;
        for table in state.keyspaces.values().flat_map(|k| k.version.tables()) {
            self.share(dir, table::file_name(table.number), made)?;
        }
        for number in state.segment_references().into_keys() {
            self.share(dir, crate::log::file_name(number), made)?;
        }
        self.env.sync_dir(dir).map_err(|e| Error::io("sync", dir, e))?;
        let mut copy = state;
        // Segments below are kept for their values only.
        copy.log_start = self.next_file();
        copy.next_file = copy.log_start + 1;
        copy.last_seq = copy.last_seq.max(self.visible_seq());
        copy.close(copy.log_start);
        drop(Manifest::create(Arc::clone(&self.env), dir, copy)?);
        Ok(())
    }

    /// A version with everything that was written before the call in tables, in all keyspaces up
    /// to the same moment, and views that keep its files. No merge can run meanwhile, as the jobs
    /// lock is held while it is taken.
    fn flushed_version(&self) -> Result<(State, Vec<Arc<crate::read::SuperVersion>>)> {
        let _job = self.jobs.lock();
        for ks in self.all_keyspaces() {
            self.make_room_for_a_run(&ks)?;
        }
        let upto = {
            let mut w = self.writer.lock();
            self.check_writable()?;
            if w.has_entries() {
                self.rotate(&mut w)?;
            }
            w.active_number()
        };
        for ks in self.all_keyspaces() {
            self.flush_upto(&ks, upto)?;
        }
        let views = self.all_keyspaces().iter().map(|k| k.view.load_full()).collect();
        Ok((self.control.lock().state().clone(), views))
    }

    /// Links a file into `dir`, or copies it where the file system cannot. It is in `made` once it is
    /// this call's.
    fn share(&self, dir: &Path, name: String, made: &mut Vec<String>) -> Result<()> {
        let (from, to) = (self.dir.join(&name), dir.join(&name));
        if self.env.hard_link(&from, &to).is_ok() {
            made.push(name);
            return Ok(());
        }
        let source =
            self.env.open(&from, OpenMode::Read).map_err(|e| Error::io("open", &from, e))?;
        let target =
            self.env.open(&to, OpenMode::CreateNew).map_err(|e| Error::io("create", &to, e))?;
        made.push(name);
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
