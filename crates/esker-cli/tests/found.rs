//! What was found wrong by using the command: each test is named after its bug.

mod common;

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use common::{Dir, Ran, make_program};

/// Names of a directory, sorted.
fn names(dir: &Path) -> Vec<String> {
    let entry = |e: std::io::Result<fs::DirEntry>| e.unwrap().file_name().into_string().unwrap();
    let mut names: Vec<_> = fs::read_dir(dir).unwrap().map(entry).collect();
    names.sort();
    names
}

/// Bytes that a directory takes on the disk.
fn taken(dir: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let size = |e: std::io::Result<fs::DirEntry>| e.unwrap().metadata().unwrap().blocks() * 512;
    fs::read_dir(dir).unwrap().map(size).sum()
}

/// What the command prints on a terminal: newlines come as carriage return and newline.
fn on_a_terminal(dir: &Dir, args: &[&str]) -> (i32, String) {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&ours).expect("a terminal");
    unlockpt(&ours).expect("a terminal");
    let name = ptsname(&ours, Vec::new()).expect("its name");
    let theirs = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    let mut child = dir.command().args(args).stdout(theirs).stderr(Stdio::null()).spawn().unwrap();
    let mut out = Vec::new();
    let mut buffer = [0; 4096];
    let mut ours = File::from(ours);
    // The end of a terminal whose other side is closed is an error.
    while let Ok(n @ 1..) = ours.read(&mut buffer) {
        out.extend_from_slice(&buffer[..n]);
    }
    let code = child.wait().unwrap().code().expect("esker was killed");
    (code, String::from_utf8(out).expect("a terminal gets text").replace("\r\n", "\n"))
}

/// A store with values of noise that no compression makes smaller.
fn noisy(dir: &Dir, entries: u64, digits: usize) {
    let mut x = 7u64;
    let mut tsv = String::new();
    for n in 0..entries {
        tsv.push_str(&format!("{n:06}\t"));
        for _ in 0..digits / 16 {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            tsv.push_str(&format!("{:016x}", x ^ (x >> 33)));
        }
        tsv.push('\n');
    }
    dir.load(&tsv);
}

/// Runs `args` in `dir` where nothing can be written: as a user who may not, and, where mounting is
/// allowed, on a medium that is read-only for everyone.
fn without_write_access(dir: &Dir, args: &[&str]) -> Vec<Ran> {
    let mode = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    let (root, db) = (dir.0.path(), dir.path("db"));
    let program = dir.path("esker");
    make_program(&program, &fs::read(env!("CARGO_BIN_EXE_esker")).unwrap());
    let mut ran = Vec::new();

    let mut mounted = Command::new("unshare");
    let script = "mount --bind db db && mount -o remount,ro,bind db || exit 99; exec \"$@\"";
    mounted.args(["-m", "sh", "-c", script, "sh"]).arg(&program).args(args).current_dir(root);
    match mounted.output() {
        Ok(output)
            if output.status.code() != Some(99)
                && !String::from_utf8_lossy(&output.stderr).contains("unshare") =>
        {
            ran.push(Ran::from(output));
        }
        _ => println!("left out: no right to mount here"),
    }

    for name in names(&db) {
        mode(&db.join(name), 0o444);
    }
    mode(root, 0o755);
    mode(&db, 0o555);
    let mut command = Command::new(&program);
    command.args(args).current_dir(root);
    if rustix::process::geteuid().is_root() {
        command.uid(65534).gid(65534);
    }
    ran.push(Ran::from(command.output().expect("start esker")));
    mode(&db, 0o755);
    ran
}

#[test]
fn commands_that_read_need_no_write_access() {
    read_without_write_access(&[
        "get db 000007",
        "scan db --limit 3",
        "count db",
        "dump db --format bin",
        "stats db",
        "keyspaces db",
    ]);
}

#[test]
fn verify_needs_no_write_access() {
    read_without_write_access(&["verify db", "verify db --json"]);
}

fn read_without_write_access(lines: &[&str]) {
    for line in lines {
        let dir = Dir::new();
        noisy(&dir, 500, 160);
        let before = names(&dir.path("db"));
        let args: Vec<_> = line.split(' ').collect();
        for ran in without_write_access(&dir, &args) {
            assert_eq!((ran.code, ran.err.as_str()), (0, ""), "esker {line}");
            assert!(!ran.out.is_empty(), "esker {line}");
        }
        assert_eq!(names(&dir.path("db")), before, "esker {line}");
    }
}

