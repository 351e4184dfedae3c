//! What LMDB, RocksDB and SQLite wrote, read by their libraries.

mod common;

use std::path::Path;

use common::{Map, Operations, program, run, state};
use esker_transfer::sqlite::{Columns, Integers};
use esker_transfer::{Error, Opened, lmdb, rocksdb, sqlite};

type Entry = (Vec<u8>, Vec<u8>);

fn all(opened: Result<Opened, Error>) -> Vec<Entry> {
    opened.unwrap().entries.collect::<Result<_, _>>().unwrap()
}

fn fails(opened: Result<Opened, Error>) -> String {
    let read = |opened: Opened| opened.entries.collect::<Result<Vec<_>, _>>();
    match opened.and_then(read) {
        Err(e) => e.to_string(),
        Ok(all) => panic!("{} entries", all.len()),
    }
}

fn same(found: &[Entry], map: &Map) {
    assert_eq!(found.len(), map.len());
    assert!(found.iter().zip(map).all(|(a, b)| (&a.0, &a.1) == b));
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Keys of lengths that LMDB takes.
fn for_lmdb(seed: u64) -> Operations {
    let mut all = Operations::default();
    for (key, value) in Operations::random(seed, 10_000).map {
        if (1..512).contains(&key.len()) {
            all.put(&key, &value);
        }
    }
    all
}

#[test]
fn lmdb_environments() {
    let Some(program) = program("lmdb", "lmdb") else { return };
    let dir = tempfile::tempdir().unwrap();
    let operations = for_lmdb(1);
    for name in ["env", "env.mdb"] {
        let path = dir.path().join(name);
        if name == "env" {
            std::fs::create_dir(&path).unwrap();
        }
        run(&program, &[text(&path), "-", "0"], &operations.bytes);
        let opened = lmdb::open(&path, None).unwrap();
        assert_eq!(opened.total, Some(operations.map.len() as u64));
        drop(opened);
        same(&all(lmdb::open(&path, None)), &operations.map);
        assert!(fails(lmdb::open(&path, Some("none"))).contains("no database \"none\""));
    }
    // Without its lock file none is made, and the data stays as it is.
    std::fs::remove_file(dir.path().join("env/lock.mdb")).unwrap();
    let before = state(&dir.path().join("env"));
    same(&all(lmdb::open(&dir.path().join("env"), None)), &operations.map);
    assert!(state(&dir.path().join("env")) == before);
    assert!(fails(lmdb::open(&dir.path().join("other"), None)).contains("not there"));
}

#[test]
fn lmdb_databases_by_name_and_order() {
    let Some(program) = program("lmdb", "lmdb") else { return };
    let dir = tempfile::tempdir().unwrap();
    let operations = for_lmdb(2);
    let of = |name: &str, flags: &str, operations: &Operations| {
        let path = dir.path().join(format!("{flags}.mdb"));
        run(&program, &[text(&path), name, flags], &operations.bytes);
        path
    };
    let path = of("users", "0", &operations);
    of("other", "0", &Operations::default());
    same(&all(lmdb::open(&path, Some("users"))), &operations.map);
    assert!(all(lmdb::open(&path, Some("other"))).is_empty());
    let said = fails(lmdb::open(&path, None));
    assert!(said.contains("named databases: \"other\", \"users\"; choose one with --db"), "{said}");

    let mut numbers = Operations::default();
    (0..1000u64).for_each(|n| numbers.put(&(n * 77).to_ne_bytes(), b"x"));
    let said = fails(lmdb::open(&of("-", "8", &numbers), None));
    assert!(said.contains("MDB_INTEGERKEY") && said.contains("--format dbdump"), "{said}");
    assert!(fails(lmdb::open(&of("-", "2", &numbers), None)).contains("MDB_REVERSEKEY"));
    // Several values are refused, a database that could have them is not.
    let path = of("-", "4", &numbers);
    same(&all(lmdb::open(&path, None)), &numbers.map);
    numbers.bytes.clear();
    numbers.put(&77u64.to_ne_bytes(), b"y");
    of("-", "4", &numbers);
    assert!(fails(lmdb::open(&path, None)).contains("has several values"));
}

#[test]
fn lmdb_values_that_look_like_databases() {
    let Some(program) = program("lmdb", "lmdb") else { return };
    let dir = tempfile::tempdir().unwrap();
    let mut operations = Operations::default();
    (0..300u32).for_each(|n| operations.put(format!("{n}").as_bytes(), &[n as u8; 48]));
    let path = dir.path().join("x.mdb");
    run(&program, &[text(&path), "-", "0"], &operations.bytes);
    same(&all(lmdb::open(&path, None)), &operations.map);
}

#[test]
fn lmdb_names_behind_many_values_of_as_many_bytes() {
    let Some(program) = program("lmdb", "lmdb") else { return };
    let dir = tempfile::tempdir().unwrap();
    let mut values = Operations::default();
    (0..300u32).for_each(|n| values.put(format!("{n}").as_bytes(), &[n as u8; 48]));
    let path = dir.path().join("x.mdb");
    run(&program, &[text(&path), "-", "0"], &values.bytes);
    let users = for_lmdb(3);
    run(&program, &[text(&path), "users", "0"], &users.bytes);
    let said = fails(lmdb::open(&path, None));
    assert!(said.contains("has named databases: \"users\"; choose one with --db"), "{said}");
    same(&all(lmdb::open(&path, Some("users"))), &users.map);
}

#[test]
fn rocksdb_databases() {
    let Some(program) = program("rocksdb", "rocksdb") else { return };
    let dir = tempfile::tempdir().unwrap();
    let db = dir.path().join("db");
    let mut operations = Operations::random(4, 20_000);
    operations.compact();
    operations.put(b"behind the compaction", b"in the log");
    operations.delete(b"empty value");
    run(&program, &[text(&db), "default", "-"], &operations.bytes);
    let before = state(&db);
    same(&all(rocksdb::open(&db, None, dir.path())), &operations.map);
    assert!(state(&db) == before, "the source is as it was");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "nothing beside it");

    let users = Operations::random(5, 3000);
    run(&program, &[text(&db), "users", "-"], &users.bytes);
    same(&all(rocksdb::open(&db, Some("users"), dir.path())), &users.map);
    let opened = rocksdb::open(&db, None, dir.path()).unwrap();
    assert!(opened.report.notes[0].contains("--db NAME reads another: users"));
    drop(opened);
    let said = fails(rocksdb::open(&db, Some("none"), dir.path()));
    assert!(said.contains("no column family \"none\"; there are: default, users"), "{said}");

    // Damage is the library's to find.
    let table = before.iter().find(|(name, bytes, _)| name.ends_with(".sst") && bytes.len() > 9000);
    let (name, mut bytes) = table.map(|(n, b, _)| (n.clone(), b.clone())).unwrap();
    bytes[100] ^= 1;
    std::fs::write(db.join(name), bytes).unwrap();
    let said = fails(rocksdb::open(&db, None, dir.path()));
    assert!(said.to_lowercase().contains("corrupt"), "{said}");
}

