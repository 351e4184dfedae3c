//! import and export: what goes in comes out, and a failure leaves nothing.

mod common;
#[path = "../../esker-transfer/tests/common/mod.rs"]
mod peers;

use std::fs;
use std::path::Path;

use common::Dir;
use esker_transfer::leveldb::Writer;
use peers::{Operations, entries, run, state};

/// A LevelDB database of this project's making.
fn leveldb(dir: &Path, count: usize) {
    let mut writer = Writer::create(dir, true).unwrap();
    for n in 0..count {
        writer.add(format!("key/{n:06}").as_bytes(), format!("value {n}").as_bytes()).unwrap();
    }
    writer.finish().unwrap();
}

fn names(dir: &Dir) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(dir.0.path())
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn from_leveldb_and_back() {
    let dir = Dir::new();
    let Some(program) = peers::program("leveldb", "leveldb") else { return };
    let all = Operations::random(1, 30_000);
    run(&program, &["write", dir.path("ldb").to_str().unwrap(), "65536", "4096", "1"], &all.bytes);
    let before = state(&dir.path("ldb"));
    let said = dir.ok("import leveldb ldb db");
    let expected: Vec<_> = all.map.into_iter().collect();
    assert!(said.starts_with(&format!("imported {}", count(expected.len()))), "{said}");
    assert!(state(&dir.path("ldb")) == before, "the source is as it was");
    assert_eq!(dir.ok("count db"), format!("{}\n", expected.len()));
    assert!(dir.ok("verify db").starts_with("sound: "));

    let said = dir.ok("export leveldb db back");
    assert!(said.starts_with(&format!("exported {}", count(expected.len()))), "{said}");
    let back = entries(&run(&program, &["read", dir.path("back").to_str().unwrap()], b""));
    assert!(back == expected, "byte for byte");
    dir.ok("import leveldb back again --compression none --memory 8MiB");
    assert!(dir.run("dump again --format bin").out == dir.run("dump db --format bin").out);
    assert_eq!(names(&dir), ["again", "back", "db", "ldb"]);
}

fn count(n: usize) -> String {
    format!("{},{:03} entries", n / 1000, n % 1000)
}

#[test]
fn keyspaces() {
    let dir = Dir::new();
    leveldb(&dir.path("ldb"), 3);
    dir.ok("import leveldb ldb db -k index");
    assert_eq!(dir.ok("count db"), "0\n");
    assert_eq!(dir.ok("count db -k index"), "3\n");
    // Into a store that is there: only where a keyspace is named.
    dir.run("import leveldb ldb db").fails(2, "-k NAME imports into a keyspace of it");
    dir.ok("put db -k index key/000001 older");
    dir.ok("put db -k index other there");
    let report = dir.json("import leveldb ldb db -k index --json");
    assert_eq!((&report["entries"], &report["skipped"]), (&3.into(), &0.into()));
    assert_eq!((&report["keyspace"], &report["lost_count"]), (&"index".into(), &0.into()));
    assert_eq!(dir.ok("get db -k index key/000001"), "value 1");
    assert_eq!(dir.ok("count db -k index"), "4\n");
    dir.ok("import leveldb ldb db -k default");
    assert_eq!(dir.ok("count db"), "3\n");

    dir.ok("keyspaces db create events --order reverse");
    dir.run("import leveldb ldb db -k events").fails(2, "is ordered by esker.reverse");
    dir.run("export leveldb db events.ldb -k events").fails(2, "is ordered by esker.reverse");
    dir.run("export leveldb db out.ldb -k nope").fails(2, "no keyspace \"nope\"");
    assert_eq!(dir.json("export leveldb db out.ldb -k index --json")["entries"], 4);
    assert_eq!(names(&dir), ["db", "ldb", "out.ldb"]);
}