#[test]
fn compact_reports_what_is_there_when_it_has_ended() {
    let dir = Dir::new();
    noisy(&dir, 20_000, 320);
    let keys: Vec<String> = (0..18_000).map(|n| format!("{n:06}")).collect();
    for some in keys.chunks(2000) {
        let words: Vec<_> = ["del", "db"].into_iter().chain(some.iter().map(|k| &**k)).collect();
        let words: Vec<_> = words.iter().map(|w| w.as_bytes()).collect();
        assert_eq!(dir.run_args(&words, b"").code, 0);
    }
    let there = taken(&dir.path("db"));
    let report = dir.json("compact db --json");
    let left = taken(&dir.path("db"));
    assert_eq!(report["disk_bytes_before"], there);
    assert_eq!(report["disk_bytes_after"], left);
    assert!(left <= there, "{left} of {there} are left");
    // And where nothing is to be gained.
    let report = dir.json("compact db --json");
    assert_eq!(report["disk_bytes_before"], left);
    assert_eq!(report["disk_bytes_after"], taken(&dir.path("db")));
}

/// What a terminal would act on: colours, its title, erased lines, text turned round.
const ACTS: &[u8] = b"a\x1b[31mred\x1b]0;title\x07\x08\x7f\xc2\x9b2J\xe2\x80\xaeback\xff\xc3(\r";

#[test]
fn control_bytes_are_not_sent_to_a_terminal() {
    let dir = Dir::new();
    assert_eq!(dir.run_args(&[b"put", b"db", b"k\x1b[2J", ACTS, b"--create"], b"").code, 0);
    assert_eq!(dir.run_args(&[b"put", b"db", b"plain", "é\tß\n\\".as_bytes()], b"").code, 0);
    let shown =
        "a\\x1b[31mred\\x1b]0;title\\x07\\x08\\x7f\\xc2\\x9b2J\\xe2\\x80\\xaeback\\xff\\xc3(\\r";
    let scanned = format!("k\\x1b[2J\t{shown}\nplain\té\\tß\\n\\\\\n");
    for command in ["scan", "dump"] {
        assert_eq!(on_a_terminal(&dir, &[command, "db"]), (0, scanned.clone()), "{command}");
        // Into a pipe as it is; either can be forced.
        let piped = dir.run(&format!("{command} db")).out;
        assert!(piped.windows(4).any(|w| w == b"\x1b[31"), "{command}");
        let forced = dir.run(&format!("{command} db --escape always"));
        assert_eq!((forced.code, String::from_utf8(forced.out).unwrap()), (0, scanned.clone()));
    }
    let key = "k\u{1b}[2J";
    assert_eq!(on_a_terminal(&dir, &["get", "db", key]), (0, format!("{shown}\n")));
    assert_eq!(on_a_terminal(&dir, &["get", "db", "plain"]).1, "é\tß\n\\\n");
    assert_eq!(dir.run_args(&[b"get", b"db", key.as_bytes()], b"").out, ACTS);
    let forced = dir.run_args(&[b"get", b"db", key.as_bytes(), b"--escape", b"always"], b"");
    assert_eq!(String::from_utf8(forced.out).unwrap(), shown);
    // What is asked for raw is raw, on a terminal too.
    dir.run_args(&[b"put", b"db", b"colour", b"\x1b[31mred"], b"");
    assert_eq!(on_a_terminal(&dir, &["get", "db", "colour", "--raw"]).1, "\u{1b}[31mred");
    let raw = on_a_terminal(&dir, &["scan", "db", "--prefix", "colour", "--escape", "never"]).1;
    assert_eq!(raw, "colour\t\u{1b}[31mred\n");
    // JSON stays JSON.
    let json = on_a_terminal(&dir, &["scan", "db", "--prefix", "colour", "--json"]).1;
    assert_eq!(json, "{\"key\":\"colour\",\"value\":\"\\u001b[31mred\"}\n");
    dir.run_args(&[b"put", b"db", b"colour", "\u{202e}\u{9b}\u{7f}".as_bytes()], b"");
    let json = on_a_terminal(&dir, &["get", "db", "colour", "--json"]).1;
    assert_eq!(json, "{\"key\":\"colour\",\"value\":\"\\u202e\\u009b\\u007f\"}\n");
    assert_eq!(on_a_terminal(&dir, &["dump", "db", "--format", "bin"]).0, 2);
}

#[test]
fn what_a_terminal_shows_can_be_loaded_again() {
    let dir = Dir::new();
    let all: Vec<u8> = (0..=255).collect();
    assert_eq!(dir.run_args(&[b"put", b"db", b"all", b"--create"], &all).code, 0);
    let (_, shown) = on_a_terminal(&dir, &["scan", "db"]);
    assert!(shown.trim_end().chars().all(|c| c == '\t' || !c.is_control()), "{shown:?}");
    assert_eq!(dir.run_with("load copy --create", shown.as_bytes()).code, 0);
    assert_eq!(dir.run("get copy all").out, all);
}

