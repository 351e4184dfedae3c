//! What a store takes of the disk, of memory and of descriptors follows what is in it.

mod common;

use common::rng::Rng;
use esker::{KeyspaceOptions, Options, Stats};
use tempfile::tempdir;

/// What is held while everything is overwritten.
#[derive(Debug, Clone, Copy)]
enum Held {
    Cursor,
    Slice,
    CursorOfAnother,
    Snapshot,
}

fn live_bytes(len: usize) -> usize {
    // Of the smallest fewer, as there are so many.
    if len == 20 { 500_000 } else { 4_000_000 }
}

/// The state after all of some 4 MB of values of `len` bytes (0: of all sizes) were overwritten `rounds`
/// times, and the same once what was held is dropped.
fn overwritten(held: Held, len: usize, rounds: u32) -> (Stats, Stats) {
    let dir = tempdir().unwrap();
    let db = Options::new().memory(8 << 20).open(dir.path().join("db")).unwrap();
    let other = db.create_keyspace("other", KeyspaceOptions::new()).unwrap();
    other.put("a", [1; 5000]).unwrap();
    let mut rng = Rng::new(common::seed("what a view pins"));
    let lens = [20, 1000, 8000];
    let mut fill = |byte: u8| {
        let mut left = live_bytes(len);
        for n in 0u32.. {
            let len = if len == 0 { lens[n as usize % 3] } else { len };
            if left < len {
                break;
            }
            left -= len;
            // Nothing that packs well.
            let mut value = rng.bytes(len);
            value[0] = byte;
            db.put(n.to_be_bytes(), value).unwrap();
        }
        db.settle().unwrap();
    };
    fill(0);
    let (mut cursor, mut slice, mut snapshot) = (None, None, None);
    match held {
        Held::Cursor => cursor = Some(db.cursor()),
        Held::CursorOfAnother => cursor = Some(other.cursor()),
        Held::Slice => slice = db.get(7u32.to_be_bytes()).unwrap(),
        Held::Snapshot => snapshot = Some(db.snapshot()),
    }
    for round in 0..rounds {
        fill(round as u8 + 1);
    }
    let stats = db.stats();
    if let Some(cursor) = &mut cursor {
        // It still has what it saw.
        assert!(cursor.first().unwrap());
        while cursor.next().unwrap() {
            assert_eq!(cursor.value()[0], 0);
        }
    }
    if let Some(snapshot) = &snapshot {
        assert!(db.at(snapshot).iter().all(|e| e.unwrap().1[0] == 0));
    }
    drop((cursor, slice, snapshot));
    db.settle().unwrap();
    db.settle().unwrap();
    let after = db.stats();
    let show = |s: &Stats| [s.disk_bytes, s.pinned_bytes, s.garbage_bytes, s.log_bytes];
    println!("{held:?} {len} {rounds}: {:?} then {:?}", show(&stats), show(&after));
    (stats, after)
}

/// Any view, of any keyspace, kept the space of all large values from coming back that died while it
/// was held: more and more the longer it was.
#[test]
fn what_a_view_keeps_on_the_disk_is_what_it_can_see() {
    let mut too_much = Vec::new();
    for len in [20, 1000, 8000, 0] {
        for held in [Held::CursorOfAnother, Held::Cursor, Held::Slice, Held::Snapshot] {
            let (then, after) = overwritten(held, len, 8);
            if then.disk_bytes > 20 << 20 {
                too_much.push((held, len, then.disk_bytes));
            }
            // And what a view keeps is told.
            let least = if let Held::Cursor | Held::Slice = held { live_bytes(len) } else { 0 };
            let pinned = then.pinned_bytes as usize;
            // Segments are kept as a whole, and that of the value in the other keyspace has others.
            assert!((least / 2..=2 * least + (3 << 20)).contains(&pinned), "{pinned} bytes");
            assert_eq!(after.pinned_bytes, 0);
        }
    }
    assert!(too_much.is_empty(), "{too_much:?}");
}
