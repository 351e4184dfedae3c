//! The house rules that a compiler does not check: layers, where `unsafe` may stand, file sizes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Modules from the ground up. A module may name those of lower ranks, and those of its own: a rank is a
/// floor, and rooms on one floor may know each other. A folder belongs together by its subject; files of it
/// that know more than the rest stand higher, by name.
const RANKS: &[&[&str]] = &[
    &["util", "error", "key", "comparator"],
    &["filename"],
    &["env", "options"],
    &["dir_sync"],
    &["batch", "entry_chunk", "wal"],
    &["memtable"],
    &["table"],
    &["version"],
    &["compaction", "stall", "obsolete_files", "snapshot"],
    &["read"],
    &["wal/manager", "wal/log_segment", "wal/blob_segments"],
    &["store"],
    &["wal/room", "wal/rotate"],
    &[
        "write",
        "stall/delay_write",
        "compaction/background",
        "compaction/schedule",
        "compaction/flush",
        "compaction/manual",
        "compaction/inputs",
        "compaction/job",
        "compaction/dictionary",
        "compaction/outputs",
        "compaction/repeats",
        "compaction/room",
        "compaction/turns",
        "delete_obsolete",
        "keyspace_changes",
        "bulk_load",
        "checkpoint",
        "resume",
        "verify",
        "stats",
        "cursor_home",
        "gap_finder",
    ],
    &["destroy"],
    &["recovery", "repair"],
    &["handle"],
    &["keyspace"],
    &["db"],
    &["fuzzing"],
];

/// Where `unsafe` may stand.
const UNSAFE: &[(&str, &str)] = &[
    ("util/prefetch.rs", "an instruction without effect on memory"),
    ("env/map.rs", "memory shared with files"),
    ("env/os.rs", "mapping a file"),
    ("env/forks.rs", "asking to be told of forks, and what is done in a child"),
    ("env/system.rs", "system calls without a safe wrapper"),
    ("env/heap.rs", "heap memory that plays a file, for tests"),
    ("wal/", "records written and read in place in a mapping"),
    ("memtable/mod.rs", "one writer at a time in the index"),
    ("memtable/cursor.rs", "entries that a walk takes together"),
    ("memtable/index/", "nodes of the index, shared with readers"),
    ("entry_chunk.rs", "entries of a source, looked at until it gives others"),
    ("read/visible_chunks.rs", "an entry that is looked at between two moves"),
    ("read/entry_view.rs", "the same"),
    ("read/visible.rs", "the same"),
    ("read/slice.rs", "a value that outlives the borrow it came from"),
    ("read/get.rs", "the same"),
    ("read/cursor.rs", "the same, of entries that an iterator gives"),
    ("table/", "validated blocks read without checking again"),
];

fn src() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

fn files(dir: &Path, out: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, out);
        } else if path.extension().is_some_and(|e| e == "rs") {
            out.push(path);
        }
    }
}

/// Every source file: its path below `src` and its text.
fn sources() -> Vec<(String, String)> {
    let mut all = Vec::new();
    files(&src(), &mut all);
    all.sort();
    let text = |p: PathBuf| {
        let name = p.strip_prefix(src()).unwrap().to_string_lossy().into_owned();
        (name, fs::read_to_string(&p).unwrap())
    };
    all.into_iter().map(text).collect()
}

/// The floor of `folder/file`, or else of the folder.
fn rank(module: &str) -> Option<usize> {
    let floor = |m: &str| RANKS.iter().position(|r| r.contains(&m));
    floor(module).or_else(|| floor(module.split('/').next()?))
}

fn is_test(name: &str) -> bool {
    let last = name.rsplit('/').next().unwrap_or(name);
    name.contains("/tests/")
        || name.contains("/conformance/")
        || name.starts_with("crash_tests/")
        || ["tests", "testing", "bench", "speed", "simulation", "script"]
            .iter()
            .any(|t| last == format!("{t}.rs") || last.ends_with(&format!("_{t}.rs")))
}

/// The part of a file before its unit tests.
fn without_tests(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod ").next().unwrap_or(text)
}

