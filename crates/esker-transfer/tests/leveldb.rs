//! Databases that LevelDB wrote, read here, and the other way round.

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::{Map, Operations, entries, run, state};
use esker_transfer::leveldb::{LevelDb, Settings, Writer};
use esker_transfer::{Error, Lost, Report};

fn program() -> Option<PathBuf> {
    common::program("leveldb", "leveldb")
}

fn settings() -> Settings {
    Settings { salvage: false, raw: false, memory: 64 << 20, scratch: std::env::temp_dir() }
}

type Entry = (Vec<u8>, Vec<u8>);

fn read_with(dir: &Path, settings: Settings) -> Result<(Vec<Entry>, Report), Error> {
    let mut db = LevelDb::open(dir, settings)?;
    let all = db.entries()?.collect::<Result<_, _>>()?;
    db.check_unchanged()?;
    Ok((all, db.report().clone()))
}

fn read(dir: &Path) -> Vec<Entry> {
    let (all, report) = read_with(dir, settings()).unwrap();
    assert_eq!(report.lost_count, 0);
    all
}

/// What is said of a database that is not taken.
fn error_of(dir: &Path) -> String {
    match read_with(dir, settings()) {
        Err(e) => e.to_string(),
        Ok((all, report)) => panic!("{} entries, {report:?}", all.len()),
    }
}

fn sorted(map: &Map) -> Vec<Entry> {
    map.iter().map(|(k, v)| (k.clone(), v.clone())).collect()
}