/// The library takes a log before its damage for the whole one, and finds none in another directory.
#[test]
fn rocksdb_databases_whose_log_is_damaged_or_elsewhere() {
    let Some(program) = program("rocksdb", "rocksdb") else { return };
    let dir = tempfile::tempdir().unwrap();
    let db = dir.path().join("db");
    let mut operations = Operations::default();
    for n in 0..2000u32 {
        operations.put(&n.to_be_bytes(), &[n as u8; 100]);
    }
    run(&program, &[text(&db), "default", "-"], &operations.bytes);
    let open = || rocksdb::open(&db, None, dir.path());
    same(&all(open()), &operations.map);
    let log = state(&db).into_iter().find(|(n, ..)| n.ends_with(".log")).unwrap();
    let (log, bytes) = (db.join(log.0), log.1);
    let mut damaged = bytes.clone();
    damaged[bytes.len() / 2] ^= 1;
    std::fs::write(&log, damaged).unwrap();
    let said = fails(open());
    assert!(said.to_lowercase().contains("corrupt"), "{said}");
    // A crash leaves an end that is cut off.
    std::fs::write(&log, &bytes[..bytes.len() - 10]).unwrap();
    let opened = open().unwrap();
    assert!(opened.entries.count() > 1500);

    let elsewhere = dir.path().join("wal");
    std::fs::create_dir(&elsewhere).unwrap();
    for (log, ..) in state(&db).iter().filter(|(n, ..)| n.ends_with(".log")) {
        std::fs::rename(db.join(log), elsewhere.join(log)).unwrap();
    }
    let name = |name: &str| name.starts_with("OPTIONS-");
    for (options, bytes, _) in state(&db).into_iter().filter(|(n, ..)| name(n)) {
        let lines = String::from_utf8(bytes).unwrap();
        let wal_dir = format!("[DBOptions]\n  wal_dir={}\n", text(&elsewhere));
        let lines = lines.replace("[DBOptions]\n", &wal_dir);
        assert!(lines.contains(text(&elsewhere)), "{lines}");
        std::fs::write(db.join(options), lines).unwrap();
    }
    let said = fails(open());
    assert!(said.contains("has its log in") && said.contains(text(&elsewhere)), "{said}");
    // The ways out that it names.
    std::fs::write(db.join("000001.log"), "").unwrap();
    assert!(all(open()).len() < 2000);
    for (log, bytes, _) in state(&elsewhere) {
        std::fs::write(db.join(log), bytes).unwrap();
    }
    assert!(all(open()).len() > 1500);
}

