//! One test for each way in which a crash or a failed sync once lost something, or could.

use std::path::Path;
use std::sync::Arc;

use crate::destroy::destroy;
use crate::env::sim::{Call, CallKind, CrashPoints, Cut, Fault, FaultPlan, Frozen, Rng, SimEnv};
use crate::env::{Env, OpenMode};
use crate::{Compression, Db, Durability, Error, KeyspaceOptions, Options};

const LARGE: usize = 20_000;

fn open_at(env: &SimEnv, dir: &str) -> Result<Db, Error> {
    env.forget_failures();
    let options = Options::new()
        .memory(1 << 20)
        .segment_size(64 << 10)
        .blob_threshold(1000)
        .compression(Compression::None);
    Db::open_in(Arc::new(env.clone()), Path::new(dir), options)
}

fn open(env: &SimEnv) -> Db {
    open_at(env, "/db").unwrap_or_else(|e| panic!("opening: {e}"))
}

fn get(db: &Db, key: &str) -> Option<Vec<u8>> {
    db.get(key).unwrap_or_else(|e| panic!("getting {key}: {e}")).map(|v| v.to_vec())
}

/// The disk after a power cut that took everything that was not synced.
fn cut(env: &SimEnv) -> SimEnv {
    image(&env.freeze(), Cut::Nothing, 0)
}

fn image(frozen: &Frozen, cut: Cut, seed: u64) -> SimEnv {
    frozen.draw(cut, &mut Rng::new(seed), true).0
}

/// What `f` returns, in which the first call of this kind to this file fails.
fn failing<T>(env: &SimEnv, kind: CallKind, path: &str, f: impl FnOnce() -> T) -> T {
    env.fail_first(kind, path);
    let result = f();
    assert!(env.calls().iter().any(|c| c.failed), "no {kind:?} of {path}");
    env.fail(None);
    result
}

fn stopped(db: &Db) -> bool {
    matches!(db.put("refused", ""), Err(Error::Halted { .. }))
}

/// The log's segments that there are.
fn segments(env: &SimEnv) -> Vec<String> {
    let mut names = env.list(Path::new("/db")).unwrap();
    names.retain(|n| n.ends_with(".log"));
    names.sort();
    names
}

#[test]
fn a_flush_names_no_values_in_a_log_that_is_not_synced() {
    let env = SimEnv::new(1, true);
    let db = open(&env);
    db.put("large", vec![7; LARGE]).unwrap();
    env.set_crash_points(CrashPoints::Always);
    db.flush().unwrap();
    for moment in env.take_frozen() {
        for (seed, cut) in [Cut::Nothing, Cut::Names, Cut::Random].into_iter().enumerate() {
            let found = get(&open(&image(&moment, cut, seed as u64)), "large");
            assert!(found.is_none_or(|v| v == [7; LARGE]));
        }
    }
    assert_eq!(get(&open(&cut(&env)), "large").unwrap(), [7; LARGE]);
}

#[test]
fn a_destroy_that_is_cut_off_leaves_a_store_or_none() {
    let env = SimEnv::new(1, true);
    let db = open(&env);
    db.put("small", "1").unwrap();
    db.put("large", vec![7; LARGE]).unwrap();
    db.flush().unwrap();
    db.put("in the log", "2").unwrap();
    db.sync().unwrap();
    env.set_crash_points(CrashPoints::Always);
    drop(db);
    destroy(&env, Path::new("/db")).unwrap();
    let (mut whole, mut none) = (0, 0);
    for moment in env.take_frozen() {
        for (seed, cut) in
            [Cut::Kill, Cut::Nothing, Cut::Names, Cut::Names, Cut::Names].into_iter().enumerate()
        {
            let db = open(&image(&moment, cut, seed as u64));
            match get(&db, "small") {
                Some(_) => {
                    whole +=
                        usize::from(get(&db, "large").is_some() && get(&db, "in the log").is_some())
                }
                None => none += usize::from(db.iter().next().is_none()),
            }
            drop(db);
            let env = image(&moment, cut, seed as u64);
            match destroy(&env, Path::new("/db")) {
                // All but the directory was gone.
                Err(Error::NotAStore { .. }) => {
                    assert_eq!(env.list(Path::new("/db")).unwrap(), Vec::<String>::new());
                }
                destroyed => {
                    destroyed.unwrap();
                    assert!(env.list(Path::new("/db")).is_err(), "destroyed again");
                }
            }
        }
    }
    assert!(whole > 20 && none > 20, "{whole} whole, {none} gone");
}

