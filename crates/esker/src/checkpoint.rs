//! Checkpoints: a copy of the store that shares its files.

use std::path::Path;
use std::sync::Arc;

use crate::comparator::refuse_from_comparator;
use crate::env::{LockMode, OpenMode, create_new_dir_durably};
use crate::error::{Error, Result};
use crate::filename::{self, CURRENT, CURRENT_TEMP, LOCK};
use crate::store::{DirLock, Store, lock_dir};
use crate::version::{Manifest, State};

/// How much of a file is copied at once, in bytes.
const COPIED: usize = 256 << 10;

impl Store {
    /// See [`Db::checkpoint`](crate::Db::checkpoint).
    pub(crate) fn checkpoint(&self, dir: &Path) -> Result<()> {
        refuse_from_comparator()?;
        self.check_writable()?;
        create_new_dir_durably(&*self.env, dir).map_err(|e| Error::io("create", dir, e))?;
        let result = self.lock_new(dir).and_then(|lock| {
            // CURRENT comes first, for nobody may open a copy that is half removed; the lock's file last, for
            // while it is there nobody else makes files of these names.
            let mut made = vec![CURRENT.into(), CURRENT_TEMP.into(), filename::manifest(1)];
            self.copy_to(dir, &mut made).inspect_err(|_| {
                made.push(LOCK.into());
                if self.check_held(&lock).is_ok() {
                    crate::obsolete_files::remove_files(&*self.env, dir, &made);
                }
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
        let names = self.env.list(dir).map_err(|e| Error::io("list", dir, e));
        // Whoever removes the lock's file holds it, and it may be this call's.
        let names = names.inspect_err(|_| drop(self.env.remove(&dir.join(LOCK))))?;
        match names.iter().all(|name| name == LOCK) {
            true => Ok(lock),
            false => Err(error(std::io::ErrorKind::AlreadyExists)),
        }
    }

    /// Everything up to now is in tables of one consistent version, whose files are linked. Their names
    /// are added to `made`.
    fn copy_to(&self, dir: &Path, made: &mut Vec<String>) -> Result<()> {
        let held = self.hold_dir()?;
        let (state, _super_versions) = self.flushed_version()?;
        for table in state.keyspaces.values().flat_map(|k| k.version.tables()) {
            self.share(dir, filename::table(table.number), made)?;
        }
        for number in state.value_segments() {
            self.share(dir, filename::segment(number), made)?;
        }
        // They were found by their paths: another store's have the same names.
        self.check_held(&held)?;
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
    /// to the same moment, and super versions that keep its files. No compaction can run meanwhile, as the jobs
    /// lock is held while it is taken.
    fn flushed_version(&self) -> Result<(State, Vec<Arc<crate::read::SuperVersion>>)> {
        let _job = self.jobs.lock();
        for ks in self.all_keyspaces() {
            self.make_room_for_a_run(&ks)?;
        }
        // One that is dropped after the seal would be missing with what was copied from it, which comes after the seal.
        let _keyspaces = self.keyspace_changes.lock();
        self.seal_making_room()?;
        // What is below is sealed, and so of one moment for all keyspaces.
        let upto = self.active_number();
        for ks in self.all_keyspaces() {
            self.flush_upto(&ks, upto)?;
        }
        let super_versions =
            self.all_keyspaces().iter().map(|k| k.super_version.load_full()).collect();
        Ok((self.version_set.lock().state().clone(), super_versions))
    }

    /// Links a file into `dir`, or copies it where the file system cannot. It is in `made` once it is
    /// this call's.
    fn share(&self, dir: &Path, name: String, made: &mut Vec<String>) -> Result<()> {
        let (from, to) = (self.dir.join(&name), dir.join(&name));
        if self.env.hard_link(&from, &to).is_ok() {
            made.push(name);
            return Ok(());
        }
        self.copy(&from, &to, name, made)
    }

    /// Copies it. What is a hole stays one.
    fn copy(&self, from: &Path, to: &Path, name: String, made: &mut Vec<String>) -> Result<()> {
        let source = self.env.open(from, OpenMode::Read).map_err(|e| Error::io("open", from, e))?;
        let target =
            self.env.open(to, OpenMode::CreateNew).map_err(|e| Error::io("create", to, e))?;
        made.push(name);
        let read = |e| Error::io("read", from, e);
        let write = |e| Error::io("write", to, e);
        let len = source.len().map_err(read)?;
        target.set_len(len).map_err(write)?;
        let mut buf = vec![0; COPIED];
        let mut at = 0;
        while at < len {
            let n = (len - at).min(COPIED as u64) as usize;
            source.read_exact_at(&mut buf[..n], at).map_err(read)?;
            // Most of a segment may have been given back: what is a hole stays one.
            if buf[..n].iter().any(|b| *b != 0) {
                target.write_all_at(&buf[..n], at).map_err(write)?;
            }
            at += n as u64;
        }
        target.sync().map_err(|e| Error::io("sync", to, e))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Arc, mpsc};

    use crate::env::sim::{CallKind, SimEnv};
    use crate::{Comparator, Compression, Db, Error, KeyOrder, KeyspaceOptions, Options};

    /// Compares bytes. Once armed it tells of the next comparison and waits to go on.
    struct Gate {
        armed: AtomicBool,
        open: AtomicBool,
        reached: mpsc::Sender<()>,
    }

    impl Comparator for Gate {
        fn name(&self) -> &str {
            "test.gate"
        }
        fn compare(&self, a: &[u8], b: &[u8]) -> std::cmp::Ordering {
            if self.armed.swap(false, Ordering::AcqRel) {
                self.reached.send(()).unwrap();
                while !self.open.load(Ordering::Acquire) {
                    std::thread::yield_now();
                }
            }
            a.cmp(b)
        }
    }

    /// The entries were those of the seal, and the keyspaces those of a moment after the flushes.
    #[test]
    fn a_copy_had_neither_a_keyspace_that_was_dropped_meanwhile_nor_what_had_been_taken_from_it() {
        let env = Arc::new(SimEnv::new(1, true));
        let (reached, at_gate) = mpsc::channel();
        let (armed, opened) = (AtomicBool::new(false), AtomicBool::new(false));
        let gate = Arc::new(Gate { armed, open: opened, reached });
        let open = |path: &str| {
            let env = Arc::<SimEnv>::clone(&env);
            let order = KeyOrder::Custom(Arc::<Gate>::clone(&gate));
            let options = Options::new().flush_on_close(false).keyspace_comparator("slow", order);
            Db::open_in(env, Path::new(path), options).unwrap()
        };
        let db = open("/db");
        let order = KeyspaceOptions::new().comparator(KeyOrder::Custom(Arc::<Gate>::clone(&gate)));
        let slow = db.create_keyspace("slow", order).unwrap();
        let [from, to] =
            ["from", "to"].map(|name| db.create_keyspace(name, KeyspaceOptions::new()).unwrap());
        // Two memtables, which a flush merges.
        slow.put("a", "").unwrap();
        db.store().seal_active().unwrap();
        slow.put("b", "").unwrap();
        from.put("k", "v").unwrap();
        gate.armed.store(true, Ordering::Release);
        std::thread::scope(|scope| {
            let copying = scope.spawn(|| db.checkpoint("/copy").unwrap());
            at_gate.recv().unwrap();
            to.put("k", from.get("k").unwrap().unwrap()).unwrap();
            let dropping = scope.spawn(|| db.drop_keyspace("from").unwrap());
            // It waits for the copy, or is through at once.
            let mut looks = 0..200;
            while looks.next().is_some() && !dropping.is_finished() {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            gate.open.store(true, Ordering::Release);
            copying.join().unwrap();
        });
        assert!(db.keyspace("from").is_err() && to.get("k").unwrap().is_some());
        let copy = open("/copy");
        let has = |name: &str| copy.keyspace(name).is_ok_and(|ks| ks.get("k").unwrap().is_some());
        assert!(has("from") || has("to"));
    }

    /// On another file system what a compaction had given back of a segment was written out as zeros.
    #[test]
    fn a_checkpoint_that_copies_leaves_holes_as_they_are() {
        use std::os::unix::fs::{FileExt, MetadataExt};
        let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let db = Db::open(here.path().join("db")).unwrap();
        let name = crate::filename::segment(77);
        let file = std::fs::File::create(here.path().join("db").join(&name)).unwrap();
        file.write_all_at(b"value", 8 << 20).unwrap();
        file.set_len((8 << 20) + 4096).unwrap();
        let (from, copy) = (here.path().join("db").join(&name), there.path().join(&name));
        // Not by way of a link, which here may succeed.
        db.store().copy(&from, &copy, name, &mut Vec::new()).unwrap();
        assert!(std::fs::read(&copy).unwrap() == std::fs::read(&from).unwrap());
        let blocks = std::fs::metadata(&copy).unwrap().blocks();
        assert!(blocks * 512 <= 1 << 20, "{blocks} blocks");
    }

    /// The lock's file stayed, and with it the directory, which the next one found.
    #[test]
    fn a_checkpoint_that_cannot_look_into_its_directory_leaves_none() {
        let env = Arc::new(SimEnv::new(1, true));
        let dir = Path::new("/db");
        let db = Db::open_in(Arc::<SimEnv>::clone(&env), dir, Options::new()).unwrap();
        env.fail_first(CallKind::List, "/copy");
        let refused = db.checkpoint("/copy").unwrap_err();
        assert!(matches!(refused, Error::Io { .. }), "{refused}");
        env.fail(None);
        db.checkpoint("/copy").unwrap();
    }

    /// What waited for a flush held the room that the seal needs, and nobody flushed it.
    #[test]
    fn a_checkpoint_without_room_for_a_seal_flushes_what_waits_first() {
        let env = Arc::new(SimEnv::new(1, true));
        let options = Options::new().compression(Compression::None).segment_size(64 << 10);
        let open = |path: &str| {
            Db::open_in(Arc::<SimEnv>::clone(&env), Path::new(path), options.clone()).unwrap()
        };
        let db = open("/db");
        for n in 0..500u32 {
            if n == 250 {
                db.store().seal_active().unwrap();
            }
            db.put(n.to_be_bytes(), [7; 100]).unwrap();
        }
        db.store().discard_spare();
        env.leave_free(140 << 10);
        assert!(db.store().seal_active().is_err_and(|e| e.is_no_space()));
        db.checkpoint("/copy").unwrap();
        assert_eq!(open("/copy").iter().count(), 500);
    }
}
