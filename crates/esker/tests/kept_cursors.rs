//! A cursor that is kept shows its moment until it is refreshed, and moves on to what compactions made of it.
//!
//! `ESKER_SECONDS=n` sets how long the walks beside a writer take (2, or 8), `ESKER_SEED=n` the seed.

mod common;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use common::rng::Rng;
use common::{no_case, number, quick_or_full, seed};
use esker::{
    Compression, Cursor, Db, Error, KeyOrder, Keyspace, KeyspaceOptions, Options, Snapshot,
};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

fn options() -> Options {
    Options::new().memory(4 << 20).compression(Compression::None)
}

/// Some flushes, each with a part of the keys.
fn in_flushes(db: &Db) {
    for run in 0..5u32 {
        for n in 0..400 {
            db.put((n * 5 + run).to_be_bytes(), [run as u8; 100]).unwrap();
        }
        db.flush().unwrap();
    }
}

/// The entries of a walk, in one direction or the other.
fn all(cursor: &mut Cursor, back: bool) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut found = Vec::new();
    let mut on_entry = if back { cursor.last() } else { cursor.first() }.unwrap();
    while on_entry {
        found.push((cursor.key().to_vec(), cursor.value().to_vec()));
        on_entry = if back { cursor.prev() } else { cursor.next() }.unwrap();
    }
    if back {
        found.reverse();
    }
    found
}

fn pinned(db: &Db) -> u64 {
    db.stats().pinned_bytes
}

/// That nothing is pinned any more; the background thread may look at a view for a moment.
fn nothing_is_pinned(db: &Db) -> bool {
    let end = Instant::now() + Duration::from_secs(20);
    while pinned(db) > 0 && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(1));
    }
    pinned(db) == 0
}

#[test]
fn a_cursor_that_is_kept_searched_the_runs_of_its_first_moment_for_ever() {
    let dir = tempfile::tempdir().unwrap();
    let db = options().open(dir.path().join("db")).unwrap();
    in_flushes(&db);
    let snapshot = db.snapshot();
    let mut cursors = [db.cursor(), db.cursor_keys_only(), db.at(&snapshot).cursor()];
    let entries = all(&mut cursors[0], false);
    assert_eq!(entries.len(), 2000);
    db.compact_range::<&[u8]>(..).unwrap();
    assert!(pinned(&db) > 200_000, "{} bytes", pinned(&db));
    // Each move to a place of its own makes it look.
    assert!(cursors[0].seek(7u32.to_be_bytes()).unwrap());
    assert!(cursors[1].seek_for_prev(7u32.to_be_bytes()).unwrap());
    assert!(cursors[2].last().unwrap());
    assert!(nothing_is_pinned(&db));
    assert_eq!((cursors[0].key(), cursors[0].value()), (&7u32.to_be_bytes()[..], &[2; 100][..]));
    assert_eq!((cursors[1].key(), cursors[1].value()), (&7u32.to_be_bytes()[..], &[][..]));
    assert_eq!(cursors[2].key(), 1999u32.to_be_bytes());
    assert!(cursors[0].first().unwrap());
    assert_eq!(all(&mut cursors[0], true), entries);
    assert_eq!(all(&mut cursors[2], false), entries);
}

#[test]
fn a_cursor_of_the_past_stays_with_what_it_has_and_that_of_a_snapshot_moves_on() {
    let dir = tempfile::tempdir().unwrap();
    let db = options().open(dir.path().join("db")).unwrap();
    in_flushes(&db);
    let snapshot = db.snapshot();
    let (mut plain, mut held) = (db.cursor(), db.at(&snapshot).cursor());
    let mut ended = db.at(&db.snapshot()).cursor();
    let entries = all(&mut plain, false);
    for n in 0..1000u32 {
        db.put(n.to_be_bytes(), "newer").unwrap();
        db.delete((1000 + n).to_be_bytes()).unwrap();
    }
    db.compact_range::<&[u8]>(..).unwrap();
    let held_by_all = pinned(&db);
    assert!(held_by_all > 200_000, "{held_by_all} bytes");
    for (cursor, back) in [(&mut plain, false), (&mut ended, true), (&mut held, false)] {
        assert_eq!(all(cursor, back), entries);
    }
    // Those without a snapshot keep their tables; that of the snapshot none of its own.
    drop((plain, ended));
    assert!(nothing_is_pinned(&db));
    // Its snapshot goes: what it sees stays, as it was when it last looked.
    drop(snapshot);
    db.compact_range::<&[u8]>(..).unwrap();
    assert_eq!(all(&mut held, true), entries);
    assert_eq!(db.iter().count(), 1000);
}

