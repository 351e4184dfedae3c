//! Compactions where the disk has little room.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::compaction::schedule::{Look, PLANS};
use crate::env::Env;
use crate::env::sim::{Call, CallKind, SimEnv};
use crate::obsolete_files::Obsolete;
use crate::{Comparator, Compression, Db, KeyOrder, KeyspaceOptions, Options};

/// A store on a disk with little room, and what its background thread does.
struct Cramped {
    env: SimEnv,
    db: Db,
}

impl Cramped {
    /// So many runs of the same keys, 3 MB each, to be merged.
    fn new(runs: u8, options: Options) -> Cramped {
        let env = SimEnv::new(1, true);
        let options = options.compression(Compression::None);
        let db = Db::open_in(Arc::new(env.clone()), Path::new("/db"), options).unwrap();
        for round in 0..runs {
            db.bulk_load((0..3000u32).map(|n| (n.to_be_bytes(), [round; 1000]))).unwrap();
        }
        Cramped { env, db }
    }

    /// The background thread looks for work each tick.
    fn for_ms(&self, ms: u64) -> usize {
        let from = self.env.call_count() as usize;
        for _ in 0..ms / 20 {
            self.db.store().step(Duration::from_millis(100));
            self.env.sleep(Duration::from_millis(20));
        }
        self.tables_made(from)
    }

    /// How many tables were begun since call `from`.
    fn tables_made(&self, from: usize) -> usize {
        let table = |c: &&Call| {
            c.kind == CallKind::Create && c.path.extension().is_some_and(|e| e == "tbl")
        };
        self.env.calls()[from..].iter().filter(table).count()
    }

    fn runs(&self) -> usize {
        self.db.stats().keyspaces[0].runs.len()
    }
}

/// The disk has room, and a quota refuses it: all of a compaction was written again at each turn of the thread.
#[test]
fn a_compaction_that_a_quota_refused_rests_before_the_next_attempt() {
    let refused = Cramped::new(2, Options::new().segment_size(64 << 10));
    // There is room for a flush and not for that.
    refused.env.set_quota(Some(1 << 20));
    let first = refused.for_ms(1000);
    assert!((2..=4).contains(&first), "{first} attempts in a second");
    refused.for_ms(20_000);
    let later = refused.for_ms(60_000);
    assert!((5..=7).contains(&later), "{later} attempts in a minute");
    assert_eq!((refused.runs(), refused.db.stats().halted), (2, None));
    // Flushes do not wait for it.
    refused.db.put("key", "value").unwrap();
    refused.db.flush().unwrap();
    assert!(refused.db.get("key").unwrap().is_some());
    // Who waits for compactions has them tried.
    let from = refused.env.call_count() as usize;
    refused.db.wait_for_compactions().unwrap();
    assert!(refused.tables_made(from) > 0);
    refused.env.set_quota(None);
    refused.for_ms(12_000);
    assert_eq!(refused.runs(), 1);
    assert_eq!(refused.db.iter().filter(|e| e.is_ok()).count(), 3001);
}

/// At each tick it was counted once more, and when there was room the store had written what it may: for minutes nothing
/// was merged.
#[test]
fn what_merging_may_write_was_used_up_by_compactions_that_found_no_room() {
    let tight = Cramped::new(2, Options::new());
    tight.env.leave_free(1 << 20);
    assert_eq!(tight.for_ms(8000), 0);
    tight.env.leave_free(1 << 30);
    tight.for_ms(400);
    assert_eq!(tight.runs(), 1);
}

/// All that is done before the picker is asked again had to fit, though each step gives its inputs back.
#[test]
fn nothing_was_merged_where_only_some_tables_had_room() {
    let tight = Cramped::new(3, Options::new().table_size(64 << 10));
    tight.env.leave_free(1800 << 10);
    tight.for_ms(2000);
    assert_eq!(tight.runs(), 1);
    assert_eq!(tight.db.iter().filter(|e| e.is_ok()).count(), 3000);
}

/// Compares bytes, and counts.
#[derive(Default)]
struct Asked(AtomicUsize);

impl Comparator for Asked {
    fn name(&self) -> &str {
        "test.asked"
    }
    fn compare(&self, a: &[u8], b: &[u8]) -> std::cmp::Ordering {
        self.0.fetch_add(1, Ordering::Relaxed);
        a.cmp(b)
    }
}