#[test]
fn a_failed_import_leaves_nothing() {
    let dir = Dir::new();
    leveldb(&dir.path("ldb"), 20_000);
    let table = dir.path("ldb/000002.ldb");
    let whole = fs::read(&table).unwrap();
    let mut bytes = whole.clone();
    let at = bytes.len() / 2;
    bytes[at] ^= 1;
    fs::write(&table, bytes).unwrap();
    dir.run("import leveldb ldb db").fails(3, "ldb/000002.ldb is damaged at byte ");
    dir.run("import leveldb ldb db").fails(3, "(--salvage takes what is intact)");
    assert_eq!(names(&dir), ["ldb"]);
    // A keyspace that was made for it goes, one that was there is as it was.
    dir.load("a\t1\n");
    dir.run("import leveldb ldb db -k new").fails(3, "is damaged");
    dir.run("import leveldb ldb db -k default").fails(3, "is damaged");
    assert_eq!(dir.ok("scan db"), "a\t1\n");
    assert_eq!(dir.json("keyspaces db --json").as_array().unwrap().len(), 1);

    let said = dir.ok("import leveldb ldb salvaged --salvage");
    assert!(said.contains("\nlost: ldb/000002.ldb is damaged at byte "), "{said}");
    assert!(said.contains("an older value is there now"), "{said}");
    let count: usize = dir.ok("count salvaged").trim().parse().unwrap();
    assert!(count > 19_000 && count < 20_000, "{count}");
    let report = dir.json("import leveldb ldb again --salvage --json");
    assert_eq!((&report["lost_count"], &report["entries"]), (&1.into(), &count.into()));
    fs::write(&table, whole).unwrap();
    dir.ok("import leveldb ldb whole");
}

#[test]
fn a_killed_import_leaves_no_store() {
    let dir = Dir::new();
    leveldb(&dir.path("ldb"), 300_000);
    let before = state(&dir.path("ldb"));
    let mut killed = 0;
    for wait_ms in [0, 20, 50, 100, 150, 200, 300, 400, 600] {
        let mut child = dir
            .command()
            .args(["import", "leveldb", "ldb", "db"])
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(std::time::Duration::from_millis(wait_ms));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(state(&dir.path("ldb")) == before);
        if dir.path("db").exists() {
            assert_eq!(dir.ok("count db"), "300000\n");
            fs::remove_dir_all(dir.path("db")).unwrap();
        } else {
            killed += 1;
            if dir.path("db.partial").exists() {
                dir.run("import leveldb ldb db").fails(3, "db.partial is there");
                fs::remove_dir_all(dir.path("db.partial")).unwrap();
            }
        }
    }
    assert!(killed > 0);
    dir.ok("import leveldb ldb db");
    assert_eq!(dir.ok("count db"), "300000\n");
}

#[test]
fn entries_that_are_too_large() {
    let dir = Dir::new();
    let mut writer = Writer::create(&dir.path("ldb"), true).unwrap();
    writer.add(b"a", b"1").unwrap();
    writer.add(&[b'b'; 65_536], b"2").unwrap();
    writer.add(&[&b"c\xff"[..], &[b'c'; 65_535]].concat(), b"3").unwrap();
    writer.finish().unwrap();
    let ran = dir.run("import leveldb ldb db");
    ran.fails(3, "the key that begins with \"c\\xffccc");
    assert!(ran.err.contains("65537 bytes, and the limit 65536; --skip-large"), "{}", ran.err);
    assert_eq!(names(&dir), ["ldb"]);
    assert!(dir.ok("import leveldb ldb db --salvage").ends_with("skipped 1 entry too large\n"));
    assert_eq!(dir.ok("count db"), "2\n");
    let report = dir.json("import leveldb ldb other --skip-large --json");
    assert_eq!((&report["entries"], &report["skipped"]), (&2.into(), &1.into()));
}