#[test]
fn names_and_messages_are_escaped_too() {
    let dir = Dir::new();
    let name = b"evil\x1b[2J\nname";
    let made = dir.run_args(&[b"keyspaces", b"db", b"create", name, b"--create"], b"");
    assert_eq!(made.code, 0, "{made:?}");
    let (_, listed) = on_a_terminal(&dir, &["keyspaces", "db"]);
    assert_eq!(listed.lines().count(), 2, "{listed}");
    assert!(listed.contains("evil\\x1b[2J\\nname"), "{listed}");
    assert!(!on_a_terminal(&dir, &["stats", "db"]).1.contains('\u{1b}'));
    let missing = dir.run_args(&[b"get", b"no\x1b[2J\nstore", b"k"], b"");
    missing.fails(3, "no\\x1b[2J\\nstore");
    let wrong = dir.run_args(&[b"get", b"db", b"k", b"--\x1b[2J"], b"");
    assert!(!wrong.err.contains('\u{1b}'), "{:?}", wrong.err);
}

#[test]
fn no_page_and_no_completion_of_an_internal_command() {
    let dir = Dir::new();
    dir.ok("man --dir pages");
    for name in names(&dir.path("pages")) {
        assert!(!name.contains("child"), "{name}");
    }
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        assert!(!dir.ok(&format!("completions {shell}")).contains("child"), "{shell}");
    }
    assert!(!dir.ok("--help").contains("child"));
    dir.run("man bench-child").fails(2, "bench-child");
}

#[test]
fn every_page_has_all_that_the_help_has() {
    let dir = Dir::new();
    dir.ok("man --dir pages");
    let mut seen = 0;
    for name in names(&dir.path("pages")) {
        let words = name.strip_suffix(".1").unwrap().replace('-', " ");
        let words = words.strip_prefix("esker").unwrap().trim();
        let page = String::from_utf8(dir.read(&format!("pages/{name}"))).unwrap();
        let page = page.replace('\\', "").replace("fB", "").replace("fR", "").replace("fI", "");
        let help = match words {
            // Otherwise it is the help of the program that it starts.
            "bench" => dir.ok("help bench"),
            // A part of `keyspaces` stands behind the store.
            words => dir.ok(&format!("{} --help", words.replace("keyspaces ", "keyspaces db "))),
        };
        assert!(page.contains(".SH NAME") && page.contains(".SH SYNOPSIS"), "{name}");
        for flag in help.split_whitespace().filter(|w| w.starts_with("--") && w.len() > 2) {
            let flag = flag.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
            assert!(page.contains(flag), "{name} lacks {flag}");
        }
        assert!(page.contains("Examples:"), "{name} has no examples");
        assert_eq!(dir.ok(&format!("man {words}")).len(), dir.read(&format!("pages/{name}")).len());
        seen += 1;
    }
    assert!(seen > 18, "{seen} pages");
    let part = dir.ok("man keyspaces create").replace('\\', "");
    assert!(part.contains("keyspaces <DB> create"), "{part}");
}

#[test]
fn keyspaces_as_json_have_their_sizes() {
    let dir = Dir::new();
    dir.load("a\t1\nb\t2\n");
    dir.ok("keyspaces db create small --order reverse --compression zstd --blob-threshold 1KiB");
    let list = dir.json("keyspaces db --json");
    let (first, second) = (&list[0], &list[1]);
    for (field, default, small) in [
        ("name", serde_json::json!("default"), serde_json::json!("small")),
        ("comparator", "esker.bytewise".into(), "esker.reverse".into()),
        ("compression", "lz4".into(), "zstd".into()),
        ("blob_threshold", 4096.into(), 1024.into()),
        ("entries", 2.into(), 0.into()),
        ("runs", 1.into(), 0.into()),
        ("tables", 1.into(), 0.into()),
    ] {
        assert_eq!((&first[field], &second[field]), (&default, &small), "{field}");
    }
    assert!(first["bytes"].as_u64().unwrap() > 0 && second["bytes"] == 0, "{list}");
}

