//! Going on after a failure stopped all writes.

use std::sync::atomic::Ordering;

use crate::comparator::refuse_from_comparator;
use crate::error::{Error, Result};
use crate::store::Store;

impl Store {
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
            let mut version_set = self.version_set.lock();
            let manifest = version_set.manifest_mut().ok_or_else(|| self.why_no_manifest())?;
            // Who met it may not have come to say so yet, and would find nothing any more.
            if let Some(e) = self.sync.dir_sync().forget() {
                self.sync.fail(e);
            }
            manifest.replace().inspect_err(|_| self.note_lost_names())?;
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
            self.flush_together(self.failed_sync_below.load(Ordering::Acquire))?;
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
}
