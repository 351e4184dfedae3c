//! What users have compacted: a range, or all that is due.

use std::ops::{Bound, RangeBounds};

use parking_lot::MutexGuard;

use super::inputs::CompactionInputs;
use super::overlap;
use super::schedule::{Horizon, Look, Outlook, PART_TABLES, note_rest};
use crate::comparator::{self, refuse_from_comparator};
use crate::error::Result;
use crate::store::{Counters, KeyspaceState, Store};
use crate::version::TableMeta;

impl Store {
    /// See [`Keyspace::compact_range`](crate::Keyspace::compact_range).
    pub(crate) fn compact<K: AsRef<[u8]>>(
        &self,
        ks: &KeyspaceState,
        range: &impl RangeBounds<K>,
    ) -> Result<()> {
        refuse_from_comparator()?;
        self.check_open()?;
        let low: Bound<&[u8]> = range.start_bound().map(|k| k.as_ref());
        let high: Bound<&[u8]> = range.end_bound().map(|k| k.as_ref());
        // First: a compaction under way holds the room that a seal needs.
        let mut job = self.jobs.lock();
        self.seal_for_compaction()?;
        // What is sealed while this is flushed does not count.
        let upto = self.active_number();
        self.make_room_for_a_run(ks)?;
        let oldest = || ks.super_version.load().memtables.last().map(|m| m.segment().number());
        while oldest().is_some_and(|number| number < upto) {
            if !comparator::catch(|| self.flush_as_can_be(ks))? {
                self.room.why_no_flush().map_or(Ok(()), Err)?;
            }
        }
        // What is flushed meanwhile stays above these, and the parts are those of what is there now.
        let runs: Vec<u64> = ks.super_version.load().runs().iter().map(|r| r.id()).collect();
        let Some(&newest) = runs.first() else { return self.check_open() };
        let _held = ks.hold_runs(runs);
        let all = matches!((low, high), (Bound::Unbounded, Bound::Unbounded));
        let mut from: Option<Vec<u8>> = None;
        loop {
            let low = from.as_deref().map_or(low, Bound::Included);
            from = comparator::catch(|| self.compact_part(ks, newest, low, high))?;
            if from.is_none() {
                if all {
                    note_rest(ks, newest);
                }
                return Ok(());
            }
            MutexGuard::bump(&mut job);
        }
    }

    /// Compacts tables up to run `newest` that hold keys of the range, the first of them. Where the rest begins. The
    /// caller holds `jobs`.
    fn compact_part(
        &self,
        ks: &KeyspaceState,
        newest: u64,
        low: Bound<&[u8]>,
        high: Bound<&[u8]>,
    ) -> Result<Option<Vec<u8>>> {
        let super_version = std::sync::Arc::new(ks.super_version.load().tables_upto(newest));
        // Asked afterwards: the super version of a store that is closed is empty.
        self.check_writable()?;
        let runs = super_version.version.runs();
        let chosen: std::collections::HashSet<u64> = runs
            .iter()
            .flat_map(|r| &r.tables()[r.overlapping(&ks.order, low, high)])
            .map(|t| t.meta.number)
            .collect();
        let (all, sizes) = (0..runs.len(), self.table_sizes());
        let rewrite = |t: &TableMeta| chosen.contains(&t.number);
        let mut groups = overlap::groups(&ks.order, &[], runs, all.clone(), sizes.small, rewrite);
        let is_chosen = |&(run, table): &(usize, usize)| rewrite(&runs[run].tables()[table].meta);
        groups.retain(|group| group.tables.iter().any(is_chosen));
        let most = sizes.full.saturating_mul(PART_TABLES);
        let (groups, next) = overlap::next_part(&ks.order, runs, groups, None, most);
        let (memtables, relocate) = (Vec::new(), Vec::new());
        let inputs = CompactionInputs { memtables, runs: all, groups, relocate, super_version };
        let _claim = self.room.claim(inputs.likely_written());
        self.run_compaction(ks, inputs)?;
        Ok(next)
    }