/// Assertions on megabytes are not printed.
fn same(a: &[Entry], b: &[Entry]) {
    let at = a.iter().zip(b).position(|(a, b)| a != b);
    if let Some(at) = at {
        let short = |e: &Entry| (e.0.escape_ascii().to_string(), e.1.len());
        panic!("entry {at} differs: {:?}, {:?}", short(&a[at]), short(&b[at]));
    }
    assert_eq!(a.len(), b.len());
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn what_leveldb_wrote_is_read_whole_and_left_alone() {
    let Some(leveldb) = program() else { return };
    // Buffer, block, compression: what ends in several levels, in level 0, and in the log alone.
    for (seed, (buffer, block, compression, count)) in [
        (64 << 10, 4096, 1, 60_000),
        (64 << 10, 200, 0, 60_000),
        (1 << 20, 64 << 10, 1, 30_000),
        (64 << 20, 4096, 1, 3_000),
    ]
    .into_iter()
    .enumerate()
    {
        let dir = tempfile::tempdir().unwrap();
        let db = dir.path().join("db");
        let mut all = Operations::random(seed as u64, count);
        if seed == 1 {
            all.compact();
            for n in 0..500u32 {
                all.put(format!("user/{n:06}").as_bytes(), b"behind the compaction");
                all.delete(&n.to_be_bytes());
            }
        }
        let args = [buffer, block, compression].map(|n: i32| n.to_string());
        let args: Vec<_> =
            ["write", text(&db)].into_iter().chain(args.iter().map(String::as_str)).collect();
        run(&leveldb, &args, &all.bytes);
        let names: Vec<_> = state(&db).into_iter().map(|(name, ..)| name).collect();
        let tables = names.iter().filter(|n| n.ends_with(".ldb")).count();
        assert!(tables == 0 && seed == 3 || tables >= 3, "{names:?}");

        let before = state(&db);
        let expected = sorted(&all.map);
        same(&read(&db), &expected);
        // With no memory for the log, and with everything sorted anew.
        let little = Settings { memory: 100_000, scratch: dir.path().to_owned(), ..settings() };
        same(&read_with(&db, little.clone()).unwrap().0, &expected);
        let (salvaged, report) = read_with(&db, Settings { salvage: true, ..little }).unwrap();
        same(&salvaged, &expected);
        assert_eq!((report.lost_count, report.notes.len()), (0, 0));
        assert!(state(&db) == before, "the source is as it was");
        // LevelDB itself says the same.
        same(&entries(&run(&leveldb, &["read", text(&db)], b"")), &expected);
    }
}

fn write(dir: &Path, entries: &[Entry], compress: bool) -> Result<(), Error> {
    let mut writer = Writer::create(dir, compress)?;
    for (key, value) in entries {
        writer.add(key, value)?;
    }
    writer.finish()
}

#[test]
fn leveldb_reads_what_is_written_and_writes_on() {
    let Some(leveldb) = program() else { return };
    let empty = (Operations::default(), false);
    for (mut all, compress) in [
        (Operations::random(9, 60_000), true),
        (Operations::random(10, 60_000), false),
        (Operations::random(11, 10), true),
        empty,
    ] {
        let dir = tempfile::tempdir().unwrap();
        let db = dir.path().join("db");
        write(&db, &sorted(&all.map), compress).unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing beside it");
        same(&read(&db), &sorted(&all.map));
        // It opens with every check there is, finds all by walking and by key,
        same(&entries(&run(&leveldb, &["read", text(&db)], b"")), &sorted(&all.map));
        // takes more on top, compacts, and has it all when it opens again.
        let more = Operations::random(77, 20_000);
        let mut expected = std::mem::take(&mut all.map);
        let mut bytes = more.bytes;
        bytes.push(b'C');
        run(&leveldb, &["write", text(&db), "100000", "4096", "1"], &bytes);
        // What was deleted is gone, also below: the operations are applied to what was there.
        apply(&mut expected, &bytes);
        same(&entries(&run(&leveldb, &["read", text(&db)], b"")), &sorted(&expected));
        same(&read(&db), &sorted(&expected));
    }
}

fn apply(map: &mut Map, mut bytes: &[u8]) {
    fn next(bytes: &mut &[u8]) -> Vec<u8> {
        let (len, rest) = bytes.split_first_chunk::<4>().unwrap();
        let (found, rest) = rest.split_at(u32::from_ne_bytes(*len) as usize);
        *bytes = rest;
        found.to_vec()
    }
    while let Some((op, rest)) = bytes.split_first() {
        bytes = rest;
        match op {
            b'P' => {
                let key = next(&mut bytes);
                map.insert(key, next(&mut bytes));
            }
            b'D' => {
                map.remove(&next(&mut bytes));
            }
            _ => {}
        }
    }
}

#[test]
fn a_target_that_is_taken() {
    let dir = tempfile::tempdir().unwrap();
    let db = dir.path().join("db");
    let one = [(b"a".to_vec(), b"1".to_vec())];
    fs::create_dir(&db).unwrap();
    write(&db, &one, true).unwrap();
    let before = state(&db);
    let error = write(&db, &one, true).unwrap_err().to_string();
    assert!(error.contains("holds other files"), "{error}");
    assert!(state(&db) == before);
    // Not in order, and dropped before its end: nothing is left.
    let mut writer = Writer::create(&dir.path().join("other"), true).unwrap();
    writer.add(b"b", b"").unwrap();
    assert!(writer.add(b"b", b"").is_err() && writer.add(b"a", b"").is_err());
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
    let other = Writer::create(&dir.path().join("other"), true).err().unwrap().to_string();
    assert!(other.contains("other.partial is there"), "{other}");
    drop(writer);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    fs::write(dir.path().join("file"), b"").unwrap();
    assert!(write(&dir.path().join("file"), &one, true).is_err());
}

/// A database of this crate's making, with a log that holds newer writes if `log` is given.
fn small(dir: &Path, count: u32) -> Vec<Entry> {
    let all: Vec<Entry> = (0..count)
        .map(|n| (format!("key/{n:06}").into_bytes(), format!("value {}", n * 7).into_bytes()))
        .collect();
    write(dir, &all, true).unwrap();
    all
}

fn flip(path: &Path, at: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[at] ^= 0x20;
    fs::write(path, bytes).unwrap();
}

fn salvage(dir: &Path) -> (Vec<Entry>, Report) {
    read_with(dir, Settings { salvage: true, ..settings() }).unwrap()
}

#[test]
fn damage_is_named_and_salvaged() {
    let dir = tempfile::tempdir().unwrap();
    let db = dir.path().join("db");
    let all = small(&db, 20_000);
    let table = db.join("000002.ldb");
    let whole = fs::read(&table).unwrap();
    let expect = |what: &str, offset: Option<u64>| {
        let error = read_with(&db, settings()).unwrap_err();
        let Error::Damaged(Lost { path, offset: at, what: said }) = &error else {
            panic!("{error}")
        };
        assert_eq!((path, *at), (&table, offset), "{said}");
        assert!(said.contains(what), "{said}");
        assert!(error.to_string().contains("--salvage"), "{error}");
    };
    let is_part = |some: &[Entry]| some.iter().all(|e| all.binary_search(e).is_ok());

    // A block of data: it alone is lost.
    flip(&table, 5);
    expect("checksum of a block is wrong; its keys go up to \"key/000", Some(0));
    let (some, report) = salvage(&db);
    assert!(is_part(&some) && some.len() > 19_000 && some.len() < 20_000, "{}", some.len());
    assert_eq!((report.lost_count, report.lost[0].offset), (1, Some(0)));

    // The index: blocks are found without it.
    fs::write(&table, &whole).unwrap();
    flip(&table, whole.len() - 60);
    expect("checksum of a block is wrong", Some(index_offset(&whole)));
    let (some, report) = salvage(&db);
    same(&some, &all);
    assert_eq!(report.lost_count, 1);
    assert!(report.notes[0].contains("blocks were found in it without its index"), "{report:?}");

    // The footer, the end, all of it.
    fs::write(&table, &whole).unwrap();
    flip(&table, whole.len() - 1);
    expect("does not end as a table does", Some(whole.len() as u64 - 48));
    same(&salvage(&db).0, &all);
    fs::write(&table, &whole[..whole.len() / 2]).unwrap();
    expect("does not end as a table does", Some(whole.len() as u64 / 2 - 48));
    let (some, _) = salvage(&db);
    assert!(is_part(&some) && some.len() > 8_000 && some.len() < 12_000, "{}", some.len());
    fs::write(&table, b"").unwrap();
    expect("too few for a table", Some(0));
    assert_eq!(salvage(&db).0.len(), 0);
    fs::remove_file(&table).unwrap();
    expect("the file is missing", None);
    let (some, report) = salvage(&db);
    assert!(some.is_empty());
    let said = report.lost[0].to_string();
    assert!(said.contains("keys from \"key/000000\" to \"key/019999\""), "{said}");

    // The name of before version 1.13.
    fs::write(db.join("000002.sst"), &whole).unwrap();
    same(&read(&db), &all);
}

fn index_offset(table: &[u8]) -> u64 {
    let footer = &table[table.len() - 48..];
    let mut at = 0;
    let mut number = || {
        let (mut value, mut shift) = (0u64, 0);
        loop {
            let byte = footer[at];
            at += 1;
            value |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                return value;
            }
        }
    };
    number();
    number();
    number()
}