#[test]
fn rocksdb_in_another_order() {
    let Some(program) = program("rocksdb", "rocksdb") else { return };
    let dir = tempfile::tempdir().unwrap();
    let db = dir.path().join("db");
    run(&program, &[text(&db), "default", "reverse"], &Operations::random(4, 100).bytes);
    let said = fails(rocksdb::open(&db, None, dir.path()));
    assert!(said.contains("order of the program that made it"), "{said}");
    let said = fails(rocksdb::open(dir.path(), None, dir.path()));
    assert!(said.contains("is no RocksDB database"), "{said}");
}

fn columns(table: &str, key: &str, value: &str, integers: Integers) -> Columns {
    Columns { table: table.into(), key: key.into(), value: value.into(), integers }
}

#[test]
fn sqlite_tables() {
    let Some(program) = program("sqlite", "sqlite3") else { return };
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("app.sqlite");
    let mut operations = Operations::default();
    Operations::random(6, 5000).map.iter().for_each(|(k, v)| operations.put(k, v));
    let made = "CREATE TABLE kv(k BLOB PRIMARY KEY, v BLOB);
        CREATE TABLE n(`a b` INTEGER, t TEXT, r REAL, z);
        INSERT INTO n VALUES (-5, 'x', 1.5, NULL), (300, 'é', 2, NULL), (2, '', 3, NULL);
        CREATE TABLE twice(k, v); INSERT INTO twice VALUES ('a', 1), ('a', 2);";
    run(&program, &[text(&file), made], &operations.bytes);
    let before = state(dir.path());
    let open = |columns| sqlite::open(&file, columns, 1 << 20, dir.path());
    same(&all(open(columns("kv", "k", "v", Integers::Ordered))), &operations.map);

    let found = all(open(columns("n", "a b", "t", Integers::Ordered)));
    let expected: Vec<Entry> = [(-5i64, "x"), (2, ""), (300, "é")]
        .map(|(n, t)| (((n as u64) ^ (1 << 63)).to_be_bytes().to_vec(), t.into()))
        .into();
    assert_eq!(found, expected);
    let found = all(open(columns("n", "a b", "t", Integers::Text)));
    assert_eq!(found[0], (b"-5".to_vec(), b"x".to_vec()));

    for (columns, what) in [
        (columns("n", "z", "t", Integers::Text), "column z of row 1 is NULL"),
        (
            columns("n", "t", "r", Integers::Text),
            "column r of row 1 is a number that is no integer",
        ),
        (columns("twice", "k", "v", Integers::Text), "key \"a\" has several values"),
        (columns("n", "nope", "t", Integers::Text), "no such column: nope"),
        (columns("nope", "a", "b", Integers::Text), "no such table: nope"),
        (columns("n`; DROP TABLE kv; --", "a", "b", Integers::Text), "no such table"),
    ] {
        let said = fails(open(columns));
        assert!(said.contains(what), "{said}");
    }
    assert!(state(dir.path()) == before, "the source is as it was");
    std::fs::write(dir.path().join("empty"), b"").unwrap();
    let none = columns("t", "k", "v", Integers::Text);
    let said = fails(sqlite::open(&dir.path().join("empty"), none, 0, dir.path()));
    assert!(said.contains("is no SQLite database"), "{said}");
}

#[test]
fn sqlite_waits_for_who_writes() {
    use std::process::{Command, Stdio};
    let Some(program) = program("sqlite", "sqlite3") else { return };
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("app.sqlite");
    let made = "CREATE TABLE kv(k, v); INSERT INTO kv VALUES ('a', '1')";
    run(&program, &[text(&file), made], b"");
    // Commits when its input ends.
    let mut writer = Command::new(&program)
        .args([text(&file), "BEGIN EXCLUSIVE; INSERT INTO kv VALUES ('b', '2')"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let input = writer.stdin.take().unwrap();
    let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while !dir.path().join("app.sqlite-journal").exists() {
        assert!(std::time::Instant::now() < until, "the writer has a journal");
        std::thread::yield_now();
    }
    let later = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(700));
        drop(input);
    });
    let columns = columns("kv", "k", "v", Integers::Text);
    let found = all(sqlite::open(&file, columns, 1 << 20, dir.path()));
    let expected: [Entry; 2] = [("a", "1"), ("b", "2")].map(|(k, v)| (k.into(), v.into()));
    assert_eq!(found, expected);
    later.join().unwrap();
    assert!(writer.wait().unwrap().success());
}