#[test]
fn a_typo_in_a_path_makes_no_store() {
    let dir = Dir::new();
    dir.write("in.tsv", "a\t1\n");
    for line in ["put typo k v", "load typo in.tsv", "keyspaces typo create x"] {
        dir.run(line).fails(3, "--create");
        assert!(!dir.path("typo").exists(), "esker {line} made a store");
        // The same with a directory that is there and empty.
        fs::create_dir(dir.path("empty")).unwrap();
        dir.run(&line.replace("typo", "empty")).fails(3, "--create");
        assert_eq!(names(&dir.path("empty")), [""; 0], "esker {line}");
        dir.ok(&format!("{} --create", line.replace("typo", "empty")));
        dir.ok(&format!("{} --create", line.replace("typo", "new")));
        assert!(dir.ok("verify new").starts_with("sound"));
        fs::remove_dir_all(dir.path("empty")).unwrap();
        fs::remove_dir_all(dir.path("new")).unwrap();
    }
}

#[test]
fn no_store_among_the_files_of_others() {
    let dir = Dir::new();
    fs::create_dir(dir.path("home")).unwrap();
    for name in ["notes.txt", "2024010112.log", "lost+found"] {
        dir.write(&format!("home/{name}"), "mine");
        for line in ["put home k v --create", "put home k v", "keyspaces home create x --create"] {
            dir.run(line).fails(3, "home");
            assert_eq!(names(&dir.path("home")), [name], "esker {line}");
        }
        dir.run("put home k v --create").fails(3, name);
        fs::remove_file(dir.path("home").join(name)).unwrap();
    }
    // What a process left that was killed while it made a store is nobody else's.
    dir.write("home/LOCK", "");
    dir.write("home/MANIFEST-0000000001", "");
    dir.write("home/CURRENT.tmp", "");
    dir.ok("put home k v --create");
}

#[test]
fn the_store_of_another_engine_is_left_alone() {
    let dir = Dir::new();
    let files = [
        ("CURRENT", "MANIFEST-000002\n"),
        ("MANIFEST-000002", "x"),
        ("000003.log", "abc"),
        ("LOCK", ""),
    ];
    fs::create_dir(dir.path("other")).unwrap();
    for (name, text) in files {
        dir.write(&format!("other/{name}"), text);
    }
    let mut expected: Vec<_> = files.map(|(name, _)| name).to_vec();
    expected.sort();
    for line in [
        "get other k",
        "put other k v",
        "put other k v --create",
        "del other k",
        "scan other",
        "count other",
        "stats other",
        "dump other",
        "verify other",
        "repair other",
        "compact other",
        "checkpoint other copy",
        "keyspaces other",
        "import leveldb other other",
    ] {
        // A damaged CURRENT too: `repair` made an empty store of such a directory.
        for current in ["MANIFEST-000002\n", "", "x", "MANIFEST-00"] {
            dir.write("other/CURRENT", current);
            dir.run(line).fails(3, "LevelDB");
            assert_eq!(names(&dir.path("other")), expected, "esker {line}, {current:?}");
            assert_eq!(dir.read("other/CURRENT"), current.as_bytes(), "esker {line}");
        }
    }
}

#[test]
fn a_file_is_no_directory() {
    let dir = Dir::new();
    dir.write("file", "text");
    for line in ["get file k", "put file k v --create", "verify file", "repair file", "stats file"]
    {
        dir.run(line).fails(3, "file is not a directory");
    }
}

#[test]
fn stats_say_what_takes_the_space_of_large_values() {
    let dir = Dir::new();
    // Values just over the threshold, far apart: each takes two or three blocks of the disk.
    let mut tsv = String::new();
    for n in 0..2000 {
        let len = if n % 10 == 0 { 4200 } else { 300 };
        tsv.push_str(&format!("{n:06}\t{}\n", "x".repeat(len)));
    }
    dir.load(&tsv);
    let text = dir.ok("stats db");
    let stats = dir.json("stats db --json");
    let of = |name: &str| stats[name].as_u64().unwrap();
    assert!(of("blob_garbage_bytes") > of("blob_bytes") / 3, "{stats}");
    assert_eq!(of("blob_disk_bytes"), of("blob_bytes") + of("blob_garbage_bytes"));
    assert!(!text.contains("garbage"), "{text}");
    assert!(text.contains("the rest of their blocks"), "{text}");
    assert!(dir.ok("stats --help").contains("whole blocks"));
}

