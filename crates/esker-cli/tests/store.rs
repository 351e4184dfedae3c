//! keyspaces, stats, verify, repair, compact and checkpoint.

mod common;
use common::Dir;

#[test]
fn keyspaces() {
    let dir = Dir::new();
    dir.run_with("load db -k users", b"a\t1\n").fails(3, "no store in db");
    let none = dir.run_with("load db -k users --create", b"a\t1\n");
    none.fails(3, "`esker keyspaces db create users --create` makes both");
    dir.ok("keyspaces db create users --compression zstd --create");
    let ran = dir.run_with("load db -k users", b"a\t1\n");
    assert_eq!(ran.code, 0, "{ran:?}");
    dir.ok("put db -k users b 2");
    assert_eq!(dir.ok("scan db --keyspace users"), "a\t1\nb\t2\n");
    assert_eq!(dir.ok("scan db"), "");
    assert_eq!(dir.ok("get db a -k users"), "1");
    dir.run("get db a").fails(1, "no such key");

    let list = dir.ok("keyspaces db");
    let names: Vec<_> = list.lines().map(|l| l.split_whitespace().next().unwrap()).collect();
    assert_eq!(names, ["default", "users"]);
    let list = dir.json("keyspaces db --json");
    assert_eq!((&list[0]["name"], &list[1]["name"]), (&"default".into(), &"users".into()));

    dir.run("keyspaces db create users").fails(2, "exists already");
    dir.run("put db -k nope a 1").fails(2, "esker keyspaces DB create nope");
    dir.run_with("load db -k nope", b"a\t1\n").fails(2, "esker keyspaces DB create nope");
    dir.ok("keyspaces db drop users");
    dir.run("scan db -k users").fails(2, "no keyspace \"users\"");
    dir.run("keyspaces db drop users").fails(2, "no keyspace \"users\"");
}

#[test]
fn stats_show_the_shape() {
    let dir = Dir::new();
    dir.load("a\t1\nb\t2\n");
    let text = dir.ok("stats db");
    assert!(text.starts_with("store db\n"), "{text}");
    assert!(text.contains("\nkeyspace default: bytewise, lz4, "), "{text}");
    let stats = dir.json("stats db --json");
    let keyspace = &stats["keyspaces"][0];
    assert_eq!(keyspace["name"], "default");
    let in_runs =
        keyspace["runs"].as_array().unwrap().iter().map(|r| r["entries"].as_u64().unwrap());
    assert_eq!(in_runs.sum::<u64>() + keyspace["memtable_entries"].as_u64().unwrap(), 2);
}

#[test]
fn verify_and_repair() {
    let dir = Dir::new();
    let tsv: String = (0..1000).map(|i| format!("{i:04}\tvalue {i}\n")).collect();
    dir.load(&tsv);
    assert!(dir.ok("verify db").starts_with("sound: "));
    let report = dir.json("verify db --json");
    assert_eq!(report["problems"], serde_json::json!([]));
    assert!(dir.ok("repair db").contains("nothing was lost"));
    assert_eq!(dir.ok("count db"), "1000\n");
}

#[test]
fn damage_is_listed_and_repaired() {
    let dir = Dir::new();
    let tsv: String = (0..1000).map(|i| format!("{i:04}\tvalue {i}\n")).collect();
    dir.load(&tsv);
    dir.ok("compact db");
    // The middle of the largest file is data in any layout.
    let files = walk(&dir.path("db"));
    let largest = files.iter().max_by_key(|f| std::fs::metadata(f).unwrap().len()).unwrap();
    let mut bytes = std::fs::read(largest).unwrap();
    let at = bytes.iter().rposition(|&b| b != 0).unwrap() / 2;
    for byte in &mut bytes[at..at + 16] {
        *byte ^= 0x55;
    }
    std::fs::write(largest, bytes).unwrap();

    let ran = dir.run("verify db");
    ran.fails(3, "esker repair db");
    assert!(!ran.out.is_empty(), "problems are printed");
    let ran = dir.run("verify db --json");
    assert_eq!(ran.code, 3);
    let report: serde_json::Value = serde_json::from_slice(&ran.out).unwrap();
    assert!(!report["problems"].as_array().unwrap().is_empty());

    let ran = dir.run("repair db --json");
    // A script that starts a program after it has to notice.
    ran.fails(4, "1 part lost of db");
    let report: serde_json::Value = serde_json::from_slice(&ran.out).unwrap();
    let lost = &report["lost"][0];
    assert!(lost["file"].is_string() && lost["offset"].is_u64(), "{report}");
    assert!(lost["from"].is_string() && lost["to"].is_string() && lost["what"].is_string());
    assert_eq!(report["changed"], true);
    assert_eq!(dir.run("verify db").code, 0);
    assert_eq!(dir.run("count db").code, 0);
    assert!(dir.ok("repair db").contains("nothing was lost"), "a second one finds nothing");
}

fn walk(dir: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().path());
    entries.flat_map(|p| if p.is_dir() { walk(&p) } else { vec![p] }).collect()
}

#[test]
fn compact_whole_and_in_part() {
    let dir = Dir::new();
    dir.load("a\t1\nb\t2\nc\t3\n");
    dir.ok("keyspaces db create other");
    dir.ok("del db b");
    assert!(dir.ok("compact db --prefix b").contains("on disk before"));
    let report = dir.json("compact db --json");
    assert_eq!(report["keyspaces"], serde_json::json!(["default", "other"]));
    dir.ok("compact db -k other --from a --to b");
    dir.run("compact db -k nope").fails(2, "no keyspace");
    assert_eq!(dir.ok("scan db"), "a\t1\nc\t3\n");
}

#[test]
fn a_checkpoint_is_a_store_of_its_own() {
    let dir = Dir::new();
    dir.load("a\t1\nb\t2\n");
    dir.ok("checkpoint db copy");
    dir.ok("put db a changed");
    assert_eq!(dir.ok("scan copy"), "a\t1\nb\t2\n");
    dir.ok("put copy c 3");
    assert_eq!(dir.ok("count copy"), "3\n");
    assert_eq!(dir.ok("count db"), "2\n");
    assert_eq!(dir.run("checkpoint db copy").code, 3);
    assert_eq!(dir.ok("count copy"), "3\n");
}

#[test]
fn commands_that_read_change_nothing() {
    let dir = Dir::new();
    dir.load("a\t1\nb\t2\n");
    let state = || {
        let mut files = walk(&dir.path("db"));
        files.sort();
        files.into_iter().map(|f| (std::fs::read(&f).unwrap(), f)).collect::<Vec<_>>()
    };
    let before = state();
    for line in
        ["get db a", "scan db", "count db", "dump db", "stats db", "verify db", "keyspaces db"]
    {
        dir.run(line);
        assert!(state() == before, "esker {line} changed the store");
    }
}
