//! How much of what is written only repeats keys that lie below: an estimate, for the bound on space.

use std::sync::Arc;

use crate::key::{KeyOrder, key_hash};
use crate::read::{LoadedRun, RepeatedShare};

/// One entry in so many is looked for.
const ONE_IN: u64 = 256;
/// So many of a table, at most: each is a line of an index that may not be in memory.
const MOST: u32 = 64;

/// Looks some of a table's keys up in the hash indexes of the oldest run.
pub(super) struct Repeats<'a> {
    order: &'a KeyOrder,
    oldest: Option<&'a Arc<LoadedRun>>,
    seen: u64,
    asked: u32,
    found: u32,
    /// Bytes of the entries found, on average over their tables, and of their separated values.
    hidden: u64,
    hidden_values: u64,
}

impl<'a> Repeats<'a> {
    /// `oldest` is the run below, unless the output is the oldest itself.
    pub fn new(order: &'a KeyOrder, oldest: Option<&'a Arc<LoadedRun>>) -> Repeats<'a> {
        Repeats { order, oldest, seen: 0, asked: 0, found: 0, hidden: 0, hidden_values: 0 }
    }

    /// An entry of this key is written.
    #[inline]
    pub fn note(&mut self, key: &[u8]) {
        self.seen += 1;
        if self.seen % ONE_IN == 1 && self.asked < MOST {
            self.look(key);
        }
    }

    #[cold]
    fn look(&mut self, key: &[u8]) {
        self.asked += 1;
        let table = self.oldest.and_then(|run| run.find(self.order, key));
        if let Some(t) = table.filter(|t| t.table.may_hold(key_hash(key))) {
            let entries = t.meta.entries.max(1);
            self.found += 1;
            self.hidden = self.hidden.saturating_add(t.meta.size / entries);
            let values = t.meta.separated_bytes() / entries;
            self.hidden_values = self.hidden_values.saturating_add(values);
        }
    }

    /// What of the entries noted repeats others; begins the next table.
    pub fn take_share(&mut self) -> RepeatedShare {
        let found = u64::from(self.found.max(1));
        let share = RepeatedShare {
            of_entries: f64::from(self.found) / f64::from(self.asked.max(1)),
            entry: self.hidden / found,
            values: self.hidden_values / found,
        };
        *self = Repeats::new(self.order, self.oldest);
        share
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;
    use std::time::Duration;

    use crate::env::sim::SimEnv;
    use crate::{Compression, Db, Options};

    /// Tombstones were merged down in rounds in which no memtable waited: where writers never paused, in none.
    #[test]
    fn what_was_deleted_stayed_while_writers_never_paused() {
        const KEYS: u64 = 60_000;
        let options = Options::new().compression(Compression::None).memory(4 << 20);
        let db = Db::open_in(Arc::new(SimEnv::new(1, true)), Path::new("/db"), options).unwrap();
        db.bulk_load((0..KEYS).map(|n| (n.to_be_bytes(), [7; 1000]))).unwrap();
        let before = db.stats().table_bytes;
        assert!(before > 55 << 20);
        let store = db.store();
        let _awaited = store.signal.await_flush();
        for n in 0..KEYS + 4000 {
            match n {
                0..KEYS => db.delete(n.to_be_bytes()).unwrap(),
                _ => db.put(n.to_be_bytes(), "value").unwrap(),
            }
            if n % 2000 == 1999 {
                store.seal_active().unwrap();
                store.step(Duration::ZERO);
            }
        }
        let left = db.stats().table_bytes;
        assert!(left < before / 2, "{left} bytes of {before}");
    }

    /// Nothing goes while somebody may read it: all was written anew for nothing.
    #[test]
    fn what_was_deleted_and_may_still_be_read_is_not_merged_down() {
        let options = Options::new().compression(Compression::None).memory(4 << 20);
        let db = Db::open_in(Arc::new(SimEnv::new(1, true)), Path::new("/db"), options).unwrap();
        db.bulk_load((0..60_000u64).map(|n| (n.to_be_bytes(), [7; 1000]))).unwrap();
        let snapshot = db.snapshot();
        let store = db.store();
        let awaited = store.signal.await_flush();
        for n in 0..56_000u64 {
            db.delete(n.to_be_bytes()).unwrap();
            if n % 8000 == 7999 {
                store.seal_active().unwrap();
                store.step(Duration::ZERO);
            }
        }
        let written = || db.stats().compaction_bytes_written;
        assert!(written() < 20 << 20, "{}", written());
        // It goes when nobody may.
        drop(snapshot);
        db.put("key", "value").unwrap();
        store.seal_active().unwrap();
        store.step(Duration::ZERO);
        drop(awaited);
        let left = db.stats().table_bytes;
        assert!(left < 20 << 20, "{left}");
    }
}