#[test]
fn load_chooses_columns() {
    let dir = Dir::new();
    let csv = "\u{feff}id,name,note\r\n1,Ada,\"one, \"\"two\"\"\nthree\"\r\n\r\n2,,\r\n";
    dir.write("in.csv", csv);
    dir.ok("load db in.csv --key id --value note --create");
    assert_eq!(dir.ok("scan db"), "1\tone, \"two\"\\nthree\n2\t\n");
    dir.ok("load names in.csv --key 2 --value id --create");
    assert_eq!(dir.ok("scan names"), "\t2\nAda\t1\n");
    dir.run("load db in.csv").fails(3, "line 1: there are 3 columns; --key and --value");
    dir.run("load db in.csv --key id --value x").fails(3, "they are id, name, note");
    dir.run("load new in.csv --key id --create").fails(3, "3 columns");
    assert!(!dir.path("new").exists(), "a wrong choice of columns made a store");

    // Rows without a header; a table with tabs; other delimiters.
    dir.write("rows.csv", "a,1,x\nb,2,y\n");
    dir.ok("load rows rows.csv --no-header --key 3 --value 1 --create");
    assert_eq!(dir.ok("scan rows"), "x\ta\ny\tb\n");
    dir.write("table.tsv", "k\tv\tw\na\t1\t2\\n\n");
    dir.ok("load table table.tsv --header --key k --value w --create");
    assert_eq!(dir.ok("scan table"), "a\t2\\n\n");
    dir.write("semi.csv", "k;v\na;1,5\n");
    dir.ok("load semi semi.csv --delimiter ; --create");
    assert_eq!(dir.ok("scan semi"), "a\t1,5\n");

    // JSON lines: a field as value, and what a scan prints.
    dir.write("in.jsonl", "{\"k\":1,\"v\":\"a\\u00e9\"}\n{\"k\":2,\"v\":{\"x\": 1}}\n");
    dir.ok("load json in.jsonl --key k --value v --create");
    assert_eq!(dir.ok("scan json"), "1\taé\n2\t{\"x\": 1}\n");
    dir.write("scan.jsonl", dir.run("scan db --json --base64").out);
    dir.ok("load again scan.jsonl --base64 --key key --value value --create");
    assert_eq!(dir.ok("scan again"), dir.ok("scan db"));

    for (flags, what) in [
        ("in.jsonl", "--key FIELD"),
        ("in.jsonl --key k --header", "header"),
        ("in.csv --key k --no-header", "--header"),
        ("table.tsv --key k", "--header"),
        ("table.tsv --delimiter ;", "--format csv"),
        ("in.csv --delimiter ab", "ASCII character"),
        ("in.csv --header --no-header", "cannot be used with"),
        ("x.bin --key k", "bin holds keys"),
        ("in.csv --all", "formats tsv, bin and dbdump"),
    ] {
        dir.write("x.bin", "");
        dir.run(&format!("load db {flags}")).fails(2, what);
    }
}

#[test]
fn bad_rows_of_csv_are_named_by_line() {
    let dir = Dir::new();
    dir.write("in.csv", "k,v\na,1\n\"b\n\",2\nc\nd,6\" x\ne,5\n");
    dir.run("load db in.csv --create").fails(3, "in.csv: line 5: columns: 1 here, 2 in the first");
    assert_eq!(dir.ok("count db"), "2\n");
    let report = dir.json("load db in.csv --skip-bad --json");
    assert_eq!((&report["entries"], &report["skipped"]), (&3.into(), &2.into()));
    assert!(report["first_skipped"].as_str().unwrap().starts_with("line 5: "));
    dir.write("open.csv", "k,v\na,1\nb,\"open\nc,2\n");
    dir.run("load db open.csv --skip-bad").fails(3, "line 3: a quote is opened");
    dir.write("utf16.csv", b"\xff\xfek\0,\0v\0");
    dir.run("load db utf16.csv").fails(3, "UTF-16");
}

#[test]
fn csv_and_back() {
    let dir = Dir::new();
    let every: Vec<u8> = (0..=255).collect();
    dir.run_args(&[b"put", b"db", b"a,\"b\"\r\n", b"--create"], &every);
    dir.run_args(&[b"put", b"db", b"", b""], b"");
    dir.ok("dump db out.csv");
    assert!(dir.read("out.csv").starts_with(b"key,value\n,\n"));
    dir.ok("load copy out.csv --create");
    assert_eq!(dir.run("dump copy --format bin").out, dir.run("dump db --format bin").out);
    dir.run("dump db out.csv --escape always").fails(2, "tsv");
}

