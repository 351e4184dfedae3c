//! Room for the log on a disk that may be nearly full.
//!
//! A segment of the usual size is what is wanted, not what is needed. Where there is no room for it,
//! what is kept for speed goes first (the spare segment, the pool), and then a smaller one does.
//!
//! What is in the log must be able to get into tables: without room for that nothing can be deleted
//! either. So a write is refused before it takes the room that the flush of it needs; and one that adds
//! something before it takes what deletes need.

use crate::error::{Error, Result};
use crate::key::TableMeta;
use crate::stall::cost::CostModel;
use crate::store::{NewSegment, Store, Writer};
use crate::util::sum_of;

use std::io;
use std::sync::atomic::Ordering;

/// Size of the first segment, and of the active one of an idle store, in bytes.
pub(crate) const IDLE_SEGMENT: u64 = 256 << 10;
/// The smallest segment, unless even smaller ones are asked for.
const SMALLEST: u64 = 64 << 10;
/// What writes leave free for deletes: so much, and what tombstones of all that is in tables take, up to
/// `RESERVE_MOST`.
pub(crate) const RESERVE: u64 = 512 << 10;
const RESERVE_MOST: u64 = 64 << 20;
/// What a segment to go on in takes, and its table: without one nothing that is in the log can be flushed.
const SEAL_ROOM: u64 = 2 * SMALLEST;
/// What a tombstone takes in the log and in a table beside its key, in bytes.
const TOMBSTONE: u64 = 32;

/// What is to stay free behind a new segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    /// Nothing: the segment itself is needed to get space back.
    Nothing,
    /// What flushing the log needs.
    Flush,
    /// That, and what deletes need.
    Reserve,
}

/// What a new segment is for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Need {
    /// Bytes that it has at least.
    pub least: u64,
    /// Of these, what a flush moves into tables.
    pub moves: u64,
    pub keep: Keep,
    /// It is made ahead: the active one will be filled before.
    pub ahead: bool,
}

impl Need {
    /// Of a segment without which the store cannot be opened.
    pub(crate) const NONE: Need = Need { least: 0, moves: 0, keep: Keep::Nothing, ahead: false };
    /// Of one that lets the one before be flushed: that is of no use without room for the flush.
    pub(crate) const SEAL: Need = Need { keep: Keep::Flush, ..Need::NONE };
}

impl Store {
    /// Does `write`; where there is no room for it, waits for the compaction under way, which holds room
    /// until it ends, or flushes what waits, and does it once more.
    #[inline]
    pub(crate) fn with_room<T>(&self, mut write: impl FnMut() -> Result<T>) -> Result<T> {
        match write() {
            Err(e) if e.is_no_space() => self.once_there_is_room(write),
            done => done,
        }
    }

    #[cold]
    fn once_there_is_room<T>(&self, mut write: impl FnMut() -> Result<T>) -> Result<T> {
        for _ in 0..3 {
            if !self.room.is_claimed() {
                break;
            }
            let over = || !self.room.is_claimed() || self.check_writable().is_err();
            self.signal.wait_until(|| over().then_some(()));
            match write() {
                Err(e) if e.is_no_space() => {}
                done => return done,
            }
        }
        self.flush_for_room();
        // The last time: no compaction holds room meanwhile, and nothing is left that was to be removed.
        let _job = self.jobs.lock();
        self.delete_all_obsolete();
        write()
    }

    /// Flushes what waits, if there is room for that.
    fn flush_for_room(&self) {
        let active = self.active_number();
        if self.segments.waits_below(active) {
            let _awaited = self.signal.await_flush();
            drop(self.wait_flushed(active));
        }
    }