#[test]
fn the_names_of_tables_are_durable_before_the_manifest_names_them() {
    let env = SimEnv::new(1, true);
    let db = open(&env);
    db.put("small", "1").unwrap();
    env.set_crash_points(CrashPoints::Always);
    db.flush().unwrap();
    let entries = [("load 1", "2"), ("load 2", "3")];
    db.bulk_load(entries).unwrap();
    for moment in env.take_frozen() {
        for seed in 0..8 {
            let found = get(&open(&image(&moment, Cut::Names, seed)), "small");
            assert_eq!(found.unwrap(), b"1");
        }
        open(&image(&moment, Cut::Nothing, 0));
    }
    let db = open(&cut(&env));
    assert_eq!(get(&db, "small").unwrap(), b"1");
    assert_eq!(get(&db, "load 2").unwrap(), b"3");
}

#[test]
fn the_directories_of_a_new_store_and_of_a_checkpoint_are_durable() {
    let env = SimEnv::new(1, true);
    let db = open_at(&env, "/far/down/db").unwrap();
    db.put_with("key", "1", Durability::Synced).unwrap();
    assert_eq!(get(&open_at(&cut(&env), "/far/down/db").unwrap(), "key").unwrap(), b"1");
    db.checkpoint("/far/copies/1").unwrap();
    assert_eq!(get(&open_at(&cut(&env), "/far/copies/1").unwrap(), "key").unwrap(), b"1");
}

/// The first open made the directory, and failed or was killed before it was synced. The next one
/// found it there and took it for durable.
#[test]
fn a_directory_that_an_earlier_attempt_made_is_synced() {
    for parent in ["/", "/far", "/far/down"] {
        let env = SimEnv::new(1, true);
        failing(&env, CallKind::SyncDir, parent, || open_at(&env, "/far/down/db")).unwrap_err();
        let db = open_at(&env, "/far/down/db").unwrap();
        db.put_with("key", "1", Durability::Synced).unwrap();
        assert_eq!(get(&open_at(&cut(&env), "/far/down/db").unwrap(), "key").unwrap(), b"1");
    }
    let env = SimEnv::new(1, true);
    env.set_crash_points(CrashPoints::Always);
    open_at(&env, "/far/down/db").unwrap();
    for moment in env.take_frozen() {
        let killed = image(&moment, Cut::Kill, 0);
        let db = open_at(&killed, "/far/down/db").unwrap();
        db.put_with("key", "1", Durability::Synced).unwrap();
        assert_eq!(get(&open_at(&cut(&killed), "/far/down/db").unwrap(), "key").unwrap(), b"1");
    }
}

#[test]
fn resume_neither_points_into_a_segment_that_failed_to_sync_nor_uses_its_file_again() {
    let env = SimEnv::new(1, true);
    let db = open(&env);
    db.put("large", vec![7; LARGE]).unwrap();
    let active = format!("/db/{}", segments(&env).last().unwrap());
    failing(&env, CallKind::Sync, &active, || db.put_with("synced", "1", Durability::Synced))
        .unwrap_err();
    assert!(stopped(&db));
    // Another sync would succeed, and prove nothing.
    db.sync().unwrap_err();
    assert_eq!(get(&db, "large").unwrap(), [7; LARGE]);
    db.resume().unwrap();
    let found = open(&cut(&env));
    assert_eq!(get(&found, "large").unwrap(), [7; LARGE]);
    assert_eq!(get(&found, "synced").unwrap(), b"1");
    for n in 0..40 {
        db.put(format!("more {n}"), vec![8; LARGE]).unwrap();
        db.store().step(std::time::Duration::ZERO);
    }
    db.flush().unwrap();
    assert_eq!(env.violations(), Vec::<String>::new());
    let renamed =
        |c: &crate::env::sim::Call| c.kind == CallKind::Rename && c.path == Path::new(&active);
    assert!(!env.calls().iter().any(renamed), "{active} is used again");
    assert_eq!(get(&open(&cut(&env)), "large").unwrap(), [7; LARGE]);
}