#[test]
fn wrong_sources_and_targets() {
    let dir = Dir::new();
    leveldb(&dir.path("ldb"), 3);
    dir.run("import leveldb none db").fails(3, "none is not there");
    dir.load("a\t1\n");
    dir.run("import leveldb db other").fails(3, "db is an Esker store; ");
    dir.run("get ldb a").fails(3, "`esker import`");
    fs::create_dir(dir.path("rocks")).unwrap();
    dir.write("rocks/CURRENT", "MANIFEST-000004\n");
    dir.write("rocks/OPTIONS-000005", "");
    dir.run("import leveldb rocks other").fails(3, "`esker import rocksdb`");
    dir.write("file", "");
    dir.run("import leveldb ldb file").fails(3, "file is not a directory");
    dir.run("import leveldb ldb rocks").fails(3, "rocks holds files of a store of LevelDB");
    fs::create_dir(dir.path("full")).unwrap();
    dir.write("full/x", "");
    dir.run("import leveldb ldb full").fails(3, "full holds other files");
    dir.run("import leveldb ldb no/such/dir").fails(3, "no/such/dir.partial");
    dir.run("export leveldb db full").fails(3, "full holds other files");
    dir.run("export leveldb db file").fails(3, "file is there, and no directory");
    dir.run("export leveldb none out").fails(3, "none");
    fs::create_dir(dir.path("half.partial")).unwrap();
    dir.run("import leveldb ldb half").fails(3, "half.partial is there");
    fs::remove_dir(dir.path("half.partial")).unwrap();
    assert_eq!(names(&dir), ["db", "file", "full", "ldb", "rocks"]);

    // An empty directory is as good as none.
    fs::create_dir(dir.path("empty")).unwrap();
    dir.ok("import leveldb ldb empty");
    assert_eq!(dir.ok("count empty"), "3\n");
    fs::create_dir(dir.path("empty.ldb")).unwrap();
    dir.ok("export leveldb empty empty.ldb --codec none");
    assert_eq!(dir.json("import leveldb empty.ldb copy --json")["entries"], 3);
}

#[test]
fn targets_that_a_rename_would_not_replace() {
    use std::os::unix::fs::symlink;
    let dir = Dir::new();
    leveldb(&dir.path("ldb"), 3);
    // A slash behind the name, and a link: they lead to a directory that can be made.
    dir.ok("import leveldb ldb slash/");
    assert_eq!(dir.ok("count slash"), "3\n");
    dir.ok("export leveldb slash slash.ldb/");
    dir.ok("import leveldb slash.ldb ./again/.");
    assert_eq!(dir.ok("count again"), "3\n");
    fs::create_dir_all(dir.path("far/empty")).unwrap();
    symlink("far/empty", dir.path("link")).unwrap();
    for line in ["import leveldb ldb link", "export leveldb slash link/"] {
        dir.ok(line);
        assert!(fs::symlink_metadata(dir.path("link")).unwrap().is_symlink(), "{line}");
        assert!(dir.path("far/empty/CURRENT").exists(), "{line}");
        fs::remove_dir_all(dir.path("far/empty")).unwrap();
        fs::create_dir(dir.path("far/empty")).unwrap();
    }
    assert_eq!(names(&dir), ["again", "far", "ldb", "link", "slash", "slash.ldb"]);

    // What cannot be is refused before anything is read: there is no source.
    let refused = |target: &str, what: &str| {
        dir.run(&format!("import leveldb none {target}")).fails(3, what);
        dir.run(&format!("export leveldb slash {target}")).fails(3, what);
    };
    fs::create_dir(dir.path("locked")).unwrap();
    dir.write("locked/LOCK", "");
    refused("locked", "locked holds other files, \"LOCK\" for one");
    fs::create_dir(dir.path("half.partial")).unwrap();
    refused("half/", "half.partial is there");
    symlink("nowhere", dir.path("lost")).unwrap();
    refused("lost", "follow lost");
    refused("/", "/ ");
    for command in
        [["import", "leveldb", "../../ldb", "."], ["export", "leveldb", "../../slash", "."]]
    {
        let output = dir.command().args(command).current_dir(dir.path("far/empty")).output();
        common::Ran::from(output.unwrap()).fails(3, ". is the directory that this runs in");
    }
    // A place where a directory of the same file system is mounted.
    let mut mounted = std::process::Command::new("unshare");
    let script = "mount --bind far/empty far/empty || exit 99; exec \"$@\"";
    mounted.args(["-m", "sh", "-c", script, "sh", env!("CARGO_BIN_EXE_esker")]);
    mounted.args(["import", "leveldb", "none", "far/empty"]).current_dir(dir.0.path());
    match mounted.output() {
        Ok(output)
            if output.status.code() != Some(99)
                && !String::from_utf8_lossy(&output.stderr).contains("unshare") =>
        {
            common::Ran::from(output).fails(3, "far/empty is where something is mounted");
        }
        _ => println!("left out: no right to mount here"),
    }
}

