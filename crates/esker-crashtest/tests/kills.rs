//! Fifty kills in every run of the tests, two hundred in a campaign (`ESKER_CAMPAIGN=1`, about a minute);
//! many more by hand (`esker-crashtest --hours 8`).

use std::process::Command;

#[test]
fn kills_lose_nothing_acknowledged() {
    let kills = if std::env::var_os("ESKER_CAMPAIGN").is_some() { "200" } else { "50" };
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("crash");
    let run = Command::new(env!("CARGO_BIN_EXE_esker-crashtest"))
        .args(["--cycles", kills, "--dir"])
        .arg(&store)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&run.stdout);
    println!("{said}{}", String::from_utf8_lossy(&run.stderr));
    if !run.status.success() {
        let _kept = dir.keep();
        panic!("see above");
    }
    assert!(said.contains(&format!("{kills} kills")));
    assert!(!store.exists(), "what was sound is removed");
}

#[test]
fn wrong_flags_are_explained() {
    for args in [
        &["--cycles"][..],
        &["--cycles", "many"],
        &["--what", "1"],
        &["--child", "x"],
        &["callers", "--what", "1"],
    ] {
        let run = Command::new(env!("CARGO_BIN_EXE_esker-crashtest")).args(args).output().unwrap();
        assert!(!run.status.success());
        assert!(String::from_utf8_lossy(&run.stderr).contains("Usage"), "{args:?}");
    }
}