#[test]
fn a_cursor_that_is_kept_goes_on_after_its_keyspace_or_its_store_is_gone() {
    let dir = tempfile::tempdir().unwrap();
    let db = options().open(dir.path().join("db")).unwrap();
    in_flushes(&db);
    let other = db.create_keyspace("other", KeyspaceOptions::new()).unwrap();
    other.put("ash", "Fraxinus").unwrap();
    let (mut of_other, mut of_db) = (other.cursor(), db.cursor());
    let entries = all(&mut of_db, false);
    db.drop_keyspace("other").unwrap();
    assert!(of_other.first().unwrap());
    assert_eq!((of_other.key(), of_other.value()), (&b"ash"[..], &b"Fraxinus"[..]));
    db.clone().close().unwrap();
    assert_eq!(all(&mut of_db, true), entries);
    // One that was made too late never moves, whatever it is asked.
    let mut late = db.cursor();
    for _ in 0..2 {
        assert!(matches!(late.first(), Err(Error::Closed)));
        assert!(matches!(late.refresh(), Err(Error::Closed)));
        assert!(!late.valid());
    }
    // There is nothing to go on with, and what they have stays.
    assert!(matches!(of_db.refresh(), Err(Error::Closed)));
    assert!(of_other.refresh().is_err());
    assert_eq!(all(&mut of_db, false), entries);
    assert!(of_other.last().unwrap());
}

#[test]
fn a_cursor_that_is_refreshed_shows_what_was_written_since() {
    let dir = tempfile::tempdir().unwrap();
    let db = options().open(dir.path().join("db")).unwrap();
    let snapshot = db.snapshot();
    let (mut now, mut keys, mut held) =
        (db.cursor(), db.cursor_keys_only(), db.at(&snapshot).cursor());
    let refresh = |cursors: [&mut Cursor; 3]| {
        for cursor in cursors {
            cursor.refresh().unwrap();
            assert!(!cursor.valid() && cursor.key().is_empty() && cursor.value().is_empty());
            assert!(!cursor.next().unwrap() && !cursor.prev().unwrap());
        }
    };
    // The memtable that was empty when they were made; more entries of it; tombstones; tables; a memtable over them.
    for n in 0..5u32 {
        db.put(n.to_be_bytes(), "value").unwrap();
        if n == 2 {
            db.delete(0u32.to_be_bytes()).unwrap();
        }
        if n == 3 {
            db.compact_range::<&[u8]>(..).unwrap();
        }
        let before = all(&mut now, false);
        refresh([&mut now, &mut keys, &mut held]);
        let entries = all(&mut now, false);
        assert!(before.len() < entries.len() || n == 2, "{n}");
        assert_eq!(entries, all(&mut db.cursor(), false));
        assert_eq!(all(&mut keys, true).len(), entries.len());
        assert!(!held.first().unwrap(), "its snapshot has nothing");
    }
    // In the middle of walks both ways, with a value of a segment in the hand.
    db.put(7u32.to_be_bytes(), vec![7; 100_000]).unwrap();
    refresh([&mut now, &mut keys, &mut held]);
    assert!(now.last().unwrap() && now.prev().unwrap() && now.next().unwrap());
    assert_eq!(now.value().len(), 100_000);
    refresh([&mut now, &mut keys, &mut held]);
    assert!(now.seek(7u32.to_be_bytes()).unwrap());
    // What it held before is nobody's any more.
    db.compact_range::<&[u8]>(..).unwrap();
    refresh([&mut now, &mut keys, &mut held]);
    drop((held, snapshot));
    assert!(nothing_is_pinned(&db));
}

/// A memtable is in the view before its first entry is: a cursor that left it out as empty has to take it up later.
#[test]
fn a_cursor_that_is_refreshed_beside_a_writer_misses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let db = options().segment_size(64 << 10).open(dir.path().join("db")).unwrap();
    let (put, ends) = (AtomicU32::new(0), AtomicBool::new(false));
    std::thread::scope(|s| {
        s.spawn(|| {
            for n in 1..=number("ESKER_PUTS").unwrap_or(quick_or_full(20_000, 200_000)) as u32 {
                // Each third memtable begins with a large value.
                db.put(n.to_be_bytes(), vec![0; if n % 3 == 0 { 20_000 } else { 10 }]).unwrap();
                put.store(n, Ordering::Release);
            }
            ends.store(true, Ordering::Release);
        });
        let (mut cursor, mut refreshed) = (db.cursor(), 0u64);
        while !ends.load(Ordering::Acquire) {
            let least = put.load(Ordering::Acquire);
            cursor.refresh().unwrap();
            let on_entry = cursor.last().unwrap();
            let last = on_entry.then(|| u32::from_be_bytes(cursor.key().try_into().unwrap()));
            assert!(last.unwrap_or(0) >= least, "{last:?} was the last after {least} were put");
            refreshed += 1;
        }
        println!("refreshed {refreshed} times");
    });
}

/// A cursor, what it has to show, and the snapshot it was made of.
struct Kept {
    cursor: Cursor,
    shows: Map,
    snapshot: Option<Snapshot>,
    of_snapshot: bool,
}

/// A key without letters, which one of the orders takes for each other.
fn text(n: usize) -> Vec<u8> {
    format!("{n:06}").into_bytes()
}

/// Writes to a keyspace, keeps cursors, and asks them.
struct World<'a> {
    db: &'a Db,
    space: &'a Keyspace,
    reverse: bool,
    rng: Rng,
    map: Map,
    kept: Vec<Kept>,
    asked: usize,
}