#[test]
fn from_other_stores_by_their_libraries() {
    let dir = Dir::new();
    let path = |name: &str| dir.path(name).to_str().unwrap().to_owned();
    let mut all = Operations::default();
    (0..3000u32).for_each(|n| all.put(&n.to_be_bytes(), &n.to_le_bytes().repeat(9)));
    leveldb(&dir.path("ldb"), 3);
    if let Some(program) = peers::program("lmdb", "lmdb") {
        run(&program, &[&path("env.mdb"), "users", "0"], &all.bytes);
        dir.run("import lmdb env.mdb a").fails(3, "choose one with --db NAME");
        dir.run("import lmdb ldb a").fails(3, "ldb is a LevelDB database");
        dir.run("import leveldb env.mdb a").fails(3, "`esker import lmdb`");
        assert!(!dir.path("a").exists() && !dir.path("a.partial").exists());
        assert!(dir.ok("import lmdb env.mdb a --db users").starts_with("imported 3,000 entries"));
        assert_eq!(dir.ok("get a --hex 00000007").trim(), "07000000".repeat(9));
    }
    if let Some(program) = peers::program("rocksdb", "rocksdb") {
        run(&program, &[&path("rocks"), "users", "-"], &all.bytes);
        dir.run("import leveldb rocks b").fails(3, "`esker import rocksdb`");
        let mut held = std::process::Command::new(&program)
            .args([&path("open"), "default", "-"])
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while !dir.run("import rocksdb open b").err.contains("open/LOCK is held by another process")
        {
            assert!(std::time::Instant::now() < until, "an open database is refused");
            let _ = fs::remove_dir_all(dir.path("b"));
        }
        drop(held.stdin.take());
        assert!(held.wait().unwrap().success());
        let said = dir.ok("import rocksdb rocks b --db users -k users");
        assert!(said.starts_with("imported 3,000 entries"), "{said}");
        let report = dir.json("import rocksdb rocks b -k default --json");
        assert_eq!(report["entries"], 0);
        assert!(report["notes"][0].as_str().unwrap().contains("users"), "{report}");
        assert_eq!(dir.ok("count b -k users"), "3000\n");
    }
    if let Some(program) = peers::program("sqlite", "sqlite3") {
        run(&program, &[&path("app"), "CREATE TABLE kv(k, v)"], &all.bytes);
        dir.run("import leveldb app c").fails(3, "`esker import sqlite`");
        dir.run("import sqlite app c --table kv --key k --value w").fails(3, "no such column: w");
        assert!(!dir.path("c").exists());
        dir.ok("import sqlite app c --table kv --key k --value v --memory 8MiB");
        assert_eq!(dir.ok("count c"), "3000\n");
        assert_eq!(dir.ok("get c --hex 00000007").trim(), "07000000".repeat(9));
    }
}

/// Runs a program of another store; `None` where there is none.
fn tool(dir: &Dir, line: &str, input: &[u8]) -> Option<Vec<u8>> {
    let mut words = line.split_whitespace();
    let mut command = std::process::Command::new(words.next().unwrap());
    command.args(words).current_dir(dir.0.path());
    command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let Ok(mut child) = command.spawn() else {
        println!("left out: no {line}");
        return None;
    };
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let feeder = std::thread::spawn(move || std::io::Write::write_all(&mut stdin, &input));
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{line}");
    feeder.join().unwrap().unwrap();
    Some(output.stdout)
}

#[test]
fn dumps_of_lmdb_and_berkeley_db() {
    let dir = Dir::new();
    // LMDB has keys of 1 to 511 bytes.
    let mut all = Operations::random(3, 5000).map;
    all.retain(|key, _| (1..512).contains(&key.len()));
    // Which mdb_dump -p does not double.
    let plain = |bytes: &[u8]| !bytes.contains(&b'\\');
    all.retain(|key, value| plain(key) && plain(value));
    check_dumps(&dir, "plain", &all, &[("mdb_load -n env", "mdb_dump -n -p env")]);
    all.insert(b"\\back\\\\slash\\41".to_vec(), b"\\\n\0".to_vec());
    let tools = [
        ("mdb_load -n env", "mdb_dump -n env"),
        ("db5.3_load bdb", "db5.3_dump bdb"),
        ("db5.3_load bdb", "db5.3_dump -p bdb"),
        ("db5.3_load -t hash bdb", "db5.3_dump bdb"),
    ];
    check_dumps(&dir, "any", &all, &tools);
}

