//! The programs in `tests/c` and `tests/cpp`: they compile without a warning and do what they should, with the shared
//! library and with the static one, and under valgrind; and they leave no function of the header out.

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use common::{Link, compile, lay_out, programs, root, run};

/// Compiles all programs, and runs each by `how` with a directory of its own.
fn run_all(link: Link, how: impl Fn(&Path) -> Command + Sync) {
    let libraries = tempfile::tempdir().unwrap();
    lay_out(libraries.path());
    let all = [programs("c"), programs("cpp")].concat();
    assert!(all.len() > 6, "{all:?}");
    let (libraries, how) = (&libraries, &how);
    std::thread::scope(|scope| {
        for source in &all {
            scope.spawn(move || {
                let program = compile(source, libraries.path(), link);
                let dir = tempfile::tempdir().unwrap();
                run(how(&program).arg(dir.path()));
            });
        }
    });
}

#[test]
fn with_the_shared_library() {
    run_all(Link::Shared, |program| Command::new(program));
}

#[test]
fn with_the_static_library() {
    run_all(Link::Static, |program| Command::new(program));
}

/// No byte is read that is not the program's or set, none written, and nothing is left behind.
#[test]
fn under_valgrind() {
    if Command::new("valgrind").arg("--version").output().is_err() {
        eprintln!("no valgrind here: left out");
        return;
    }
    run_all(Link::Shared, |program| {
        let mut valgrind = Command::new("valgrind");
        valgrind.args(["--quiet", "--error-exitcode=9", "--leak-check=full"]).arg(program);
        valgrind
    });
}

/// The functions that the header declares.
fn declared() -> BTreeSet<String> {
    let header = fs::read_to_string(root().join("include/esker.h")).unwrap();
    let code = header.lines().filter(|l| !l.trim_start().starts_with("//"));
    let start = header.find("extern \"C\"").unwrap();
    let code: String = code.collect::<Vec<_>>().join("\n");
    let code = &code[code.find("extern \"C\"").unwrap_or(start)..];
    names(code)
}

/// Every `esker_name(` of a text.
fn names(text: &str) -> BTreeSet<String> {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut found = BTreeSet::new();
    for (at, _) in text.match_indices("esker_") {
        let name: String = text[at..].chars().take_while(|c| word(*c)).collect();
        let starts = !text[..at].ends_with(word);
        if starts && text[at + name.len()..].starts_with('(') {
            found.insert(name);
        }
    }
    found
}

#[test]
fn every_function_is_called() {
    let declared = declared();
    assert!(declared.len() > 70, "{declared:?}");
    let text = |p: &Path| fs::read_to_string(p).unwrap();
    let mut called: String = programs("c").iter().map(|p| text(p)).collect();
    called += &text(&root().join("tests/c/check.h"));
    let called = names(&called);
    let left_out: Vec<_> = declared.difference(&called).collect();
    assert!(left_out.is_empty(), "no program in tests/c calls {left_out:?}");
    // The library exports just these.
    let libraries = tempfile::tempdir().unwrap();
    lay_out(libraries.path());
    let symbols = run(Command::new("nm")
        .args(["--dynamic", "--defined-only", "--format=posix"])
        .arg(libraries.path().join("libesker.so")));
    let exported: BTreeSet<String> = symbols
        .lines()
        .filter_map(|l| l.split(' ').next())
        .filter(|n| n.starts_with("esker_"))
        .map(str::to_string)
        .collect();
    assert_eq!(exported, declared);
}