    /// A segment of `want` bytes, or fewer where there is no room for so many.
    pub(crate) fn new_segment(&self, want: u64, need: Need) -> Result<NewSegment> {
        let number = self.new_file_number()?;
        let least = need.least.max(SMALLEST).min(want);
        let (mut bytes, mut gave) = (want, false);
        loop {
            // One that is larger than it must be leaves room for everything.
            let keep = if bytes > least { Keep::Reserve } else { need.keep };
            let look = self.room.look();
            let room = self.check_room(bytes, Need { keep, ..need });
            let made = room.and_then(|()| self.segments.create(number, bytes)).map(|segment| {
                NewSegment { segment, durable: false, claim: self.room.claim_segment(bytes) }
            });
            drop(look);
            match made {
                Err(e) if e.is_no_space() && !gave => {
                    gave = true;
                    self.discard_spare();
                }
                Err(e) if e.is_no_space() && bytes > least => bytes = (bytes / 4).max(least),
                done => return done,
            }
        }
    }

    /// Sees to it that tables of the active segment may take so many bytes more beside their entries: many keyspaces write
    /// into a segment that was made for any of them. As much again as was claimed is claimed where there is room, so that
    /// looks at the disk are few.
    pub(crate) fn claim_for_tables(&self, w: &mut Writer, bytes: u64, keep: Keep) -> Result<()> {
        let (claimed, left) = w.claimed_for_tables;
        let more = bytes.saturating_sub(left);
        let claim = |more: u64, keep: Keep| {
            let _look = self.room.look();
            self.check_free(SEAL_ROOM + more + self.flushes_may_write(true), keep)?;
            self.segments.claim_for_tables(w.active_number(), more);
            Ok(more)
        };
        let ample = more.max(claimed);
        let claim = || match more {
            0 => Ok(0),
            _ if self.claimed_from_plenty(w.active_number(), ample) => Ok(ample),
            _ => claim(ample, Keep::Reserve).or_else(|_| claim(more, keep)),
        };
        let claimed_now = claim().or_else(|_| {
            self.discard_spare();
            claim()
        })?;
        w.claimed_for_tables = (claimed + claimed_now, left + claimed_now - bytes);
        Ok(())
    }

    /// Claims so much for tables of the active segment if there is plenty of room: without `look`, which is held as long as a
    /// segment takes to be made, while all writers wait for the one that claims. Whoever takes room meanwhile sees the claim,
    /// which is made first, or is seen here; but for who is making a segment ahead, has looked and does not count yet. There
    /// is one such at a time, as he holds `look`, and room is left for what he makes and for the tables of it.
    fn claimed_from_plenty(&self, active: u64, bytes: u64) -> bool {
        self.segments.claim_for_tables(active, bytes);
        let largest = CostModel::most_segment_bytes(self.options.segment_bytes());
        let wanted = SEAL_ROOM + 2 * largest + self.flushes_may_write(true);
        let plenty = self.check_free(wanted + RESERVE + RESERVE_MOST, Keep::Flush).is_ok();
        if !plenty {
            self.segments.give_claim_back(active, bytes);
        }
        plenty
    }

    /// Makes a segment that the log can go on in: it is durable, though nothing is in it.
    pub(crate) fn create_durable_segment(&self, want: u64, need: Need) -> Result<NewSegment> {
        let made = self.new_segment(want, need)?;
        let sync_name = || self.sync.dir_sync().sync().inspect_err(|_| self.note_lost_names());
        made.segment.sync().and_then(|()| sync_name()).inspect_err(|_| {
            // After a failed sync it is not to be used, not even again for another.
            if self.check_dir().is_ok() {
                drop(self.env.remove(made.segment.path()));
            }
        })?;
        Ok(NewSegment { durable: true, ..made })
    }

    /// The first segment of a store that was just opened; those after it grow to the usual size.
    pub(crate) fn first_segment(&self) -> Result<NewSegment> {
        self.create_durable_segment(IDLE_SEGMENT.min(self.options.segment_bytes()), Need::NONE)
    }

    /// Gives the space back that is kept for speed only.
    pub(crate) fn discard_spare(&self) {
        self.let_go_of_spare();
        self.delete_all_obsolete();
    }