impl World<'_> {
    fn key(&mut self) -> Vec<u8> {
        text(self.rng.below(300) * 3)
    }

    fn write(&mut self) {
        for _ in 0..self.rng.below(100) {
            let key = self.key();
            if self.rng.one_in(4) {
                self.space.delete(&key).unwrap();
                self.map.remove(&key);
            } else {
                // Some stay in the log.
                let len = self.rng.pick(&[0, 30, 300, 6000]);
                let value = self.rng.bytes(len);
                self.space.put(&key, &value).unwrap();
                self.map.insert(key, value);
            }
        }
    }

    fn load(&mut self) {
        let (first, value) = (self.rng.below(900), self.rng.bytes(20));
        let keys = (0..50).map(|i| text(first + i));
        let mut entries: Vec<_> = keys.map(|key| (key, value.clone())).collect();
        if self.reverse {
            entries.reverse();
        }
        self.space.bulk_load(entries.iter().map(|(k, v)| (k, v))).unwrap();
        self.map.extend(entries);
    }

    fn keep(&mut self) {
        let snapshot = self.rng.one_in(2).then(|| self.db.snapshot());
        let cursor = match &snapshot {
            Some(snapshot) => self.space.at(snapshot).cursor(),
            None => self.space.cursor(),
        };
        let of_snapshot = snapshot.is_some();
        self.kept.push(Kept { cursor, shows: self.map.clone(), snapshot, of_snapshot });
        if self.kept.len() > 6 {
            let gone = self.rng.below(self.kept.len());
            self.kept.swap_remove(gone);
        }
    }

    /// One of the kept goes on with the present, if it is not a snapshot's.
    fn refresh(&mut self) {
        if self.kept.is_empty() {
            return;
        }
        let at = self.rng.below(self.kept.len());
        let kept = &mut self.kept[at];
        kept.cursor.refresh().unwrap();
        assert!(!kept.cursor.valid());
        if !kept.of_snapshot {
            kept.shows = self.map.clone();
        }
    }

    /// One of the kept, by searches and by a walk.
    fn ask(&mut self) {
        if self.kept.is_empty() {
            return;
        }
        let at = self.rng.below(self.kept.len());
        let reverse = self.reverse;
        for _ in 0..5 {
            let (key, back) = (self.key(), self.rng.one_in(2));
            let Kept { cursor, shows, .. } = &mut self.kept[at];
            let on_entry = if back { cursor.seek_for_prev(&key) } else { cursor.seek(&key) };
            let expected = match back != reverse {
                true => shows.range(..=key).next_back(),
                false => shows.range(key..).next(),
            };
            assert_eq!(on_entry.unwrap(), expected.is_some());
            let found = cursor.valid().then(|| (cursor.key(), cursor.value()));
            assert!(found == expected.map(|(k, v)| (&k[..], &v[..])), "another entry");
        }
        let back = self.rng.one_in(2);
        let Kept { cursor, shows, snapshot, .. } = &mut self.kept[at];
        let mut found = all(cursor, back);
        if reverse {
            found.reverse();
        }
        assert!(found.iter().map(|(k, v)| (k, v)).eq(shows.iter()), "other entries");
        if self.rng.one_in(5) {
            *snapshot = None;
        }
        self.asked += 1;
    }
}

#[test]
fn cursors_that_are_kept_beside_writes_and_compactions_equal_their_maps() {
    let seed = seed("kept cursors");
    let time = Duration::from_secs(number("ESKER_SECONDS").unwrap_or(quick_or_full(2, 8)));
    let orders = [KeyOrder::Bytewise, KeyOrder::Reverse, no_case()];
    for (order, seed) in orders.into_iter().zip(seed..) {
        let dir = tempfile::tempdir().unwrap();
        let db = options().open(dir.path().join("db")).unwrap();
        let space =
            db.create_keyspace("space", KeyspaceOptions::new().comparator(order.clone())).unwrap();
        let mut world = World {
            db: &db,
            space: &space,
            reverse: matches!(order, KeyOrder::Reverse),
            rng: Rng::new(seed),
            map: Map::new(),
            kept: Vec::new(),
            asked: 0,
        };
        let (ends, end) = (AtomicBool::new(false), Instant::now() + time);
        std::thread::scope(|s| {
            s.spawn(|| {
                while !ends.load(Ordering::Relaxed) {
                    space.compact_range::<&[u8]>(..).unwrap();
                }
            });
            // Ends the thread in whatever way this one ends.
            struct End<'a>(&'a AtomicBool);
            impl Drop for End<'_> {
                fn drop(&mut self) {
                    self.0.store(true, Ordering::Relaxed);
                }
            }
            let _end = End(&ends);
            while Instant::now() < end {
                match world.rng.below(9) {
                    0 => world.write(),
                    1 => world.keep(),
                    8 => world.refresh(),
                    2 if world.rng.one_in(4) => world.load(),
                    2 => db.flush().unwrap(),
                    _ => world.ask(),
                }
            }
        });
        println!("{order:?}: {} cursors asked", world.asked);
        assert!(world.asked > 20);
    }
}