/// Dumps the entries, loads them with a tool of another store, dumps them with another, loads that.
fn check_dumps(dir: &Dir, name: &str, all: &peers::Map, tools: &[(&str, &str)]) {
    let mut writer = Writer::create(&dir.path(&format!("{name}.ldb")), true).unwrap();
    all.iter().for_each(|(k, v)| writer.add(k, v).unwrap());
    writer.finish().unwrap();
    dir.ok(&format!("import leveldb {name}.ldb {name}"));
    let ours = dir.run(&format!("dump {name} --format dbdump")).out;
    let bin = dir.run(&format!("dump {name} --format bin")).out;
    let load = |name: &str, dump: &[u8]| {
        let ran = dir.run_with(&format!("load {name} --create --format dbdump"), dump);
        assert_eq!((ran.code, ran.err.as_str()), (0, ""));
        assert!(dir.run(&format!("dump {name} --format bin")).out == bin, "{name}");
    };
    load(&format!("{name}-own"), &ours);
    for (n, (load_with, dump_with)) in tools.iter().enumerate() {
        for file in ["env", "env-lock", "bdb"] {
            let _ = fs::remove_file(dir.path(file));
        }
        // Its map has room for what the header says.
        let with_map = [b"VERSION=3\nmapsize=268435456\n", &ours[b"VERSION=3\n".len()..]].concat();
        let dump = if load_with.starts_with("mdb") { &with_map } else { &ours };
        if tool(dir, load_with, dump).is_some() {
            load(&format!("{name}-{n}"), &tool(dir, dump_with, b"").unwrap());
        }
    }
}

#[test]
fn dumps_of_several_databases() {
    let dir = Dir::new();
    dir.load("a\t1\n");
    dir.ok("keyspaces db create users");
    dir.ok("put db -k users ada lovelace");
    dir.ok("dump db all.dbdump --all");
    dir.ok("load copy all.dbdump --all --create");
    assert_eq!(dir.ok("scan copy -k users"), "ada\tlovelace\n");
    assert_eq!(dir.run("dump copy --all").out, dir.run("dump db --all").out);
    dir.run("load other all.dbdump --create").fails(3, "another database begins; --all");
    // As LMDB has them.
    let named =
        String::from_utf8(dir.read("all.dbdump")).unwrap().replacen("type", "database=x\ntype", 1);
    let sections: Vec<_> = named.split_inclusive("DATA=END\n").collect();
    for section in sections {
        if tool(&dir, "mdb_load -n env", section.as_bytes()).is_none() {
            return;
        }
    }
    let dump = tool(&dir, "mdb_dump -n -a env", b"").unwrap();
    let ran = dir.run_with("load theirs --all --create --format dbdump", &dump);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    assert_eq!(dir.ok("scan theirs -k users"), "ada\tlovelace\n");
    assert_eq!(dir.ok("scan theirs -k x"), "a\t1\n");

    dir.ok("keyspaces db create events --order reverse");
    dir.run("dump db r.dbdump --all")
        .fails(3, "keyspace \"events\" cannot be dumped in this format");
    dir.run("load db all.dbdump --hex").fails(2, "dbdump has an encoding of its own");
    dir.run("load db all.dbdump --key a").fails(2, "leave out --key");
}

#[test]
fn help_of_every_part_has_examples() {
    let dir = Dir::new();
    for (command, parts) in
        [("import", &["leveldb", "lmdb", "rocksdb", "sqlite"][..]), ("export", &["leveldb"])]
    {
        for part in parts {
            let help = dir.ok(&format!("{command} {part} --help"));
            let (_, examples) = help.split_once("Examples:").expect(part);
            assert!(examples.contains(&format!("esker {command} {part} ")), "{help}");
            let long = examples.lines().find(|line| line.chars().count() > 100);
            assert_eq!(long, None, "{command} {part}: a line that would be broken");
        }
    }
}
