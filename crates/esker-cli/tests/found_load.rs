//! What was found wrong with loads, and with stores that are made by the way: each test is named after its
//! bug.

mod common;

use common::Dir;

/// A head that lost or got a tab was a bad line like any other, so that what followed it went into the keyspace
/// before it.
#[test]
fn a_damaged_head_put_its_keyspace_into_the_one_before() {
    let dir = Dir::new();
    dir.load("a\t1\n");
    dir.ok("keyspaces db create users");
    dir.ok("put db -k users ada lovelace");
    let all = dir.ok("dump db --all");
    let head = all.lines().find(|line| line.starts_with("#keyspace\tusers")).unwrap();
    let (short, _) = head.rsplit_once('\t').unwrap();
    for damaged in [short.to_owned(), format!("{head}\tmore"), "#keyspace".into()] {
        let ran = dir
            .run_with("load new --all --create --skip-bad", all.replace(head, &damaged).as_bytes());
        ran.fails(3, "names a keyspace");
        assert_eq!(dir.ok("scan new"), "a\t1\n", "{damaged}");
        std::fs::remove_dir_all(dir.path("new")).unwrap();
    }
    // An entry may have that key.
    let entry = all.replace("a\t1\n", "a\t1\n#keyspace\t2\n");
    assert_eq!(dir.run_with("load new --all --create", entry.as_bytes()).code, 0);
    assert_eq!(dir.ok("scan new"), "#keyspace\t2\na\t1\n");
}

/// db_dump writes names as it writes keys, with escapes; mdb_dump as they are.
#[test]
fn a_name_that_db_dump_escaped_was_loaded_with_its_escapes() {
    let dir = Dir::new();
    let dump = |name: &str, more: &str| {
        format!(
            "VERSION=3\nformat=print\ndatabase={name}\ntype=btree\n{more}HEADER=END\n a\n 1\nDATA=END\n"
        )
    };
    let names = |db: &str| {
        let list = dir.json(&format!("keyspaces {db} --json"));
        list[1]["name"].as_str().unwrap().to_owned()
    };
    let escaped = r"caf\c3\a9\\x";
    let lmdb = "mapsize=1048576\nmaxreaders=126\ndb_pagesize=4096\n";
    for (db, more, expected) in [
        ("berkeley", "db_pagesize=4096\n", "caf\u{e9}\\x"),
        ("lmdb", lmdb, escaped),
        ("own", "", escaped),
    ] {
        let line = format!("load {db} --format dbdump --all --create");
        let ran = dir.run_with(&line, dump(escaped, more).as_bytes());
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{db}");
        assert_eq!(names(db), expected, "{db}");
    }
    for name in [r"caf\e9", r"a\zz"] {
        let input = dump(name, "db_pagesize=4096\n");
        let ran = dir.run_with("load new --format dbdump --all --create", input.as_bytes());
        ran.fails(3, "the name of the database");
        assert!(!dir.path("new").exists());
    }
}

/// A typo in what was asked for made a store, as one in the path does not.
#[test]
fn a_refused_create_left_a_store_behind() {
    let dir = Dir::new();
    let long = "k".repeat(65_537);
    let name = "n".repeat(256);
    dir.write("X.CSV", "a,b,c\n1,2,3\n");
    dir.write("x.tsv", "no tab\na\t1\n");
    for (line, code, what) in [
        ("keyspaces new create default --create".to_owned(), 2, "exists already"),
        (format!("keyspaces new create {name} --create"), 2, "256"),
        ("keyspaces new create x --blob-threshold 5 --create".into(), 2, "64 bytes"),
        (format!("put new {long} v --create"), 2, "65537 bytes"),
        ("load new X.CSV --create".into(), 3, "3 columns"),
        ("load new x.tsv --create".into(), 3, "line 1: no tab"),
    ] {
        dir.run(&line).fails(code, what);
        assert!(!dir.path("new").exists(), "esker {}", &line[..30]);
    }
    // A bad first line that may be skipped is.
    dir.ok("load new x.tsv --create --skip-bad");
    assert_eq!(dir.ok("scan new"), "a\t1\n");
    dir.ok("load table X.CSV --key a --value b --create");
    assert_eq!(dir.ok("scan table"), "1\t2\n");
}
