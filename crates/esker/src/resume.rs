//! Going on after a failure stopped all writes.

use std::collections::HashSet;
use std::sync::atomic::Ordering;

use crate::comparator::refuse_from_comparator;
use crate::error::{Error, Result};
use crate::store::Store;

impl Store {
    /// See [`Db::resume`](crate::Db::resume).
    pub(crate) fn resume(&self) -> Result<()> {
        refuse_from_comparator()?;
        self.check_open()?;
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
            let mut version_set = self.version_set.lock();
            let manifest = version_set.manifest_mut().ok_or_else(|| self.why_no_manifest())?;
            self.sync.forget_lost_names();
            manifest.replace().inspect_err(|_| self.note_lost_names())?;
        }
        // After a failed sync a new segment; the old ones may never be synced again, so their entries go to
        // tables. Before the halt ends: who learns of the failure from here on stops nothing by it.
        if self.sync.failed().is_some() {
            self.rotate_after_failure(&mut w)?;
        }
        // Nobody else has written to the manifest meanwhile: that takes `jobs`, the writer, or a store that
        // is not halted. A sync that failed since then found it halted.
        self.end_halt();
        self.halt_if_unsynced();
        let resumed = (|| {
            // Also where an earlier attempt got no further than the new segment.
            let upto = self.failed_sync_below.load(Ordering::Acquire);
            self.check_unsynced(upto)?;
            self.flush_together(upto)?;
            // Nothing leads from a segment that failed to the new one: unless the flush said so, the
            // manifest must say that the log starts there, before anything is promised in it.
            self.advance_log()?;
            self.sync.settle();
            Ok(())
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

    /// What a sync could not write the system may have dropped from memory, and read anew as it was on the device before:
    /// that is not to become tables. Then memory, which leads there, is of no more use, and only another open finds out
    /// what is left.
    fn check_unsynced(&self, upto: u64) -> Result<()> {
        let mut checked = HashSet::new();
        for ks in self.all_keyspaces() {
            for memtable in ks.super_version.load().memtables_below(upto) {
                let segment = memtable.segment();
                if checked.insert(segment.number()) {
                    let sound = segment.check_frames();
                    sound.inspect_err(|_| self.unindexed.store(true, Ordering::Release))?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use crate::env::sim::{CallKind, Cut, Fault, Rng, SimEnv};
    use crate::env::{Env, OpenMode};
    use crate::{Db, Durability, Error, Options, filename};

    const DIR: &str = "/db";

    fn open(env: &SimEnv) -> Db {
        Db::open_in(Arc::new(env.clone()), Path::new(DIR), Options::new()).unwrap()
    }

    /// The segment that is written to.
    fn active(db: &Db) -> String {
        format!("{DIR}/{}", filename::segment(db.store().active_number()))
    }

    /// The system may drop what a sync could not write, and give what the device has. A resume took that for what had been
    /// put: here an entry less, and all was well.
    #[test]
    fn what_was_lost_with_a_failed_sync_became_a_table() {
        let env = SimEnv::new(1, true);
        let db = open(&env);
        db.put("one", "1").unwrap();
        db.put("two", "2").unwrap();
        let log = active(&db);
        env.fail_first(CallKind::Sync, &log);
        assert!(db.put_with("three", "3", Durability::Synced).is_err());
        let file = env.open(Path::new(&log), OpenMode::ReadWrite).unwrap();
        file.write_all_at(&[0; 4096], 4096).unwrap();
        let resumed = db.resume().unwrap_err();
        assert!(resumed.is_corruption(), "{resumed}");
        // Neither does it help to ask again.
        assert!(matches!(db.resume(), Err(Error::Halted { .. })));
        assert!(matches!(db.put("four", "4"), Err(Error::Halted { .. })));
        // What is as it was goes on, and segments of before the store was opened are looked at too.
        let env = SimEnv::new(2, true);
        let db = open(&env);
        db.put("one", "1").unwrap();
        env.fail_first(CallKind::Sync, &active(&db));
        assert!(db.put_with("two", "2", Durability::Synced).is_err());
        db.resume().unwrap();
        assert_eq!(db.iter().map(|e| e.unwrap().0).collect::<Vec<_>>(), ["one", "two"]);
    }

    /// Of segments that recovery had found nobody asked: where they end was known of those alone that were written to.
    #[test]
    fn what_was_lost_of_a_recovered_segment_became_a_table() {
        let env = SimEnv::new(4, true);
        let db = open(&env);
        db.put("one", "1").unwrap();
        let older = active(&db);
        db.store().seal_active().unwrap();
        db.put("two", "2").unwrap();
        let env = env.freeze().draw(Cut::Kill, &mut Rng::new(0), true).0;
        let db = open(&env);
        env.fail_first(CallKind::Sync, &older);
        assert!(db.put_with("three", "3", Durability::Synced).is_err());
        let file = env.open(Path::new(&older), OpenMode::ReadWrite).unwrap();
        file.write_all_at(&[0; 4096], 4096).unwrap();
        assert!(db.resume().unwrap_err().is_corruption());
    }

    /// A sync that could not even open its file, for want of descriptors, counted as one that failed: all writes stopped.
    #[test]
    fn a_segment_that_could_not_be_opened_counted_as_lost() {
        let env = SimEnv::new(3, true);
        let db = open(&env);
        db.put("one", "1").unwrap();
        let log = active(&db);
        db.store().seal_active().unwrap();
        env.fail_first_with(CallKind::Open, &log, Fault::Emfile);
        let told = db.put_with("two", "2", Durability::Synced).unwrap_err();
        assert!(told.was_not_tried(), "{told}");
        assert_eq!(db.stats().halted, None);
        db.put_with("three", "3", Durability::Synced).unwrap();
    }
}