/// The background thread and somebody who compacts by hand made one each; the first was forgotten, and its file left.
#[test]
fn of_two_spare_segments_made_at_the_same_time_one_stays() {
    let env = SimEnv::new(1, true);
    let db = open(&env);
    db.put("half of a segment", vec![7; 32 << 10]).unwrap();
    let (store, barrier) = (db.store(), std::sync::Barrier::new(2));
    store.discard_spare();
    let before = segments(&env).len();
    for round in 0..2000 {
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    barrier.wait();
                    store.prepare_spare();
                });
            }
        });
        assert!(store.spare.lock().is_some());
        store.discard_spare();
        assert_eq!(segments(&env).len(), before, "round {round}");
    }
}

/// What waited to be flushed of a keyspace that was dropped went on to hold up writers, until the background thread had nothing
/// else to do.
#[test]
fn a_dropped_keyspace_leaves_no_debt() {
    let env = SimEnv::new(1, true);
    let db = open(&env);
    let keyspace = db.create_keyspace("temporary", KeyspaceOptions::new()).unwrap();
    (0..50u32).for_each(|n| keyspace.put(n.to_be_bytes(), [7; 500]).unwrap());
    db.store().seal_active().unwrap();
    assert!(db.store().backpressure.pending() > 0);
    db.drop_keyspace("temporary").unwrap();
    assert_eq!(db.store().backpressure.pending(), 0);
}

/// After a failed sync `resume` went on in a new segment, and failed before the entries of the old one were in tables. A sync of the
/// new one then passed for one of all that was written; and the manifest could say that the log is durable in a
/// segment to which nothing leads, which was damage to whoever opened the store after a kill.
#[test]
fn after_a_resume_that_failed_nothing_passes_for_durable_that_is_not() {
    let mut unsettled = 0;
    for at in 0.. {
        let env = SimEnv::new(at, true);
        let db = open(&env);
        db.bulk_load([("loaded", "1")]).unwrap();
        db.put("key", "1").unwrap();
        let active = format!("/db/{}", segments(&env).last().unwrap());
        failing(&env, CallKind::Sync, &active, || db.sync()).unwrap_err();
        let number = env.call_count() + at;
        env.fail(Some(FaultPlan { at: number, fault: Fault::Eio, from_then_on: false }));
        let resumed = db.resume();
        env.fail(None);
        if resumed.is_ok() && env.call_count() <= number {
            break;
        }
        if resumed.is_err() && db.sync().is_ok() {
            assert_eq!(get(&open(&cut(&env)), "key").unwrap(), b"1", "call {at}: a sync said so");
        }
        unsettled += u64::from(resumed.is_err());
        // The background thread looks after the log, and the process is killed.
        db.store().step(std::time::Duration::from_secs(3000));
        for cut in [Cut::Kill, Cut::Nothing] {
            let again = open_at(&image(&env.freeze(), cut, 0), "/db");
            let again = again.unwrap_or_else(|e| panic!("call {at}, {cut:?}: {e}"));
            assert!(cut == Cut::Nothing || get(&again, "key").is_some(), "call {at}");
        }
        if resumed.is_err() {
            db.resume().unwrap_or_else(|e| panic!("call {at}: {e}"));
        }
        db.sync().unwrap();
        assert_eq!(get(&open(&cut(&env)), "key").unwrap(), b"1", "call {at}");
        assert_eq!(env.violations(), Vec::<String>::new(), "call {at}");
    }
    assert!(unsettled > 10, "{unsettled}");
}

/// After a failed sync `resume` wrote one keyspace after the other into tables. A power cut in between
/// kept later writes to the one and lost earlier writes to the other, which no log held any more.
#[test]
fn resume_keeps_all_keyspaces_or_none() {
    let env = SimEnv::new(1, true);
    let db = open(&env);
    let other = db.create_keyspace("other", KeyspaceOptions::new()).unwrap();
    other.put("earlier", "1").unwrap();
    db.put("later", "2").unwrap();
    let active = format!("/db/{}", segments(&env).last().unwrap());
    failing(&env, CallKind::Sync, &active, || db.sync()).unwrap_err();
    env.set_crash_points(CrashPoints::Always);
    db.resume().unwrap();
    let mut moments = env.take_frozen();
    moments.push(env.freeze());
    for (n, moment) in moments.iter().enumerate() {
        let db = open(&image(moment, Cut::Nothing, 0));
        let earlier = db.keyspace("other").unwrap().get("earlier").unwrap();
        assert_eq!(earlier.is_some(), get(&db, "later").is_some(), "moment {n}");
        assert!(earlier.is_some() || n + 1 < moments.len(), "resume loses what it made durable");
    }
}