/// Fifty times a second, for as long as it took until as much might be written: for hours, with a large store.
#[test]
fn an_idle_store_planned_the_same_compaction_at_each_tick() {
    let asked = Arc::new(Asked::default());
    let order = KeyOrder::Custom(Arc::<Asked>::clone(&asked));
    let idle = Cramped::new(2, Options::new().table_size(64 << 10).comparator(order));
    idle.db.store().backpressure.note_tidied(1 << 40);
    let in_ticks = |ticks: u64| {
        let before = asked.0.load(Ordering::Relaxed);
        assert_eq!(idle.for_ms(20 * ticks), 0);
        asked.0.load(Ordering::Relaxed) - before
    };
    let first = in_ticks(1);
    let more = in_ticks(200);
    assert!(first > 0 && more <= 5 * first, "{first} comparisons, and {more} in four seconds");
    // What is new is looked at.
    idle.db.put("key", "value").unwrap();
    idle.db.store().seal_active().unwrap();
    idle.for_ms(20);
    assert_eq!(idle.db.stats().keyspaces[0].memtable_entries, 0);
}

/// How many segments of the log were made since call `from`.
fn segments_made(env: &SimEnv, from: usize) -> usize {
    let of_log =
        |c: &&Call| c.kind == CallKind::Create && c.path.extension().is_some_and(|e| e == "log");
    env.calls()[from..].iter().filter(of_log).count()
}

/// The spare segment was given up for it, though that was not enough, and made again, at each tick.
#[test]
fn a_compaction_that_waited_for_room_had_the_spare_segment_made_fifty_times_a_second() {
    let tight = Cramped::new(2, Options::new());
    tight.db.put("key", vec![7; 100 << 10]).unwrap();
    tight.env.leave_free(5 << 20);
    let from = tight.env.call_count() as usize;
    assert_eq!(tight.for_ms(10_000), 0);
    let made = segments_made(&tight.env, from);
    assert!((1..=8).contains(&made), "{made} in ten seconds");
    // When a little more is free than what it lacks it goes on at once.
    tight.env.leave_free(8 << 20);
    tight.for_ms(40);
    assert_eq!(tight.runs(), 1);
}

/// It was tried again after every 512 entries.
#[test]
fn a_spare_segment_that_has_no_room_is_not_tried_at_each_slice_of_a_compaction() {
    let tight = Cramped::new(1, Options::new());
    tight.db.put("key", vec![7; 100 << 10]).unwrap();
    tight.env.leave_free(1 << 20);
    let store = tight.db.store();
    let first = store.next_file();
    for _ in 0..100 {
        store.between_slices(false).unwrap();
    }
    let tried = store.next_file() - first;
    assert_eq!((tried, store.spare.lock().is_some()), (1, false));
    tight.env.leave_free(8 << 20);
    store.between_slices(false).unwrap();
    assert!(store.spare.lock().is_some());
}

/// What was dropped while a long step went on took its space until the end of it.
#[test]
fn what_is_dropped_during_a_compaction_is_removed_before_its_end() {
    let (env, dir) = (SimEnv::new(1, true), Path::new("/db"));
    let db = Db::open_in(Arc::new(env.clone()), dir, Options::new()).unwrap();
    let dropped = db.create_keyspace("dropped", KeyspaceOptions::new()).unwrap();
    dropped.put("key", "value").unwrap();
    db.flush().unwrap();
    db.store().step(Duration::ZERO);
    let tables = || env.list(dir).unwrap().iter().filter(|n| n.ends_with(".tbl")).count();
    assert_eq!(tables(), 1);
    db.drop_keyspace("dropped").unwrap();
    drop(dropped);
    db.store().between_slices(false).unwrap();
    assert_eq!(tables(), 0);
    // A segment that its last reader lets go of, with no file to be removed.
    db.put("key", "value").unwrap();
    let reader = db.get("key").unwrap();
    db.flush().unwrap();
    db.store().step(Duration::ZERO);
    let store = db.store();
    let waits = || (store.obsolete.has_files(), store.segments.has_free());
    assert_eq!(waits(), (false, false));
    drop(reader);
    assert_eq!(waits(), (false, true));
    store.between_slices(false).unwrap();
    assert_eq!(waits(), (false, false));
}