#[test]
fn all_keyspaces_and_back() {
    let dir = Dir::new();
    dir.load("a\t1\n#keyspace\tx\n");
    dir.ok("keyspaces db create down --order reverse --compression zstd");
    dir.ok("keyspaces db create empty --blob-threshold 100");
    dir.run_args(&[b"keyspaces", b"db", b"create", b"odd\tname\n"], b"");
    dir.ok("put db -k down 1 one");
    dir.ok("put db -k down 2 two");
    let photo = vec![b'p'; 10_000];
    dir.run_args(&[b"put", b"db", b"-k", b"odd\tname\n", b"photo"], &photo);
    let shape = |db: &str| {
        let list = dir.json(&format!("keyspaces {db} --json"));
        let field = |k: &serde_json::Value, name: &str| k[name].to_string();
        let fields = ["name", "comparator", "compression", "blob_threshold", "entries"];
        list.as_array()
            .unwrap()
            .iter()
            .map(|k| fields.map(|name| field(k, name)).join(" "))
            .collect::<Vec<_>>()
    };
    for format in ["bin", "tsv", "tsv --hex"] {
        let dumped = dir.run(&format!("dump db --all --format {format}"));
        assert_eq!((dumped.code, dumped.err.as_str()), (0, ""), "{format}");
        let copy = format!("copy-{}", format.replace(' ', ""));
        let load = format!("load {copy} --all --format {format} --create");
        let loaded = dir.run_with(&load, &dumped.out);
        assert_eq!((loaded.code, loaded.err.as_str()), (0, ""), "{format}");
        assert!(String::from_utf8(loaded.out).unwrap().contains(" in 4 keyspaces"), "{format}");
        assert_eq!(shape(&copy), shape("db"), "{format}");
        let again = dir.run(&format!("dump {copy} --all --format {format}"));
        assert!(again.out == dumped.out, "{format}");
        // Into a store that has them already.
        assert_eq!(dir.run_with(&load, &dumped.out).code, 0);
    }
    let text = String::from_utf8(dir.run("dump db --all").out).unwrap();
    assert!(
        text.starts_with("#keyspace\tdefault\tesker.bytewise\tlz4\t4096\n#keyspace\tx\na\t1\n")
    );
    assert!(text.contains("#keyspace\todd\\tname\\n\tesker.bytewise\tlz4\t4096\nphoto\tppp"));

    // What cannot be: an order that is not known, another order, a dump of one keyspace, half a dump.
    let foreign = "#keyspace\tdefault\texample.caseless\tlz4\t4096\na\t1\n";
    dir.run_with("load new --all --create", foreign.as_bytes()).fails(3, "\"example.caseless\"");
    assert!(!dir.path("new").exists());
    let other = text.replace("down\tesker.reverse", "down\tesker.bytewise");
    let ran = dir.run_with("load db --all", other.as_bytes());
    ran.fails(3, "ordered by esker.reverse, in the dump by esker.bytewise");
    let one = dir.run("dump db --format bin").out;
    dir.run_with("load new --all --format bin --create", &one).fails(3, "leave out --all");
    dir.run_with("load new --all --create", b"a\t1\n").fails(3, "leave out --all");
    assert!(!dir.path("new").exists());
    let all = dir.run("dump db --all --format bin").out;
    dir.run_with("load new --format bin --create", &all).fails(3, "with --all");
    dir.run_with("load half --all --format bin --create", &all[..all.len() - 30])
        .fails(3, "truncated");
    dir.run("dump db --all --format jsonl").fails(2, "formats tsv, bin and dbdump");
    dir.run("dump db --all -k down").fails(2, "cannot be used with");
}

#[test]
fn a_default_keyspace_in_reverse_comes_back_so() {
    let dir = Dir::new();
    let options = esker::Options::new().comparator(esker::KeyOrder::Reverse);
    let db = options.open(dir.path("db")).unwrap();
    db.put("a", "1").unwrap();
    db.put("b", "2").unwrap();
    db.close().unwrap();
    dir.write("all.bin", dir.run("dump db --all --format bin").out);
    dir.ok("load copy all.bin --all --create");
    assert_eq!(dir.ok("scan copy --keys-only"), "b\na\n");
    dir.ok("put bytewise k v --create");
    dir.run("load bytewise all.bin --all").fails(2, "default");
}

/// Damages a store so that there is much to say about it.
fn damage(dir: &Dir) {
    let size = |name: &String| fs::metadata(dir.path("db").join(name)).unwrap().len();
    let largest = names(&dir.path("db")).into_iter().max_by_key(size).unwrap();
    let mut bytes = dir.read(&format!("db/{largest}"));
    bytes.iter_mut().skip(1000).step_by(5000).for_each(|byte| *byte ^= 1);
    dir.write(&format!("db/{largest}"), bytes);
}

#[test]
fn a_closed_pipe_hides_no_damage_from_verify() {
    let dir = Dir::new();
    noisy(&dir, 2000, 160);
    let into_closed = |args: &[&str]| {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let child = dir.command().args(args).stdout(writer).stderr(Stdio::piped()).spawn();
        Ran::from(child.unwrap().wait_with_output().unwrap())
    };
    for args in [&["verify", "db"][..], &["verify", "db", "--json"]] {
        let ran = into_closed(args);
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "sound: esker {args:?}");
    }
    damage(&dir);
    for args in [&["verify", "db"][..], &["verify", "db", "--json"]] {
        into_closed(args).fails(3, "`esker repair db` saves what is intact");
    }
}