/// What only later writes needed could not be synced, and a flush that did not need it went on as if
/// nothing had happened.
#[test]
fn any_sync_of_the_log_that_fails_stops_writes() {
    let fill = |env: &SimEnv| {
        let db = open(env);
        for n in 0..6 {
            db.put(format!("key {n}"), vec![7; LARGE]).unwrap();
        }
        db
    };
    let dry = SimEnv::new(1, true);
    let db = fill(&dry);
    let from = dry.call_count() as usize;
    db.flush().unwrap();
    let calls = dry.calls();
    let syncs = |n: &usize| matches!(calls[*n].kind, CallKind::Sync | CallKind::SyncDir);
    // Space is given back behind the flush, once this was said; what is not said waits.
    let behind = |c: &Call| c.path.ends_with("CURRENT.tmp");
    let to = (from..calls.len()).find(|n| behind(&calls[*n])).unwrap_or(calls.len());
    let mut looked = 0;
    for at in (from..to).filter(syncs) {
        let env = SimEnv::new(1, true);
        let db = fill(&env);
        env.fail(Some(FaultPlan { at: at as u64, fault: Fault::Eio, from_then_on: false }));
        drop(db.flush());
        assert!(env.calls()[at].failed);
        assert!(stopped(&db), "{} failed, and writes go on", env.calls()[at]);
        db.resume().unwrap();
        db.put_with("after", "all", Durability::Synced).unwrap();
        assert_eq!(get(&open(&cut(&env)), "key 5").unwrap(), [7; LARGE]);
        looked += 1;
    }
    // Values, table, names, manifest.
    assert!(looked >= 6, "{looked} syncs");
}

/// Writes had stopped for a table that could not be synced, and a keyspace could still be dropped.
#[test]
fn no_keyspace_is_dropped_while_writes_are_stopped() {
    let env = SimEnv::new(1, true);
    let db = open(&env);
    db.create_keyspace("other", KeyspaceOptions::new()).unwrap();
    db.put("key", "1").unwrap();
    let table = format!("/db/{:010}.tbl", db.store().next_file() + 1);
    failing(&env, CallKind::Sync, &table, || db.flush()).unwrap_err();
    assert!(stopped(&db));
    assert!(matches!(db.drop_keyspace("other"), Err(Error::Halted { .. })));
    db.resume().unwrap();
    db.drop_keyspace("other").unwrap();
}

/// A sync of the log failed, and the store was opened again: everything is there, out of the page
/// cache, where it counts as clean. Syncing that succeeds and writes nothing.
#[test]
fn what_recovery_reads_after_a_failed_sync_is_made_durable_by_the_next() {
    let env = SimEnv::new(1, true);
    let db = open(&env);
    db.put("large", vec![7; LARGE]).unwrap();
    let active = format!("/db/{}", segments(&env).last().unwrap());
    failing(&env, CallKind::Sync, &active, || db.sync()).unwrap_err();
    db.close().unwrap_err();
    let db = open(&env);
    assert_eq!(get(&db, "large").unwrap(), [7; LARGE]);
    db.put_with("after", "all", Durability::Synced).unwrap();
    let found = open(&cut(&env));
    assert_eq!(get(&found, "after").unwrap(), b"all");
    assert_eq!(get(&found, "large").unwrap(), [7; LARGE]);
}

