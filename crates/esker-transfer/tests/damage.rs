//! A database with any bytes changed: an error that names a file, or what was there; never anything
//! else, and of a salvage only what was once written.

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use common::{Operations, Rng, run, state};
use esker_transfer::leveldb::{LevelDb, Settings, Writer};
use esker_transfer::{Error, Report};

type Entry = (Vec<u8>, Vec<u8>);

fn read(dir: &Path, salvage: bool) -> Result<(Vec<Entry>, Report), Error> {
    let scratch = std::env::temp_dir();
    let mut db = LevelDb::open(dir, Settings { salvage, raw: false, memory: 1 << 20, scratch })?;
    let all = db.entries()?.collect::<Result<_, _>>()?;
    Ok((all, db.report().clone()))
}

/// Changes some bytes, or their number.
fn damage(bytes: &mut Vec<u8>, rng: &mut Rng) {
    let at = rng.below(bytes.len() + 1);
    let most = 1 << rng.below(14);
    let len = rng.below(most).min(bytes.len() - at);
    match rng.below(7) {
        0 => bytes.truncate(at),
        1 => drop(bytes.drain(at..at + len)),
        2 => bytes[at..at + len].fill(0),
        3 => bytes[at..at + len].fill_with(|| rng.next() as u8),
        4 => {
            let copy = bytes[at..at + len].to_vec();
            let to = rng.below(bytes.len() + 1);
            bytes.splice(to..to, copy);
        }
        5 => bytes.clear(),
        _ if at < bytes.len() => bytes[at] ^= 1 << rng.below(8),
        _ => bytes.push(0x55),
    }
}

/// How many databases are damaged.
fn rounds() -> u64 {
    if std::env::var_os("ESKER_CAMPAIGN").is_some() { 4000 } else { 300 }
}

/// All that was ever put.
fn history(mut bytes: &[u8]) -> BTreeSet<Entry> {
    fn next(bytes: &mut &[u8]) -> Vec<u8> {
        let (len, rest) = bytes.split_first_chunk::<4>().unwrap();
        let (found, rest) = rest.split_at(u32::from_ne_bytes(*len) as usize);
        *bytes = rest;
        found.to_vec()
    }
    let mut all = BTreeSet::new();
    while let Some((op, rest)) = bytes.split_first() {
        bytes = rest;
        match op {
            b'P' => {
                let key = next(&mut bytes);
                all.insert((key, next(&mut bytes)));
            }
            b'D' => drop(next(&mut bytes)),
            _ => {}
        }
    }
    all
}

#[test]
fn any_damage_is_an_error_or_harmless() {
    let dir = tempfile::tempdir().unwrap();
    let db = dir.path().join("db");
    let mut all = Operations::default();
    let mut rng = Rng(std::process::id().into());
    println!("seed {}", rng.0);
    for n in 0..6000u32 {
        let key = format!("key/{:04}", rng.below(1500));
        match rng.below(5) {
            0 => all.delete(key.as_bytes()),
            _ => all
                .put(key.as_bytes(), format!("value {n} {}", "x".repeat(rng.below(80))).as_bytes()),
        }
    }
    match common::program("leveldb", "leveldb") {
        Some(leveldb) => {
            let args = ["write", db.to_str().unwrap(), "65536", "1000", "1"];
            drop(run(&leveldb, &args, &all.bytes));
        }
        None => {
            let mut writer = Writer::create(&db, true).unwrap();
            all.map.iter().for_each(|(k, v)| writer.add(k, v).unwrap());
            writer.finish().unwrap();
        }
    }
    let expected: Vec<Entry> = all.map.clone().into_iter().collect();
    let history = history(&all.bytes);
    assert!(read(&db, false).unwrap().0 == expected);
    let files: Vec<_> =
        state(&db).into_iter().filter(|(name, ..)| !name.starts_with("LO")).collect();
    assert!(files.len() >= 3);

    let (mut errors, mut harmless, mut noted) = (0, 0, 0);
    for round in 0..rounds() {
        let (name, whole, _) = &files[rng.below(files.len())];
        let mut bytes = whole.clone();
        damage(&mut bytes, &mut rng);
        fs::write(db.join(name), &bytes).unwrap();
        match read(&db, false) {
            Ok((found, _)) if found == expected => harmless += 1,
            // A manifest or a log that ends early may have been left so by a crash; that is said.
            Ok((found, report)) => {
                let may = name.ends_with(".log") || name.starts_with("MANIFEST");
                assert!(may, "round {round}: {name}: {} entries, and no error", found.len());
                assert!(found.iter().all(|e| history.contains(e)));
                noted += usize::from(!report.notes.is_empty());
            }
            Err(Error::Damaged(lost)) => {
                assert!(lost.path.starts_with(&db), "round {round}: {lost}");
                errors += 1;
            }
            Err(e) => assert!(!e.to_string().is_empty() && name == "CURRENT", "{name}: {e}"),
        }
        match read(&db, true) {
            Ok((found, report)) => {
                // What ends early may have been left so by a crash, without a trace.
                let may = name.ends_with(".log") || name.starts_with("MANIFEST");
                let is_said = !report.lost.is_empty() || !report.notes.is_empty();
                assert!(found == expected || is_said || may, "round {round}: {name}");
                let strange = found.iter().find(|e| !history.contains(*e));
                assert!(strange.is_none(), "round {round}: {name}: {strange:?}");
                assert!(found.windows(2).all(|w| w[0].0 < w[1].0));
            }
            Err(e) => assert!(matches!(e, Error::Refused(_)), "round {round}: {name}: {e}"),
        }
        fs::write(db.join(name), whole).unwrap();
    }
    println!("{errors} errors, {harmless} harmless, {noted} noted");
    assert!(errors > 100, "{errors} errors, {harmless} harmless, {noted} noted");
}
