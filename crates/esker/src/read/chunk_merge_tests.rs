//! Long walks over many sources, against a sorted map.

use std::collections::BTreeMap;
use std::os::unix::fs::FileExt as _;

use crate::util::Rng;
use crate::{Compression, Cursor, Db, KeyOrder, Keyspace, KeyspaceOptions, Options, Snapshot};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// Keys in several shapes: dense, with prefixes that end here and there, and with zeros at the end, which look like the end
/// of a key to an abbreviated one.
fn key(rng: &mut Rng, shape: usize) -> Vec<u8> {
    let n = rng.below(600) as u64;
    match shape {
        0 => format!("{n:016}").into_bytes(),
        1 => format!("{}/{}", "abc".repeat(1 + (n % 7) as usize), n / 7).into_bytes(),
        2 => {
            [vec![0; (n % 5) as usize], n.to_be_bytes()[6..].to_vec(), vec![0; (n / 120) as usize]]
                .concat()
        }
        _ => [vec![b'k'; 300 * (n % 3) as usize], n.to_string().into_bytes()].concat(),
    }
}

fn value(rng: &mut Rng, at: usize) -> Vec<u8> {
    let len = match rng.below(20) {
        0 => 0,
        1 => 3000,
        2 => 700,
        _ => 10 + rng.below(30),
    };
    format!("{at}:").into_bytes().into_iter().cycle().take(len).collect()
}

/// A store of many memtables and runs that overlap, a snapshot of it on the way, and what both hold.
struct Store {
    _dir: tempfile::TempDir,
    _db: Db,
    keyspace: Keyspace,
    now: Model,
    then: (Snapshot, Model),
}

impl Store {
    fn new(rng: &mut Rng, order: KeyOrder, compression: Compression) -> Store {
        let dir = tempfile::tempdir().unwrap();
        let options = Options::new().memory(4 << 20).flush_on_close(false).blob_threshold(2000);
        let db = options.open(dir.path().join("db")).unwrap();
        let options =
            KeyspaceOptions::new().comparator(order).compression(compression).blob_threshold(2000);
        let keyspace = db.create_keyspace("walked", options).unwrap();
        let shape = rng.below(4);
        let mut now = Model::new();
        let mut then = None;
        let rounds = 2 + rng.below(4);
        for round in 0..rounds {
            for at in 0..rng.below(400) {
                let key = key(rng, shape);
                if rng.below(5) == 0 {
                    keyspace.delete(&key).unwrap();
                    now.remove(&key);
                } else {
                    let value = value(rng, at);
                    keyspace.put(&key, &value).unwrap();
                    now.insert(key, value);
                }
            }
            if rng.below(4) == 0 {
                // A row of dead keys.
                let dead: Vec<_> = now.keys().skip(rng.below(60)).take(20).cloned().collect();
                for key in dead {
                    keyspace.delete(&key).unwrap();
                    now.remove(&key);
                }
            }
            if then.is_none() && (rng.below(2) == 0 || round + 1 == rounds) {
                then = Some((db.snapshot(), now.clone()));
            }
            if rng.below(3) > 0 {
                db.flush().unwrap();
            }
        }
        Store {
            _dir: dir,
            _db: db,
            keyspace,
            now,
            then: then.expect("each round may take one, the last does"),
        }
    }
}

/// Walks for a while, and turns now and then.
fn walk(
    rng: &mut Rng,
    mut cursor: Cursor,
    model: &Model,
    reverse: bool,
    keys_only: bool,
    what: &str,
) {
    let mut entries: Vec<(&Vec<u8>, &Vec<u8>)> = model.iter().collect();
    if reverse {
        entries.reverse();
    }
    let mut at: i64 = if rng.below(2) == 0 { 0 } else { entries.len() as i64 - 1 };
    let mut forward = at == 0;
    let found = if forward { cursor.first() } else { cursor.last() };
    assert_eq!(found.unwrap(), !entries.is_empty(), "{what}");
    let mut left = 0;
    for move_number in 0..2500 {
        let here = usize::try_from(at).ok().and_then(|at| entries.get(at));
        let (len, from) = (entries.len(), at);
        let what = || format!("{what}, move {move_number}, entry {from} of {len}");
        assert_eq!(cursor.valid(), here.is_some(), "{}", what());
        let Some((key, value)) = here else { break };
        assert!(cursor.key() == &key[..], "{}: {:?} for {:?}", what(), cursor.key(), key);
        let expected: &[u8] = if keys_only { &[] } else { value };
        assert!(cursor.value() == expected, "{}: another value", what());
        if left == 0 {
            (forward, left) = (rng.below(2) == 0, 1 + rng.below(80));
        }
        left -= 1;
        at += if forward { 1 } else { -1 };
        let moved = if forward { cursor.next() } else { cursor.prev() };
        assert_eq!(
            moved.unwrap(),
            usize::try_from(at).is_ok_and(|at| at < entries.len()),
            "{}",
            what()
        );
    }
}