/// The same of the manifest: a page in its middle was not on the device, and all edits after it were
/// lost with it.
#[test]
fn a_manifest_that_failed_to_sync_is_written_again_when_it_is_opened() {
    let env = SimEnv::new(1, true);
    let db = open(&env);
    let end = |db: &Db| db.store().version_set.lock().manifest_mut().unwrap().len();
    let mut n = 0;
    let mut next = || {
        n += 1;
        format!("{n:0>200}")
    };
    while end(&db) < 4096 - 200 {
        db.create_keyspace(&next(), KeyspaceOptions::new()).unwrap();
    }
    let failed = next();
    failing(&env, CallKind::Sync, "/db/MANIFEST-0000000001", || {
        db.create_keyspace(&failed, KeyspaceOptions::new()).map(drop)
    })
    .unwrap_err();
    db.close().unwrap_err();
    let db = open(&env);
    let count = db.keyspaces().len();
    let last = db.create_keyspace("last", KeyspaceOptions::new()).unwrap();
    assert!(end(&db) > 4096);
    last.put_with("key", "1", Durability::Synced).unwrap();
    let found = open(&cut(&env));
    assert_eq!(found.keyspaces().len(), count + 1);
    assert_eq!(found.keyspace("last").unwrap().get("key").unwrap().unwrap().as_ref(), b"1");
}

/// The writer went on in a segment that was never synced; a power cut left its name and no header.
/// The seal that leads to it may have got to the device before.
#[test]
fn a_segment_that_was_never_synced_ends_the_log() {
    for sealed in [false, true] {
        let env = SimEnv::new(1, true);
        let db = open(&env);
        db.put_with("first", vec![1; LARGE], Durability::Synced).unwrap();
        let before = segments(&env);
        let mut n = 0;
        while segments(&env) == before {
            n += 1;
            db.put(format!("more {n}"), vec![2; LARGE]).unwrap();
        }
        env.sync_dir(Path::new("/db")).unwrap();
        if sealed {
            let last = Path::new("/db").join(before.last().unwrap());
            env.open(&last, OpenMode::ReadWrite).unwrap().sync().unwrap();
        }
        let frozen = env.freeze();
        for seed in 0..60 {
            let kind = if seed == 0 { Cut::Nothing } else { Cut::Random };
            let left = image(&frozen, kind, seed);
            assert_eq!(segments(&left).len(), before.len() + 1);
            let db = open(&left);
            assert_eq!(get(&db, "first").unwrap(), [1; LARGE], "{seed}");
            // A prefix: none behind one that is missing, and all of a segment that was synced.
            let there = |n: usize| get(&db, &format!("more {n}")).is_some();
            assert!((2..=n).all(|n| there(n - 1) || !there(n)), "{seed}");
            assert!(!sealed || (1..n).all(there), "{seed}");
            db.put_with("after", "all", Durability::Synced).unwrap();
            assert_eq!(get(&open(&cut(&left)), "after").unwrap(), b"all");
        }
    }
}

/// A sync failed while all entries were in tables; writes were resumed, and went on in a segment to
/// which neither the log nor the manifest led.
#[test]
fn what_was_synced_after_resume_was_lost_when_there_had_been_nothing_to_flush() {
    let env = SimEnv::new(1, true);
    let db = open(&env);
    db.put("before", "1").unwrap();
    db.flush().unwrap();
    failing(&env, CallKind::SyncDir, "/db", || db.sync()).unwrap_err();
    db.resume().unwrap();
    db.put_with("after", "2", Durability::Synced).unwrap();
    db.put_with("after all", "3", Durability::Synced).unwrap();
    let db = open(&cut(&env));
    assert_eq!(get(&db, "before").unwrap(), b"1");
    assert_eq!(get(&db, "after").unwrap(), b"2");
    assert_eq!(get(&db, "after all").unwrap(), b"3");
}

