//! Golden tests in text files: commands, their input, and the answer that is expected.
//!
//! ```text
//! # a comment
//! command word word
//! input line
//! ----
//! expected line
//! ```
//!
//! A blank line ends a case. With `ESKER_REWRITE=1` in the environment the expectations are
//! rewritten with what the test answers.

use std::fmt::Write;
use std::path::Path;

/// One command.
pub(crate) struct Case<'a> {
    pub command: &'a str,
    pub words: Vec<&'a str>,
    pub input: Vec<&'a str>,
}

impl<'a> Case<'a> {
    /// The value of a word `name=value` of the command line.
    pub(crate) fn word(&self, name: &str) -> Option<&'a str> {
        word(&self.words, name)
    }
}

/// The value of the word `name=value`.
pub(crate) fn word<'a>(words: &[&'a str], name: &str) -> Option<&'a str> {
    words.iter().find_map(|w| w.strip_prefix(name)?.strip_prefix('='))
}

/// Bytes with a unit: `64M`, `512K`, `3G`, `100`.
pub(crate) fn size(text: &str) -> u64 {
    let (digits, unit) = match text.as_bytes().last() {
        Some(b'K') => (&text[..text.len() - 1], 1 << 10),
        Some(b'M') => (&text[..text.len() - 1], 1 << 20),
        Some(b'G') => (&text[..text.len() - 1], 1 << 30),
        _ => (text, 1),
    };
    digits.parse::<u64>().unwrap_or_else(|_| panic!("no size: {text}")) * unit
}

/// Runs every script of a folder below `testdata`; `start` makes the answering function anew for
/// each.
pub(crate) fn run_folder<F: FnMut(&Case<'_>) -> String>(
    folder: &str,
    mut start: impl FnMut() -> F,
) {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata").join(folder);
    let mut paths: Vec<_> = std::fs::read_dir(&dir).unwrap().map(|e| e.unwrap().path()).collect();
    paths.retain(|p| p.extension().is_some_and(|e| e == "txt"));
    paths.sort();
    assert!(!paths.is_empty(), "no scripts in {}", dir.display());
    for path in paths {
        run_file(&path, start());
    }
}

fn run_file(path: &Path, mut answer: impl FnMut(&Case<'_>) -> String) {
    let text = std::fs::read_to_string(path).unwrap();
    let mut rewritten = String::new();
    let mut wrong = String::new();
    let mut lines = text.lines().enumerate().peekable();
    while let Some((n, line)) = lines.next() {
        writeln!(rewritten, "{line}").unwrap();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let mut words = line.split_whitespace();
        let command = words.next().unwrap_or_default();
        let mut case = Case { command, words: words.collect(), input: Vec::new() };
        for (_, line) in lines.by_ref().take_while(|(_, l)| *l != "----") {
            writeln!(rewritten, "{line}").unwrap();
            case.input.push(line);
        }
        let expected: Vec<&str> =
            lines.by_ref().map(|(_, l)| l).take_while(|l| !l.is_empty()).collect();
        let got = answer(&case);
        let got = got.trim_end();
        writeln!(rewritten, "----\n{got}").unwrap();
        if lines.peek().is_some() {
            rewritten.push('\n');
        }
        if got != expected.join("\n") {
            let expected = expected.join("\n");
            writeln!(
                wrong,
                "{}:{}: {line}\nexpected\n{expected}\ngot\n{got}\n",
                path.display(),
                n + 1
            )
            .unwrap();
        }
    }
    if std::env::var_os("ESKER_REWRITE").is_some() {
        std::fs::write(path, rewritten).unwrap();
    } else {
        assert!(wrong.is_empty(), "{wrong}");
    }
}