#[test]
fn a_dump_replaces_no_link() {
    use std::os::unix::fs::symlink;
    let dir = Dir::new();
    dir.load("a\t1\n");
    let is_link = |name: &str| fs::symlink_metadata(dir.path(name)).unwrap().is_symlink();
    // To a file in another directory, by way of another link; that is there, and not yet.
    fs::create_dir(dir.path("far")).unwrap();
    symlink("far/hop", dir.path("link")).unwrap();
    symlink("file", dir.path("far/hop")).unwrap();
    for _ in 0..2 {
        dir.ok("dump db link");
        assert_eq!(dir.read("far/file"), b"a\t1\n");
        dir.write("far/file", "older");
    }
    assert!(is_link("link") && is_link("far/hop"));
    assert_eq!(names(&dir.path("far")), ["file", "hop"]);
    // To what is no file of its own.
    symlink("/dev/stdout", dir.path("out")).unwrap();
    let file = File::create(dir.path("stdout")).unwrap();
    assert!(dir.command().args(["dump", "db", "out"]).stdout(file).status().unwrap().success());
    assert_eq!(dir.read("stdout"), b"a\t1\n");
    // What was in the file stays.
    let file = File::options().append(true).open(dir.path("stdout")).unwrap();
    assert!(dir.command().args(["dump", "db", "out"]).stdout(file).status().unwrap().success());
    assert_eq!(dir.read("stdout"), b"a\t1\na\t1\n");
    assert!(is_link("out"));
    assert_eq!(dir.run("dump db out").out, b"a\t1\n");
    symlink("/dev/null", dir.path("null")).unwrap();
    dir.ok("dump db null");
    assert!(is_link("null"));
    symlink("round", dir.path("round")).unwrap();
    dir.run("dump db round").fails(3, "create round: too many links");
    assert_eq!(names(dir.0.path()), ["db", "far", "link", "null", "out", "round", "stdout"]);
}

/// Others could read what they could not before.
#[test]
fn a_dump_keeps_the_permissions_of_the_file_that_it_replaces() {
    use std::os::unix::fs::PermissionsExt;
    let dir = Dir::new();
    dir.load("a\t1\n");
    for mode in [0o600, 0o666] {
        dir.write("out.tsv", "older");
        fs::set_permissions(dir.path("out.tsv"), fs::Permissions::from_mode(mode)).unwrap();
        dir.ok("dump db out.tsv");
        assert_eq!(dir.read("out.tsv"), b"a\t1\n");
        let now = fs::metadata(dir.path("out.tsv")).unwrap().permissions().mode();
        assert_eq!(now & 0o777, mode);
    }
}

/// The carriage return before a line's end became an escape outside of any string.
#[test]
fn lines_of_json_with_carriage_returns_are_loaded_from_an_escaped_dump() {
    let dir = Dir::new();
    dir.write("in.jsonl", "{\"id\":\"a\",\r\"n\":\"\u{9b}\"}\r\n{\"id\":\"b\"}\r\n");
    dir.ok("load db in.jsonl --key id --create");
    dir.ok("dump db out.jsonl --key id --escape always");
    let out = String::from_utf8(dir.read("out.jsonl")).unwrap();
    assert_eq!(out, "{\"id\":\"a\", \"n\":\"\\u009b\"} \n{\"id\":\"b\"} \n");
    dir.ok("load again out.jsonl --key id --create");
}

#[test]
fn a_dump_leaves_the_partial_file_of_another() {
    let dir = Dir::new();
    dir.load("a\t1\n");
    dir.write("out.tsv", "older");
    dir.write("out.tsv.partial", "of another");
    dir.run("dump db out.tsv").fails(3, "out.tsv.partial is there: another dump writes it");
    assert_eq!(dir.read("out.tsv.partial"), b"of another");
    assert_eq!(dir.read("out.tsv"), b"older");
    fs::remove_file(dir.path("out.tsv.partial")).unwrap();
    dir.ok("dump db out.tsv");
    assert_eq!(dir.read("out.tsv"), b"a\t1\n");
    assert_eq!(names(dir.0.path()), ["db", "out.tsv"]);
}

/// Says on standard error what is made durable and renamed.
const TOLD: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <sys/stat.h>
int fsync(int fd) {
    struct stat s;
    fstat(fd, &s);
    fprintf(stderr, S_ISDIR(s.st_mode) ? "sync dir\n" : "sync file\n");
    return ((int (*)(int))dlsym(RTLD_NEXT, "fsync"))(fd);
}
int rename(const char *from, const char *to) {
    fprintf(stderr, "rename\n");
    return ((int (*)(const char *, const char *))dlsym(RTLD_NEXT, "rename"))(from, to);
}
"#;