#[test]
fn another_table_in_the_place_of_one() {
    let dir = tempfile::tempdir().unwrap();
    let db = dir.path().join("db");
    small(&db, 60_000);
    let other = dir.path().join("other");
    write(&other, &[(b"zzz".to_vec(), b"".to_vec())], true).unwrap();
    fs::copy(other.join("000002.ldb"), db.join("000002.ldb")).unwrap();
    let error = error_of(&db);
    assert!(error.contains("000002.ldb") && error.contains("by the manifest"), "{error}");

    // One of the same size, whose first key, or last, is another.
    let make = |name: &str, keys: &dyn Fn(u32) -> String| {
        let path = dir.path().join(name);
        let entries: Vec<Entry> = (0..100).map(|n| (keys(n).into_bytes(), vec![1; 20])).collect();
        write(&path, &entries, false).unwrap();
        path.join("000002.ldb")
    };
    let right = make("right", &|n| format!("b{n:03}"));
    let bytes = fs::read(&right).unwrap();
    let first = make("first", &|n| if n == 0 { "b00/".into() } else { format!("b{n:03}") });
    let last = make("last", &|n| if n == 99 { "b09:".into() } else { format!("b{n:03}") });
    for other in [first, last] {
        assert_eq!(fs::metadata(&other).unwrap().len(), bytes.len() as u64);
        fs::copy(&other, &right).unwrap();
        let error = error_of(&dir.path().join("right"));
        assert!(error.contains("other keys than the manifest says"), "{error}");
    }
}

#[test]
fn manifest_and_current() {
    let dir = tempfile::tempdir().unwrap();
    let db = dir.path().join("db");
    let all = small(&db, 1000);
    let manifest = db.join("MANIFEST-000001");
    let whole = fs::read(&manifest).unwrap();
    let fails = |what: &str| {
        let error = error_of(&db);
        assert!(error.contains(what), "{error}");
        let (some, report) = salvage(&db);
        same(&some, &all);
        assert_eq!(report.lost_count, 1);
        assert!(report.notes.iter().any(|n| n.contains("without a manifest")), "{report:?}");
    };
    flip(&manifest, 12);
    fails("MANIFEST-000001 is damaged at byte 0: the checksum of a record is wrong");
    fs::write(&manifest, &whole[..20]).unwrap();
    fails("does not say which files there are");
    fs::remove_file(&manifest).unwrap();
    fails("the file is missing, and CURRENT names it");
    fs::write(&manifest, &whole).unwrap();
    fs::write(db.join("CURRENT"), b"MANIFEST-000001").unwrap();
    fails("names no manifest");
    fs::write(db.join("CURRENT"), b"MANIFEST-../../etc\n").unwrap();
    fails("names no manifest");
    fs::remove_file(db.join("CURRENT")).unwrap();
    fails("CURRENT: the file is missing");
}

