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