    /// The spare segment goes; its file stays for another, until obsolete files are removed.
    pub(crate) fn let_go_of_spare(&self) {
        if let Some(spare) = self.spare.lock().take() {
            self.segments.discard(spare.segment);
        }
    }

    /// Whether a segment of so many bytes leaves free what is to be kept.
    fn check_room(&self, bytes: u64, need: Need) -> Result<()> {
        if need.keep == Keep::Nothing {
            return Ok(());
        }
        let moves = if bytes > need.least { bytes } else { need.moves };
        self.check_free(bytes + moves + self.flushes_may_write(need.ahead), need.keep)
    }

    /// Whether so much is free beside what the compaction under way takes and what is to be kept.
    fn check_free(&self, wanted: u64, keep: Keep) -> Result<()> {
        // In this order: a table that is written in between counts twice, not never.
        let wanted = wanted + self.room.merging.load(Ordering::Relaxed);
        let free = self.env.available(&self.dir);
        if free >= wanted.saturating_add(RESERVE + RESERVE_MOST) {
            return Ok(());
        }
        let reserve = if keep == Keep::Reserve { self.reserve_bytes(&[]) } else { 0 };
        self.refuse_beyond(free, wanted.saturating_add(reserve))
    }

    /// Whether what flushes and deletes need is free beside the tables that a bulk load has written. What is kept
    /// for speed goes first. A compaction under way may yet do with less, and there is none when the load comes into force.
    pub(crate) fn check_room_for_load(&self, loaded: &[TableMeta]) -> Result<()> {
        let check = || {
            let _look = self.room.look();
            let wanted = self.flushes_may_write(false) + self.reserve_bytes(loaded);
            self.refuse_beyond(self.env.available(&self.dir), wanted)
        };
        check().or_else(|_| {
            self.discard_spare();
            check()
        })
    }

    fn refuse_beyond(&self, free: u64, wanted: u64) -> Result<()> {
        if free >= wanted {
            return Ok(());
        }
        let why = format!(
            "no space left: {free} bytes are free, and {wanted} are to be, for the log and for the tables \
             that it goes to; deleting takes less"
        );
        Err(Error::io("write to", &self.dir, io::Error::new(io::ErrorKind::StorageFull, why)))
    }

    /// What deletes of all that is in tables need, in these too.
    fn reserve_bytes(&self, loaded: &[TableMeta]) -> u64 {
        let tombstones = |meta: &TableMeta| {
            let key = (meta.smallest.len() + meta.largest.len()) as u64 / 2;
            meta.entries.saturating_mul(key + TOMBSTONE)
        };
        let mut most = sum_of(loaded.iter().map(tombstones));
        for ks in self.all_keyspaces() {
            let super_version = ks.super_version.load();
            let of_tables = super_version.version.tables().map(|t| tombstones(&t.meta));
            most = sum_of(of_tables.chain([most]));
        }
        RESERVE + most.min(RESERVE_MOST)
    }

