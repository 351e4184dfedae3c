//! The examples of `docs/C.md` compile without a warning, and those that are programs run.

mod common;

use std::fs;
use std::process::Command;

use common::{Link, compile, lay_out, root, run};

/// The blocks of a language.
fn blocks<'a>(page: &'a str, language: &str) -> Vec<&'a str> {
    let fence = format!("\n```{language}\n");
    page.split(&fence).skip(1).map(|rest| &rest[..rest.find("\n```").unwrap() + 1]).collect()
}

#[test]
fn the_examples_of_the_page_work() {
    let page = fs::read_to_string(root().join("../../docs/C.md")).unwrap();
    let (c, cpp) = (blocks(&page, "c"), blocks(&page, "cpp"));
    assert!(c.len() >= 4 && cpp.len() == 1);
    let dir = tempfile::tempdir().unwrap();
    lay_out(dir.path());
    let mut printed = Vec::new();
    let all = c.iter().map(|text| (text, "c")).chain(cpp.iter().map(|text| (text, "cc")));
    for (n, (text, extension)) in all.enumerate() {
        let is_program = text.contains("int main(");
        // A part of a program: it is one with nothing to do.
        let main = if is_program { "" } else { "int main(void) { return 0; }\n" };
        let source = dir.path().join(format!("example{n}.{extension}"));
        fs::write(&source, format!("{text}{main}")).unwrap();
        let program = compile(&source, dir.path(), Link::Shared);
        let stores = tempfile::tempdir().unwrap();
        let out = run(Command::new(program).current_dir(stores.path()));
        if is_program {
            printed.push(out);
        }
    }
    assert_eq!(printed[0], "ash = Fraxinus\nash is gone\n");
    assert!(printed[1].starts_with("Fraxinus\nbeech = Fagus\nbirch = Betula\nbefore: Fraxinus\n"));
    assert!(printed[1].contains("no keyspace \"none\""), "{}", printed[1]);
}
