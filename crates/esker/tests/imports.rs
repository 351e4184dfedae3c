//! No two files of the engine need each other: whoever reads one downwards never comes back to it.
//! `impl Store` in several files is no import; what a file names is.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Modules (`wal/sync`, `wal` for `wal/mod.rs`) and the text of their files, without tests.
type Files = BTreeMap<String, String>;

fn read(dir: &Path, prefix: &str, out: &mut Files) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        let module = if prefix.is_empty() { name.into() } else { format!("{prefix}/{name}") };
        if path.is_dir() {
            read(&path, &module, out);
        } else if !is_test(&module) {
            let text = fs::read_to_string(&path).unwrap();
            let text = text.split("#[cfg(test)]\nmod ").next().unwrap();
            let text = text.split("#[cfg(all(test").next().unwrap();
            let code = text.lines().map(|l| l.split("//").next().unwrap());
            let module = module.strip_suffix("/mod").unwrap_or(&module).to_string();
            out.insert(module, code.collect::<Vec<_>>().join("\n"));
        }
    }
}

fn is_test(module: &str) -> bool {
    let last = module.rsplit('/').next().unwrap();
    let kinds = ["tests", "testing", "bench", "speed", "conformance", "simulation", "script"];
    let by_name = |kind: &&str| last == *kind || last.ends_with(&format!("_{kind}"));
    let folders = ["crash_tests/", "env/sim/", "fuzzing/"];
    module.contains("/tests/")
        || folders.iter().any(|f| module.starts_with(f))
        || ["models", "fuzz", "fuzzing"].contains(&last)
        || kinds.iter().any(by_name)
}

/// The paths that a `use` tree names: `a::{b, c::d}` names `a::b` and `a::c::d`.
fn expand(tree: &str, before: &str, out: &mut Vec<String>) {
    let Some((base, inner)) = tree.split_once('{') else {
        out.push(format!("{before}{}", tree.split(" as ").next().unwrap().trim()));
        return;
    };
    let before = format!("{before}{}", base.trim());
    let inner = inner.trim_end().strip_suffix('}').unwrap();
    let (mut depth, mut from) = (0, 0);
    for (at, c) in inner.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                expand(&inner[from..at], &before, out);
                from = at + 1;
            }
            _ => {}
        }
    }
    if !inner[from..].trim().is_empty() {
        expand(&inner[from..], &before, out);
    }
}

/// What a file names of the crate; of a `mod.rs` without what it only passes on.
fn paths(code: &str, passed_on: bool) -> Vec<String> {
    let mut out = Vec::new();
    let mut lines = code.lines();
    while let Some(line) = lines.next() {
        let Some((before, tree)) = line.split_once("use ") else { continue };
        let public = before.trim_start().starts_with("pub");
        if public != passed_on || !(public || before.trim().is_empty()) {
            continue;
        }
        let mut tree = tree.to_string();
        while !tree.contains(';') {
            tree += lines.next().unwrap_or(";");
        }
        expand(tree.split(';').next().unwrap(), "", &mut out);
    }
    if !passed_on {
        let word = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
        let named = |part: &str| part.split(|c| !word(c)).next().unwrap().to_string();
        out.extend(code.split("crate::").skip(1).map(|part| format!("crate::{}", named(part))));
    }
    out
}

/// The file that a path leads to, and the name behind it.
fn resolve<'a>(files: &Files, file: &str, path: &'a str) -> Option<(String, &'a str)> {
    let mut parts = path.split("::").peekable();
    let mut here = match *parts.peek()? {
        "crate" => String::new(),
        "super" => file.to_string(),
        // `use batch::X` in a `mod.rs` names what lies below it.
        first if files.contains_key(&format!("{file}/{first}")) => file.to_string(),
        _ => return None,
    };
    while parts.peek().is_some_and(|p| ["crate", "super", "self"].contains(p)) {
        if parts.next() == Some("super") {
            here = here.rsplit_once('/').map(|(above, _)| above.to_string()).unwrap_or_default();
        }
    }
    while let Some(part) = parts.peek() {
        let below = if here.is_empty() { part.to_string() } else { format!("{here}/{part}") };
        if !files.contains_key(&below) {
            break;
        }
        here = below;
        parts.next();
    }
    Some((here, parts.next().unwrap_or("")))
}

/// For every file, the files that it names; what a `mod.rs` passes on counts for where it is.
fn imports(files: &Files) -> BTreeMap<&str, BTreeSet<String>> {
    let mut passed_on = BTreeMap::new();
    for (module, code) in files {
        for path in paths(code, true) {
            if let Some((target, name)) = resolve(files, module, &path)
                && target != *module
            {
                passed_on.insert((module.clone(), name.to_string()), target);
            }
        }
    }
    let mut all = BTreeMap::new();
    for (module, code) in files {
        let mut named = BTreeSet::new();
        for path in paths(code, false) {
            let Some((mut target, name)) = resolve(files, module, &path) else { continue };
            while let Some(next) = passed_on.get(&(target.clone(), name.to_string())) {
                target = next.clone();
            }
            if target != *module && files.contains_key(&target) {
                named.insert(target);
            }
        }
        all.insert(module.as_str(), named);
    }
    all
}

#[test]
fn no_two_files_need_each_other() {
    let mut files = Files::new();
    read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), "", &mut files);
    files.remove("lib");
    let imports = imports(&files);
    let edges: usize = imports.values().map(BTreeSet::len).sum();
    assert!(files.len() > 100 && edges > 400, "{} files, {edges} imports", files.len());
    // What names nothing that is left is no part of a circle.
    let mut left = imports.clone();
    while let Some(end) =
        left.iter().find(|(_, named)| !named.iter().any(|n| left.contains_key(n.as_str())))
    {
        let end = *end.0;
        left.remove(end);
    }
    // Nor is what nobody left names.
    while let Some(top) = left.keys().find(|m| !left.values().any(|named| named.contains(**m))) {
        let top = *top;
        left.remove(top);
    }
    for (module, named) in &left {
        let round: Vec<_> = named.iter().filter(|n| left.contains_key(n.as_str())).collect();
        println!("{module} names {round:?}");
    }
    assert!(left.is_empty(), "files that lead back to themselves; see above");
}
