//! Damaged segments that hold large values of a keyspace whose comparator is not given.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use super::{RepairReport, repair};
use crate::env::sim::{Cut, Rng, SimEnv};
use crate::env::{Env, OpenMode};
use crate::error::Finding;
use crate::verify::verify_path;
use crate::{Comparator, Db, KeyOrder, KeyspaceOptions, Options};

const DIR: &str = "/db";
const LOST_NAME: &str = "recovered-1";
/// The segment with the large values.
const FIRST: &str = "0000000001.log";

struct Backwards;

impl Comparator for Backwards {
    fn name(&self) -> &str {
        "test.backwards"
    }
    fn compare(&self, a: &[u8], b: &[u8]) -> std::cmp::Ordering {
        b.cmp(a)
    }
}

fn backwards() -> KeyOrder {
    KeyOrder::Custom(Arc::new(Backwards))
}

/// With the comparator, also under the name that the keyspace has when its own is lost.
fn with() -> Options {
    let named = |o: Options, name: &str| o.keyspace_comparator(name, backwards());
    named(named(Options::new().memory(1 << 20).segment_size(256 << 10), "custom"), LOST_NAME)
}

fn run(env: &SimEnv, options: &Options) -> RepairReport {
    env.forget_failures();
    repair(Arc::new(env.clone()), Path::new(DIR), options).unwrap()
}

fn open(env: &SimEnv) -> crate::Result<Db> {
    env.forget_failures();
    Db::open_in(Arc::new(env.clone()), Path::new(DIR), with())
}

fn copy(env: &SimEnv) -> SimEnv {
    env.freeze().draw(Cut::Kill, &mut Rng::new(0), true).0
}

/// What is in a store: of the keyspace under the comparator, and of the other.
type Held = [BTreeMap<Vec<u8>, Vec<u8>>; 2];

fn held(db: &Db) -> Held {
    let mut all = Held::default();
    for name in db.keyspaces() {
        let of = usize::from(name == "default");
        for entry in db.keyspace(&name).unwrap().iter().copied_out() {
            let (key, value) = entry.unwrap();
            all[of].insert(key, value);
        }
    }
    all
}

/// A value that stays in the log, as it cannot be packed.
fn large(seed: u32) -> Vec<u8> {
    let mut at = seed;
    let mut next = || {
        at = at.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (at >> 24) as u8
    };
    (0..40_000).map(|_| next()).collect()
}

/// A store whose first segment has large values that tables point to: of the keyspace under the comparator, and of the
/// other too if `both`.
fn store(seed: u64, both: bool, closed: bool) -> (SimEnv, Held) {
    let env = SimEnv::new(seed, true);
    env.create_dir(Path::new(DIR)).unwrap();
    let db = open(&env).unwrap();
    let custom =
        db.create_keyspace("custom", KeyspaceOptions::new().comparator(backwards())).unwrap();
    for n in 0..100u32 {
        db.put(n.to_be_bytes(), [1; 100]).unwrap();
        custom.put(n.to_be_bytes(), [2; 100]).unwrap();
    }
    custom.put("large 1", large(1)).unwrap();
    if both {
        db.put("large 2", large(2)).unwrap();
    }
    custom.put("large 3", large(3)).unwrap();
    db.flush().unwrap();
    for n in 50..150u32 {
        db.put(n.to_be_bytes(), [3; 100]).unwrap();
        custom.put(n.to_be_bytes(), [4; 100]).unwrap();
    }
    let want = held(&db);
    drop(custom);
    if closed {
        db.close().unwrap();
    } else {
        db.sync().unwrap();
    }
    (copy(&env), want)
}

/// What is wrong with the first segment.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Harm {
    Header,
    /// And nothing is left of it but large values.
    HeaderAndFrames,
    /// The same, and the header is nothing, as that of a segment which was never synced.
    NoHeaderNorFrames,
    CutBehindValues,
    CutWithinValue,
    Gone,
}

const HARMS: [Harm; 6] = [
    Harm::Header,
    Harm::HeaderAndFrames,
    Harm::NoHeaderNorFrames,
    Harm::CutBehindValues,
    Harm::CutWithinValue,
    Harm::Gone,
];

