//! put, get, del, scan and count.

mod common;
use common::Dir;

#[test]
fn put_get_del() {
    let dir = Dir::new();
    dir.ok("put db colour blue --create");
    assert_eq!(dir.ok("get db colour"), "blue"); // no newline into a pipe
    dir.ok("put db colour red --sync");
    assert_eq!(dir.ok("get db colour --raw"), "red");
    dir.ok("put db negative -5");
    assert_eq!(dir.ok("get db negative"), "-5");
    dir.ok("del db colour negative never-there");
    dir.run("get db colour").fails(1, "no such key");
    dir.run("get db negative").fails(1, "no such key");
    assert_eq!(dir.run("get db colour").out, b"");
}

#[test]
fn any_bytes_in_arguments_and_on_standard_input() {
    let dir = Dir::new();
    let value: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    assert_eq!(dir.run_args(&[b"put", b"db", b"\xff\\t", b"--create"], &value).code, 0);
    assert_eq!(dir.run_args(&[b"get", b"db", b"\xff\\t"], b"").out, value);
    assert_eq!(dir.run_args(&[b"put", b"db", b"--", b"--key", b"-v"], b"").code, 0);
    assert_eq!(dir.run_args(&[b"get", b"db", b"--", b"--key"], b"").out, b"-v");
    dir.run_args(&[b"put", b"db", b"", b""], b"x");
    let empty = dir.run_args(&[b"get", b"db", b""], b"");
    assert_eq!((empty.code, empty.out), (0, vec![]));
}

#[test]
fn hex_and_base64() {
    let dir = Dir::new();
    dir.ok("put db --hex 00FF cafe --create");
    assert_eq!(dir.ok("get db --hex 00ff"), "cafe\n");
    assert_eq!(dir.ok("get db --base64 AP8="), "yv4=\n");
    assert_eq!(dir.ok("scan db --hex"), "00ff\tcafe\n");
    assert_eq!(dir.ok("scan db --base64 --keys-only"), "AP8=\n");
    assert_eq!(dir.ok("count db --hex --prefix 00"), "1\n");
    assert_eq!(dir.run_with("put db --hex 01", b"abcd\n").code, 0);
    assert_eq!(dir.ok("get db --hex 01"), "abcd\n");
    dir.run("put db --hex 0 11").fails(2, "KEY is not hexadecimal");
    dir.run("put db --base64 AP8= *").fails(2, "VALUE is not base64");
    dir.run("get db --hex --base64 00").fails(2, "cannot be used with");
    dir.run_with("put db --hex 01", b"xyz").fails(3, "standard input is not hexadecimal");
    dir.ok("del db --hex 00ff 01");
    assert_eq!(dir.ok("count db"), "0\n");
}

#[test]
fn limits_and_missing_stores() {
    let dir = Dir::new();
    dir.ok("put db k v --create");
    let long = [b'k'; 70_000];
    dir.run_args(&[b"put", b"db", &long, b"v"], b"").fails(2, "70000 bytes is over the limit");
    for line in [
        "get none k",
        "del none k",
        "scan none",
        "count none",
        "dump none",
        "stats none",
        "verify none",
        "compact none",
        "checkpoint none copy",
        "keyspaces none",
        "keyspaces none drop x",
        "put none -k x key value",
    ] {
        dir.run(line).fails(3, "none");
        assert!(!dir.path("none").exists(), "esker {line} made a store");
    }
}

#[test]
fn scan_ranges_in_both_directions() {
    let dir = Dir::new();
    dir.load("a\t1\nab\t2\nabc\t3\nb\t4\nc\t5\n");
    let keys = |flags: &str| {
        let out = dir.ok(&format!("scan db --keys-only {flags}"));
        out.lines().collect::<Vec<_>>().join(" ")
    };
    for (flags, forward, backward) in [
        ("", "a ab abc b c", "c b abc ab a"),
        ("--prefix a", "a ab abc", "abc ab a"),
        ("--from ab", "ab abc b c", "c b abc ab"),
        ("--to b", "a ab abc", "abc ab a"),
        ("--from ab --to c", "ab abc b", "b abc ab"),
        ("--from aa --to bb", "ab abc b", "b abc ab"),
        ("--prefix a --from ab", "ab abc", "abc ab"),
        ("--prefix a --to abb", "a ab", "ab a"),
        ("--from c --to a", "", ""),
        ("--prefix x", "", ""),
        ("--limit 2", "a ab", "c b"),
        ("--prefix ab -n 1", "ab", "abc"),
        ("--limit 0", "", ""),
    ] {
        assert_eq!(keys(flags), forward, "{flags}");
        assert_eq!(keys(&format!("{flags} --reverse")), backward, "{flags} --reverse");
    }
    assert_eq!(dir.ok("scan db --limit 2"), "a\t1\nab\t2\n");
    for (flags, count) in [("", 5), ("--prefix a", 3), ("--from ab --to c", 3), ("--prefix x", 0)] {
        assert_eq!(dir.ok(&format!("count db {flags}")), format!("{count}\n"));
    }
    assert_eq!(dir.json("count db --prefix a --json")["entries"], 3);
}

#[test]
fn scan_of_a_keyspace_in_reverse_order() {
    let dir = Dir::new();
    dir.ok("keyspaces db create down --order reverse --create");
    let ran = dir.run_with("load db -k down", b"a\t1\nab\t2\nb\t3\nc\t4\n");
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(dir.ok("scan db -k down --keys-only"), "c\nb\nab\na\n");
    assert_eq!(dir.ok("scan db -k down --keys-only --reverse"), "a\nab\nb\nc\n");
    assert_eq!(dir.ok("scan db -k down --keys-only --prefix a"), "ab\na\n");
    assert_eq!(dir.ok("scan db -k down --keys-only --prefix a --reverse"), "a\nab\n");
    assert_eq!(dir.ok("scan db -k down --keys-only --from b --to a"), "b\nab\n");
    assert_eq!(dir.ok("count db -k down --from b"), "3\n");
    assert_eq!(dir.ok("count db"), "0\n");
}

#[test]
fn json_holds_any_bytes() {
    let dir = Dir::new();
    let ran = dir.run_with("load db --create", b"a\\n\\\\\tb\\t\nz\xff\tv\xfe\n");
    assert_eq!(ran.code, 0, "{ran:?}");
    let out = dir.ok("scan db --json");
    let expected = "{\"key\":\"a\\n\\\\\",\"value\":\"b\\t\"}\n\
                    {\"key_base64\":\"ev8=\",\"value_base64\":\"dv4=\"}\n";
    assert_eq!(out, expected);
    assert_eq!(dir.ok("scan db --json --hex --keys-only -n 1"), "{\"key\":\"610a5c\"}\n");
    assert_eq!(dir.json("get db --hex 7aff --json")["value"], "76fe");
}
