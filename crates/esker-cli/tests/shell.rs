//! What a shell sees: help, completions, manual pages, usage errors, pipes that close.

mod common;
use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

use common::{Dir, Ran};

const COMMANDS: [&str; 16] = [
    "put",
    "get",
    "del",
    "scan",
    "load",
    "dump",
    "import",
    "export",
    "count",
    "stats",
    "verify",
    "repair",
    "compact",
    "checkpoint",
    "keyspaces",
    "bench",
];

#[test]
fn help_of_every_command_has_examples() {
    let dir = Dir::new();
    let all = dir.ok("--help");
    for name in COMMANDS {
        assert!(all.contains(&format!("  {name} ")), "{name}");
        // `esker bench --help` is the help of the program that it starts.
        let words = if name == "bench" { format!("help {name}") } else { format!("{name} --help") };
        let help = dir.ok(&words);
        let (_, examples) = help.split_once("Examples:").expect(name);
        assert!(examples.contains(&format!("esker {name} ")), "{help}");
    }
    assert!(dir.ok("--version").starts_with("esker "));
    let none = dir.run("");
    assert_eq!(none.code, 2);
    assert!(none.err.contains("Usage:"));
}

#[test]
fn usage_errors_are_one_line_and_exit_2() {
    let dir = Dir::new();
    dir.run("frobnicate db").fails(2, "frobnicate");
    dir.run("get").fails(2, "<DB> <KEY>; see `esker get --help`");
    dir.run("get db k --hexx").fails(2, "--hexx");
    dir.run("scan db --limit many").fails(2, "many");
    dir.run("load db --format xml").fails(2, "xml");
    dir.run("man frobnicate").fails(2, "frobnicate");
    assert_eq!(dir.run("completions tcsh").code, 2);
}

#[test]
fn completions_and_manual_pages() {
    let dir = Dir::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = dir.ok(&format!("completions {shell}"));
        assert!(COMMANDS.iter().all(|name| script.contains(name)), "{shell}");
    }
    assert!(dir.ok("man").contains(".TH"));
    assert!(dir.ok("man load").contains("esker\\-load"));
    dir.ok("man --dir pages/man1");
    for name in COMMANDS {
        assert!(dir.path(&format!("pages/man1/esker-{name}.1")).exists(), "{name}");
    }
    assert!(dir.path("pages/man1/esker.1").exists());
}

#[test]
fn a_closed_pipe_is_the_end_and_no_error() {
    let dir = Dir::new();
    let tsv: String = (0..100_000).map(|i| format!("{i:06}\tvalue of {i}\n")).collect();
    dir.write("in.tsv", tsv);
    dir.ok("load db in.tsv --create");
    for args in [&["scan", "db"][..], &["dump", "db", "--format", "bin"], &["scan", "db", "--json"]]
    {
        let mut child =
            dir.command().args(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut first = [0; 10];
        let mut stdout = BufReader::with_capacity(10, child.stdout.take().unwrap());
        assert_eq!(stdout.fill_buf().unwrap().len(), 10);
        stdout.read_exact(&mut first).unwrap();
        drop(stdout);
        let ran = Ran::from(child.wait_with_output().unwrap());
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "esker {args:?}");
    }
}