impl Harm {
    fn to(self, env: &SimEnv) {
        let path = Path::new(DIR).join(FIRST);
        if self == Harm::Gone {
            env.remove(&path).unwrap();
            return env.sync_dir(Path::new(DIR)).unwrap();
        }
        let file = env.open(&path, OpenMode::ReadWrite).unwrap();
        let mut bytes = vec![0; file.len().unwrap() as usize];
        file.read_exact_at(&mut bytes, 0).unwrap();
        let place = |value: Vec<u8>| bytes.windows(64).position(|w| w == &value[..64]);
        let places = [1, 2, 3].map(|n| place(large(n)));
        let first = places[0].unwrap();
        match self {
            Harm::CutBehindValues => file.set_len(bytes.len() as u64 - 4096).unwrap(),
            Harm::CutWithinValue => file.set_len(places[2].unwrap() as u64 + 20_000).unwrap(),
            _ => file.write_all_at(&[0xA5; 8], 32).unwrap(),
        }
        if matches!(self, Harm::HeaderAndFrames | Harm::NoHeaderNorFrames) {
            for at in places.into_iter().flatten() {
                file.write_all_at(&[0; 32], at as u64 - 32).unwrap();
            }
            let from = if self == Harm::HeaderAndFrames { 4096 } else { 0 };
            file.write_all_at(&vec![0; first - from], from as u64).unwrap();
            let behind = places[2].unwrap() + 40_000;
            file.write_all_at(&vec![0; bytes.len() - behind], behind as u64).unwrap();
        }
        file.sync().unwrap();
    }

    /// The large values that it takes.
    fn takes(self) -> &'static [u32] {
        match self {
            Harm::Gone => &[1, 2, 3],
            Harm::CutWithinValue => &[3],
            _ => &[],
        }
    }
}

fn remove_manifest(env: &SimEnv) {
    for name in env.list(Path::new(DIR)).unwrap() {
        if name.starts_with("MANIFEST") || name == "CURRENT" {
            env.remove(&Path::new(DIR).join(name)).unwrap();
        }
    }
}

fn files(env: &SimEnv) -> BTreeMap<String, Vec<u8>> {
    let read = |name: String| {
        let file = env.open(&Path::new(DIR).join(&name), OpenMode::Read).ok()?;
        let mut bytes = vec![0; file.len().unwrap() as usize];
        file.read_exact_at(&mut bytes, 0).unwrap();
        Some((name, bytes))
    };
    env.list(Path::new(DIR)).unwrap().into_iter().filter_map(read).collect()
}

/// Repaired with the comparator the store has all but what the harm took of it, and each loss is told.
fn repaired_with_it(env: &SimEnv, mut want: Held, harm: Harm, told: &[Finding], what: &str) {
    let report = run(env, &with());
    assert!(report.changed && report.unchecked.is_empty(), "{what}: {report:#?}");
    let told: Vec<&Finding> = told.iter().chain(&report.lost).collect();
    for n in harm.takes() {
        let key = format!("large {n}").into_bytes();
        if want[usize::from(*n == 2)].remove(&key).is_some() {
            let between =
                |(from, to): &(Vec<u8>, Vec<u8>)| (from.min(to) <= &key) && (&key <= from.max(to));
            let of_it = |l: &&Finding| l.keys.as_ref().is_some_and(between);
            assert!(told.iter().any(of_it), "{what}: large {n}: {told:#?}");
        }
    }
    if harm.takes().is_empty() {
        assert!(told.iter().all(|l| l.keys.is_none()), "{what}: {told:#?}");
    }
    let db = open(env).unwrap_or_else(|e| panic!("{what}: {e}"));
    let found = held(&db);
    for (of, (found, want)) in found.iter().zip(&want).enumerate() {
        let keys = |of: &BTreeMap<Vec<u8>, Vec<u8>>| of.keys().cloned().collect::<Vec<_>>();
        assert_eq!(keys(found), keys(want), "{what}: {of}");
        assert!(found == want, "{what}: {of}");
    }
    db.close().unwrap();
    let options = with();
    let orders = crate::recovery::orders_of(&options).unwrap();
    let env = Arc::new(env.clone());
    let problems = verify_path(env, Path::new(DIR), &orders, &mut |_, _| {}).unwrap().problems;
    assert!(problems.is_empty(), "{what}: {problems:#?}");
}