/// Modules that a piece of code names as `crate::module` or `crate::module::file`, with a slash between.
fn named(code: &str) -> BTreeSet<String> {
    let word = |text: &str| -> String {
        text.chars().take_while(|c| c.is_ascii_lowercase() || *c == '_').collect()
    };
    let mut found = BTreeSet::new();
    for line in code.lines() {
        let code = line.split("//").next().unwrap_or("");
        for part in code.split("crate::").skip(1) {
            let name = word(part);
            let rest = &part[name.len()..];
            if let Some(rest) = rest.strip_prefix("::") {
                found.insert(format!("{name}/{}", word(rest)));
            } else if rest.starts_with([';', '}']) {
                found.insert(name);
            }
        }
    }
    found
}

#[test]
fn every_module_stands_on_lower_floors() {
    let mut wrong = Vec::new();
    for (name, text) in sources() {
        let module = name.trim_end_matches(".rs").trim_end_matches("/mod");
        if module == "lib" || is_test(&name) {
            continue;
        }
        let own = rank(module).unwrap_or_else(|| panic!("{module} has no rank: give it one"));
        for other in named(without_tests(&text)) {
            let Some(r) = rank(&other) else { continue };
            if r > own {
                wrong.push(format!("{name} ({module}) names {other}, which is above it"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn unsafe_code_stands_in_listed_modules_and_says_why_it_is_sound() {
    let mut wrong = Vec::new();
    for (name, text) in sources() {
        let lines: Vec<&str> = text.lines().collect();
        for (at, line) in lines.iter().enumerate() {
            let code = line.split("//").next().unwrap_or("");
            let is_use = ["unsafe {", "unsafe impl"].iter().any(|u| code.contains(u));
            if !is_use {
                continue;
            }
            if !is_test(&name) && !UNSAFE.iter().any(|(place, _)| name.starts_with(place)) {
                wrong.push(format!("{name}:{}: unsafe is not allowed here", at + 1));
            }
            let before = lines[at.saturating_sub(8)..=at].join("\n");
            if !before.contains("SAFETY") {
                wrong.push(format!("{name}:{}: no SAFETY comment", at + 1));
            }
        }
    }
    let architecture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/ARCHITECTURE.md");
    let text = fs::read_to_string(architecture).unwrap();
    let section =
        text.split("## Unsafe code").nth(1).and_then(|s| s.split("\n## ").next()).unwrap();
    let mut told = Vec::new();
    for row in section.lines().filter(|l| l.starts_with("| `")) {
        let modules = row.split('|').nth(1).unwrap().split('`').skip(1).step_by(2);
        let mut folder = "";
        for module in modules {
            folder = module.split_once('/').map_or(folder, |(folder, _)| folder);
            let file = module.rsplit('/').next().unwrap();
            told.push(if folder.is_empty() { file.into() } else { format!("{folder}/{file}") });
        }
    }
    let is_engine = |name: &str| !is_test(name) && !name.ends_with("fuzz.rs");
    for (name, text) in sources().iter().filter(|(n, _)| is_engine(n)) {
        let uses = without_tests(text).contains("unsafe {");
        if uses && !told.iter().any(|module| name.starts_with(module)) {
            wrong.push(format!("{name}: the architecture's table of unsafe code lacks it"));
        }
    }
    for (place, _) in UNSAFE {
        let used = sources().iter().any(|(n, t)| n.starts_with(place) && t.contains("unsafe"));
        assert!(used, "{place} is listed for unsafe and has none");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Where `unsafe` may stand in the crate that reads other stores: where their libraries are called.
const UNSAFE_OF_TRANSFER: &[&str] = &["library.rs", "lmdb.rs", "rocksdb.rs", "sqlite.rs"];

#[test]
fn other_stores_are_read_without_unsafe_code_but_by_their_libraries() {
    let root = src().join("../../esker-transfer/src");
    let mut all = Vec::new();
    files(&root, &mut all);
    assert!(all.len() > 20, "only {} files", all.len());
    let mut used = BTreeSet::new();
    for path in all {
        let name = path.strip_prefix(&root).unwrap().to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("//!"), "{name} does not begin with what it is about");
        assert!(text.lines().count() <= 600, "{name} is too long");
        let lines: Vec<&str> = text.lines().collect();
        for (at, line) in lines.iter().enumerate() {
            let code = line.split("//").next().unwrap_or("");
            if !["unsafe {", "unsafe impl"].iter().any(|u| code.contains(u)) {
                continue;
            }
            let place = format!("{name}:{}", at + 1);
            assert!(UNSAFE_OF_TRANSFER.contains(&&*name), "{place}: unsafe is not allowed here");
            let before = lines[at.saturating_sub(8)..=at].join("\n");
            assert!(before.contains("SAFETY"), "{place}: no SAFETY comment");
            used.insert(name.clone());
        }
    }
    assert_eq!(used.len(), UNSAFE_OF_TRANSFER.len(), "only {used:?} have unsafe code");
}

#[test]
fn only_env_asks_the_operating_system_for_files() {
    let mut wrong = Vec::new();
    for (name, text) in sources() {
        // Where fuzzers put their stores.
        if name.starts_with("env/") || name == "fuzzing/scratch.rs" || is_test(&name) {
            continue;
        }
        for (at, line) in without_tests(&text).lines().enumerate() {
            let code = line.split("//").next().unwrap_or("");
            let asks = [
                "std::fs",
                "rustix::fs",
                "File::open",
                "File::create",
                ".exists()",
                "try_exists",
                ".is_file()",
                ".is_dir()",
                ".is_symlink()",
                ".metadata()",
                ".read_dir()",
                ".canonicalize()",
                "\"/",
            ];
            if asks.iter().any(|w| code.contains(w)) {
                wrong.push(format!("{name}:{}: {}", at + 1, line.trim()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn files_can_be_read_in_one_sitting_and_are_finished() {
    let mut wrong = Vec::new();
    for (name, text) in sources() {
        let lines = text.lines().count();
        if lines > 600 {
            wrong.push(format!("{name} has {lines} lines"));
        }
        if !text.starts_with("//!") {
            wrong.push(format!("{name} does not begin with what it is about"));
        }
        if is_test(&name) {
            continue;
        }
        for mark in ["TODO", "FIXME", "XXX", "dbg!(", "todo!(", "unimplemented!("] {
            if text.contains(mark) {
                wrong.push(format!("{name} has an unfinished mark: {mark}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The types that a file declares before its unit tests: every `struct`, `enum`, `union` and `trait`, and each
/// `type` at the margin. (Further in, `type` is an associated one, whose name its trait gives.)
fn types(text: &str) -> BTreeSet<&str> {
    let mut found = BTreeSet::new();
    for line in without_tests(text).lines() {
        let code = line.split("//").next().unwrap_or("");
        let mut words =
            code.split_whitespace().skip_while(|w| w.starts_with("pub") || *w == "unsafe");
        // `pub(in a::path)` is two words.
        let Some(mut what) = words.next() else { continue };
        if what.ends_with(')') {
            what = words.next().unwrap_or("");
        }
        let is_type = matches!(what, "struct" | "enum" | "union" | "trait")
            || what == "type" && !line.starts_with(' ');
        let name = words.next().unwrap_or("");
        let end = name.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(name.len());
        if is_type && name.starts_with(|c: char| c.is_uppercase()) {
            found.insert(&name[..end]);
        }
    }
    found
}

/// One name, one thing: whoever searches for a type finds one. Tests may use short names for what is theirs.
#[test]
fn no_two_types_have_one_name() {
    let sources = sources();
    let mut places: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let is_tests = |name: &str| {
        name.contains("/tests/")
            || name.contains("/conformance/")
            || name.starts_with("crash_tests/")
            || name.ends_with("tests.rs")
    };
    for (name, text) in sources.iter().filter(|(name, _)| !is_tests(name)) {
        for found in types(text) {
            places.entry(found).or_default().push(name);
        }
    }
    assert!(places.len() > 200, "only {} types were found", places.len());
    places.retain(|_, files| files.len() > 1);
    let mut wrong = Vec::new();
    for (name, files) in &places {
        wrong.push(format!("{name} is declared in {}", files.join(" and ")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The pages name files of the engine that are there.
#[test]
fn the_pages_name_files_that_are_there() {
    let docs = src().join("../../../docs");
    let folders = ["", "design", "format"].map(|folder| docs.join(folder));
    let pages = folders.iter().flat_map(|f| fs::read_dir(f).unwrap()).map(|e| e.unwrap().path());
    let mut named = 0;
    for page in pages.filter(|p| p.extension().is_some_and(|e| e == "md")) {
        let text = fs::read_to_string(&page).unwrap();
        for name in text.split('`').skip(1).step_by(2).filter(|n| n.ends_with(".rs")) {
            let room = name.split('/').next().unwrap();
            if name.contains('/') && src().join(room).is_dir() {
                named += 1;
                assert!(src().join(name).exists(), "{} names {name}", page.display());
            }
        }
    }
    assert!(named > 20, "only {named} files are named");
}

/// Pages below this folder, and their text. What other programs leave there is none of ours.
fn pages(dir: &Path, out: &mut Vec<(PathBuf, String)>) {
    for path in fs::read_dir(dir).unwrap().map(|e| e.unwrap().path()) {
        let name = path.file_name().unwrap().to_string_lossy();
        if path.is_dir() {
            if !name.starts_with('.') && !["target", "node_modules", "venv"].contains(&&*name) {
                pages(&path, out);
            }
        } else if name.ends_with(".md") {
            let text = fs::read_to_string(&path).unwrap();
            out.push((path, text));
        }
    }
}

/// Of a table of results that was measured anew the old name stayed in a page.
#[test]
fn links_of_the_pages_lead_somewhere() {
    let root = src().join("../../..");
    let mut all = Vec::new();
    pages(&root.join("docs"), &mut all);
    pages(&root.join("bindings"), &mut all);
    let top = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"].map(|name| root.join(name));
    all.extend(top.map(|path| (path.clone(), fs::read_to_string(&path).unwrap())));
    let (mut links, mut dead) = (0, Vec::new());
    for (page, text) in &all {
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let file = link.split(['#', ' ']).next().unwrap();
            if file.is_empty() || file.contains("://") {
                continue;
            }
            links += 1;
            if !page.parent().unwrap().join(file).exists() {
                dead.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(dead.is_empty(), "{}", dead.join("\n"));
    assert!(links > 100, "only {links} links");
}

/// `scripts/test.sh` needs a newer compiler than the library, which the README did not say.
#[test]
fn the_first_page_names_the_compilers_that_are_needed() {
    let root = src().join("../../..");
    let read = |path: &str| fs::read_to_string(root.join(path)).unwrap();
    let version = |text: &str| {
        let line = text.lines().find_map(|l| l.strip_prefix("rust-version = \"")).unwrap();
        line.split('"').next().unwrap().to_owned()
    };
    let (library, tests) =
        (version(&read("Cargo.toml")), version(&read("crates/esker-crashtest/Cargo.toml")));
    let readme = read("README.md");
    assert!(readme.contains(&format!(" {library} or newer (the tests: {tests})")));
    assert!(read("CONTRIBUTING.md").contains(&format!("Rust {tests} or newer")));
}

/// What mutants are made of is there: a folder that was renamed would be left out without a word.
#[test]
fn the_modules_that_are_mutated_are_there() {
    let root = src().join("../../..");
    let text = fs::read_to_string(root.join(".cargo/mutants.toml")).unwrap();
    let globs = &text[..text.find("exclude_globs").unwrap()];
    let named: Vec<&str> = globs.split('"').skip(1).step_by(2).collect();
    assert!(named.len() >= 5, "{named:?}");
    for glob in named {
        assert!(root.join(glob.trim_end_matches("/**")).exists(), "{glob}");
    }
}

/// The map of the house names rooms that are there, and every room.
#[test]
fn the_architecture_names_what_is_there() {
    let text = include_str!("../../../docs/ARCHITECTURE.md");
    let start = text.find("## The folders").unwrap();
    let part = &text[start..start + text[start..].find("### Layers").unwrap()];
    let named: BTreeSet<&str> = part.split('`').skip(1).step_by(2).collect();
    let there =
        |name: &str| src().join(name).exists() || src().join("../../..").join(name).exists();
    for name in named.iter().filter(|n| n.contains('/') || n.ends_with(".rs")) {
        assert!(there(name), "{name} is named and is not there");
    }
    let here = fs::read_dir(src()).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
    for name in here.filter(|n| !is_test(n) && !n.ends_with("_tests") && n != "lib.rs") {
        let is_named = named.contains(&*name) || named.contains(&*format!("{name}/"));
        assert!(is_named || name == "crash_tests", "{name} is not named");
    }
}
