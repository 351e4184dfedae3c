//! load and dump: round trips, and what is said about bad input.

mod common;
use common::Dir;

/// Keys and values that a format could stumble over, in the order of the keys.
fn awkward() -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut entries: Vec<(Vec<u8>, Vec<u8>)> = vec![
        (b"".to_vec(), b"".to_vec()),
        (b"\t".to_vec(), b"\n".to_vec()),
        (b"\\".to_vec(), b"\\t\\".to_vec()),
        (b"\r\n".to_vec(), b"line\r\n".to_vec()),
        (b"\xff\xfe".to_vec(), (0..=255).collect()),
        (vec![b'k'; 65_536], vec![0; 300_000]),
        ("Ünïcödé".into(), "🗝".into()),
    ];
    entries
        .extend((0..5000u32).map(|i| (i.to_be_bytes().to_vec(), vec![i as u8; i as usize % 97])));
    entries.sort();
    entries
}

fn as_bin(entries: &[(Vec<u8>, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = b"ESKERKV\x01".to_vec();
    for (key, value) in entries {
        bytes.extend((key.len() as u32).to_le_bytes());
        bytes.extend((value.len() as u32).to_le_bytes());
        bytes.extend(key);
        bytes.extend(value);
    }
    bytes.extend([0xff; 8]);
    bytes.extend((entries.len() as u64).to_le_bytes());
    bytes
}

#[test]
fn any_bytes_survive_every_format() {
    let dir = Dir::new();
    let bin = as_bin(&awkward());
    dir.write("in.bin", &bin);
    assert!(dir.ok("load db in.bin --sync --create").starts_with("loaded 5,007 entries"));
    assert_eq!(dir.run("dump db --format bin").out, bin);
    for format in ["tsv", "bin", "tsv --hex", "tsv --base64"] {
        let dumped = dir.run(&format!("dump db --format {format}"));
        assert_eq!((dumped.code, dumped.err.as_str()), (0, ""), "{format}");
        let copy = format!("copy-{}", format.replace(' ', ""));
        let loaded =
            dir.run_with(&format!("load {copy} - --format {format} --create"), &dumped.out);
        assert_eq!((loaded.code, loaded.err.as_str()), (0, ""), "{format}");
        assert_eq!(dir.run(&format!("dump {copy} --format bin")).out, bin, "{format}");
        assert_eq!(dir.run(&format!("dump {copy} --format {format}")).out, dumped.out, "{format}");
    }
    // What scan prints is TSV that load reads.
    let scanned = dir.run("scan db").out;
    assert_eq!(scanned, dir.run("dump db").out);
}

#[test]
fn json_lines_come_back_byte_for_byte() {
    let dir = Dir::new();
    let lines = "{\"user\": {\"id\": \"a\"},  \"n\": 1.50}\n{\"user\":{\"id\":\"b\"},\"s\":\"\\u00e9é\"}\r\n";
    dir.write("in.jsonl", lines);
    let report = dir.json("load db in.jsonl --key user.id --json --create");
    assert_eq!((&report["entries"], &report["skipped"]), (&2.into(), &0.into()));
    assert_eq!(dir.ok("scan db --keys-only"), "a\nb\n");
    dir.ok("dump db out.jsonl --key user.id");
    assert_eq!(dir.read("out.jsonl"), lines.as_bytes());
    assert_eq!(dir.ok("dump db --format jsonl"), lines);
    dir.run("load db in.jsonl").fails(2, "--key FIELD");
    dir.run("load db in.jsonl --key a..b").fails(2, "--key");
    dir.run("load db --key id").fails(2, "--format jsonl");
    dir.run("load db --format bin --hex").fails(2, "--hex");

    dir.ok("put db c plain");
    dir.run("dump db bad.jsonl").fails(3, "key \"c\" cannot be dumped as jsonl");
    assert!(!dir.path("bad.jsonl").exists() && !dir.path("bad.jsonl.partial").exists());
    dir.ok("put db c {\"user\":{\"id\":\"d\"}}");
    dir.run("dump db bad.jsonl --key user.id").fails(3, "says \"d\"");
    assert_eq!(dir.run("dump db ok.jsonl").code, 0);
}

#[test]
fn a_bad_line_ends_the_load_and_what_came_before_is_there() {
    let dir = Dir::new();
    // More than a batch before it, and good lines behind it.
    let mut text: String = (0..2500).map(|i| format!("{i:05}\tv{i}\n")).collect();
    text.push_str("bad line\n99999\tbehind\n");
    dir.write("in.tsv", &text);
    let ran = dir.run("load db in.tsv --create");
    ran.fails(3, "in.tsv: line 2501: no tab between key and value; 2,500 entries before it loaded");
    assert_eq!(ran.out, b"");
    assert_eq!(dir.ok("count db"), "2500\n");

    let report = dir.json("load db in.tsv --skip-bad --json");
    assert_eq!((&report["entries"], &report["skipped"]), (&2501.into(), &1.into()));
    assert!(report["first_skipped"].as_str().unwrap().starts_with("line 2501: "));
    assert_eq!(dir.ok("count db"), "2501\n");
    let text = dir.ok("load db in.tsv --skip-bad");
    assert!(text.contains("skipped 1 bad, the first at line 2501"), "{text}");
}

#[test]
fn every_bad_line_is_named() {
    let dir = Dir::new();
    let long_key = [&[b'k'; 65_537][..], b"\tv\n"].concat();
    for (flags, before, bad, what) in [
        ("", "a\t1\n", &b"\n"[..], "line 2: the line is empty"),
        ("", "a\t1\n", b"b\t\\\n", "line 2: value: unfinished escape"),
        ("", "a\t1\n", b"b\\q\t\n", "line 2: key: unknown escape"),
        ("", "a\t1\n", b"b\t1\t2\n", "line 2: a second tab"),
        ("", "a\t1\n", &long_key, "line 2: a key of 65537 bytes"),
        ("--hex", "aa\t11\n", b"b\t22\n", "line 2: key: not hexadecimal"),
        ("--format jsonl --key id", "{\"id\":1}\n\n", b"{\"id\":", "line 3: broken JSON"),
        ("--format jsonl --key id", "{\"id\":1}\n", b"{\"key\":2}", "line 2: no field `id`"),
        (
            "--format jsonl --key id",
            "{\"id\":1}\n",
            b"{\"id\":\"\xff\"}\n",
            "line 2: invalid UTF-8",
        ),
        (
            "--format jsonl --key id",
            "{\"id\":1}\n",
            b"{\"id\":[]}\n",
            "line 2: field `id` is an array",
        ),
    ] {
        let input = [before.as_bytes(), bad].concat();
        let dir_name = format!("load db --create {flags}");
        let ran = dir.run_with(&dir_name, &input);
        ran.fails(3, what);
        assert!(ran.err.contains("1 entry before it loaded"), "{}", ran.err);
        let ran = dir.run_with(&format!("load db --skip-bad {flags}"), &input);
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{what}");
    }
    // Invalid UTF-8 is no error where the format is one of bytes.
    assert_eq!(dir.run_with("load db", b"\xff\xfe\t\x80\n").code, 0);
}

#[test]
fn truncated_binary_is_noticed_everywhere() {
    let dir = Dir::new();
    let bin = as_bin(&[(b"key".to_vec(), b"value".to_vec()), (b"k2".to_vec(), b"v2".to_vec())]);
    for len in 0..bin.len() {
        dir.run_with("load db --format bin --create", &bin[..len]).fails(3, "truncated");
    }
    let cut = &bin[..bin.len() - 17];
    let ran = dir.run_with("load db --format bin --skip-bad", cut);
    ran.fails(3, "record 2: the input is truncated: it ends inside a value");
    assert!(ran.err.contains("1 entry before it loaded"), "{}", ran.err);
    dir.run_with("load db --format bin", b"a\tb\n").fails(3, "not an Esker binary dump");
}

#[test]
fn wrong_inputs_and_outputs() {
    let dir = Dir::new();
    dir.run("load db none.tsv").fails(3, "none.tsv");
    assert!(!dir.path("db").exists(), "a wrong file name made a store");
    dir.run("load db .").fails(3, "directory");
    dir.load("");
    assert_eq!(dir.ok("count db"), "0\n");
    assert_eq!(dir.ok("dump db"), "");
    dir.load("a\t1\n");
    dir.run("dump db no/such/dir.tsv").fails(3, "no/such/dir.tsv");
    assert_eq!(dir.run("dump db /dev/null").code, 0);
    if std::path::Path::new("/dev/full").exists() {
        dir.run("dump db /dev/full").fails(3, "write /dev/full");
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let ran: common::Ran =
            dir.command().args(["scan", "db"]).stdout(full).output().unwrap().into();
        ran.fails(3, "write standard output");
        for help in [&["--help"][..], &["scan", "--help"], &["--version"]] {
            let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
            let ran: common::Ran = dir.command().args(help).stdout(full).output().unwrap().into();
            ran.fails(3, "write standard output");
        }
    }
}

#[test]
fn a_dump_of_a_range() {
    let dir = Dir::new();
    dir.load("a\t1\nb\t2\nc\t3\n");
    assert_eq!(dir.ok("dump db --from b --to c"), "b\t2\n");
    dir.ok("dump db part.bin --hex --prefix 62");
    assert_eq!(dir.read("part.bin"), as_bin(&[(b"b".to_vec(), b"2".to_vec())]));
}

#[test]
fn memory_and_compression_flags() {
    let dir = Dir::new();
    dir.write("in.tsv", "a\t1\n");
    for codec in ["none", "lz4", "zstd"] {
        dir.ok(&format!("load {codec} in.tsv --compression {codec} --memory 16MiB --create"));
        assert_eq!(dir.ok(&format!("get {codec} a --memory 8M")), "1");
    }
    dir.run("load db in.tsv --create --memory 1000").fails(2, "memory");
    dir.run("load db in.tsv --memory lots").fails(2, "is no size");
    dir.run("load db in.tsv --compression brotli").fails(2, "brotli");
}
