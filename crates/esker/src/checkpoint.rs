//! Checkpoints: a copy of the store that shares its files.

use std::path::Path;
use std::sync::Arc;

use crate::comparator::refuse_from_comparator;
use crate::env::{LockMode, OpenMode, create_new_dir_durably};
use crate::error::{Error, Result};
use crate::filename::{self, CURRENT, CURRENT_TEMP, LOCK};
use crate::store::{DirLock, Store, lock_dir};
use crate::version::{Manifest, State};

impl Store {
    /// See [`Db::checkpoint`](crate::Db::checkpoint).
    pub(crate) fn checkpoint(&self, dir: &Path) -> Result<()> {
        refuse_from_comparator()?;
        self.check_writable()?;
        create_new_dir_durably(&*self.env, dir).map_err(|e| Error::io("create", dir, e))?;
        let result = self.lock_new(dir).and_then(|_lock| {
            // CURRENT comes first, for nobody may open a copy that is half removed; the lock's file last, for
            // while it is there nobody else makes files of these names.
            let mut made = vec![CURRENT.into(), CURRENT_TEMP.into(), filename::manifest(1)];
            self.copy_to(dir, &mut made).inspect_err(|_| {
                made.push(LOCK.into());
                crate::obsolete_files::remove_files(&*self.env, dir, &made);
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
            self.share(dir, filename::table(table.number), made)?;
        }
        for number in state.segment_references().into_keys() {
            self.share(dir, filename::segment(number), made)?;
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
    /// to the same moment, and views that keep its files. No compaction can run meanwhile, as the jobs
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
        Ok((self.version_set.lock().state().clone(), views))
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