#[test]
#[cfg_attr(miri, ignore = "opens stores")]
fn long_walks_see_what_a_sorted_map_has() {
    for seed in 0..if std::env::var_os("ESKER_CAMPAIGN").is_some() { 400 } else { 20 } {
        let mut rng = Rng::new(seed);
        let reverse = rng.below(2) == 0;
        let order = if reverse { KeyOrder::Reverse } else { KeyOrder::Bytewise };
        let compression = [Compression::None, Compression::Lz4][rng.below(2)];
        let store = Store::new(&mut rng, order, compression);
        let (snapshot, then) = &store.then;
        for turn in 0..6 {
            let what = format!("seed {seed}, walk {turn}");
            let present = turn % 2 == 0;
            let model = if present { &store.now } else { then };
            let (cursor, keys_only) = match (present, turn == 4) {
                (true, true) => (store.keyspace.cursor_keys_only(), true),
                (true, false) => (store.keyspace.cursor(), false),
                (false, _) => (store.keyspace.at(snapshot).cursor(), false),
            };
            walk(&mut rng, cursor, model, reverse, keys_only, &what);
        }
    }
}

/// What a reader does not see was passed to its end, however much that was, before the first chunk was merged; and to the end
/// of its block, with a look at the next one, where it stood behind what the reader sees.
#[test]
#[cfg_attr(miri, ignore = "opens a store")]
fn a_walk_at_a_snapshot_passes_what_it_does_not_see_as_it_comes() {
    // Some hundred bytes an entry: the first that is not seen is in the first block, or far from its end.
    for (seen, damaged_from) in [(0, 409_600), (26, 4096), (30, 4096), (34, 4096)] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("db");
        let options =
            Options::new().memory(16 << 20).flush_on_close(false).compression(Compression::None);
        let db = options.open(&path).unwrap();
        for n in 0..60_000 {
            db.put(format!("{n:06}a"), [1; 100]).unwrap();
        }
        db.flush().unwrap();
        db.wait_for_compactions().unwrap();
        let before = tables(&path);
        for n in 0..seen {
            db.put(format!("{n:06}b"), [2; 100]).unwrap();
        }
        let snapshot = db.snapshot();
        for n in 300..10_300 {
            db.put(format!("{n:06}b"), [2; 100]).unwrap();
        }
        db.flush().unwrap();
        assert!(before.iter().all(|t| t.exists()), "the older ones are there");
        // Tables of a run are numbered in the order of their keys.
        let newer = tables(&path).into_iter().filter(|t| !before.contains(t)).min();
        let damaged = std::fs::OpenOptions::new().write(true).open(newer.unwrap()).unwrap();
        damaged.write_at(&[0; 4096], damaged_from).unwrap();
        let mut cursor = db.at(&snapshot).cursor();
        assert!(cursor.first().unwrap());
        for n in 0..200 {
            assert_eq!(cursor.key(), format!("{n:06}a").as_bytes());
            assert!(cursor.next().unwrap());
            if n < seen {
                assert_eq!(cursor.key(), format!("{n:06}b").as_bytes());
                assert!(cursor.next().unwrap());
            }
        }
    }
}

fn tables(dir: &std::path::Path) -> Vec<std::path::PathBuf> {
    let files = std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().path());
    files.filter(|p| p.extension().is_some_and(|e| e == "tbl")).collect()
}
