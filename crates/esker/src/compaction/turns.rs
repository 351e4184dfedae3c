//! Which keyspace is next. They share the log, whose segments go when the last keyspace that has entries in them is
//! flushed, and one background thread: all that wait for a flush have it, one after the other, and then their compactions
//! take turns, a part of one at a time, until these have had their share of the time and the next flush is due. With one
//! keyspace after the other to its end, one that always has something to compact kept those behind it from it, and
//! writers waited for their flushes.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use super::picker;
use super::schedule::{Look, Outlook};
use crate::error::Result;
use crate::store::{KeyspaceState, Store};

/// So many keyspaces are flushed in one round, at most: whoever waits for `jobs` waits for all of it.
const ROUND: usize = 16;

impl Store {
    /// The most urgent work there is: whether there was any. `idle`: nothing was written for a while. The caller holds
    /// `jobs`.
    pub(super) fn flush_or_compact(&self, idle: bool) -> Result<bool> {
        if idle && self.should_flush_active() {
            match self.seal_active() {
                // It stays as it is, and the compactions below may make room.
                Err(e) if !e.is_no_space() => return Err(e),
                _ => {}
            }
        }
        let (keyspaces, look) = (self.all_keyspaces(), Look::Work { idle });
        // What bounds runs and space has its share of the time, where writes leave no other time for it.
        let thin_out = || {
            let outlook = self.outlook();
            let work = |ks: &_| self.compact_picked(ks, &Look::Bounds, &outlook);
            self.in_turn(&keyspaces, || false, work)
        };
        let share_left = self.backpressure.has_share_left() && !self.flush_is_due();
        if share_left && keyspaces.iter().any(|ks| self.has_sealed(ks)) && thin_out()? {
            return Ok(true);
        }
        if self.flush_waiting(&keyspaces, &look)? {
            // However soon the next flush is due.
            return thin_out().map(|_| true);
        }
        // One that was due already could not be done. What has become due meanwhile does not wait until all were asked.
        let (outlook, due) = (self.outlook(), self.flush_is_due());
        let work = |ks: &_| self.compact_picked(ks, &look, &outlook);
        self.in_turn(&keyspaces, || !due && self.flush_is_due(), work)
    }

    /// Flushes what waits in these keyspaces, in each as the picker says: those that have waited longest first, and, but
    /// between two slices, so many at a time. Whether anything was flushed. The caller holds `jobs`.
    pub(super) fn flush_waiting(
        &self,
        keyspaces: &[Arc<KeyspaceState>],
        look: &Look<'_>,
    ) -> Result<bool> {
        let (start, mut flushed) = (Instant::now(), false);
        let since = |ks: &KeyspaceState| {
            ks.super_version.load().memtables.last().map(|m| m.segment().number())
        };
        let mut waiting: Vec<_> = keyspaces.iter().filter(|ks| self.has_sealed(ks)).collect();
        if waiting.is_empty() {
            return Ok(false);
        }
        // Asked once each: a drop meanwhile changes the answer, which no order survives.
        waiting.sort_by_cached_key(|ks| since(ks));
        let outlook = self.outlook();
        let between = matches!(look, Look::Between);
        let most = if between { usize::MAX } else { ROUND };
        for ks in waiting.into_iter().take(most).take_while(|_| !self.signal.stopping()) {
            flushed |= self.compact_picked(ks, look, &outlook)?;
            if between {
                self.note_pressure_between(ks, &outlook);
            }
        }
        // One that found nothing to do, or no room, takes no share of the last one's.
        if flushed {
            self.backpressure.note_flushes(start.elapsed());
        }
        Ok(flushed)
    }

    /// Whether writers or whoever asked for a flush should not wait for it any longer.
    pub(crate) fn flush_is_due(&self) -> bool {
        self.backpressure.flush_may_interrupt() || self.signal.flush_is_awaited()
    }