/// A flush makes the log durable before it makes one keyspace's tables so, as those of others wait in the
/// log. Damage there passed for a power cut all the same: later writes to the one were kept, and
/// earlier ones to the others were gone without a word.
#[test]
fn what_a_flush_of_one_keyspace_made_durable_is_no_tear_for_another() {
    let env = SimEnv::new(1, true);
    let db = open(&env);
    let other = db.create_keyspace("other", KeyspaceOptions::new()).unwrap();
    let log = Path::new("/db").join(segments(&env).last().unwrap());
    for n in 0..100u32 {
        db.put(n.to_be_bytes(), [1; 50]).unwrap();
        other.put(n.to_be_bytes(), [2; 50]).unwrap();
    }
    env.set_crash_points(CrashPoints::Always);
    db.flush().unwrap();
    let (mut lost, mut told) = (0, 0);
    for (n, moment) in env.take_frozen().iter().enumerate() {
        // The first frame, one between, the seal behind the last one.
        for at in [20, 8000, 200 * 88 + 4] {
            let left = image(moment, Cut::Kill, 0);
            let Ok(file) = left.open(&log, OpenMode::ReadWrite) else { continue };
            let (mut byte, at) = ([0], crate::wal::FIRST_FRAME + at);
            file.read_exact_at(&mut byte, at).unwrap();
            file.write_all_at(&[byte[0] ^ 1], at).unwrap();
            let Ok(db) = open_at(&left, "/db") else {
                told += 1;
                continue;
            };
            let counts = [db.iter().count(), db.keyspace("other").unwrap().iter().count()];
            assert!(counts[0].abs_diff(counts[1]) <= 1, "moment {n}, byte {at}: {counts:?}");
            lost += usize::from(counts[1] < 100);
        }
    }
    // Before the flush has made it durable the log is torn there, then it is damaged.
    assert!(lost > 5 && told > 5, "{lost}, {told}");
}

/// The length of the manifest is told after a bulk load. When that failed, the load ended with an error, and took
/// its tables along, which were in force.
#[test]
fn a_bulk_load_stands_when_current_cannot_be_written() {
    for kind in [CallKind::Create, CallKind::Sync] {
        let env = SimEnv::new(1, true);
        let db = open(&env);
        let entries = (0..100).map(|n| (format!("{n:03}"), "loaded"));
        let loaded = failing(&env, kind, "/db/CURRENT.tmp", || db.bulk_load(entries));
        assert_eq!(loaded.unwrap(), 100);
        db.put_with("after", "all", Durability::Synced).unwrap();
        assert_eq!(get(&db, "042").unwrap(), b"loaded");
        let found = open(&cut(&env));
        assert_eq!(found.iter().count(), 101);
    }
}

/// Of the batches of a loop the last is often empty.
#[test]
fn a_synced_batch_makes_what_came_before_durable_though_it_is_empty() {
    let env = SimEnv::new(1, true);
    let db = open(&env);
    db.put("before", "1").unwrap();
    db.write_with(crate::WriteBatch::new(), Durability::Buffered).unwrap();
    assert_eq!(get(&open(&cut(&env)), "before"), None);
    db.write_with(crate::WriteBatch::new(), Durability::Synced).unwrap();
    assert_eq!(get(&open(&cut(&env)), "before").unwrap(), b"1");
    let log = format!("/db/{}", segments(&env)[0]);
    db.put("after", "2").unwrap();
    let empty = || db.write_with(crate::WriteBatch::new(), Durability::Synced);
    assert!(failing(&env, CallKind::Sync, &log, empty).is_err());
}

/// A sync beside a close that fails finds no log to make durable, and said that all was.
#[test]
fn a_sync_that_comes_behind_a_failed_close_is_an_error() {
    let env = SimEnv::new(1, true);
    let db = open(&env);
    let store = Arc::clone(db.store());
    db.put("key", "1").unwrap();
    env.leave_free(0);
    assert!(db.close().is_err());
    assert!(matches!(store.sync_all(), Err(Error::Closed)));
    // The close made durable what it could not flush.
    assert_eq!(get(&open(&cut(&env)), "key").unwrap(), b"1");
}

/// Each opened anew, wrote nothing and left a segment of the usual size: on a full disk, where nothing is flushed, the room
/// that is kept for deletions was used up by a service that was started again and again.
#[test]
fn lives_that_ended_before_a_flush_took_the_room_on_the_disk() {
    let first = SimEnv::new(1, true);
    let db = open(&first);
    db.put("key", "value").unwrap();
    let mut env = image(&first.freeze(), Cut::Kill, 0);
    drop(db);
    for life in 0..3 {
        let db = open(&env);
        assert_eq!(get(&db, "key").as_deref(), Some(&b"value"[..]));
        // Before the one that is written to now; in the first life that is where the key is.
        let before = segments(&env).into_iter().rev().nth(1).unwrap();
        let file = env.open(&Path::new("/db").join(before), OpenMode::Read).unwrap();
        assert!(life == 0 || file.allocated().unwrap() <= 8192);
        env = image(&env.freeze(), Cut::Kill, 0);
    }
}