/// They passed for no database at all.
#[test]
fn a_log_alone_is_salvaged() {
    let Some(leveldb) = program() else { return };
    let dir = tempfile::tempdir().unwrap();
    let db = dir.path().join("db");
    let mut all = Operations::default();
    all.put(b"key", b"in the log");
    run(&leveldb, &["write", text(&db), "100000000", "4096", "1"], &all.bytes);
    fs::write(db.join("CURRENT"), b"").unwrap();
    assert!(error_of(&db).contains("it names no manifest"));
    fs::remove_file(db.join("CURRENT")).unwrap();
    same(&salvage(&db).0, &sorted(&all.map));
    fs::remove_file(db.join("MANIFEST-000002")).unwrap();
    same(&salvage(&db).0, &sorted(&all.map));
}

#[test]
fn a_damaged_log() {
    let Some(leveldb) = program() else { return };
    let dir = tempfile::tempdir().unwrap();
    let db = dir.path().join("db");
    let mut all = Operations::default();
    for n in 0..5000u32 {
        all.put(format!("{n:06}").as_bytes(), &[n as u8; 100]);
    }
    run(&leveldb, &["write", text(&db), "100000000", "4096", "1"], &all.bytes);
    let expected = sorted(&all.map);
    let log = state(&db).into_iter().find(|(name, ..)| name.ends_with(".log")).unwrap();
    let path = db.join(&log.0);
    flip(&path, 100_000);
    let error = error_of(&db);
    assert!(error.contains(&log.0) && error.contains("is damaged at byte 99"), "{error}");
    let (some, report) = salvage(&db);
    assert!(some.len() > 4500 && some.len() < 5000, "{}", some.len());
    assert!(some.iter().all(|e| expected.binary_search(e).is_ok()));
    assert!(report.lost_count > 0);

    // Cut off as by a crash: what was whole is there, and a note.
    fs::write(&path, &log.1[..log.1.len() - 30]).unwrap();
    let (some, report) = read_with(&db, settings()).unwrap();
    same(&some, &expected[..4999]);
    assert!(report.lost_count == 0 && report.notes[0].contains("had not returned"), "{report:?}");
    // With a newer log it should have been whole.
    fs::write(db.join("000099.log"), b"").unwrap();
    let error = error_of(&db);
    assert!(error.contains("the file is cut off inside a record"), "{error}");
    fs::remove_file(db.join("000099.log")).unwrap();
    // Gone: the manifest knows that it was there.
    fs::remove_file(&path).unwrap();
    let error = error_of(&db);
    assert!(error.contains(&log.0) && error.contains("the file is missing"), "{error}");
    assert_eq!(salvage(&db).1.lost_count, 1);
}

#[test]
fn a_source_that_changes() {
    let dir = tempfile::tempdir().unwrap();
    let db = dir.path().join("db");
    small(&db, 1000);
    let changes: [(&str, &dyn Fn()); 3] = [
        ("000002.ldb", &|| {
            let bytes = fs::read(db.join("000002.ldb")).unwrap();
            fs::write(db.join("000002.ldb"), bytes).unwrap();
        }),
        ("000009.log", &|| fs::write(db.join("000009.log"), b"").unwrap()),
        ("db", &|| fs::remove_file(db.join("000009.log")).unwrap()),
    ];
    for (name, change) in changes {
        let source = LevelDb::open(&db, settings()).unwrap();
        source.check_unchanged().unwrap();
        // Clocks of file systems are coarse.
        std::thread::sleep(std::time::Duration::from_millis(20));
        change();
        let error = source.check_unchanged().unwrap_err().to_string();
        assert!(error.contains(&format!("{name} changed while it was read")), "{error}");
    }
}

/// What runs meanwhile, and how it is stopped.
struct Held(std::process::Child);

