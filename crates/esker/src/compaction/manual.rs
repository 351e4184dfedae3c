//! Compaction of a range by the user's order.

use std::ops::{Bound, RangeBounds};

use super::overlap;
use super::schedule::{bytes_of, describe, likely_written};
use crate::comparator::{self, refuse_from_comparator};
use crate::error::Result;
use crate::store::{KeyspaceState, Store};
use crate::version::TableMeta;

impl Store {
    /// See [`Keyspace::compact_range`](crate::Keyspace::compact_range).
    pub(crate) fn compact<K: AsRef<[u8]>>(
        &self,
        ks: &KeyspaceState,
        range: &impl RangeBounds<K>,
    ) -> Result<()> {
        refuse_from_comparator()?;
        let low: Bound<&[u8]> = range.start_bound().map(|k| k.as_ref());
        let high: Bound<&[u8]> = range.end_bound().map(|k| k.as_ref());
        // First: a compaction under way holds the room that a seal needs.
        let _job = self.jobs.lock();
        self.seal_for_compaction()?;
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
        let super_version = ks.view.load_full();
        // Asked afterwards: the super-version of a store that is closed is empty.
        self.check_open()?;
        let memtables = self.sealed(&super_version);
        let inputs = describe(&memtables);
        let runs = super_version.version.runs();
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
        let parts = overlap::groups(
            &ks.order,
            &inputs,
            runs,
            all.clone(),
            self.table_sizes().small,
            rewrite,
        );
        let likely = likely_written(&super_version, &all, &parts);
        let _claim = self.room.claim(likely.saturating_sub(bytes_of(&memtables)));
        self.run_compaction(ks, super_version, memtables, all, parts, Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use crate::env::sim::SimEnv;
    use crate::{Compression, Db, Options};

    /// The entries were written once more, which a full disk has no room for.
    #[test]
    fn a_compaction_without_room_for_a_seal_left_deletes_out() {
        let env = Arc::new(SimEnv::new(1, true));
        let options = Options::new().compression(Compression::None).segment_size(64 << 10);
        let db = Db::open_in(Arc::<SimEnv>::clone(&env), Path::new("/db"), options).unwrap();
        for n in 0..500u32 {
            db.put(n.to_be_bytes(), [7; 1000]).unwrap();
        }
        db.flush().unwrap();
        // A half waits for its flush, the other is in the active segment.
        for n in 0..500u32 {
            if n == 250 {
                db.store().seal_active().unwrap();
            }
            db.delete(n.to_be_bytes()).unwrap();
        }
        db.store().discard_spare();
        env.leave_free(120 << 10);
        assert!(db.store().seal_active().is_err_and(|e| e.is_no_space()));
        db.compact_range::<&[u8]>(..).unwrap();
        let stats = db.stats();
        assert_eq!(stats.table_bytes, 0, "{stats:?}");
    }
}
