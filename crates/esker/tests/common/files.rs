//! Directories of stores: copies of them at a moment, and their bytes.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Names and contents of the files in a directory.
pub fn contents(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut all = BTreeMap::new();
    for name in names(dir) {
        let path = dir.join(&name);
        if path.is_file() {
            all.insert(name, fs::read(path).unwrap());
        }
    }
    all
}

/// Names in a directory, sorted.
pub fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap();
    let mut names: Vec<String> =
        entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// The files whose names end so.
pub fn ending(dir: &Path, end: &str) -> Vec<PathBuf> {
    names(dir).into_iter().filter(|n| n.ends_with(end)).map(|n| dir.join(n)).collect()
}

/// Copies a closed store.
pub fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for name in names(from) {
        if from.join(&name).is_file() {
            fs::copy(from.join(&name), to.join(&name)).unwrap();
        }
    }
}

/// Copies a store that is open as a kill at this moment would leave it. The caller writes nothing
/// meanwhile; as for the background thread, a copy counts only when it changed nothing that
/// another kill could not have left: the same names before and after, and the same manifest.
pub fn copy_as_killed(from: &Path, to: &Path) {
    for _ in 0..10_000 {
        if copy_now(from, to) {
            return;
        }
        drop(fs::remove_dir_all(to));
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    panic!("{} never came to rest", from.display());
}

/// One attempt at [`copy_as_killed`]: whether it came out of one moment.
pub fn copy_now(from: &Path, to: &Path) -> bool {
    let before = shape(from);
    before.is_some() && try_copy(from, to).is_ok() && shape(from) == before
}

fn try_copy(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    for name in names(from) {
        fs::copy(from.join(&name), to.join(&name))?;
    }
    Ok(())
}

/// What tells whether a copy is of one moment. `None` when it changes right now.
fn shape(dir: &Path) -> Option<(Vec<String>, Vec<u8>, Vec<u8>)> {
    let names = names(dir);
    let current = fs::read(dir.join("CURRENT")).ok()?;
    let manifest = std::str::from_utf8(current.split(|b| *b == b' ').next()?).ok()?;
    let manifest = fs::read(dir.join(manifest)).ok()?;
    Some((names, current, manifest))
}
