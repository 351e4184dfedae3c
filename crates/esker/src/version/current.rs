//! `CURRENT`: one line that names the manifest in force.
//!
//! `MANIFEST-0000000007 512 <16 hex digits: XXH3 of what is before>\n`. The number in the middle is
//! a length in bytes that the manifest had: it only grows, so one that is shorter has lost its end.
//! The file is replaced whole: a temporary one is written and synced, then renamed over it.

use std::path::Path;

use xxhash_rust::xxh3::xxh3_64;

use crate::dir_sync::DirSync;
use crate::env::{Env, OpenMode};
use crate::error::{Error, Result};
use crate::filename::{self, CURRENT, CURRENT_TEMP, MANIFEST_PREFIX};

/// How long the manifest was at some moment: one that ends before has lost its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ManifestEnd {
    /// Number of the manifest.
    pub number: u64,
    /// Its length in bytes.
    pub end: u64,
}

pub(super) fn line(manifest: ManifestEnd) -> String {
    let what = format!("{} {}", filename::manifest(manifest.number), manifest.end);
    let sum = xxh3_64(what.as_bytes());
    format!("{what} {sum:016x}\n")
}

fn parse(line_: &str) -> Option<ManifestEnd> {
    let mut words = line_.split(' ');
    let number = filename::manifest_number(words.next()?)?;
    let manifest = ManifestEnd { number, end: words.next()?.parse().ok()? };
    (line(manifest) == line_).then_some(manifest)
}

/// The manifest in force, and how long it was at least; `None` when there is no `CURRENT`.
///
/// A name with a path in it cannot be parsed, and a symbolic link is refused by [`Env::open`]: the
/// manifest is in this directory or nowhere.
pub(super) fn read(env: &dyn Env, dir: &Path) -> Result<Option<ManifestEnd>> {
    let path = dir.join(CURRENT);
    let fail = |verb: &'static str| {
        let path = path.clone();
        move |e| Error::io(verb, &path, e)
    };
    if !env.exists(&path).map_err(fail("look for"))? {
        return Ok(None);
    }
    let file = env.open(&path, OpenMode::Read).map_err(fail("open"))?;
    let len = file.len().map_err(fail("read the length of"))?;
    if len > 256 {
        return Err(Error::corrupt(&path, 256, "longer than the one line it should hold"));
    }
    let mut bytes = vec![0; len as usize];
    file.read_exact_at(&mut bytes, 0).map_err(fail("read"))?;
    match std::str::from_utf8(&bytes).ok().and_then(parse) {
        Some(manifest) => Ok(Some(manifest)),
        None => {
            let what = "not the name of a manifest, its length and their checksum";
            Err(Error::corrupt(&path, 0, what))
        }
    }
}

/// Refuses a directory of LevelDB or one of its kin, whose files have names like ours: all that could be
/// seen here is a damaged store, of which a repair makes an empty one, or none, and one would be made between
/// their files. There the line is the manifest's name alone, with fewer digits; where it is nobody's any more, or
/// the file is missing as in half a backup, the other names tell.
pub(crate) fn refuse_foreign(env: &dyn Env, dir: &Path) -> Result<()> {
    let mut line = [0; 256];
    let mut read = || {
        let file = env.open(&dir.join(CURRENT), OpenMode::Read)?;
        let len = file.len()?.min(line.len() as u64) as usize;
        file.read_exact_at(&mut line[..len], 0)?;
        Ok::<usize, std::io::Error>(len)
    };
    let (line, is_there) = match read() {
        Ok(len) => (std::str::from_utf8(&line[..len]).unwrap_or_default(), true),
        // Whoever opens the store meets what cannot be read.
        Err(e) => ("", e.kind() != std::io::ErrorKind::NotFound),
    };
    if parse(line).is_some() {
        return Ok(());
    }
    let digits = line.strip_prefix(MANIFEST_PREFIX).and_then(|l| l.strip_suffix('\n'));
    let is_foreign = digits.is_some_and(|d| has_fewer_digits(d, 1))
        || env.list(dir).is_ok_and(|names| are_foreign(&names, is_there));
    match is_foreign {
        true => Err(Error::ForeignStore { path: dir.to_path_buf() }),
        false => Ok(()),
    }
}

/// Whether it is a number as LevelDB writes it, of this many digits at least: more than six begin with no zero. Ours
/// have ten.
fn has_fewer_digits(text: &str, least: usize) -> bool {
    (least..10).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_digit())
        && (text.len() <= 6 || !text.starts_with('0'))
}

/// Whether files of LevelDB's are among these and none that only a store has. Without a `CURRENT` a log may be
/// anybody's that is called by its date.
fn are_foreign(names: &[String], with_current: bool) -> bool {
    let is_theirs = |n: &String| {
        let log = n.strip_suffix(".log").filter(|d| with_current || d.starts_with('0'));
        let table = || n.strip_suffix(".ldb").or_else(|| n.strip_suffix(".sst"));
        let number = n.strip_prefix(MANIFEST_PREFIX).or(log).or_else(table);
        number.is_some_and(|d| has_fewer_digits(d, 6))
    };
    let is_ours = |n: &String| n != CURRENT && filename::is_of_a_store(n);
    names.iter().any(is_theirs) && !names.iter().any(is_ours)
}

/// First half of setting it: the new content is durable under the temporary name. Nothing has
/// changed yet for a reader.
pub(super) fn prepare(env: &dyn Env, dir: &Path, manifest: ManifestEnd) -> Result<()> {
    let temp = dir.join(CURRENT_TEMP);
    let fail = |verb: &'static str| {
        let temp = temp.clone();
        move |e| Error::io(verb, &temp, e)
    };
    if env.exists(&temp).map_err(fail("look for"))? {
        env.remove(&temp).map_err(fail("remove"))?;
    }
    let file = env.open(&temp, OpenMode::CreateNew).map_err(fail("create"))?;
    file.write_all_at(line(manifest).as_bytes(), 0).map_err(fail("write"))?;
    file.sync().map_err(fail("sync"))
}

/// Second half: the rename, made durable. After an error either name may be in force.
pub(super) fn set(env: &dyn Env, dir: &Path, dir_sync: &DirSync) -> Result<()> {
    put_in_place(env, dir)?;
    dir_sync.sync()
}

/// The second half where it does not matter which content a power cut leaves.
pub(super) fn put_in_place(env: &dyn Env, dir: &Path) -> Result<()> {
    let current = dir.join(CURRENT);
    let renamed = env.rename(&dir.join(CURRENT_TEMP), &current);
    renamed.map_err(|e| Error::io("rename the new content over", &current, e))
}