/// In all ways in which the segment can be damaged: `both` keyspaces have values in it or one, the store was killed or
/// closed, its manifest is there or not.
fn each(mut check: impl FnMut(SimEnv, Held, Harm, &str)) {
    for (seed, harm) in (1..).zip(HARMS) {
        for case in 0..8 {
            let [both, closed, manifest] = [1, 2, 4].map(|bit| case & bit != 0);
            let what = format!("{harm:?}, both: {both}, closed: {closed}, manifest: {manifest}");
            let (env, want) = store(seed, both, closed);
            harm.to(&env);
            if !manifest {
                remove_manifest(&env);
            }
            check(env, want, harm, &what);
        }
    }
}

/// What lies before the large values of a segment is given back to the file system once it is in tables, or when the
/// store is closed: they were lost with one bit of the header, as no frame begins the segment.
#[test]
fn large_values_were_lost_with_a_header_that_no_frame_follows() {
    each(|env, want, harm, what| repaired_with_it(&env, want, harm, &[], what));
}

/// Tables that cannot be written anew went on to point into the segment: the store did not open, nobody said so, and
/// each repair wrote it again.
#[test]
fn a_damaged_segment_with_values_of_an_unknown_order_waits_for_the_comparator() {
    each(|env, want, harm, what| {
        let first = run(&env, &Options::new());
        let waits = |r: &RepairReport| {
            let of_it = |f: &&Finding| f.what.contains("\"test.backwards\"") && f.file == FIRST;
            r.unchecked.iter().filter(of_it).count() == 1
        };
        assert!(waits(&first), "{what}: {first:#?}");
        let e = open(&copy(&env)).unwrap_err();
        assert!(e.is_corruption(), "{what}: {e}");
        let before = files(&env);
        assert!(harm == Harm::Gone || before.contains_key(FIRST), "{what}: {:?}", before.keys());
        let again = run(&env, &Options::new());
        assert!(!again.changed && again.lost.is_empty(), "{what}: {again:#?}");
        assert!(waits(&again), "{what}: {again:#?}");
        assert!(files(&env) == before, "{what}");
        repaired_with_it(&env, want, harm, &first.lost, what);
    });
}

/// A segment that is whole stays where it is, whatever else is damaged.
#[test]
fn a_whole_segment_with_values_of_an_unknown_order_stays() {
    for case in 0..8 {
        let [both, closed, manifest] = [1, 2, 4].map(|bit| case & bit != 0);
        let what = format!("both: {both}, closed: {closed}, manifest: {manifest}");
        let (env, want) = store(9, both, closed);
        if manifest {
            // Of the default keyspace: a byte of the footer.
            let names = env.list(Path::new(DIR)).unwrap();
            let table = names.iter().filter(|n| n.ends_with(".tbl")).min().unwrap();
            let file = env.open(&Path::new(DIR).join(table), OpenMode::ReadWrite).unwrap();
            file.write_all_at(&[0xA5; 4], file.len().unwrap() - 20).unwrap();
            file.sync().unwrap();
        } else {
            remove_manifest(&env);
        }
        let bytes = files(&env).remove(FIRST);
        let first = run(&env, &Options::new());
        assert!(first.changed && first.lost.iter().all(|l| l.keys.is_none()), "{what}: {first:#?}");
        assert!(files(&env).remove(FIRST) == bytes, "{what}");
        let again = run(&env, &Options::new());
        assert!(!again.changed && again.lost.is_empty(), "{what}: {again:#?}");
        for _ in 0..2 {
            let again = run(&env, &with());
            assert!(!again.changed && again.unchecked.is_empty(), "{what}: {again:#?}");
            let db = open(&env).unwrap_or_else(|e| panic!("{what}: {e}"));
            assert!(held(&db) == want, "{what}");
            db.close().unwrap();
        }
    }
}