/// Runs of which nothing was due were looked at fifty times a second, with all their tables.
#[test]
fn an_idle_store_with_nothing_to_do_looked_for_it_at_each_tick() {
    let idle = Cramped::new(1, Options::new());
    // At rest, so that so little is not worth a compaction.
    idle.for_ms(20);
    idle.db.bulk_load((1000..1010u32).map(|n| (n.to_be_bytes(), [7; 1000]))).unwrap();
    idle.for_ms(20);
    assert_eq!(idle.runs(), 2);
    let before = PLANS.get();
    assert_eq!(idle.for_ms(4000), 0);
    let planned = PLANS.get() - before;
    assert!((1..=5).contains(&planned), "{planned} plans in four seconds");
    // What is new is looked at.
    idle.db.bulk_load((0..3000u32).map(|n| (n.to_be_bytes(), [7; 1000]))).unwrap();
    idle.for_ms(400);
    assert_eq!(idle.runs(), 1);
}

/// What bounds the runs was looked at with no hope of writing less, found no room, and had what would have been tried in hope
/// wait for longer and longer.
#[test]
fn a_compaction_that_was_not_tried_kept_another_from_being_tried_in_hope() {
    let hoping = Cramped::new(8, Options::new());
    for n in 0..3000u32 {
        hoping.db.delete(n.to_be_bytes()).unwrap();
    }
    let store = hoping.db.store();
    store.seal_active().unwrap();
    let ks = &store.all_keyspaces()[0];
    store.flush_as_can_be(ks).unwrap();
    assert_eq!(hoping.runs(), 9);
    // A fifth of what is written at most is likely to go.
    hoping.env.leave_free(24 << 20);
    assert!(!store.compact_picked(ks, &Look::Bounds, &store.outlook()).unwrap());
    assert_eq!(hoping.runs(), 9);
    store.step(Duration::ZERO);
    // Nothing lives.
    assert_eq!(hoping.runs(), 0);
}

/// While a compaction waited for room each flush added a run, up to any number.
#[test]
fn flushes_took_no_runs_along_where_a_compaction_lacked_room() {
    let tight = Cramped::new(2, Options::new());
    tight.env.leave_free(5 << 20);
    assert_eq!(tight.for_ms(100), 0);
    let from = tight.env.call_count() as usize;
    for n in 0..20u32 {
        tight.db.put(n.to_be_bytes(), "value").unwrap();
        tight.db.store().seal_active().unwrap();
        tight.db.store().step(Duration::ZERO);
    }
    assert_eq!(tight.runs(), 3);
    // What lacked room waits all the same.
    assert_eq!((tight.tables_made(from), tight.for_ms(5000)), (20, 0));
}

/// Each flush that would have taken runs along, and had no room for them, had the spare segment made anew.
#[test]
fn a_flush_that_had_no_room_for_runs_gave_up_the_spare_segment() {
    let options = Options::new().segment_size(4 << 20).blob_threshold(64 << 10);
    let tight = Cramped::new(2, options);
    let store = tight.db.store();
    let put = |n: u32| tight.db.put(n.to_be_bytes(), [7; 1000]).unwrap();
    let spare = || store.spare.lock().as_ref().map(|s| s.segment.number());
    (0..2500).for_each(put);
    store.seal_active().unwrap();
    (0..1200).for_each(put);
    store.prepare_spare();
    let made = spare();
    assert!(made.is_some());
    let waits = store.segments.unflushed_bytes(true) as i64 + store.room.made() as i64;
    tight.env.leave_free(waits as u64 + (1 << 20));
    let runs = tight.runs();
    store.step(Duration::ZERO);
    assert_eq!((tight.runs(), spare()), (runs + 1, made));
}

/// Writers waited for a flush that first removed all tables of a keyspace that was dropped meanwhile.
#[test]
fn what_was_dropped_during_a_flush_was_removed_before_its_end() {
    let (env, dir) = (SimEnv::new(1, true), Path::new("/db"));
    let db = Db::open_in(Arc::new(env.clone()), dir, Options::new()).unwrap();
    let store = db.store();
    for n in 0..1000u32 {
        store.obsolete.push(Obsolete::Remove(dir.join(format!("dropped{n}"))));
    }
    let removed_after = |flushing| {
        store.between_slices(flushing).unwrap();
        env.calls().iter().filter(|c| c.kind == CallKind::Remove).count()
    };
    let before = removed_after(true);
    assert_eq!(removed_after(false), before + 1000);
    assert_eq!(before, 0);
}