    /// See [`Db::wait_for_compactions`](crate::Db::wait_for_compactions).
    pub(crate) fn settle(&self) -> Result<()> {
        self.flush_all()?;
        let (segment, seq) = (self.active_number(), self.visible_seq());
        // Of how many compactions it is, and it.
        let mut seen: Option<(u64, Outlook)> = None;
        for ks in self.all_keyspaces() {
            let (run, _held) = {
                let _job = self.jobs.lock();
                let runs: Vec<u64> =
                    ks.super_version.load().runs().iter().map(|r| r.id()).collect();
                (runs.first().copied().unwrap_or(0), ks.hold_runs(runs))
            };
            let horizon = Horizon { run, seq };
            let look = Look::Upto(&horizon);
            // With `jobs` held: the background thread may have changed what is dead meanwhile.
            while self.work_once(|| {
                let compactions = Counters::get(&self.counters.compactions);
                let now = seen.take().filter(|(of, _)| *of == compactions);
                let now = now.unwrap_or_else(|| (compactions, self.outlook().below(segment)));
                self.compact_picked(&ks, &look, &seen.insert(now).1)
            }) {
                seen = None;
            }
        }
        self.tidy_log(true);
        self.check_writable()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
    use std::time::Duration;

    use parking_lot::Mutex;

    use crate::env::sim::SimEnv;
    use crate::store::Store;
    use crate::{Comparator, Compression, Db, KeyOrder, Options};

    fn open(options: Options) -> Db {
        let options = options.compression(Compression::None);
        Db::open_in(Arc::new(SimEnv::new(1, true)), Path::new("/db"), options).unwrap()
    }

    /// Sorted entries of these first letters, a kilobyte each.
    fn load(db: &Db, letters: [char; 2], entries: u32) {
        let keys =
            letters.into_iter().flat_map(|c| (0..entries).map(move |n| format!("{c}{n:05}")));
        db.bulk_load(keys.map(|key| (key, [7; 1000]))).unwrap();
    }

    /// Compares bytes. What it is given runs at the first comparison of those that no such run is under way in, over and over.
    #[derive(Default)]
    struct Interrupted(Mutex<Option<Box<dyn FnMut() + Send>>>);

    impl Comparator for Interrupted {
        fn name(&self) -> &str {
            "test.interrupted"
        }
        fn compare(&self, a: &[u8], b: &[u8]) -> std::cmp::Ordering {
            if let Some(mut run) = self.0.try_lock()
                && let Some(run) = &mut *run
            {
                run();
            }
            a.cmp(b)
        }
    }

    /// A store in that order.
    fn interrupted(table_size: u64) -> (Db, Arc<Interrupted>) {
        let order = Arc::new(Interrupted::default());
        let custom = KeyOrder::Custom(Arc::<Interrupted>::clone(&order));
        (open(Options::new().table_size(table_size).comparator(custom)), order)
    }

    /// From now on whoever compares finds a segment that waits: two keys are written and sealed where there is none. How
    /// often that was.
    fn writes_on(db: &Db, order: &Interrupted) -> Arc<AtomicU32> {
        let (db, written) = (db.clone(), Arc::new(AtomicU32::new(0)));
        let count = Arc::clone(&written);
        *order.0.lock() = Some(Box::new(move || {
            if db.store().all_keyspaces()[0].super_version.load().memtables.len() < 2 {
                let n = count.fetch_add(1, Ordering::Relaxed);
                assert!(n < 50, "it goes on and on");
                let put = || {
                    db.put(format!("m{n:05}"), "late").unwrap();
                    db.put(format!("n{n:05}"), "late").unwrap();
                    db.store().seal_active().unwrap();
                };
                std::thread::scope(|scope| scope.spawn(put).join().unwrap());
            }
        }));
        written
    }

    fn waits(store: &Store) -> bool {
        store.all_keyspaces().iter().any(|ks| store.has_sealed(ks))
    }

    /// All tables that overlapped others were written anew, wherever.
    #[test]
    fn a_range_leaves_alone_what_does_not_meet_it() {
        let db = open(Options::new().table_size(16 << 10));
        load(&db, ['a', 'z'], 100);
        load(&db, ['a', 'z'], 100);
        let tables = |first: u8| {
            let mut found: Vec<Vec<u64>> = Vec::new();
            for run in db.store().all_keyspaces()[0].super_version.load().version.runs() {
                let of = run.tables().iter().filter(|t| t.meta.smallest[0] == first);
                found.push(of.map(|t| t.meta.number).collect());
            }
            found
        };
        let (before, met) = (tables(b'z'), tables(b'a'));
        db.compact_range("a".."b").unwrap();
        assert_eq!(tables(b'z'), before);
        let left = tables(b'a');
        assert!(left[0].is_empty() && !left[1].is_empty(), "{left:?}");
        assert!(left[1].iter().all(|n| !met.concat().contains(n)));
        assert_eq!(db.iter().filter(|e| e.is_ok()).count(), 200);
    }

    /// It was one piece, however large. What is flushed between the parts takes nothing out of what is to be compacted.
    #[test]
    fn a_long_compaction_goes_in_parts() {
        let (db, order) = interrupted(16 << 10);
        load(&db, ['a', 'z'], 1000);
        load(&db, ['a', 'z'], 1000);
        for n in (0..1000).step_by(3) {
            db.delete(format!("z{n:05}")).unwrap();
        }
        let (jobs, store, worker) =
            (db.stats().compactions, db.clone(), Arc::new(Mutex::new(None)));
        let (threads, calls) = (Arc::clone(&worker), AtomicU32::new(0));
        *order.0.lock() = Some(Box::new(move || {
            if calls.fetch_add(1, Ordering::Relaxed) == 1500 {
                let db = store.clone();
                let work = move || {
                    db.put("b", "late").and_then(|()| db.store().seal_active()).unwrap();
                    db.store().step(Duration::ZERO);
                };
                *threads.lock() = Some(std::thread::spawn(work));
                while !waits(store.store()) {
                    std::thread::yield_now();
                }
            }
        }));
        db.compact_range::<&str>(..).unwrap();
        *order.0.lock() = None;
        worker.lock().take().unwrap().join().unwrap();
        let parts = db.stats().compactions - jobs;
        assert!((4..=20).contains(&parts), "{parts} parts");
        let stats = db.stats();
        let runs = &stats.keyspaces[0].runs;
        // One where the thread above came too late, as on a busy machine: its flush took the other along.
        assert!(runs.len() <= 2, "{stats:?}");
        assert_eq!(runs.iter().map(|r| r.tombstones).sum::<u64>(), 0);
        assert_eq!(db.iter().filter(|e| e.is_ok()).count(), 2001 - 334);
    }

    /// Two runs of 2 MB are compacted while another thread flushes a small one. Whether that came before the end.
    fn flushed_in_between(compact: fn(&Db)) -> (Db, bool) {
        let (db, order) = interrupted(256 << 10);
        load(&db, ['a', 'z'], 1000);
        load(&db, ['a', 'z'], 1000);
        db.put("b", "before").unwrap();
        let (calls, flushed) = (AtomicU32::new(0), Arc::new(AtomicBool::new(false)));
        let (seen, store) = (Arc::clone(&flushed), Arc::clone(db.store()));
        let flusher = Arc::new(Mutex::new(None));
        let (other, threads) = (db.clone(), Arc::clone(&flusher));
        *order.0.lock() = Some(Box::new(move || match calls.fetch_add(1, Ordering::Relaxed) {
            1500 => {
                let other = other.clone();
                let flush = move || other.put("c", "late").and_then(|()| other.flush());
                *threads.lock() = Some(std::thread::spawn(flush));
                while !waits(&store) {
                    std::thread::yield_now();
                }
            }
            1501.. if !waits(&store) => seen.store(true, Ordering::Relaxed),
            _ => {}
        }));
        compact(&db);
        *order.0.lock() = None;
        flusher.lock().take().unwrap().join().unwrap().unwrap();
        (db, flushed.load(Ordering::Relaxed))
    }

    /// Whoever waited for a flush waited for all of the compaction.
    #[test]
    fn a_flush_goes_before_the_rest_of_a_compaction() {
        assert!(
            flushed_in_between(|db| db.compact_range::<&str>(..).unwrap()).1,
            "when all was done"
        );
        assert!(flushed_in_between(|db| db.wait_for_compactions().unwrap()).1, "when all was done");
    }

    /// All that had been merged counted as what came since the store was at rest, and was written again when it was idle.
    #[test]
    fn what_was_merged_beside_a_flush_was_merged_once_more() {
        for compact in [
            |db: &Db| db.compact_range::<&str>(..).unwrap(),
            |db: &Db| db.wait_for_compactions().unwrap(),
        ] {
            let (db, _) = flushed_in_between(compact);
            let since_rest = db.store().all_keyspaces()[0].since_rest.load(Ordering::Relaxed);
            assert!(since_rest < 50_000, "{since_rest}");
        }
    }

    /// It was looked for after so many entries, however large they were.
    #[test]
    fn a_flush_goes_before_the_rest_of_a_compaction_of_few_large_entries() {
        let (db, order) = interrupted(64 << 20);
        for round in 0..2u8 {
            db.bulk_load((0..200u32).map(|n| (format!("a{n:05}"), vec![round; 64 << 10]))).unwrap();
        }
        let (calls, flushed) = (AtomicU32::new(0), Arc::new(AtomicBool::new(false)));
        let (seen, store, other) = (Arc::clone(&flushed), Arc::clone(db.store()), db.clone());
        let flusher = Arc::new(Mutex::new(None));
        let threads = Arc::clone(&flusher);
        *order.0.lock() = Some(Box::new(move || match calls.fetch_add(1, Ordering::Relaxed) {
            300 => {
                let other = other.clone();
                let flush = move || other.put("c", "late").and_then(|()| other.flush());
                *threads.lock() = Some(std::thread::spawn(flush));
                while !waits(&store) {
                    std::thread::yield_now();
                }
            }
            301.. if !waits(&store) => seen.store(true, Ordering::Relaxed),
            _ => {}
        }));
        db.compact_range::<&str>(..).unwrap();
        *order.0.lock() = None;
        flusher.lock().take().unwrap().join().unwrap().unwrap();
        assert!(flushed.load(Ordering::Relaxed), "only when all was done");
    }

    /// A range was compacted when all that waits was flushed, and that was never so beside a writer.
    #[test]
    fn a_range_waits_for_no_flush_of_what_is_written_later() {
        let (db, order) = interrupted(16 << 10);
        load(&db, ['a', 'z'], 100);
        db.put("b", "before").and_then(|()| db.put("c", "before")).unwrap();
        let written = writes_on(&db, &order);
        db.compact_range::<&str>(..).unwrap();
        *order.0.lock() = None;
        let late = written.load(Ordering::Relaxed);
        assert!((1..10).contains(&late), "{late}");
        assert_eq!(db.iter().filter(|e| e.is_ok()).count(), 202 + 2 * late as usize);
    }

    /// It waited for a moment in which nothing is left to do, and made one for itself that never lasted: what was written
    /// meanwhile was flushed at once.
    #[test]
    fn whoever_waits_for_compactions_waits_for_none_of_what_is_written_later() {
        let (db, order) = interrupted(16 << 10);
        load(&db, ['a', 'z'], 600);
        load(&db, ['a', 'z'], 600);
        db.put("b", "before").unwrap();
        let written = writes_on(&db, &order);
        db.wait_for_compactions().unwrap();
        *order.0.lock() = None;
        let late = written.load(Ordering::Relaxed);
        assert!((1..10).contains(&late), "{late}");
        let stats = db.stats();
        let runs = &stats.keyspaces[0].runs;
        assert!(runs.iter().filter(|r| r.bytes > 50_000).count() == 1, "{stats:?}");
        assert_eq!(db.iter().filter(|e| e.is_ok()).count(), 1201 + 2 * late as usize);
    }

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