impl Held {
    fn new(leveldb: &Path, db: &Path) -> Held {
        use std::io::Read;
        let mut child = std::process::Command::new(leveldb)
            .args(["hold", text(db)])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = [0; 5];
        child.stdout.as_mut().unwrap().read_exact(&mut said).unwrap();
        assert_eq!(&said, b"open\n");
        Held(child)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

#[test]
fn leveldb_and_an_import_keep_each_other_out() {
    let Some(leveldb) = program() else { return };
    let dir = tempfile::tempdir().unwrap();
    let db = dir.path().join("db");
    let all = small(&db, 100);
    assert!(!db.join("LOCK").exists(), "nobody has had it open");
    same(&read(&db), &all);
    let held = Held::new(&leveldb, &db);
    let error = LevelDb::open(&db, settings()).err().unwrap().to_string();
    assert!(error.contains("LOCK is held by another process"), "{error}");
    drop(held);

    let source = LevelDb::open(&db, settings()).unwrap();
    let refused = std::process::Command::new(&leveldb).args(["read", text(&db)]).output().unwrap();
    assert!(!refused.status.success());
    assert!(String::from_utf8_lossy(&refused.stderr).contains("lock"), "{refused:?}");
    // Others may read it as this does.
    same(&read(&db), &all);
    source.check_unchanged().unwrap();
    drop(source);
    same(&entries(&run(&leveldb, &["read", text(&db)], b"")), &all);
}

#[test]
fn another_comparator() {
    let Some(leveldb) = program() else { return };
    let dir = tempfile::tempdir().unwrap();
    let db = dir.path().join("db");
    let all = Operations::random(5, 30_000);
    run(&leveldb, &["write-reverse", text(&db), "65536", "4096", "1"], &all.bytes);
    let error = error_of(&db);
    assert!(error.contains("comparator \"idb_cmp1\", which is that of IndexedDB"), "{error}");
    assert!(error.contains("--raw"), "{error}");
    let raw = Settings { raw: true, memory: 1 << 20, ..settings() };
    let (found, report) = read_with(&db, raw.clone()).unwrap();
    same(&found, &sorted(&all.map));
    assert!(report.lost_count == 0 && report.notes[0].contains("idb_cmp1"), "{report:?}");
    // Damage is damage.
    let table = state(&db).into_iter().find(|(name, ..)| name.ends_with(".ldb")).unwrap();
    flip(&db.join(&table.0), 10);
    let error = read_with(&db, raw).unwrap_err().to_string();
    assert!(error.contains(&table.0) && error.contains("at byte 0"), "{error}");
}

#[test]
fn what_is_no_leveldb_database() {
    let dir = tempfile::tempdir().unwrap();
    let said = |path: &Path| match LevelDb::open(path, settings()) {
        Err(Error::Refused(text)) => text,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("{} was taken", path.display()),
    };
    assert!(said(dir.path()).contains("no file CURRENT that names a manifest"));
    assert!(said(&dir.path().join("none")).contains("not there"));
    fs::write(dir.path().join("IDENTITY"), b"x").unwrap();
    assert!(said(dir.path()).contains("`esker import rocksdb`"));
    assert!(said(&dir.path().join("IDENTITY")).contains("not a directory"));
}

/// Both read each table by itself, and asked nothing of what the manifest says of it.
#[test]
fn raw_and_salvage_took_another_table_in_the_place_of_one() {
    let dir = tempfile::tempdir().unwrap();
    let make = |name: &str, prefix: &str, count: u32| {
        let entries: Vec<Entry> =
            (0..count).map(|n| (format!("{prefix}{n:03}").into_bytes(), vec![1; 20])).collect();
        write(&dir.path().join(name), &entries, false).unwrap();
        entries
    };
    let mine = make("db", "b", 100);
    let (db, table) = (dir.path().join("db"), dir.path().join("db/000002.ldb"));
    let raw = || read_with(&db, Settings { raw: true, ..settings() });
    assert_eq!(raw().unwrap().0, mine);
    assert_eq!(salvage(&db).1.lost_count, 0);
    // Of another size, and of the same with other keys.
    for (name, prefix, count) in [("larger", "b", 200), ("same", "c", 100)] {
        let others = make(name, prefix, count);
        fs::copy(dir.path().join(name).join("000002.ldb"), &table).unwrap();
        match raw() {
            Err(Error::Damaged(lost)) => assert_eq!(lost.path, table, "{name}"),
            other => panic!("{name}: {:?}", other.map(|(all, _)| all.len())),
        }
        // What is there is taken, and what it should have been is named.
        let (found, report) = salvage(&db);
        assert_eq!(found, others, "{name}");
        assert_eq!(report.lost_count, 1, "{name}: {report:?}");
        let said = report.lost[0].to_string();
        assert!(said.contains("keys from \"b000\" to \"b099\""), "{said}");
    }
}