    /// What flushes of the log may write at most, and of the segments that are made for it: writers go on in the
    /// spare one without another look. `filled`: as if the active one were full.
    pub(crate) fn flushes_may_write(&self, filled: bool) -> u64 {
        // In this order: one that comes into the log in between counts twice, not never.
        let made = self.room.made();
        made + self.segments.unflushed_bytes(filled)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use crate::env::Env;
    use crate::env::sim::{Call, CallKind, Cut, Rng, SimEnv};
    use crate::obsolete_files::Obsolete;
    use crate::store::Store;
    use crate::wal::log_segment::table_overhead;
    use crate::{Compression, Db, Keyspace, KeyspaceOptions, Options, WriteBatch};

    use super::*;

    /// What a compaction leaves to others.
    fn kept(store: &Store) -> i128 {
        i128::from(store.env.available(&store.dir)) - store.to_spare(0)
    }

    /// Nor did what an empty segment of the log would: both were filled without another look, and where a compaction had
    /// taken the room, the log could not be flushed.
    #[test]
    fn compactions_left_no_room_for_what_a_spare_segment_would_hold() {
        let db = Db::open_in(Arc::new(SimEnv::new(1, true)), Path::new("/db"), Options::new());
        let db = db.unwrap();
        let store = db.store();
        let empty = kept(store);
        assert!(empty >= i128::from(IDLE_SEGMENT), "{empty}");
        db.put("key", vec![1; IDLE_SEGMENT as usize / 2]).unwrap();
        let before = kept(store);
        store.prepare_spare();
        let spare = store.spare.lock().as_ref().map(|s| i128::from(s.segment.capacity())).unwrap();
        assert_eq!(kept(store), before + spare);
        let in_log = i128::from(store.segments.unflushed_bytes(false));
        store.seal_active().unwrap();
        assert!(store.spare.lock().is_none());
        assert!(kept(store) >= in_log + spare, "{} {in_log} {spare}", kept(store));
        store.discard_spare();
        assert_eq!(store.room.made(), 0);
    }

    /// Of the log that a killed process left 4 KiB a segment counted as what its flush may write, so that others took that room;
    /// and the first flush seemed to move as little, by which writers were slowed.
    #[test]
    fn what_a_killed_process_left_to_flush_counted_for_next_to_nothing() {
        let env = Arc::new(SimEnv::new(2, true));
        let options = || Options::new().compression(Compression::None).segment_size(64 << 10);
        let db = Db::open_in(Arc::<SimEnv>::clone(&env), Path::new("/db"), options()).unwrap();
        for n in 0..5000u32 {
            db.put(n.to_be_bytes(), [7; 100]).unwrap();
        }
        let before = db.store().segments.unflushed_bytes(false);
        assert!(before > 500_000, "{before}");
        let (env, _) = env.freeze().draw(Cut::Kill, &mut Rng::new(0), true);
        let db = Db::open_in(Arc::new(env), Path::new("/db"), options()).unwrap();
        let after = db.store().segments.unflushed_bytes(false);
        assert!(after >= before, "{after} of {before}");
    }

    /// A load asked nobody for room, and took what flushes of others and deletes need: from then on nothing could be
    /// flushed, and nothing deleted for good.
    #[test]
    fn a_load_left_no_room_for_what_waits_to_be_flushed() {
        let env = Arc::new(SimEnv::new(2, true));
        let options = Options::new().compression(Compression::None).segment_size(1 << 20);
        let db = Db::open_in(Arc::<SimEnv>::clone(&env), Path::new("/db"), options).unwrap();
        let other = db.create_keyspace("other", KeyspaceOptions::new()).unwrap();
        for n in 0..1500u32 {
            db.put(n.to_be_bytes(), [7; 100]).unwrap();
        }
        db.store().prepare_spare();
        env.leave_free(1 << 20);
        // As much as just fits.
        let mut loaded = 1030;
        loop {
            let load = (0..loaded).map(|n: u32| (n.to_be_bytes(), [1; 1000]));
            match other.bulk_load(load) {
                Err(e) if e.is_no_space() => loaded -= 10,
                done => break assert_eq!(done.unwrap(), u64::from(loaded)),
            }
        }
        db.flush().unwrap();
        for n in 0..1500u32 {
            db.delete(n.to_be_bytes()).unwrap();
        }
        for n in 0..loaded {
            other.delete(n.to_be_bytes()).unwrap();
        }
        db.flush().unwrap();
        db.compact_range::<&[u8]>(..).unwrap();
        other.compact_range::<&[u8]>(..).unwrap();
        assert!(env.available(Path::new("/db")) > 1 << 20);
    }

    /// A store on a disk with so much room, of which neither more is told nor more given, and so many keyspaces.
    fn cramped(free: u64, keyspaces: u32) -> (Db, Vec<Keyspace>, Arc<SimEnv>) {
        let env = Arc::new(SimEnv::new(3, true));
        let options = Options::new().compression(Compression::None);
        let db = Db::open_in(Arc::<SimEnv>::clone(&env), Path::new("/db"), options).unwrap();
        let create = |n| db.create_keyspace(&format!("ks{n}"), KeyspaceOptions::new()).unwrap();
        let all = (0..keyspaces).map(create).collect();
        env.leave_free(free);
        env.set_quota(Some(free));
        (db, all, env)
    }

    /// How many of these writes there is room for.
    fn accepted(writes: impl Iterator<Item = Result<()>>) -> usize {
        let fits = |written: Result<()>| match written {
            Err(e) => {
                assert!(e.is_no_space(), "{e}");
                false
            }
            Ok(()) => true,
        };
        writes.map(fits).filter(|fits| *fits).count()
    }

    /// Each table takes two pages, however little is in it. What was kept for them was what they have in the log, so a thousand
    /// keyspaces took any number of writes, and none of them could be flushed.
    #[test]
    #[cfg_attr(miri, ignore = "a store with a thousand keyspaces")]
    fn a_thousand_keyspaces_wrote_what_there_was_no_room_to_flush() {
        let (db, all, _) = cramped(3 << 20, 1000);
        let put = accepted(all.iter().map(|ks| ks.put("key", "value")));
        assert!((100..1000).contains(&put), "{put} of a thousand");
        db.flush().unwrap();
        // What was kept for deletes is there, and is enough for some.
        let deleted = accepted(all.iter().map(|ks| ks.delete("key")));
        assert!(deleted > 20, "{deleted} of a thousand");
        db.flush().unwrap();
    }

    /// The same in one batch, which is refused as a whole.
    #[test]
    #[cfg_attr(miri, ignore = "a store with a thousand keyspaces")]
    fn a_batch_in_a_thousand_keyspaces_wrote_what_there_was_no_room_to_flush() {
        let (db, all, _) = cramped(3 << 20, 1000);
        let mut batch = WriteBatch::new();
        all.iter().for_each(|ks| batch.put_in(ks, "key", "value"));
        assert!(db.write(&batch).unwrap_err().is_no_space());
        let mut batch = WriteBatch::new();
        all[..100].iter().for_each(|ks| batch.put_in(ks, "key", "value"));
        db.write(&batch).unwrap();
        db.flush().unwrap();
        assert!(all[99].get("key").unwrap().is_some() && all[100].get("key").unwrap().is_none());
    }

    /// A table says its first and its last key, and the manifest says them once more: with long keys that is four times what a
    /// keyspace had in the log.
    #[test]
    #[cfg_attr(miri, ignore = "writes megabytes")]
    fn long_keys_were_written_that_there_was_no_room_to_flush() {
        let (db, all, _) = cramped(3 << 20, 40);
        let put = accepted(all.iter().map(|ks| ks.put([7; 60 << 10], "value")));
        assert!((2..40).contains(&put), "{put} of forty");
        db.flush().unwrap();
        // In a keyspace that has a memtable too.
        let (db, all, _) = cramped(3 << 20, 40);
        let short = accepted(all.iter().map(|ks| ks.put("key", "value")));
        assert_eq!(short, 40);
        let put = accepted(all.iter().map(|ks| ks.put([7; 60 << 10], "value")));
        assert!((2..40).contains(&put), "{put} of forty");
        db.flush().unwrap();
    }

    /// Its edit found no room where what is kept for speed took it.
    #[test]
    fn a_keyspace_could_not_be_dropped_where_the_spare_segment_took_the_room() {
        let (db, all, env) = cramped(4 << 20, 2);
        let store = db.store();
        all[0].put("key", vec![1; IDLE_SEGMENT as usize / 2]).unwrap();
        store.prepare_spare();
        assert!(store.spare.lock().is_some());
        env.set_quota(Some(0));
        db.drop_keyspace("ks0").unwrap();
        assert!(store.spare.lock().is_none());
        assert!(all[0].get("key").is_err() && all[1].get("key").unwrap().is_none());
    }

    /// Each attempt claimed room for the table of its keyspace once more, and nobody gave it back: refused puts took what others
    /// had room for.
    #[test]
    fn puts_that_were_refused_claimed_room_for_tables_each_time() {
        let (db, all, _) = cramped(5 << 20, 2);
        all[0].put("key", "value").unwrap();
        let large = vec![7; 8 << 20];
        let claimed_after = |refused: usize| {
            for _ in 0..refused {
                assert!(all[1].put("key", &large).unwrap_err().is_no_space());
            }
            db.store().segments.unflushed_bytes(false)
        };
        let first = claimed_after(1);
        assert_eq!(claimed_after(300), first);
        // What was claimed is for the next one.
        all[1].put("key", "value").unwrap();
        let with_one_more = db.store().segments.unflushed_bytes(false);
        assert!(with_one_more < first + 4096, "{with_one_more} after {first}");
    }

    /// A first put into another keyspace waited while a segment was made, and all writers with it.
    #[test]
    fn a_claim_for_tables_waited_for_who_makes_a_segment_where_there_was_plenty_of_room() {
        let (db, all, env) = cramped(1 << 30, 2);
        all[0].put("key", "value").unwrap();
        // As who makes a segment holds it while the file is made.
        let look = db.store().room.look();
        all[1].put("key", "value").unwrap();
        drop(look);
        let claimed = db.store().segments.unflushed_bytes(false);
        assert!(claimed >= 2 * table_overhead(0), "{claimed}");
        // Where there is not, nothing stays claimed beside what is.
        env.leave_free(0);
        let ks = db.default_keyspace();
        assert!(ks.put("key", "value").unwrap_err().is_no_space());
        assert_eq!(db.store().segments.unflushed_bytes(false), claimed);
    }

    /// Holes wait until `CURRENT` says where the manifest ends, and who dropped a keyspace kept that from being said.
    #[test]
    fn a_keyspace_was_dropped_on_a_full_disk_without_the_holes_that_were_to_be_made() {
        let (db, all, env) = cramped(4 << 20, 2);
        let store = db.store();
        all[0].put("key", vec![1; IDLE_SEGMENT as usize / 2]).unwrap();
        store.prepare_spare();
        let dead = store.segments.create(store.new_file_number().unwrap(), SMALLEST).unwrap();
        store.obsolete.push(Obsolete::Punch(dead, vec![(0, SMALLEST)]));
        env.set_quota(Some(0));
        db.drop_keyspace("ks0").unwrap();
        let calls = env.calls();
        let last = |kind, name: &str| {
            let is = |c: &Call| c.kind == kind && c.path.to_string_lossy().contains(name);
            calls.iter().rposition(is)
        };
        let (punched, dropped) = (last(CallKind::Punch, ".log"), last(CallKind::Write, "MANIFEST"));
        assert!(punched.is_some() && punched < dropped, "{punched:?} {dropped:?}");
    }

    /// Between its two attempts the background thread had made the next spare segment of what the drop had given back.
    #[test]
    fn a_drop_on_a_full_disk_lost_its_room_to_a_new_spare_segment() {
        let (db, all, env) = cramped(4 << 20, 1);
        let store = db.store();
        all[0].put("key", vec![1; IDLE_SEGMENT as usize / 2]).unwrap();
        db.sync().unwrap();
        store.prepare_spare();
        assert!(store.spare.lock().is_some());
        env.set_quota(Some(0));
        let ks = &all[0].state;
        assert!(store.commit_drop(ks, false).is_err_and(|e| e.is_no_space()));
        drop(store.commit_drop(ks, true).unwrap());
    }
}