    /// Looks for work in one keyspace after the other, first in the one whose turn it is, until there was any: the next
    /// has its turn then. Where it leaves early there may be more, and it goes on from there.
    fn in_turn(
        &self,
        keyspaces: &[Arc<KeyspaceState>],
        leave: impl Fn() -> bool,
        mut work: impl FnMut(&KeyspaceState) -> Result<bool>,
    ) -> Result<bool> {
        let turn = self.turn.load(Ordering::Relaxed);
        let (before, from) = keyspaces.split_at(keyspaces.partition_point(|ks| ks.id < turn));
        for ks in from.iter().chain(before) {
            if self.signal.stopping() {
                return Ok(false);
            }
            if leave() {
                self.turn.store(ks.id, Ordering::Relaxed);
                return Ok(true);
            }
            if work(ks)? {
                self.turn.store(ks.id + 1, Ordering::Relaxed);
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// How urgent the compactions of a keyspace are. Writers slow down for the most urgent of those that
    /// are written to: what a quiet one lacks waits until the others leave time for it. The caller holds
    /// `jobs`.
    pub(super) fn note_pressure(&self, ks: &KeyspaceState, pressure: f64) {
        let written_to =
            |ks: &KeyspaceState| ks.super_version.load().memtables.iter().any(|m| !m.is_empty());
        let (most_urgent, most) = self.backpressure.pressure();
        let other = (most_urgent != ks.id && pressure < most)
            .then(|| self.keyspaces.read().by_id.get(&most_urgent).cloned())
            .flatten();
        if !other.is_some_and(|other| written_to(&other)) {
            self.backpressure.set_pressure(ks.id, pressure);
        }
    }

    /// How urgent they have become by a flush between two slices of one that is under way: begun when nothing pressed,
    /// it would have no time beside flushes, and nothing else would be begun. So it is given time, and writers are not
    /// slowed down whatever waits: not even where it is what gives space back (a fifth of the writes, for a sixth of the disk).
    fn note_pressure_between(&self, ks: &KeyspaceState, outlook: &Outlook) {
        let super_version = ks.super_version.load_full();
        let picker_input = self.picker_input(ks, &super_version, &[], outlook, false);
        let pressure = picker::pressure(&picker_input).min(1.0);
        self.note_pressure(ks, if self.rests(ks) { 0.0 } else { pressure });
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::path::Path;
    use std::sync::Arc;
    use std::time::Duration;

    use crate::compaction::schedule::{LOOKS, Look};
    use crate::env::sim::SimEnv;
    use crate::store::{KeyspaceState, Refused};
    use crate::{Compression, Db, Keyspace, KeyspaceOptions, Options};

    fn open() -> Db {
        let options = Options::new().compression(Compression::None);
        Db::open_in(Arc::new(SimEnv::new(1, true)), Path::new("/db"), options).unwrap()
    }

    /// Runs over each other, of a hundred entries with values of so many bytes.
    fn load(ks: &Keyspace, runs: u8, bytes: usize) {
        for round in 0..runs {
            ks.bulk_load((0..100u32).map(|n| (n.to_be_bytes(), vec![round; bytes]))).unwrap();
        }
    }

    /// The first always had something to compact: the others were flushed when writers had to stop, and compacted never.
    #[test]
    fn a_keyspace_with_much_to_compact_kept_the_others_from_flushes_and_compactions() {
        let db = open();
        let others: Vec<Keyspace> = (0..2)
            .map(|n| db.create_keyspace(&format!("ks{n}"), KeyspaceOptions::new()).unwrap())
            .collect();
        let store = db.store();
        load(db.default_keyspace(), 30, 10_000);
        others.iter().for_each(|ks| load(ks, 12, 10_000));
        let runs = |of: usize| store.all_keyspaces()[of].super_version.load().runs().len();
        let before = [runs(0), runs(1), runs(2)];
        // Writers wait for flushes all the time.
        let _awaited = store.signal.await_flush();
        for n in 0..3u8 {
            db.put([n], "value").unwrap();
            others.iter().for_each(|ks| ks.put([n], "value").unwrap());
            store.seal_active().unwrap();
            store.step(Duration::ZERO);
            let waiting: Vec<bool> =
                store.all_keyspaces().iter().map(|ks| store.has_sealed(ks)).collect();
            assert_eq!(waiting, [false; 3], "after round {n}");
        }
        // Each flush may add one, and one compaction takes several.
        for (of, before) in before.into_iter().enumerate() {
            assert!(runs(of) < before - 2, "keyspace {of}: {} runs, {before} before", runs(of));
        }
    }

    /// However much there was to compact, the flush came first, and the next one was due before anything was compacted.
    #[test]
    fn compactions_have_their_share_of_the_time_before_the_next_flush() {
        let db = open();
        load(db.default_keyspace(), 10, 100);
        let store = db.store();
        let ks = &store.all_keyspaces()[0];
        store.note_pressure(ks, 1.0);
        store.backpressure.note_flushes(Duration::from_secs(3600));
        db.put("key", "value").unwrap();
        store.seal_active().unwrap();
        store.step(Duration::ZERO);
        assert!(store.has_sealed(ks) && ks.super_version.load().runs().len() < 10);
        // Nobody who waits for it waits for that.
        load(db.default_keyspace(), 10, 100);
        let _awaited = store.signal.await_flush();
        db.put("key", "value").unwrap();
        store.seal_active().unwrap();
        store.step(Duration::ZERO);
        assert!(!store.has_sealed(ks));
    }

    /// Writers slowed down for the dead values of one keyspace while those of others were merged.
    #[test]
    fn nobody_slows_down_for_dead_values_while_something_else_is_compacted() {
        let db = open();
        let other = db.create_keyspace("other", KeyspaceOptions::new()).unwrap();
        load(&other, 10, 100);
        db.put("key", "value").unwrap();
        let store = db.store();
        let all = store.all_keyspaces();
        store.note_pressure(&all[0], 2.0);
        assert!(store.compact_picked(&all[1], &Look::Bounds, &store.outlook()).unwrap());
        assert_eq!(store.backpressure.pressure(), (all[0].id, 1.0));
    }

    /// Each flush counted all of the segment: ten keyspaces flushed ten times as fast as the log went.
    #[test]
    fn the_flush_of_one_keyspace_freed_what_all_have_in_the_log() {
        let db = open();
        let all: Vec<Keyspace> = (0..10)
            .map(|n| db.create_keyspace(&format!("ks{n}"), KeyspaceOptions::new()).unwrap())
            .collect();
        for n in 0..100u32 {
            all.iter().for_each(|ks| ks.put(n.to_be_bytes(), [7; 100]).unwrap());
        }
        let store = db.store();
        store.seal_active().unwrap();
        let mut shares = Vec::new();
        for ks in store.all_keyspaces().iter().filter(|ks| ks.name != "default") {
            let sealed = store.sealed(&ks.super_version.load_full());
            shares.push((store.segments.moved_share(&sealed[0]), sealed[0].segment().end()));
            // What is flushed has gone from memory when the next one is looked at.
            drop(sealed);
            store.flush_as_can_be(ks).unwrap();
        }
        let (sum, all) = (shares.iter().map(|s| s.0).sum::<u64>(), shares[0].1);
        assert!(sum <= all && sum + 10 >= all, "{sum} of {all}: {shares:?}");
    }

    /// Each keyspace that was asked for work looked at all of them and at every segment, fifty times a second.
    #[test]
    fn a_look_for_work_took_a_look_at_all_keyspaces_for_each_of_them() {
        let db = open();
        for n in 0..50u32 {
            let ks = db.create_keyspace(&format!("ks{n}"), KeyspaceOptions::new()).unwrap();
            ks.put("key", "value").unwrap();
        }
        db.wait_for_compactions().unwrap();
        let before = LOOKS.get();
        db.store().step(Duration::from_secs(1));
        let looks = LOOKS.get() - before;
        assert!(looks <= 2, "{looks} looks at all keyspaces");
        db.wait_for_compactions().unwrap();
        let looks = LOOKS.get() - before - looks;
        assert!(looks <= 2, "{looks} looks at all keyspaces while somebody waited");
    }

    /// All were asked first, however soon it was due.
    #[test]
    fn a_flush_that_had_become_due_waited_until_all_keyspaces_were_asked_for_work() {
        let db = open();
        for n in 0..5u32 {
            db.create_keyspace(&format!("ks{n}"), KeyspaceOptions::new()).unwrap();
        }
        let (store, all) = (db.store(), db.store().all_keyspaces());
        let asked = RefCell::new(Vec::new());
        let ask = |ks: &KeyspaceState| {
            asked.borrow_mut().push(ks.id);
            Ok(false)
        };
        assert!(store.in_turn(&all, || asked.borrow().len() == 2, ask).unwrap());
        assert!(!store.in_turn(&all, || false, ask).unwrap());
        assert_eq!(asked.take(), [0, 1, 2, 3, 4, 5, 0, 1]);
        store.signal.stop();
        assert!(!store.in_turn(&all, || false, ask).unwrap() && asked.borrow().is_empty());
    }

    #[test]
    fn a_quiet_keyspace_hid_the_pressure_of_one_that_is_written_to() {
        let db = open();
        let quiet = db.create_keyspace("quiet", KeyspaceOptions::new()).unwrap();
        let store = db.store();
        let all = store.all_keyspaces();
        db.put("key", "value").unwrap();
        quiet.put("key", "value").unwrap();
        store.note_pressure(&all[0], 0.9);
        store.note_pressure(&all[1], 0.1);
        assert_eq!(store.backpressure.pressure(), (0, 0.9));
        store.note_pressure(&all[0], 0.5);
        assert_eq!(store.backpressure.pressure(), (0, 0.5));
        // Nobody writes to it any more.
        db.flush().unwrap();
        store.note_pressure(&all[0], 0.9);
        store.note_pressure(&all[1], 0.1);
        assert_eq!(store.backpressure.pressure(), (all[1].id, 0.1));
        db.drop_keyspace("quiet").unwrap();
        store.note_pressure(&all[0], 0.0);
        assert_eq!(store.backpressure.pressure(), (0, 0.0));
    }

    /// A compaction that was begun when nothing pressed stopped for a flush at each slice for good, and dead values
    /// grew to forty times what lived.
    #[test]
    fn what_presses_was_not_seen_while_a_compaction_was_under_way() {
        let db = open();
        load(db.default_keyspace(), 10, 100);
        let store = db.store();
        let ks = &store.all_keyspaces()[0];
        let merged =
            ks.hold_runs(ks.super_version.load().runs()[..2].iter().map(|r| r.id()).collect());
        let flush_between = || {
            db.put("key", "value").unwrap();
            store.seal_active().unwrap();
            let _job = store.jobs.lock();
            store.flush_sealed_between().unwrap();
            store.backpressure.pressure().1
        };
        assert!(flush_between() > 0.5);
        // Nobody slows down for what found no room.
        let refused = Refused::again(None, &*store.env, &store.dir, 1 << 20);
        *ks.refused.lock() = Some(refused);
        assert_eq!(flush_between(), 0.0);
        drop(merged);
    }
}
