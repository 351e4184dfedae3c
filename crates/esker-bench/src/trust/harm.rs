//! Damage to one copy of a store.

use crate::data::Rng;
use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// A way to damage a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// One bit of one byte.
    Flip,
    /// A sector of 512 bytes is zeros.
    Zero,
    /// Up to 4 KiB are random bytes.
    Garbage,
    /// A file is cut off.
    Cut,
    /// A file is gone.
    Remove,
    /// Two files have each other's content.
    Swap,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 6] =
        [Kind::Flip, Kind::Zero, Kind::Garbage, Kind::Cut, Kind::Remove, Kind::Swap];

    /// Those that a store of so many files can be damaged in: without its only file it is not damaged
    /// but gone, and there is nothing to swap.
    pub fn of(files: usize) -> &'static [Kind] {
        if files > 1 { &Kind::ALL } else { &Kind::ALL[..4] }
    }

    /// As the head of a column.
    pub fn title(self) -> &'static str {
        match self {
            Kind::Flip => "bit flipped",
            Kind::Zero => "sector zeroed",
            Kind::Garbage => "4 KiB of garbage",
            Kind::Cut => "file cut",
            Kind::Remove => "file removed",
            Kind::Swap => "files swapped",
        }
    }
}

const SECTOR: usize = 512;

/// Copies a directory with all below it.
pub fn copy(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to).with_context(|| to.display().to_string())?;
    for entry in std::fs::read_dir(from).with_context(|| from.display().to_string())? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            std::fs::copy(entry.path(), &target).with_context(|| target.display().to_string())?;
        }
    }
    Ok(())
}

/// Files that are no part of the data: LMDB's table of readers and SQLite's index of its log, which
/// whoever opens the store first makes anew.
const NOT_DATA: [&str; 2] = ["lock.mdb", "store.sqlite-shm"];

/// Files of data with anything in them, below a directory; in order of their names.
pub fn files(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).with_context(|| dir.display().to_string())? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            found.extend(files(&entry.path())?);
        } else if entry.metadata()?.len() > 0 && !is_no_data(&entry.path()) {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}

fn is_no_data(path: &Path) -> bool {
    NOT_DATA.iter().any(|name| path.ends_with(name))
}

/// Damages the store in `dir` in a way drawn from `rng`; says what was done.
pub fn damage(dir: &Path, kind: Kind, rng: &mut Rng) -> Result<String> {
    let files = files(dir)?;
    ensure!(!files.is_empty(), "{} has no files to damage", dir.display());
    let path = pick(&files, rng)?;
    let name = |path: &Path| path.strip_prefix(dir).unwrap_or(path).display().to_string();
    let mut bytes = std::fs::read(&path)?;
    let what = match kind {
        Kind::Flip => {
            let at = used_sector(&bytes, rng) * SECTOR;
            let at = at + rng.below((bytes.len() - at).min(SECTOR) as u64) as usize;
            let bit = rng.below(8);
            bytes[at] ^= 1 << bit;
            format!("bit {bit} of byte {at} flipped")
        }
        Kind::Zero => {
            let at = used_sector(&bytes, rng) * SECTOR;
            let end = (at + SECTOR).min(bytes.len());
            bytes[at..end].fill(0);
            format!("bytes {at} to {end} zeroed")
        }
        Kind::Garbage => {
            let at = used_sector(&bytes, rng) * SECTOR;
            let end = (at + 8 * SECTOR).min(bytes.len());
            bytes[at..end].fill_with(|| rng.next_u64() as u8);
            format!("bytes {at} to {end} random")
        }
        Kind::Cut => {
            let used = bytes.iter().rposition(|byte| *byte != 0).map_or(1, |at| at + 1);
            bytes.truncate(rng.below(used as u64) as usize);
            format!("cut to {} bytes", bytes.len())
        }
        Kind::Remove => {
            std::fs::remove_file(&path)?;
            return Ok(format!("{} removed", name(&path)));
        }
        Kind::Swap => {
            let others: Vec<&PathBuf> = files.iter().filter(|other| **other != path).collect();
            ensure!(!others.is_empty(), "{} has one file only", dir.display());
            let other = others[rng.below(others.len() as u64) as usize];
            let theirs = std::fs::read(other)?;
            std::fs::write(other, bytes)?;
            std::fs::write(&path, theirs)?;
            return Ok(format!("{} and {} swapped", name(&path), name(other)));
        }
    };
    std::fs::write(&path, bytes)?;
    Ok(format!("{}: {what}", name(&path)))
}

/// A file: every other time any of them, every other time one byte of them all, so that neither small
/// files nor large ones are passed over.
fn pick(files: &[PathBuf], rng: &mut Rng) -> Result<PathBuf> {
    if rng.below(2) == 0 {
        return Ok(files[rng.below(files.len() as u64) as usize].clone());
    }
    let sizes: Vec<u64> =
        files.iter().map(|f| Ok(std::fs::metadata(f)?.len())).collect::<Result<_>>()?;
    let mut at = rng.below(sizes.iter().sum());
    for (file, size) in files.iter().zip(sizes) {
        if at < size {
            return Ok(file.clone());
        }
        at -= size;
    }
    unreachable!("the sizes are those that were summed")
}

/// A sector with anything in it: space that a file has in reserve is zeros, and damage there none.
fn used_sector(bytes: &[u8], rng: &mut Rng) -> usize {
    let used: Vec<usize> = (0..bytes.len().div_ceil(SECTOR))
        .filter(|n| bytes[n * SECTOR..].iter().take(SECTOR).any(|byte| *byte != 0))
        .collect();
    if used.is_empty() { 0 } else { used[rng.below(used.len() as u64) as usize] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_changes_what_it_says() {
        let parent = tempfile::tempdir().unwrap();
        let good = parent.path().join("good");
        std::fs::create_dir_all(good.join("sub")).unwrap();
        let mut long = vec![7; 9000];
        long.resize(1 << 20, 0);
        std::fs::write(good.join("a"), &long).unwrap();
        std::fs::write(good.join("sub/b"), b"short").unwrap();
        std::fs::write(good.join("lock"), b"").unwrap();
        assert_eq!(files(&good).unwrap().len(), 2);
        for case in 0..60u64 {
            let kind = Kind::ALL[case as usize % Kind::ALL.len()];
            let bad = parent.path().join("bad");
            copy(&good, &bad).unwrap();
            let what = damage(&bad, kind, &mut Rng::new(case)).unwrap();
            let same =
                |name| std::fs::read(good.join(name)).ok() == std::fs::read(bad.join(name)).ok();
            let changed = [same("a"), same("sub/b")].iter().filter(|same| !**same).count();
            assert_eq!(changed, if kind == Kind::Swap { 2 } else { 1 }, "{what}");
            std::fs::remove_dir_all(&bad).unwrap();
        }
    }

    #[test]
    fn one_file_alone_cannot_be_swapped() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a"), b"x").unwrap();
        assert!(!Kind::of(1).contains(&Kind::Swap) && !Kind::of(1).contains(&Kind::Remove));
        assert!(damage(dir.path(), Kind::Swap, &mut Rng::new(1)).is_err());
        std::fs::remove_file(dir.path().join("a")).unwrap();
        assert!(damage(dir.path(), Kind::Flip, &mut Rng::new(1)).is_err());
    }
}