#[test]
fn a_dump_gets_its_name_when_it_is_durable() {
    let dir = Dir::new();
    dir.load("a\t1\n");
    dir.write("told.c", TOLD);
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", "-o", "told.so", "told.c", "-ldl"]).current_dir(dir.0.path());
    if !cc.status().is_ok_and(|status| status.success()) {
        println!("left out: no C compiler");
        return;
    }
    let told = dir.path("told.so");
    let ran = dir.command().args(["dump", "db", "out"]).env("LD_PRELOAD", told).output().unwrap();
    let ran = Ran::from(ran);
    assert_eq!((ran.code, ran.err.as_str()), (0, "sync file\nrename\nsync dir\n"));
}

#[test]
fn joined_dumps_of_all_keyspaces_are_loaded() {
    let dir = Dir::new();
    dir.load("a\t1\n");
    dir.ok("keyspaces db create users");
    dir.ok("put db -k users ada lovelace");
    for format in ["tsv", "dbdump"] {
        let first = dir.run(&format!("dump db --all --format {format}")).out;
        dir.ok("put db -k users bob more");
        let second = dir.run(&format!("dump db --all --format {format}")).out;
        dir.ok("del db -k users bob");
        let load = format!("load {format} --all --create --format {format}");
        let ran = dir.run_with(&load, &[first, second].concat());
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{format}");
        assert!(String::from_utf8(ran.out).unwrap().contains(" in 2 keyspaces"), "{format}");
        assert_eq!(dir.ok(&format!("scan {format} -k users")), "ada\tlovelace\nbob\tmore\n");
    }
}

#[test]
fn names_in_a_dbdump_are_not_altered() {
    let dir = Dir::new();
    let dump = b"VERSION=3\nformat=bytevalue\ndatabase=caf\xe9\ntype=btree\nHEADER=END\n 61\n 62\nDATA=END\n";
    let ran = dir.run_with("load db --all --create --format dbdump", dump);
    ran.fails(3, "line 3: the name of the database is not UTF-8");
    assert!(!dir.path("db").exists());
    // Where the name says nothing.
    assert_eq!(dir.run_with("load db --create --format dbdump", dump).code, 0);
    assert_eq!(dir.ok("scan db"), "a\tb\n");
}

#[test]
fn a_dbdump_has_no_escapes() {
    let dir = Dir::new();
    dir.load("a\t1\n");
    dir.run("dump db out.dbdump --escape always").fails(2, "dump as tsv");
    dir.run("dump db --all --format dbdump --escape always").fails(2, "dump as tsv");
}

#[test]
fn a_first_row_of_separators_takes_no_memory_for_each() {
    let dir = Dir::new();
    for (separator, format, flags) in [
        (",", "csv", "--key 1 --value 2"),
        ("\t", "tsv", "--header --key 1 --value 2"),
        (",", "csv", ""),
    ] {
        let row = |separators: usize| separator.repeat(separators) + "\n";
        let load = format!("load db --create --format {format} {flags} --json");
        let ran = dir.run_with(&load, row(100_000).as_bytes());
        ran.fails(3, "line 1: there are more than 100,000 columns");
        assert!(!dir.path("db").exists());
        if !flags.is_empty() {
            let ran = dir.run_with(&load, row(99_999).as_bytes());
            assert_eq!((ran.code, ran.err.as_str()), (0, ""));
            fs::remove_dir_all(dir.path("db")).unwrap();
        }
    }
}

/// An order that only a program has.
struct Caseless;

impl esker::Comparator for Caseless {
    fn name(&self) -> &str {
        "example.caseless"
    }
    fn compare(&self, a: &[u8], b: &[u8]) -> std::cmp::Ordering {
        a.to_ascii_lowercase().cmp(&b.to_ascii_lowercase())
    }
}

#[test]
fn help_of_dump_says_that_one_comparator_keeps_it_from_the_store() {
    let dir = Dir::new();
    let db = esker::Options::new().open(dir.path("db")).unwrap();
    db.create_keyspace("own", esker::KeyspaceOptions::new().comparator(Caseless)).unwrap();
    db.close().unwrap();
    for line in ["dump db", "dump db --all", "get db k"] {
        dir.run(line).fails(2, "example.caseless");
    }
    assert!(dir.ok("dump --help").contains("none of its keyspaces can be dumped here"));
    // As the guide has it.
    assert!(String::from_utf8(dir.run("verify db").out).unwrap().contains("is not checked"));
}
